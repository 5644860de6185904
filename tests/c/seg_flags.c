/* Flags that say where memory lies: where they are true they change nothing, in put, get, medium
 * and long messages. */
#include "check.h"

enum { SLOT = 16384, MEDIUM = 150, LONG, MEDIUM_ANSWER, LONG_ANSWER };
static volatile int answered;
static char *bases[64];

static gex_Rank_t source_of(gex_Token_t token) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  return info.gex_srcrank;
}
static char *slot(gex_Rank_t at, gex_Rank_t from) { return bases[at] + (from + 1) * SLOT; }

static void medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t flags) {
  CHECK_FILLED(data, bytes, 5);
  /* A handler's buffer lies in no segment; the flag of the reply says no more. */
  (void)flags;
  CHECK_EQ(gex_AM_ReplyMedium1(token, MEDIUM_ANSWER, data, bytes, GEX_EVENT_NOW, GEX_FLAG_SELF_SEG_UNKNOWN, 1), 0);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t flags) {
  CHECK_SAME(data, slot(me, source_of(token)));
  CHECK_FILLED(data, bytes, 6);
  /* The payload lies in the segment here, and so does the place that it goes back to. */
  CHECK_EQ(gex_AM_ReplyLong1(token, LONG_ANSWER, data, bytes, slot(source_of(token), me) + SLOT / 2, GEX_EVENT_NOW,
                             GEX_FLAG_SELF_SEG_BOUND | GEX_FLAG_PEER_SEG_BOUND, flags), 0);
}
static void medium_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t one) {
  (void)token;
  CHECK_FILLED(data, bytes, 5);
  answered = answered + one;
}
static void long_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t flags) {
  (void)flags;
  CHECK_SAME(data, slot(me, source_of(token)) + SLOT / 2);
  CHECK_FILLED(data, bytes, 6);
  answered = answered + 1;
}

/* With one flag about the local side and one about the other. */
static void with(gex_Rank_t rank, gex_Flags_t flags, int in_segment) {
  static unsigned char outside[3000], outside_too[3000];
  unsigned char *from = in_segment ? (unsigned char *)bases[me] : outside;
  unsigned char *back = in_segment ? (unsigned char *)bases[me] + SLOT / 2 : outside_too;
  char *to = slot(rank, me);
  gex_Event_t leaf = GEX_EVENT_INVALID;
  int total = answered;
  check_fill(from, 3000, rank);
  CHECK_EQ(gex_RMA_PutBlocking(team, rank, to, from, 3000, flags), 0);
  memset(back, 0, 3000);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, 3000, flags), 0);
  CHECK_FILLED(back, 3000, rank);
  gex_Event_Wait(gex_RMA_PutNB(team, rank, to + 1, from, 2000, &leaf, flags));
  CHECK_EQ(gex_RMA_PutNBI(team, rank, to + 3001, from, 3000, GEX_EVENT_DEFER, flags), 0);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  gex_Event_Wait(gex_RMA_GetNB(team, back, rank, to + 1, 2000, flags));
  CHECK_FILLED(back, 2000, rank);
  CHECK_EQ(gex_RMA_GetNBI(team, back, rank, to + 3001, 3000, flags), 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(back, 3000, rank);

  check_fill(from, 500, 5);
  CHECK_EQ(gex_AM_RequestMedium1(team, rank, MEDIUM, from, 500, GEX_EVENT_NOW,
                                 flags & (GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_SELF_SEG_SOME | GEX_FLAG_SELF_SEG_BOUND), 1), 0);
  check_fill(from, 500, 6);
  CHECK_EQ(gex_AM_RequestLong1(team, rank, LONG, from, 500, to, GEX_EVENT_NOW, flags, 0), 0);
  GASNET_BLOCKUNTIL(answered == total + 2);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, "long"},
      {MEDIUM_ANSWER, (gex_AM_Fn_t)medium_answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, "medium_answer"},
      {LONG_ANSWER, (gex_AM_Fn_t)long_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "long_answer"}};
  static const gex_Flags_t self[] = {0, GEX_FLAG_SELF_SEG_UNKNOWN, GEX_FLAG_SELF_SEG_SOME, GEX_FLAG_SELF_SEG_BOUND};
  static const gex_Flags_t peer[] = {0, GEX_FLAG_PEER_SEG_UNKNOWN, GEX_FLAG_PEER_SEG_SOME, GEX_FLAG_PEER_SEG_BOUND};
  gex_Rank_t rank;
  size_t s, p;
  check_start(&argc, &argv, "seg_flags");
  CHECK(ranks <= CHECK_COUNT(bases));
  check_register(table, CHECK_COUNT(table));
  check_attach((ranks + 1) * (uintptr_t)SLOT);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank)
    for (s = 0; s < CHECK_COUNT(self); ++s)
      for (p = 0; p < CHECK_COUNT(peer); ++p) {
        with(rank, self[s] | peer[p], 1);
        if (self[s] == 0 || self[s] == GEX_FLAG_SELF_SEG_UNKNOWN) with(rank, self[s] | peer[p], 0);
      }
  return check_finish();
}
