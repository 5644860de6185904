/* Wrong reductions, gasnet_coll_* and operations beyond. */
#include "bad.h"
#include <gasnet_coll.h>

static double src[4], dst[8];
static void calls(const void *a, void *b, size_t n, const void *c) {
  (void)a, (void)b, (void)n, (void)c;
  gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}
static void twice(const void *a, void *b, size_t n, const void *c) { (void)a, (void)b, (void)n, (void)c; }

#define ONE(root, dt, size, count, op, fn, flags) \
  gex_Event_Wait(gex_Coll_ReduceToOneNB(team, root, dst, src, dt, size, count, op, fn, NULL, flags))
#define ALL(dt, size, count, op, fn) \
  gex_Event_Wait(gex_Coll_ReduceToAllNB(team, dst, src, dt, size, count, op, fn, NULL, 0))

static void reductions(void) {
  CASE("reduce-root") ONE(ranks, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, 0);
  CASE("reduce-flags") ONE(0, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, GEX_FLAG_IMMEDIATE);
  CASE("reduce-type") ALL(GEX_DT_DBL | GEX_DT_FLT, 8, 1, GEX_OP_ADD, NULL);
  CASE("reduce-no-type") ALL(0, 8, 1, GEX_OP_ADD, NULL);
  CASE("reduce-two-ops") ALL(GEX_DT_I32, 4, 1, GEX_OP_ADD | GEX_OP_MIN, NULL);
  CASE("reduce-float-bits") ALL(GEX_DT_FLT, 4, 1, GEX_OP_XOR, NULL);
  CASE("reduce-subtract") ALL(GEX_DT_I32, 4, 1, GEX_OP_SUB, NULL);
  CASE("reduce-fetching") ALL(GEX_DT_I32, 4, 1, GEX_OP_FADD, NULL);
  CASE("reduce-user-type") ALL(GEX_DT_USER, 4, 1, GEX_OP_ADD, NULL);
  CASE("reduce-size") ALL(GEX_DT_I32, 8, 1, GEX_OP_ADD, NULL);
  CASE("reduce-no-size") ALL(GEX_DT_USER, 0, 1, GEX_OP_USER, twice);
  CASE("reduce-no-count") ALL(GEX_DT_I32, 4, 0, GEX_OP_ADD, NULL);
  CASE("reduce-too-much") ALL(GEX_DT_USER, (size_t)1 << 40, (size_t)1 << 40, GEX_OP_USER, twice);
  CASE("reduce-no-function") ALL(GEX_DT_USER, 4, 1, GEX_OP_USER_NC, NULL);
  CASE("reduce-calls") ALL(GEX_DT_USER, 8, 1, GEX_OP_USER, calls);
  CASE("reduce-no-source") gex_Event_Wait(gex_Coll_ReduceToAllNB(team, dst, NULL, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
  CASE("reduce-nowhere") gex_Event_Wait(gex_Coll_ReduceToAllNB(team, NULL, src, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
  CASE("reduce-pair") gex_Event_Wait(gex_Coll_ReduceToAllNB(gex_TM_Pair(ep, 0), dst, src, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
  CASE("reduce-ops-differ") ALL(GEX_DT_DBL, 8, 1, me ? GEX_OP_ADD : GEX_OP_MAX, NULL);
  CASE("reduce-counts-differ") ALL(GEX_DT_DBL, 8, 1 + me, GEX_OP_ADD, NULL);
  CASE("reduce-and-broadcast") {
    if (me) ALL(GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL);
    else gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, dst, src, 8, 0));
    /* A root waits for no rank, and the others must not find that it has left. */
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
  }
}

#define MINE (GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC)
#define BROADCAST(image, flags) gasnet_coll_broadcast(GASNET_TEAM_ALL, dst, image, src, 8, flags)

static void legacy(void) {
  CASE("legacy-image") BROADCAST(ranks, GASNET_COLL_LOCAL | MINE);
  CASE("legacy-no-flags") BROADCAST(0, 0);
  CASE("legacy-two-ins") BROADCAST(0, GASNET_COLL_LOCAL | MINE | GASNET_COLL_IN_NOSYNC);
  CASE("legacy-no-out") BROADCAST(0, GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC);
  CASE("legacy-not-local") BROADCAST(0, MINE);
  CASE("legacy-unknown") BROADCAST(0, GASNET_COLL_LOCAL | MINE | (1 << 20));
  CASE("legacy-no-team") gasnet_coll_exchange(GEX_TM_INVALID, dst, src, 8, GASNET_COLL_LOCAL | MINE);
  CASE("legacy-gather-nowhere") gasnet_coll_gather(GASNET_TEAM_ALL, me, NULL, src, 8, GASNET_COLL_LOCAL | MINE);
  CASE("legacy-no-file") gasnet_coll_loadTuningState("/nowhere/at/all", GASNET_TEAM_ALL);
  CASE("legacy-null-file") gasnet_coll_loadTuningState(NULL, GASNET_TEAM_ALL);
  CASE("legacy-barrier-twice") {
    gex_TM_t row = GEX_TM_INVALID;
    gex_TM_Split(&row, team, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gasnet_coll_barrier_notify(row, 0, 0);
    gasnet_coll_barrier_notify(row, 0, 0);
  }
}

static void beyond(void) {
  CASE("gather-root") gex_Event_Wait(argonet_Coll_GatherNB(team, ranks, dst, src, 8, 0));
  CASE("scatter-flags") gex_Event_Wait(argonet_Coll_ScatterNB(team, 0, dst, src, 8, 1));
  CASE("exchange-nowhere") gex_Event_Wait(argonet_Coll_ExchangeNB(team, NULL, src, 8, 0));
  CASE("scan-op") gex_Event_Wait(argonet_Coll_ScanNB(team, dst, src, GEX_DT_DBL, 8, 1, GEX_OP_AND, NULL, NULL, 0));
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "bad coll");
  if (argc > 1) bad_case = argv[1];
  check_barrier();
  reductions();
  legacy();
  beyond();
  return bad_finish();
}
