/* Wrong splits, lists, scratch memory and ends of teams; wrong ranks of teams. */
#include "bad.h"

#include <gasnet_coll.h>
#include <gasnet_ratomic.h>

static volatile int never;
static char *base;
static gex_Rank_t sub_rank;

static gex_TM_t made(void) {
  gex_TM_t tm = GEX_TM_INVALID;
  gex_TM_Split(&tm, team, 0, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  return tm;
}

static void create(const gex_Rank_t *list, size_t count, size_t places, gex_Flags_t flags) {
  gex_TM_t tms[4];
  gex_EP_Location_t args[4];
  gex_Addr_t mine = base;
  size_t at;
  for (at = 0; at < count; ++at) {
    args[at].gex_rank = list[at];
    args[at].gex_ep_index = 0;
  }
  gex_TM_Create(tms, places, team, args, count, &mine, 64, flags);
}

static void splits(void) {
  gex_TM_t tm = GEX_TM_INVALID;
  CASE("survivors-nowhere") argonet_TM_Survivors(NULL, 0);
  CASE("survivors-flags") argonet_TM_Survivors(&tm, GEX_FLAG_TM_NO_SCRATCH);
  CASE("split-no-parent") gex_TM_Split(&tm, GEX_TM_INVALID, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CASE("split-pair") gex_TM_Split(&tm, gex_TM_Pair(ep, 0), 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CASE("split-color") gex_TM_Split(&tm, team, -1, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CASE("split-size") gex_TM_Split(&tm, team, 0, 0, base, 0, 0);
  CASE("split-nowhere") gex_TM_Split(&tm, team, 0, 0, NULL, 64, 0);
  CASE("split-outside") gex_TM_Split(&tm, team, 0, 0, base - 1, 64, 0);
  CASE("split-past-end") gex_TM_Split(&tm, team, 0, 0, base + gex_Segment_QuerySize(segment) - 63, 64, 0);
  CASE("split-flags") gex_TM_Split(&tm, team, 0, 0, base, 64, GEX_FLAG_TM_LOCAL_SCRATCH);
  CASE("split-two-queries")
    gex_TM_Split(&tm, team, 0, 0, base, 64, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED | GEX_FLAG_TM_SCRATCH_SIZE_MIN);
  CASE("split-sizes-differ") gex_TM_Split(&tm, team, 0, 0, base, 64 + me, 0);
  CASE("split-flags-differ") gex_TM_Split(&tm, team, 0, 0, base, 64, me ? GEX_FLAG_TM_NO_SCRATCH : 0);
  CASE("split-and-create") {
    const gex_Rank_t list[] = {0, 1};
    if (me) create(list, 2, 1, GEX_FLAG_TM_NO_SCRATCH);
    else gex_TM_Split(&tm, team, 0, 0, base, 64, 0);
  }
}

static void lists(void) {
  const gex_Rank_t both[] = {0, 1}, turned[] = {1, 0}, twice[] = {0, 1, 0}, none[] = {0, 1, 2}, own[] = {me};
  CASE("create-no-kind") create(both, 2, 1, 0);
  CASE("create-two-kinds") create(both, 2, 1, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH);
  CASE("create-places") create(both, 2, 2, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-no-place") create(both, 2, 0, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-twice") create(twice, 3, me ? 1 : 2, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-no-rank") create(none, 3, 1, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-no-jobrank") create(none, 3, 1, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
  CASE("create-lists-differ") create(me ? turned : both, 2, 1, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-overlap") create(me ? own : both, me ? 1 : 2, 1, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-absent") create(both, me ? 0 : 2, 1, GEX_FLAG_TM_NO_SCRATCH);
  CASE("create-kinds-differ") create(both, 2, 1, me ? GEX_FLAG_TM_NO_SCRATCH : GEX_FLAG_TM_LOCAL_SCRATCH);
  CASE("create-no-list") {
    gex_TM_t tm;
    gex_TM_Create(&tm, 1, team, NULL, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  }
  CASE("create-no-scratch") {
    gex_TM_t tm;
    gex_EP_Location_t arg;
    arg.gex_rank = me;
    arg.gex_ep_index = 0;
    gex_TM_Create(&tm, 1, team, &arg, 1, NULL, 64, GEX_FLAG_TM_LOCAL_SCRATCH);
  }
  CASE("create-endpoint") {
    gex_TM_t tm;
    gex_EP_Location_t arg;
    arg.gex_rank = me;
    arg.gex_ep_index = 1;
    gex_TM_Create(&tm, 1, team, &arg, 1, NULL, 64, GEX_FLAG_TM_NO_SCRATCH);
  }
}

static void uses(void) {
  gex_TM_t tm = made();
  char word[8] = {0};
  CASE("sub-put-rank") gex_RMA_PutBlocking(tm, ranks, base, word, 8, 0);
  CASE("sub-get-rank") gex_RMA_GetBlockingVal(tm, ranks, base, 8, 0);
  CASE("sub-short-rank") gex_AM_RequestShort0(tm, ranks, 200, 0);
  CASE("sub-medium-rank") gex_AM_RequestMedium0(tm, GEX_RANK_INVALID, 200, word, 8, GEX_EVENT_NOW, 0);
  CASE("sub-prepare-rank") gex_AM_PrepareRequestMedium(tm, ranks, NULL, 8, 8, NULL, 0, 0);
  CASE("sub-limit-rank") gex_AM_MaxRequestMedium(tm, ranks, GEX_EVENT_NOW, 0, 0);
  CASE("sub-bound-rank") gex_Segment_QueryBound(tm, ranks, NULL, NULL, NULL);
  CASE("sub-translate-rank") gex_TM_TranslateRankToJobrank(tm, ranks);
  CASE("sub-put-past-segment") gex_RMA_PutBlocking(tm, sub_rank, base + gex_Segment_QuerySize(segment), word, 8, 0);
  CASE("sub-never-self") gex_RMA_PutBlocking(tm, sub_rank, base, word, 8, GEX_FLAG_PEER_NEVER_SELF);
}

static void ends(void) {
  gex_TM_t tm = bad_found ? GEX_TM_INVALID : made();
  CASE("destroy-world") gex_TM_Destroy(team, NULL, 0);
  CASE("destroy-pair") gex_TM_Destroy(gex_TM_Pair(ep, 0), NULL, 0);
  CASE("destroy-nothing") gex_TM_Destroy(GEX_TM_INVALID, NULL, 0);
  CASE("destroy-flags") gex_TM_Destroy(tm, NULL, 1);
  CASE("destroy-twice") {
    gex_TM_Destroy(tm, NULL, 0);
    gex_TM_Destroy(tm, NULL, 0);
  }
  CASE("use-after-destroy") {
    gex_TM_Destroy(tm, NULL, 0);
    gex_RMA_GetBlockingVal(tm, 0, base, 8, 0);
  }
  CASE("send-after-destroy") {
    gex_TM_Destroy(tm, NULL, 0);
    gex_AM_RequestShort0(tm, 0, 200, 0);
  }
  CASE("size-after-destroy") {
    gex_TM_Destroy(tm, NULL, 0);
    if (gex_TM_QuerySize(tm) == 77) bad_returned(0);
  }
  CASE("destroy-in-barrier") {
    /* Rank 1 comes to it no more. */
    if (me == 0) {
      gex_Coll_BarrierNB(tm, 0);
      gex_TM_Destroy(tm, NULL, 0);
    }
    GASNET_BLOCKUNTIL(never);
  }
  CASE("destroy-in-broadcast") {
    static char to[100000], from[100000];
    if (me == 0) {
      /* Of another root, as a root's own may be over before any other rank takes part. */
      const gex_Rank_t other = gex_TM_QueryRank(tm) == 0;
      gex_Coll_BroadcastNB(tm, other, to, from, sizeof to, 0);
      gex_Coll_BroadcastNB(tm, other, to, from, sizeof to, 0);
      gex_TM_Destroy(tm, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    }
    GASNET_BLOCKUNTIL(never);
  }
  CASE("destroy-with-domains") {
    gex_AD_t ads[3];
    gex_AD_Create(&ads[0], tm, GEX_DT_I32, GEX_OP_ADD, 0);
    gex_AD_Create(&ads[1], tm, GEX_DT_U64, GEX_OP_ADD, 0);
    gex_AD_Create(&ads[2], tm, GEX_DT_DBL, GEX_OP_ADD, 0);
    gex_AD_Destroy(ads[1]);
    gex_TM_Destroy(tm, NULL, 0);
  }
  CASE("attach-part") {
    gex_TM_t alone;
    gex_Segment_t other;
    gex_TM_Split(&alone, team, (int)me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    bad_returned(gex_Segment_Attach(&other, alone, GASNET_PAGESIZE));
  }
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "bad teams");
  if (argc > 1) bad_case = argv[1];
  if (strcmp(bad_case, "attach-part") != 0) {
    check_attach(1 << 16);
    base = (char *)gex_Segment_QueryAddr(segment);
  }
  sub_rank = ranks - 1 - me;
  check_barrier();
  splits();
  lists();
  uses();
  ends();
  /* Ranks that found no error wait for the one that did. */
  if (bad_found && me != 0 && strcmp(bad_case, "create-absent") == 0) GASNET_BLOCKUNTIL(never);
  return bad_finish();
}
