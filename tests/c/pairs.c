/* gex_TM_Pair: equal for equal arguments, unlike any team and any other pair; in all put and get
 * forms, messages and queries it names the same endpoint as the team does. */
#include "check.h"

enum { ASK = 145, MEDIUM, LONG, ANSWER, SLOT = 8192 };
static volatile int answered;
static char *mine;

static void ask(gex_Token_t token) { gex_AM_ReplyShort0(token, ANSWER, 0); }
static void medium(gex_Token_t token, void *data, size_t bytes) {
  CHECK_FILLED(data, bytes, 3);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void a_long(gex_Token_t token, void *data, size_t bytes) {
  CHECK((char *)data >= mine && (char *)data < mine + SLOT * ranks);
  CHECK_FILLED(data, bytes, 4);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  answered = answered + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
                            {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  gex_TM_t pair;
  gex_Rank_t rank;
  int total = 0;
  unsigned char bytes[2000], back[2000];
  check_start(&argc, &argv, "pairs");
  check_register(table, CHECK_COUNT(table));
  check_attach(ranks * SLOT);
  mine = check_base(me);
  check_barrier();
  pair = gex_TM_Pair(ep, 0);
  CHECK(pair != GEX_TM_INVALID && pair != team);
  CHECK_SAME(gex_TM_Pair(ep, 0), pair);
#if GASNET_MAXEPS > 1
  {
    gex_EP_Index_t index;
    for (index = 1; index < GASNET_MAXEPS; ++index) {
      gex_TM_t other = gex_TM_Pair(ep, index);
      CHECK(other != GEX_TM_INVALID && other != team && other != pair);
      CHECK_SAME(gex_TM_Pair(ep, index), other);
    }
  }
#endif
  for (rank = 0; rank < ranks; ++rank) {
    char *to = check_base(rank) + me * SLOT;
    gex_Event_t event = GEX_EVENT_INVALID;
    gex_AM_SrcDesc_t made;
    check_fill(bytes, sizeof bytes, rank);
    CHECK_EQ(gex_RMA_PutBlocking(pair, rank, to, bytes, sizeof bytes, 0), 0);
    CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, sizeof back, 0), 0);
    CHECK(memcmp(bytes, back, sizeof back) == 0);
    memset(back, 0, sizeof back);
    gex_Event_Wait(gex_RMA_GetNB(pair, back, rank, to, sizeof back, 0));
    CHECK(memcmp(bytes, back, sizeof back) == 0);
    gex_Event_Wait(gex_RMA_PutNB(pair, rank, to + 1, bytes, sizeof bytes, &event, 0));
    CHECK_EQ(gex_RMA_PutNBI(pair, rank, to + 4000, bytes, sizeof bytes, GEX_EVENT_DEFER, 0), 0);
    CHECK_EQ(gex_RMA_PutNBIVal(pair, rank, to + 7000, 0xabcd, 2, 0), 0);
    gex_Event_Wait(gex_RMA_PutNBVal(pair, rank, to + 7002, 0xef, 1, 0));
    CHECK_EQ(gex_RMA_PutBlockingVal(pair, rank, to + 7003, 0x01, 1, 0), 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK_EQ(gex_RMA_GetNBI(pair, back, rank, to + 4000, sizeof back, 0), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(memcmp(bytes, back, sizeof back) == 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(pair, rank, to + 7000, 2, 0), 0xabcd);
    CHECK_EQ(gex_RMA_GetBlockingVal(pair, rank, to + 7002, 1, 0), 0xef);
    CHECK_EQ(gex_RMA_GetBlockingVal(pair, rank, to + 7003, 1, 0), 0x01);

    CHECK_EQ(gex_AM_RequestShort0(pair, rank, ASK, 0), 0);
    check_fill(bytes, 500, 3);
    CHECK_EQ(gex_AM_RequestMedium0(pair, rank, MEDIUM, bytes, 500, GEX_EVENT_NOW, 0), 0);
    check_fill(bytes, 600, 4);
    CHECK_EQ(gex_AM_RequestLong0(pair, rank, LONG, bytes, 512, to, GEX_EVENT_NOW, 0), 0);
    total += 3;
    GASNET_BLOCKUNTIL(answered == total);
    /* On an idle system a prepare that may not wait works. */
    made = gex_AM_PrepareRequestMedium(pair, rank, NULL, 100, 400, NULL, GEX_FLAG_IMMEDIATE, 0);
    CHECK(made != GEX_AM_SRCDESC_NO_OP);
    check_fill(gex_AM_SrcDescAddr(made), 100, 3);
    gex_AM_CommitRequestMedium0(made, MEDIUM, 100);
    check_fill(bytes, 512, 4);
    made = gex_AM_PrepareRequestLong(pair, rank, bytes, 100, 512, to, GEX_EVENT_NOW, 0, 0);
    gex_AM_CommitRequestLong0(made, LONG, gex_AM_SrcDescSize(made), to);
    total += 2;
    GASNET_BLOCKUNTIL(answered == total);
    check_barrier();
  }
  return check_finish();
}
