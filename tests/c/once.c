/* Every argument is evaluated exactly once, whether a call is a function or a macro. */
#include "check.h"
#include <gasnet_coll.h>

static int evaluated[16];
static int expected;

/* Counts in place `n` and gives the value through. */
#define ONE(n, value) (++evaluated[n], (value))
static void once(int line, int count) {
  int n;
  for (n = 0; n < 16; ++n) {
    int should = n < count;
    if (evaluated[n] != should) {
      char text[80];
      snprintf(text, sizeof text, "argument %d of the call here was evaluated %d times", n, evaluated[n]);
      check_fail(__FILE__, line, text);
    }
    evaluated[n] = 0;
  }
  ++expected;
}
#define ONCE(count) once(__LINE__, count)

/* A handler may run inside of a call whose arguments are counted already. */
static void enter(int *saved) {
  memcpy(saved, evaluated, sizeof evaluated);
  memset(evaluated, 0, sizeof evaluated);
}
static void leave(const int *saved) { memcpy(evaluated, saved, sizeof evaluated); }

enum { SHORT = 144, MEDIUM, LONG, ANSWER_SHORT, ANSWER_MEDIUM, ANSWER_LONG };
static volatile int answered;
static char *bases[64];

static void a_short(gex_Token_t token, gex_AM_Arg_t by) {
  int saved[16];
  gex_Token_Info_t info;
  enter(saved);
  gex_Token_Info(ONE(0, token), ONE(1, &info), ONE(2, GEX_TI_SRCRANK));
  ONCE(3);
  CHECK(gex_Token_MaxReplyMedium(ONE(0, token), ONE(1, GEX_EVENT_NOW), ONE(2, 0), ONE(3, 2)) >= 512);
  ONCE(4);
  CHECK(gex_Token_MaxReplyLong(ONE(0, token), ONE(1, GEX_EVENT_NOW), ONE(2, 0), ONE(3, 2)) >= 512);
  ONCE(4);
  if (by) gex_AM_ReplyShort1(ONE(0, token), ONE(1, ANSWER_SHORT), ONE(2, 0), ONE(3, 1));
  else gex_AM_ReplyShort(ONE(0, token), ONE(1, ANSWER_SHORT), ONE(2, 0), ONE(3, 1));
  ONCE(4);
  leave(saved);
}
static void medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t by) {
  int saved[16];
  enter(saved);
  if (by == 0) {
    gex_AM_ReplyMedium1(ONE(0, token), ONE(1, ANSWER_MEDIUM), ONE(2, data), ONE(3, bytes), ONE(4, GEX_EVENT_NOW), ONE(5, 0),
                        ONE(6, 1));
    ONCE(7);
  } else if (by == 1) {
    gex_AM_ReplyMedium(ONE(0, token), ONE(1, ANSWER_MEDIUM), ONE(2, data), ONE(3, bytes), ONE(4, GEX_EVENT_NOW), ONE(5, 0),
                       ONE(6, 1));
    ONCE(7);
  } else {
    gex_AM_SrcDesc_t made = gex_AM_PrepareReplyMedium(ONE(0, token), ONE(1, data), ONE(2, bytes), ONE(3, bytes),
                                                      ONE(4, GEX_EVENT_NOW), ONE(5, 0), ONE(6, 1));
    ONCE(7);
    gex_AM_CommitReplyMedium1(ONE(0, made), ONE(1, ANSWER_MEDIUM), ONE(2, bytes), ONE(3, 1));
    ONCE(4);
  }
  leave(saved);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t by, gex_AM_Arg_t from) {
  int saved[16];
  char *to = bases[from] + 2048;
  enter(saved);
  if (by == 0) {
    gex_AM_ReplyLong1(ONE(0, token), ONE(1, ANSWER_LONG), ONE(2, data), ONE(3, bytes), ONE(4, to), ONE(5, GEX_EVENT_NOW),
                      ONE(6, 0), ONE(7, 1));
    ONCE(8);
  } else if (by == 1) {
    gex_AM_ReplyLong(ONE(0, token), ONE(1, ANSWER_LONG), ONE(2, data), ONE(3, bytes), ONE(4, to), ONE(5, GEX_EVENT_NOW),
                     ONE(6, 0), ONE(7, 1));
    ONCE(8);
  } else {
    gex_AM_SrcDesc_t made = gex_AM_PrepareReplyLong(ONE(0, token), ONE(1, data), ONE(2, bytes), ONE(3, bytes), ONE(4, to),
                                                    ONE(5, GEX_EVENT_NOW), ONE(6, 0), ONE(7, 1));
    ONCE(8);
    CHECK_EQ(gex_AM_CommitReplyLong1_v2(ONE(0, made), ONE(1, ANSWER_LONG), ONE(2, bytes), ONE(3, to), ONE(4, 0), ONE(5, 1)), 0);
    ONCE(6);
  }
  leave(saved);
}
static void answer_short(gex_Token_t token, gex_AM_Arg_t one) {
  (void)token;
  answered = answered + one;
}
static void answer_data(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t one) {
  (void)token, (void)data;
  CHECK_EQ(bytes, 32);
  answered = answered + one;
}

static void messages(gex_Rank_t rank, char *to) {
  static char source[32];
  char *from = source;
  int total = answered, by;
  gex_AM_SrcDesc_t made;
  gex_AM_RequestShort1(ONE(0, team), ONE(1, rank), ONE(2, SHORT), ONE(3, 0), ONE(4, 1));
  ONCE(5);
  gex_AM_RequestShort(ONE(0, team), ONE(1, rank), ONE(2, SHORT), ONE(3, 0), ONE(4, 0));
  ONCE(5);
  for (by = 0; by < 3; ++by) {
    gex_AM_RequestMedium1(ONE(0, team), ONE(1, rank), ONE(2, MEDIUM), ONE(3, from), ONE(4, 32), ONE(5, GEX_EVENT_NOW),
                          ONE(6, 0), ONE(7, by));
    ONCE(8);
    gex_AM_RequestMedium(ONE(0, team), ONE(1, rank), ONE(2, MEDIUM), ONE(3, from), ONE(4, 32), ONE(5, GEX_EVENT_NOW),
                         ONE(6, 0), ONE(7, by));
    ONCE(8);
    gex_AM_RequestLong2(ONE(0, team), ONE(1, rank), ONE(2, LONG), ONE(3, from), ONE(4, 32), ONE(5, to),
                        ONE(6, GEX_EVENT_NOW), ONE(7, 0), ONE(8, by), ONE(9, (gex_AM_Arg_t)me));
    ONCE(10);
    gex_AM_RequestLong(ONE(0, team), ONE(1, rank), ONE(2, LONG), ONE(3, from), ONE(4, 32), ONE(5, to),
                       ONE(6, GEX_EVENT_NOW), ONE(7, 0), ONE(8, by), ONE(9, (gex_AM_Arg_t)me));
    ONCE(10);
  }
  made = gex_AM_PrepareRequestMedium(ONE(0, team), ONE(1, rank), ONE(2, from), ONE(3, 32), ONE(4, 32),
                                     ONE(5, GEX_EVENT_NOW), ONE(6, 0), ONE(7, 1));
  ONCE(8);
  CHECK_SAME(gex_AM_SrcDescAddr(ONE(0, made)), from);
  ONCE(1);
  CHECK_EQ(gex_AM_SrcDescSize(ONE(0, made)), 32);
  ONCE(1);
  CHECK_EQ(gex_AM_CancelRequestMedium(ONE(0, made), ONE(1, 0)), 0);
  ONCE(2);
  made = gex_AM_PrepareRequestMedium(team, rank, from, 32, 32, GEX_EVENT_NOW, 0, 1);
  CHECK_EQ(gex_AM_CommitRequestMedium_v2(ONE(0, made), ONE(1, MEDIUM), ONE(2, 32), ONE(3, 0), ONE(4, 0)), 0);
  ONCE(5);
  made = gex_AM_PrepareRequestLong(ONE(0, team), ONE(1, rank), ONE(2, from), ONE(3, 32), ONE(4, 32), ONE(5, to),
                                   ONE(6, GEX_EVENT_NOW), ONE(7, 0), ONE(8, 2));
  ONCE(9);
  gex_AM_CommitRequestLong2(ONE(0, made), ONE(1, LONG), ONE(2, 32), ONE(3, to), ONE(4, 0), ONE(5, (gex_AM_Arg_t)me));
  ONCE(6);
  GASNET_BLOCKUNTIL(answered == total + 16);
}

static void limits(gex_Rank_t rank) {
  CHECK(gex_AM_MaxRequestMedium(ONE(0, team), ONE(1, rank), ONE(2, GEX_EVENT_NOW), ONE(3, 0), ONE(4, 3)) >= 512);
  ONCE(5);
  CHECK(gex_AM_MaxReplyMedium(ONE(0, team), ONE(1, rank), ONE(2, GEX_EVENT_NOW), ONE(3, 0), ONE(4, 3)) >= 512);
  ONCE(5);
  CHECK(gex_AM_MaxRequestLong(ONE(0, team), ONE(1, rank), ONE(2, GEX_EVENT_NOW), ONE(3, 0), ONE(4, 3)) >= 512);
  ONCE(5);
  CHECK(gex_AM_MaxReplyLong(ONE(0, team), ONE(1, rank), ONE(2, GEX_EVENT_NOW), ONE(3, 0), ONE(4, 3)) >= 512);
  ONCE(5);
}

static void put_and_get(gex_Rank_t rank, char *to) {
  char local[16];
  gex_Event_t event, leaf;
  memset(local, 1, sizeof local);
  gex_RMA_PutBlocking(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, local), ONE(4, 8), ONE(5, 0));
  ONCE(6);
  gex_RMA_PutNBI(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, local), ONE(4, 8), ONE(5, GEX_EVENT_NOW), ONE(6, 0));
  ONCE(7);
  event = gex_RMA_PutNB(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, local), ONE(4, 8), ONE(5, &leaf), ONE(6, 0));
  ONCE(7);
  gex_Event_Wait(ONE(0, leaf));
  ONCE(1);
  gex_Event_Wait(ONE(0, event));
  ONCE(1);
  gex_RMA_GetBlocking(ONE(0, team), ONE(1, local), ONE(2, rank), ONE(3, to), ONE(4, 8), ONE(5, 0));
  ONCE(6);
  gex_RMA_GetNBI(ONE(0, team), ONE(1, local), ONE(2, rank), ONE(3, to), ONE(4, 8), ONE(5, 0));
  ONCE(6);
  event = gex_RMA_GetNB(ONE(0, team), ONE(1, local), ONE(2, rank), ONE(3, to), ONE(4, 8), ONE(5, 0));
  ONCE(6);
  while (gex_Event_Test(event)) gasnet_AMPoll();
  gex_RMA_PutBlockingVal(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, 5), ONE(4, 2), ONE(5, 0));
  ONCE(6);
  gex_RMA_PutNBIVal(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, 5), ONE(4, 2), ONE(5, 0));
  ONCE(6);
  event = gex_RMA_PutNBVal(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, 5), ONE(4, 2), ONE(5, 0));
  ONCE(6);
  gex_Event_WaitAll(ONE(0, &event), ONE(1, 1), ONE(2, 0));
  ONCE(3);
  CHECK_EQ(gex_Event_TestAll(ONE(0, &event), ONE(1, 1), ONE(2, 0)), 0);
  ONCE(3);
  CHECK_EQ(gex_Event_TestSome(ONE(0, &event), ONE(1, 1), ONE(2, 0)), 0);
  ONCE(3);
  gex_Event_WaitSome(ONE(0, &event), ONE(1, 1), ONE(2, 0));
  ONCE(3);
  gex_NBI_Wait(ONE(0, GEX_EC_ALL), ONE(1, 0));
  ONCE(2);
  CHECK_EQ(gex_NBI_Test(ONE(0, GEX_EC_PUT), ONE(1, 0)), 0);
  ONCE(2);
  CHECK_EQ(gex_RMA_GetBlockingVal(ONE(0, team), ONE(1, rank), ONE(2, to), ONE(3, 2), ONE(4, 0)), 5);
  ONCE(5);
}

static void objects(gex_Rank_t rank) {
  void *owner = NULL, *local = NULL;
  uintptr_t size = 0;
  CHECK_EQ(gex_TM_QueryRank(ONE(0, team)), me);
  ONCE(1);
  CHECK_EQ(gex_TM_QuerySize(ONE(0, team)), ranks);
  ONCE(1);
  CHECK_SAME(gex_TM_QueryEP(ONE(0, team)), ep);
  ONCE(1);
  CHECK_SAME(gex_EP_QuerySegment(ONE(0, ep)), segment);
  ONCE(1);
  CHECK(gex_Segment_QueryAddr(ONE(0, segment)) != NULL);
  ONCE(1);
  CHECK(gex_Segment_QuerySize(ONE(0, segment)) != 0);
  ONCE(1);
  CHECK(gex_TM_Pair(ONE(0, ep), ONE(1, 0)) != GEX_TM_INVALID);
  ONCE(2);
  gex_TM_SetCData(ONE(0, team), ONE(1, &owner));
  ONCE(2);
  CHECK_SAME(gex_TM_QueryCData(ONE(0, team)), &owner);
  ONCE(1);
  CHECK_EQ(gex_TM_TranslateRankToJobrank(ONE(0, team), ONE(1, rank)), rank);
  ONCE(2);
  CHECK_EQ(gex_TM_TranslateJobrankToRank(ONE(0, team), ONE(1, rank)), rank);
  ONCE(2);
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(ONE(0, team), ONE(1, rank), ONE(2, &owner), ONE(3, &local), ONE(4, &size), ONE(5, 0)));
  ONCE(6);
  gex_Event_Wait(gex_Coll_BarrierNB(ONE(0, team), ONE(1, 0)));
  ONCE(2);
  owner = &owner;
  gex_Event_Wait(gex_Coll_BroadcastNB(ONE(0, team), ONE(1, 0), ONE(2, &local), ONE(3, &owner), ONE(4, sizeof owner), ONE(5, 0)));
  ONCE(6);
  CHECK_OK(gasnet_barrier(ONE(0, 5), ONE(1, 0)));
  ONCE(2);
  gasnet_barrier_notify(ONE(0, 5), ONE(1, 0));
  ONCE(2);
  CHECK_OK(gasnet_barrier_wait(ONE(0, 5), ONE(1, 0)));
  ONCE(2);
  CHECK(gasnet_ErrorName(ONE(0, GASNET_OK)) != NULL);
  ONCE(1);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {SHORT, (gex_AM_Fn_t)a_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "short"},
      {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, "long"},
      {ANSWER_SHORT, (gex_AM_Fn_t)answer_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "answer_short"},
      {ANSWER_MEDIUM, (gex_AM_Fn_t)answer_data, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, "answer_medium"},
      {ANSWER_LONG, (gex_AM_Fn_t)answer_data, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "answer_long"}};
  gex_Rank_t step;
  check_start(&argc, &argv, "once");
  check_register(table, CHECK_COUNT(table));
  CHECK_OK(gex_Segment_Attach(ONE(0, &segment), ONE(1, team), ONE(2, GASNET_PAGESIZE)));
  ONCE(3);
  for (step = 0; step < ranks; ++step) bases[step] = check_base(step);
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    gex_Rank_t rank = step;
    limits(rank);
    if (me == 0) put_and_get(rank, bases[rank]);
    check_barrier();
    if (me == 0) messages(rank, bases[rank] + 1024);
    check_barrier();
    objects(rank);
  }
  CHECK(expected > 60);
  return check_finish();
}
