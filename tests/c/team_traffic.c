/* Everything that takes a team and a rank, with teams whose ranks are not those of the job: even
 * ranks from behind, all in an order without a rule, and this process alone; made before the
 * segments are attached and after that. */
#include "check.h"

enum { ASK = 150, MEDIUM, LONG, ANSWER, EACH = 4096 };
static volatile int answered;
static char *mine;

/* Requests hold their sender, as a rank of the job, and their target. */
static void from(gex_Token_t token, gex_AM_Arg_t sender, gex_AM_Arg_t to) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_EP);
  CHECK_EQ(info.gex_srcrank, sender);
  CHECK_SAME(info.gex_ep, ep);
  CHECK_EQ(to, me);
}
static void ask(gex_Token_t token, gex_AM_Arg_t sender, gex_AM_Arg_t to) {
  from(token, sender, to);
  gex_AM_ReplyShort1(token, ANSWER, 0, to);
}
static void medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t sender, gex_AM_Arg_t to) {
  from(token, sender, to);
  CHECK_FILLED(data, bytes, 3);
  gex_AM_ReplyShort1(token, ANSWER, 0, to);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t sender, gex_AM_Arg_t to) {
  from(token, sender, to);
  CHECK_SAME(data, mine + EACH * sender);
  CHECK_FILLED(data, bytes, 4);
  gex_AM_ReplyShort1(token, ANSWER, 0, to);
}
static void answer(gex_Token_t token, gex_AM_Arg_t to) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK_EQ(info.gex_srcrank, to);
  answered = answered + 1;
}

static void messages(gex_TM_t tm, gex_Rank_t rank) {
  gex_AM_Arg_t self = (gex_AM_Arg_t)me, to = (gex_AM_Arg_t)gex_TM_TranslateRankToJobrank(tm, rank);
  gex_AM_SrcDesc_t made;
  unsigned char bytes[3000];
  char *there = check_base((gex_Rank_t)to) + EACH * me;
  int before = answered;
  CHECK_EQ(gex_AM_MaxRequestMedium(tm, rank, GEX_EVENT_NOW, 0, 2), gex_AM_MaxRequestMedium(team, (gex_Rank_t)to, GEX_EVENT_NOW, 0, 2));
  CHECK_EQ(gex_AM_MaxRequestLong(tm, rank, GEX_EVENT_NOW, 0, 2), gex_AM_MaxRequestLong(team, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 2));
  CHECK(gex_AM_MaxReplyMedium(tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 2) > 0);
  CHECK_EQ(gex_AM_RequestShort2(tm, rank, ASK, 0, self, to), 0);
  CHECK_EQ(gex_AM_RequestShort2(tm, rank, ASK, GEX_FLAG_IMMEDIATE, self, to), 0);
  check_fill(bytes, sizeof bytes, 3);
  CHECK_EQ(gex_AM_RequestMedium2(tm, rank, MEDIUM, bytes, sizeof bytes, GEX_EVENT_NOW, 0, self, to), 0);
  check_fill(bytes, sizeof bytes, 4);
  CHECK_EQ(gex_AM_RequestLong2(tm, rank, LONG, bytes, sizeof bytes, there, GEX_EVENT_NOW, 0, self, to), 0);
  GASNET_BLOCKUNTIL(answered == before + 4);
  made = gex_AM_PrepareRequestMedium(tm, rank, NULL, 100, 400, NULL, 0, 2);
  check_fill(gex_AM_SrcDescAddr(made), 100, 3);
  gex_AM_CommitRequestMedium2(made, MEDIUM, 100, self, to);
  made = gex_AM_PrepareRequestLong(tm, rank, bytes, 1000, 2000, there, GEX_EVENT_NOW, 0, 2);
  gex_AM_CommitRequestLong2(made, LONG, 1000, there, self, to);
  GASNET_BLOCKUNTIL(answered == before + 6);
}

static void transfers(gex_TM_t tm, gex_Rank_t rank, uint32_t key) {
  gex_Rank_t to = gex_TM_TranslateRankToJobrank(tm, rank);
  char *owner, *local, *world_owner, *world_local;
  uintptr_t size, world_size;
  unsigned char bytes[700], back[700];
  gex_Event_t leaf;
  check_bound(tm, rank, &owner, &local, &size);
  check_bound(team, to, &world_owner, &world_local, &world_size);
  CHECK_SAME(owner, world_owner);
  CHECK_SAME(local, world_local);
#ifdef ARGONET_MAPPED_VERSION
  /* The inlined path is the same for both. */
  CHECK_EQ(argonet_mapped_entry(tm, rank), argonet_mapped_entry(team, to));
#endif
  CHECK_EQ(size, world_size);
  CHECK_EQ(gex_Segment_QueryBound(tm, rank, (void **)&owner, NULL, &size), 0);
  CHECK_SAME(owner, world_owner);
  owner += EACH * me;
  check_fill(bytes, sizeof bytes, key);
  CHECK_EQ(gex_RMA_PutBlocking(tm, rank, owner, bytes, sizeof bytes, 0), 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, to, owner, sizeof back, 0), 0);
  CHECK_FILLED(back, sizeof back, key);
  gex_Event_Wait(gex_RMA_PutNB(tm, rank, owner + 1001, bytes, sizeof bytes, &leaf, 0));
  CHECK_EQ(gex_RMA_PutNBI(tm, rank, owner + 2002, bytes, sizeof bytes, GEX_EVENT_DEFER, 0), 0);
  CHECK_EQ(gex_RMA_PutNBIVal(tm, rank, owner + 3000, key, 4, 0), 0);
  gex_Event_Wait(gex_RMA_PutNBVal(tm, rank, owner + 3004, key + 1, 4, 0));
  CHECK_EQ(gex_RMA_PutBlockingVal(tm, rank, owner + 3008, 77, 1, 0), 0);
  gex_NBI_Wait(GEX_EC_ALL, 0);
  memset(back, 0, sizeof back);
  gex_Event_Wait(gex_RMA_GetNB(tm, back, rank, owner + 1001, sizeof back, 0));
  CHECK_FILLED(back, sizeof back, key);
  memset(back, 0, sizeof back);
  CHECK_EQ(gex_RMA_GetNBI(tm, back, rank, owner + 2002, sizeof back, 0), 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(back, sizeof back, key);
  CHECK_EQ(gex_RMA_GetBlockingVal(tm, rank, owner + 3000, 4, 0), key);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, to, owner + 3004, 4, 0), key + 1);
  CHECK_EQ(gex_RMA_GetBlockingVal(tm, rank, owner + 3008, 1, 0), 77);
  memset(back, 0, sizeof back);
  CHECK_EQ(gex_RMA_GetBlocking(tm, back, rank, (void *)(uintptr_t)(EACH * me), sizeof back, GEX_FLAG_PEER_SEG_OFFSET), 0);
  CHECK_FILLED(back, sizeof back, key);
}

static void use(gex_TM_t tm, uint32_t key) {
  gex_Rank_t rank;
  for (rank = 0; rank < gex_TM_QuerySize(tm); ++rank) {
    transfers(tm, rank, key + rank * 10);
    messages(tm, rank);
  }
  gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* Even and odd ranks from behind; all, rotated by one and the first two changed over; this one
 * alone. */
static void make(gex_TM_t tms[3]) {
  int key = me == 0 ? 1 : me == 1 ? 0 : (int)me * 7;
  gex_TM_Split(&tms[0], team, (int)(me % 2), -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_TM_Split(&tms[1], team, 0, ranks > 2 && me == ranks - 1 ? -1 : key, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_TM_Split(&tms[2], team, (int)me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "ask"},
                            {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "answer"}};
  gex_TM_t before[3], after[3];
  gex_Rank_t rank;
  int i;
  check_start(&argc, &argv, "team_traffic");
  check_register(table, CHECK_COUNT(table));
  make(before);
  /* Nothing is bound yet, and all questions get an answer. */
  for (rank = 0; rank < gex_TM_QuerySize(before[1]); ++rank) {
    uintptr_t size = 7;
    CHECK(gex_Segment_QueryBound(before[1], rank, NULL, NULL, &size) != 0);
    CHECK_EQ(size, 7);
  }
  check_barrier();
  check_attach(EACH * ranks);
  mine = check_base(me);
  make(after);
  CHECK_OK(gex_EP_PublishBoundSegment(before[0], NULL, 0, 0));
  check_barrier();
  for (i = 0; i < 3; ++i) {
    use(before[i], (uint32_t)(1000 * me + 100000 * (unsigned)i));
    use(after[i], (uint32_t)(1000 * me + 100000 * (unsigned)i + 50000));
  }
  check_barrier();
  for (i = 0; i < 3; ++i) {
    CHECK_EQ(gex_TM_Destroy(before[i], NULL, 0), 0);
    CHECK_EQ(gex_TM_Destroy(after[i], NULL, GEX_FLAG_GLOBALLY_QUIESCED), 0);
  }
  return check_finish();
}
