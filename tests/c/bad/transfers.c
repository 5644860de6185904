/* Wrong puts, gets, events, access regions and barriers. */
#include "bad.h"
#include <gasnet_coll.h>
#include <gasnet_vis.h>

static char buffer[64];
static volatile int never;
/* Volatile, as compilers would warn of these values. */
static void *volatile nowhere;
static volatile size_t wrapping = (size_t)-8;

static void transfers(void) {
  gex_Rank_t to = check_next();
  char *base = NULL;
  uintptr_t size = 0;
  gex_Event_t event;
  check_bound(team, to, &base, NULL, &size);
  CASE("put-rank") gex_RMA_PutBlocking(team, ranks, base, buffer, 8, 0);
  CASE("get-rank") gex_RMA_GetBlocking(team, buffer, ranks, base, 8, 0);
  CASE("put-rank-invalid") gex_RMA_PutNB(team, GEX_RANK_INVALID, base, buffer, 8, GEX_EVENT_NOW, 0);
  CASE("value-rank") gex_RMA_GetBlockingVal(team, ranks, base, 8, 0);
  CASE("put-no-team") gex_RMA_PutBlocking(GEX_TM_INVALID, to, base, buffer, 8, 0);
  CASE("put-past-segment") gex_RMA_PutBlocking(team, to, base + size - 7, buffer, 8, 0);
  CASE("put-before-segment") gex_RMA_PutBlocking(team, to, base - 1, buffer, 8, 0);
  CASE("put-far-outside") gex_RMA_PutNBI(team, to, (void *)(uintptr_t)64, buffer, 8, GEX_EVENT_NOW, 0);
  CASE("put-nowhere") gex_RMA_PutBlocking(team, to, NULL, buffer, 8, 0);
  CASE("put-wrapping") gex_RMA_PutBlocking(team, to, base + 16, buffer, wrapping, 0);
  CASE("get-past-segment") gex_RMA_GetBlocking(team, buffer, to, base + size - 7, 8, 0);
  CASE("get-before-segment") gex_Event_Wait(gex_RMA_GetNB(team, buffer, to, base - 1, 8, 0));
  CASE("put-value-past-segment") gex_RMA_PutBlockingVal(team, to, base + size - 7, 1, 8, 0);
  CASE("get-value-past-segment") gex_RMA_GetBlockingVal(team, to, base + size - 7, 8, 0);
  CASE("put-no-source") gex_RMA_PutBlocking(team, to, base, nowhere, 8, 0);
  CASE("get-no-destination") gex_RMA_GetBlocking(team, nowhere, to, base, 8, 0);
  CASE("put-value-9-bytes") gex_RMA_PutBlockingVal(team, to, base, 1, 9, 0);
  CASE("put-value-0-bytes") gex_RMA_PutBlockingVal(team, to, base, 1, 0, 0);
  CASE("get-value-9-bytes") gex_RMA_GetBlockingVal(team, to, base, 9, 0);
  CASE("get-value-0-bytes") gex_RMA_GetBlockingVal(team, to, base, 0, 0);
  CASE("put-grouped") gex_RMA_PutNB(team, to, base, buffer, 8, GEX_EVENT_GROUP, 0);
  CASE("put-no-completion") gex_RMA_PutNB(team, to, base, buffer, 8, NULL, 0);
  CASE("implicit-put-event") gex_RMA_PutNBI(team, to, base, buffer, 8, &event, 0);
  CASE("put-overlap") gex_RMA_PutBlocking(team, me, check_base(me) + 4, check_base(me), 8, 0);
  CASE("never-self") gex_RMA_PutBlocking(team, me, check_base(me), buffer, 8, GEX_FLAG_PEER_NEVER_SELF);
  CASE("signal-rank") argonet_RMA_PutSignal(team, ranks, base, buffer, 8, (uint64_t *)base, GEX_OP_ADD, 1, 0);
  CASE("signal-past-segment")
  argonet_RMA_PutSignal(team, to, base, buffer, 8, (uint64_t *)(base + size), GEX_OP_ADD, 1, 0);
  CASE("signal-unaligned")
  argonet_RMA_PutSignal(team, to, base, buffer, 8, (uint64_t *)(base + 12), GEX_OP_SET, 1, 0);
  CASE("signal-operation")
  argonet_RMA_PutSignal(team, to, base, buffer, 8, (uint64_t *)base, GEX_OP_FADD, 1, 0);
  CASE("signal-flags")
  argonet_RMA_PutSignal(team, to, base, buffer, 8, (uint64_t *)base, GEX_OP_ADD, 1, GEX_FLAG_IMMEDIATE);
  CASE("signal-put-past-segment")
  argonet_RMA_PutSignal(team, to, base + size - 7, buffer, 8, (uint64_t *)base, GEX_OP_ADD, 1, 0);
  CASE("signal-wait-unaligned") argonet_SignalWait((const uint64_t *)(check_base(me) + 4), ARGONET_CMP_EQ, 0);
  CASE("signal-wait-nowhere") argonet_SignalWait((const uint64_t *)nowhere, ARGONET_CMP_EQ, 0);
  CASE("signal-wait-comparison") argonet_SignalWait((const uint64_t *)check_base(me), 7, 0);
  CASE("bound-rank") gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, ranks, NULL, NULL, &size, 0));
  CASE("pair-endpoint") gex_RMA_PutBlocking(gex_TM_Pair(ep, 1), to, base, buffer, 8, 0);
  CASE("translate-rank") gex_TM_TranslateRankToJobrank(team, ranks);
}

/* Non-contiguous ones. */
static void vis(void) {
  gex_Rank_t to = check_next();
  char *base = NULL;
  uintptr_t size = 0;
  check_bound(team, to, &base, NULL, &size);
  {
    const gex_Memvec_t here[] = {{buffer, 30}, {NULL, 0}}, hole[] = {{buffer, 8}, {nowhere, 22}};
    const gex_Memvec_t there[] = {{base, 10}, {base + 64, 20}}, over[] = {{base + 64, 20}, {base + 55, 10}};
    const gex_Memvec_t more[] = {{base, 10}, {base + 64, 22}}, past[] = {{base, 10}, {base + size - 19, 20}};
    void *const last[] = {base, base + size - 7};
    void *const first[] = {buffer};
    const ptrdiff_t apart[] = {8, 32}, close[] = {8, 7}, back[] = {8, -(ptrdiff_t)64};
    const size_t counts[] = {4, 2};
    gex_TM_t pair = gex_TM_Pair(ep, 1);
    CASE("vis-rank") gex_VIS_VectorPutBlocking(team, ranks, 2, there, 2, here, 0);
    CASE("vis-no-team") gex_VIS_IndexedGetBlocking(GEX_TM_INVALID, 1, first, 8, to, 1, last, 8, 0);
    CASE("vis-totals") gex_VIS_VectorPutNB(team, to, 2, more, 2, here, 0);
    CASE("vis-no-list") gex_VIS_VectorGetNBI(team, 2, here, to, 2, (const gex_Memvec_t *)nowhere, 0);
    CASE("vis-no-strides") gex_VIS_StridedPutBlocking(team, to, base, NULL, buffer, apart, 8, counts, 2, 0);
    CASE("vis-entry-outside") gex_VIS_VectorPutBlocking(team, to, 2, past, 2, here, 0);
    CASE("vis-index-outside") gex_VIS_IndexedGetBlocking(team, 1, first, 16, to, 2, last, 8, 0);
    CASE("vis-dimension-outside")
    gex_VIS_StridedPutBlocking(team, to, base, back, buffer, apart, 8, counts, 2, 0);
    CASE("vis-null-piece") gex_VIS_VectorPutBlocking(team, to, 2, there, 2, hole, 0);
    CASE("vis-overlap") gex_VIS_VectorPutBlocking(team, to, 2, over, 2, here, 0);
    CASE("vis-dimension-overlap") gex_VIS_StridedPutNBI(team, to, base, close, buffer, apart, 8, counts, 2, 0);
    CASE("vis-flags") gex_VIS_VectorPutBlocking(team, to, 2, there, 2, here, GEX_FLAG_PEER_NEVER_SELF);
    CASE("vis-leaf-of-get") gex_VIS_IndexedGetNB(team, 1, first, 8, to, 1, last, 8, GEX_FLAG_ENABLE_LEAF_LC);
    CASE("vis-leaf-of-blocking") gex_VIS_VectorPutBlocking(team, to, 2, there, 2, here, GEX_FLAG_ENABLE_LEAF_LC);
    CASE("vis-not-bound") gex_VIS_VectorPutBlocking(pair, to, 2, there, 2, here, 0);
    CASE("vis-completion-too-long") gex_VIS_SetPeerCompletionHandler(200, buffer, GEX_VIS_MAX_PEERCOMPLETION + 1, 0);
    CASE("vis-completion-handler") gex_VIS_SetPeerCompletionHandler(100, NULL, 0, 0);
    CASE("vis-completion-nowhere") gex_VIS_SetPeerCompletionHandler(200, nowhere, 8, 0);
    CASE("vis-completion-immediate") {
      gex_VIS_SetPeerCompletionHandler(200, buffer, 8, 0);
      gex_VIS_VectorPutNBI(team, to, 2, there, 2, here, GEX_FLAG_IMMEDIATE);
    }
  }
}

static void events(void) {
  gex_Event_t event, leaf, twice;
  CASE("wait-no-op") gex_Event_Wait(GEX_EVENT_NO_OP);
  CASE("test-no-op") gex_Event_Test(GEX_EVENT_NO_OP);
  CASE("wait-garbage") gex_Event_Wait((gex_Event_t)(uintptr_t)0xdeadbee8u);
  CASE("leaf-of-no-op") gex_Event_QueryLeaf(GEX_EVENT_NO_OP, GEX_EC_LC);
  CASE("wait-all-nowhere") gex_Event_WaitAll(NULL, 2, 0);
  CASE("wait-flags") {
    event = GEX_EVENT_INVALID;
    gex_Event_WaitAll(&event, 1, 1);
  }
  CASE("leaf-of-all") {
    event = gex_RMA_PutNB(team, me, check_base(me), buffer, 8, &leaf, 0);
    twice = gex_Event_QueryLeaf(event, GEX_EC_ALL);
    gex_Event_Wait(event);
    (void)twice;
  }
}

static void regions(void) {
  gex_Event_t event;
  CASE("region-in-region") {
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_BeginAccessRegion(0);
  }
  CASE("region-end-alone") {
    event = gex_NBI_EndAccessRegion(0);
    (void)event;
  }
  CASE("wait-in-region") {
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
  }
  CASE("test-in-region") {
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_Test(GEX_EC_PUT, 0);
  }
}

/* By all ranks, as far as they get. */
static void barriers(void) {
  CASE("barrier-wait-alone") bad_returned(gasnet_barrier_wait(0, 0));
  CASE("barrier-try-alone") bad_returned(gasnet_barrier_try(0, 0));
  CASE("barrier-two-notifies") {
    gasnet_barrier_notify(0, 0);
    gasnet_barrier_notify(0, 0);
  }
  /* Its event is a real one while other ranks have not come. */
  CASE("wait-twice") {
    /* A short one may be complete at once, and its event then waited for as often as one likes. */
    static char bytes[1024];
    gex_Event_t event = gex_Coll_BroadcastNB(team, 0, bytes, bytes, sizeof bytes, 0);
    gex_Event_Wait(event);
    gex_Event_Wait(event);
  }
  CASE("barrier-mismatch") bad_returned(gasnet_barrier((int)me, GASNET_BARRIERFLAG_MISMATCH));
  CASE("barrier-pair") gex_Event_Wait(gex_Coll_BarrierNB(gex_TM_Pair(ep, 0), 0));
  CASE("barrier-no-team") gex_Event_Wait(gex_Coll_BarrierNB(GEX_TM_INVALID, 0));
  CASE("broadcast-root") gex_Event_Wait(gex_Coll_BroadcastNB(team, ranks, buffer, buffer, 8, 0));
  CASE("broadcast-nowhere") gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, NULL, buffer, 8, 0));
  /* Each takes the other for the root, so that no rank has anything to send. */
  CASE("broadcast-no-root") gex_Event_Wait(gex_Coll_BroadcastNB(team, (me + 1) % ranks, buffer, buffer, 8, 0));
  CASE("waitmode") bad_returned(gasnet_set_waitmode(77));
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "bad transfers");
  if (argc > 1) bad_case = argv[1];
  check_attach(1 << 16);
  check_barrier();
  barriers();
  if (bad_found || me == 0) {
    transfers();
    vis();
    events();
    regions();
    return bad_finish();
  }
  GASNET_BLOCKUNTIL(never);
  return 97;
}
