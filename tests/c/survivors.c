/* A sum over the ranks that are left, begun again after each loss: rank 1 dies before the first
 * round, while it waits in a collective call, and the last rank in the third, which breaks the team
 * of survivors. */
#include "check.h"

#include <gasnet_coll.h>

#include <signal.h>
#include <unistd.h>

enum { PROCESS = 130, POLLS = 1000 };

static volatile gex_Rank_t calls;
static volatile pid_t victim;

static void lost(gex_Rank_t jobrank, void *context) {
  gex_Rank_t listed[2] = {GEX_RANK_INVALID, GEX_RANK_INVALID};
  CHECK(argonet_QueryLostPeers(listed, 2) > calls);
  CHECK_EQ(listed[calls], jobrank);
  CHECK(context == NULL);
  calls = calls + 1;
}

static void never(gex_Rank_t jobrank, void *context) {
  (void)jobrank, (void)context;
  check_fail(__FILE__, __LINE__, "a handler that was replaced");
}

static void process(gex_Token_t token, gex_AM_Arg_t number) {
  (void)token;
  victim = (pid_t)number;
}

/* The last rank kills rank 1 when that waits in a call which the last rank does not enter before it
 * knows of the loss. */
static void split(void) {
  gex_TM_t none = GEX_TM_INVALID;
  unsigned poll;
  if (me == 1) CHECK_EQ(gex_AM_RequestShort1(team, ranks - 1, PROCESS, 0, (gex_AM_Arg_t)getpid()), 0);
  if (me == ranks - 1) {
    GASNET_BLOCKUNTIL(victim > 0);
    /* Time for it to get there. */
    for (poll = 0; poll < POLLS; ++poll) gasnet_AMPoll();
    CHECK_EQ(kill(victim, SIGKILL), 0);
    GASNET_BLOCKUNTIL(calls == 1);
  }
  gex_TM_Split(&none, team, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(none == GEX_TM_INVALID);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {PROCESS, (gex_AM_Fn_t)process, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
  };
  gex_Rank_t listed[3] = {GEX_RANK_INVALID, GEX_RANK_INVALID, GEX_RANK_INVALID};
  gex_TM_t whole, left;
  gex_Rank_t size, at;
  unsigned round;
  CHECK_SAME(strcmp(gasnet_ErrorName(ARGONET_ERR_PEER_LOST), "ARGONET_ERR_PEER_LOST"), 0);
  CHECK_EQ(argonet_SetPeerLostHandler(never, NULL), GASNET_OK);
  CHECK_EQ(argonet_SetPeerLostHandler(lost, NULL), GASNET_OK);
  check_start(&argc, &argv, "survivors");
  CHECK(ranks > 3);
  check_register(table, CHECK_COUNT(table));
  /* The same before any loss. */
  argonet_TM_Survivors(&whole, 0);
  CHECK_EQ(gex_TM_QuerySize(whole), ranks);
  if (me != 1) gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  split();
  /* It was under way. */
  CHECK_EQ(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), ARGONET_ERR_PEER_LOST);
  CHECK_EQ(gex_Segment_Attach(&segment, team, GASNET_PAGESIZE), ARGONET_ERR_PEER_LOST);
  for (round = 1;; ++round, whole = left) {
    uint64_t one = 1, sum = 0;
    if (round == 3 && me == ranks - 1) kill(getpid(), SIGKILL);
    gex_Event_Wait(gex_Coll_ReduceToAllNB(whole, &sum, &one, GEX_DT_U64, sizeof one, 1, GEX_OP_ADD, NULL, NULL, 0));
    argonet_TM_Survivors(&left, 0);
    size = gex_TM_QuerySize(whole);
    CHECK_EQ(gex_TM_Destroy(whole, NULL, 0), 0);
    if (gex_TM_QuerySize(left) < size) continue;
    CHECK_EQ(sum, size);
    if (size == ranks - 2) break;
  }
  CHECK_EQ(argonet_QueryLostPeers(listed, 1), 2);
  CHECK_EQ(listed[0], 1);
  CHECK_EQ(listed[1], GEX_RANK_INVALID);
  CHECK_EQ(argonet_QueryLostPeers(listed, 3), 2);
  CHECK_EQ(listed[1], ranks - 1);
  CHECK_EQ(listed[2], GEX_RANK_INVALID);
  CHECK_EQ(calls, 2);
  CHECK_EQ(gex_TM_QueryRank(left), me == 0 ? 0 : me - 1);
  for (at = 0; at < size; ++at) CHECK_EQ(gex_TM_TranslateRankToJobrank(left, at), at == 0 ? 0 : at + 1);
  gex_Event_Wait(gex_Coll_BarrierNB(left, 0));
  if (me == 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  gex_Event_Wait(gex_Coll_BarrierNB(left, 0));
  gasnet_exit(0);
  return 2;
}
