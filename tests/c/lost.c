/* A job that goes on without its last rank, which kills itself in the middle: requests to it return
 * ARGONET_ERR_PEER_LOST, puts, gets, atomics and collective calls complete, the handler is called
 * once, and the team of the others works. */
#include "check.h"

#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>

#include <signal.h>
#include <unistd.h>

enum { HELLO = 130, ANSWER, TAKE, GO, BYTES = 8192 };

static volatile int answered, taken, goes, calls;
static volatile gex_Rank_t lost_rank = GEX_RANK_INVALID;
static int mark;

static void lost(gex_Rank_t jobrank, void *context) {
  if (context != &mark) check_fail(__FILE__, __LINE__, "the handler's context");
  lost_rank = jobrank;
  calls = calls + 1;
}

static void hello(gex_Token_t token) { CHECK_EQ(gex_AM_ReplyShort0(token, ANSWER, 0), 0); }

static void answer(gex_Token_t token) {
  (void)token;
  answered = answered + 1;
}

static void take(gex_Token_t token, void *bytes, size_t count) {
  (void)token, (void)bytes, (void)count;
  taken = taken + 1;
}

static void go(gex_Token_t token) {
  (void)token;
  goes = goes + 1;
}

/* Messages to the lost rank. */
static void messages(gex_TM_t to, gex_Rank_t dead, char *there) {
  static char bytes[BYTES];
  gex_AM_SrcDesc_t prepared;
  gex_Event_t local = GEX_EVENT_NO_OP;
  CHECK_EQ(gex_AM_RequestShort0(to, dead, HELLO, 0), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gex_AM_RequestShort0(to, dead, HELLO, GEX_FLAG_IMMEDIATE), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gex_AM_RequestMedium0(to, dead, TAKE, bytes, 64, GEX_EVENT_NOW, 0), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gex_AM_RequestMedium0(to, dead, TAKE, bytes, 64, &local, 0), ARGONET_ERR_PEER_LOST);
  CHECK(local == GEX_EVENT_INVALID);
  local = GEX_EVENT_NO_OP;
  CHECK_EQ(gex_AM_RequestLong0(to, dead, TAKE, bytes, BYTES, there, &local, 0), ARGONET_ERR_PEER_LOST);
  CHECK(local == GEX_EVENT_INVALID);
  prepared = gex_AM_PrepareRequestMedium(to, dead, NULL, 8, 64, NULL, 0, 0);
  CHECK(prepared != GEX_AM_SRCDESC_NO_OP);
  memset(gex_AM_SrcDescAddr(prepared), 1, 8);
  CHECK_EQ(gex_AM_CommitRequestMedium0_v2(prepared, TAKE, 8, 0), ARGONET_ERR_PEER_LOST);
  prepared = gex_AM_PrepareRequestLong(to, dead, bytes, 8, 64, there, GEX_EVENT_NOW, 0, 0);
  CHECK(prepared != GEX_AM_SRCDESC_NO_OP);
  CHECK_EQ(gex_AM_CommitRequestLong0_v2(prepared, TAKE, 8, there, 0), ARGONET_ERR_PEER_LOST);
  prepared = gex_AM_PrepareRequestMedium(to, dead, NULL, 8, 64, NULL, 0, 0);
  CHECK_EQ(gex_AM_CancelRequestMedium(prepared, 0), 0);
}

/* Transfers, of any form. */
static void transfers(gex_TM_t with, gex_Rank_t dead, char *there) {
  static char bytes[BYTES];
  gex_Memvec_t ours, theirs;
  gex_AD_t domain;
  gex_Event_t local = GEX_EVENT_NO_OP, ended;
  void *owner = NULL;
  uintptr_t bound = 0;
  uint64_t old = 7;
  ours.gex_addr = bytes;
  theirs.gex_addr = there;
  ours.gex_len = theirs.gex_len = BYTES;
  gex_RMA_PutBlocking(with, dead, there, bytes, BYTES, 0);
  gex_RMA_GetBlocking(with, bytes, dead, there, BYTES, 0);
  gex_RMA_PutBlockingVal(with, dead, there, 1, 8, 0);
  (void)gex_RMA_GetBlockingVal(with, dead, there, 8, 0);
  gex_Event_Wait(gex_RMA_PutNB(with, dead, there, bytes, BYTES, GEX_EVENT_DEFER, 0));
  gex_Event_Wait(gex_RMA_GetNB(with, bytes, dead, there, 8, 0));
  ended = gex_RMA_PutNB(with, dead, there, bytes, BYTES, &local, 0);
  CHECK(local != GEX_EVENT_NO_OP);
  gex_Event_Wait(local);
  gex_Event_Wait(ended);
  ended = gex_RMA_PutNB(with, dead, there, bytes, 8, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE);
  CHECK(ended != GEX_EVENT_NO_OP);
  gex_Event_Wait(ended);
  CHECK_EQ(gex_RMA_PutNBI(with, dead, there, bytes, BYTES, GEX_EVENT_NOW, 0), 0);
  CHECK_EQ(gex_RMA_GetNBI(with, bytes, dead, there, BYTES, 0), 0);
  gex_NBI_Wait(GEX_EC_ALL, 0);
  gex_Event_Wait(gex_VIS_VectorPutNB(with, dead, 1, &theirs, 1, &ours, 0));
  gex_AD_Create(&domain, team, GEX_DT_U64, GEX_OP_FADD, 0);
  gex_Event_Wait(gex_AD_OpNB_U64(domain, &old, dead, there, GEX_OP_FADD, 1, 0, 0));
  CHECK_EQ(gex_AD_OpNBI_U64(domain, &old, dead, there, GEX_OP_FADD, 1, 0, 0), 0);
  gex_NBI_Wait(GEX_EC_ALL, 0);
  gex_AD_Destroy(domain);
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(with, dead, &owner, NULL, &bound, 0));
  CHECK_SAME(owner, there);
  CHECK_EQ(bound, 1 << 20);
  /* Another endpoint of that rank has to be asked. */
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(ep, 1), dead, &owner, NULL, &bound, 0));
  CHECK(owner == NULL);
  CHECK_EQ(bound, 0);
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gex_Segment_QueryBound(gex_TM_Pair(ep, 1), dead, &owner, NULL, &bound), GASNET_ERR_BAD_ARG);
  gex_System_SetVerboseErrors(1);
}

/* Calls of teams that have lost a rank. */
static void collectives(gex_TM_t made) {
  uint64_t one = 1, sum = 0;
  gex_TM_t none = GEX_TM_INVALID;
  gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
  gex_Event_Wait(gex_Coll_ReduceToAllNB(team, &sum, &one, GEX_DT_U64, sizeof one, 1, GEX_OP_ADD, NULL, NULL, 0));
  gasnet_barrier_notify(3, 0);
  CHECK_EQ(gasnet_barrier_wait(3, 0), ARGONET_ERR_PEER_LOST);
  gasnet_barrier_notify(3, 0);
  CHECK_EQ(gasnet_barrier_try(3, 0), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gasnet_barrier(3, 0), ARGONET_ERR_PEER_LOST);
  gex_TM_Split(&none, team, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(none == GEX_TM_INVALID);
  gex_Event_Wait(gex_Coll_BarrierNB(made, 0));
  CHECK_EQ(gex_EP_PublishBoundSegment(team, NULL, 0, 0), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gex_TM_Destroy(made, NULL, 0), 0);
}

/* The team of the others: calls, and messages around it. `over` is an operation that the loss has
 * ended. */
static void survivors(gex_Rank_t dead, gex_Event_t over) {
  gex_TM_t rest = GEX_TM_INVALID;
  gex_Rank_t rank, size, other;
  gex_Event_t both[2];
  uint64_t one = 1, sum = 0;
  argonet_TM_Survivors(&rest, 0);
  rank = gex_TM_QueryRank(rest);
  size = gex_TM_QuerySize(rest);
  CHECK_EQ(size, ranks - 1);
  CHECK_EQ(rank, me);
  CHECK_EQ(gex_TM_TranslateJobrankToRank(rest, dead), GEX_RANK_INVALID);
  gex_Event_Wait(gex_Coll_ReduceToAllNB(rest, &sum, &one, GEX_DT_U64, sizeof one, 1, GEX_OP_ADD, NULL, NULL, 0));
  CHECK_EQ(sum, size);
  CHECK_EQ(gex_AM_RequestShort0(rest, (rank + 1) % size, HELLO, 0), 0);
  GASNET_BLOCKUNTIL(answered == 1);
  /* The others come once they may. */
  if (rank > 0) GASNET_BLOCKUNTIL(goes == 1);
  both[0] = over;
  both[1] = gex_Coll_BarrierNB(rest, 0);
  if (rank == 0 && size > 1) {
    CHECK_EQ(gex_Event_TestAll(both, 2, 0), GASNET_ERR_NOT_READY);
    for (other = 1; other < size; ++other) CHECK_EQ(gex_AM_RequestShort0(rest, other, GO, 0), 0);
  }
  gex_Event_WaitAll(both, 2, 0);
  if (rank == 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  gex_Event_Wait(gex_Coll_BarrierNB(rest, 0));
  CHECK_EQ(gex_TM_Destroy(rest, NULL, 0), 0);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {HELLO, (gex_AM_Fn_t)hello, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
      {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
      {TAKE, (gex_AM_Fn_t)take, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
      {GO, (gex_AM_Fn_t)go, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
  };
  gex_Rank_t dead, listed = GEX_RANK_INVALID;
  gex_Event_t waits, over;
  gex_TM_t made;
  char *there;
  CHECK_EQ(argonet_SetPeerLostHandler(lost, &mark), GASNET_OK);
  check_start(&argc, &argv, "lost");
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(argonet_SetPeerLostHandler(lost, &mark), GASNET_ERR_NOT_INIT);
  gex_System_SetVerboseErrors(1);
  CHECK_OK(gex_Segment_Attach(&segment, team, 1 << 20));
  check_register(table, CHECK_COUNT(table));
  dead = ranks - 1;
  there = check_base(dead);
  CHECK_EQ(argonet_QueryLostPeers(NULL, 0), 0);
  CHECK_EQ(gex_TM_Split(&made, team, 0, me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH), 0);
  check_barrier();
  if (me == dead) {
    /* Messages of the others are under way. */
    GASNET_BLOCKUNTIL(taken > 0);
    kill(getpid(), SIGKILL);
  }
  /* Nothing but the loss ends these. */
  waits = gex_Coll_BarrierNB(team, 0);
  over = gex_Coll_BarrierNB(made, 0);
  while (calls == 0) {
    static char bytes[64];
    int code = gex_AM_RequestMedium0(team, dead, TAKE, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    CHECK(code == GASNET_OK || code == ARGONET_ERR_PEER_LOST);
    gasnet_AMPoll();
  }
  gex_Event_Wait(waits);
  CHECK_EQ(lost_rank, dead);
  CHECK_EQ(argonet_QueryLostPeers(NULL, 0), 1);
  CHECK_EQ(argonet_QueryLostPeers(&listed, 1), 1);
  CHECK_EQ(listed, dead);
  messages(team, dead, there);
  transfers(team, dead, there);
  collectives(made);
  survivors(dead, over);
  CHECK_EQ(calls, 1);
  if (argc > 1 && !strcmp(argv[1], "return")) return 0;
  gasnet_exit(0);
  return 2;
}
