/* gex_TM_Create: lists in any order, by ranks of the parent and of the job, with scratch memory in
 * each way to name it and without; several teams in one call; several endpoints of a process in one
 * team, each with a handle of its own. */
#include "check.h"
#include <gasnet_mk.h>

enum { SCRATCH = 256, EACH = 1024 };

static char *base;

static void is_team(gex_TM_t tm, gex_EP_t of, const gex_EP_Location_t *list, size_t count, gex_Rank_t own) {
  gex_Rank_t rank, other;
  CHECK_EQ(gex_TM_QuerySize(tm), count);
  CHECK_EQ(gex_TM_QueryRank(tm), own);
  CHECK_SAME(gex_TM_QueryEP(tm), of);
  CHECK_SAME(gex_TM_QueryClient(tm), client);
  CHECK_SAME(gex_TM_QueryCData(tm), NULL);
  for (rank = 0; rank < count; ++rank) {
    gex_EP_Location_t place = gex_TM_TranslateRankToEP(tm, rank, 0);
    CHECK_EQ(place.gex_rank, list[rank].gex_rank);
    CHECK_EQ(place.gex_ep_index, list[rank].gex_ep_index);
    CHECK_EQ(gex_TM_TranslateRankToJobrank(tm, rank), list[rank].gex_rank);
  }
  for (other = 0; other < ranks; ++other) {
    for (rank = 0; rank < count && list[rank].gex_rank != other; ++rank) {}
    CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, other), rank < count ? rank : GEX_RANK_INVALID);
  }
}

static void returns(gex_TM_t tm, const void *address, size_t bytes) {
  gex_Memvec_t back;
  CHECK_EQ(gex_TM_Destroy(tm, &back, 0) != 0, address != NULL);
  if (address) {
    CHECK_SAME(back.gex_addr, address);
    CHECK_EQ(back.gex_len, bytes);
  }
}

/* All ranks but the last one, from behind, where there are several: a formula; or in the order 1,
 * 0, 2, 3, ...: none. */
static void ways(int of_job) {
  static const gex_Flags_t kinds[] = {GEX_FLAG_TM_GLOBAL_SCRATCH, GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_TM_SYMMETRIC_SCRATCH,
                                      GEX_FLAG_TM_NO_SCRATCH};
  gex_TM_t parent;
  gex_EP_Location_t args[64], list[64];
  size_t kind;
  int offsets;
  /* Ranks of the parent are not those of the job. */
  gex_TM_Split(&parent, team, 3, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  for (kind = 0; kind < CHECK_COUNT(kinds); ++kind)
    for (offsets = 0; offsets < 2; ++offsets) {
      gex_Flags_t flags = kinds[kind] | (of_job ? GEX_FLAG_RANK_IS_JOBRANK : 0) | (offsets ? GEX_FLAG_SCRATCH_SEG_OFFSET : 0);
      gex_Rank_t count = ranks > 1 ? ranks - 1 : 1, rank, own = GEX_RANK_INVALID;
      gex_TM_t made = parent;
      gex_Addr_t addresses[64];
      char *mine = base + 64 * me;
      for (rank = 0; rank < count; ++rank) {
        gex_Rank_t jobrank = kind % 2 && rank < 2 && count > 1 ? 1 - rank : rank;
        list[rank].gex_rank = jobrank;
        list[rank].gex_ep_index = 0;
        args[rank] = list[rank];
        if (!of_job) args[rank].gex_rank = gex_TM_TranslateJobrankToRank(parent, jobrank);
        addresses[rank] = offsets ? (gex_Addr_t)(uintptr_t)(64 * jobrank) : (gex_Addr_t)(check_base(jobrank) + 64 * jobrank);
        if (jobrank == me) own = rank;
      }
      if (kinds[kind] == GEX_FLAG_TM_LOCAL_SCRATCH && own != GEX_RANK_INVALID) addresses[0] = addresses[own];
      if (kinds[kind] == GEX_FLAG_TM_SYMMETRIC_SCRATCH) {
        /* One address is in all segments where they lie alike; an offset is always. */
        if (!offsets) {
          check_barrier();
          continue;
        }
        addresses[0] = (gex_Addr_t)(uintptr_t)32;
        mine = base + 32;
      }
      if (own == GEX_RANK_INVALID) {
        gex_TM_Create(&made, 1, parent, NULL, 0, NULL, 0, flags);
        CHECK_SAME(made, parent);
        continue;
      }
      CHECK(gex_TM_Create(&made, 1, parent, args, count, addresses, 0, flags | GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED) > 0 ||
            kinds[kind] == GEX_FLAG_TM_NO_SCRATCH);
      CHECK_SAME(made, parent);
      gex_TM_Create(&made, 1, parent, args, count, addresses, 64, flags);
      CHECK(made != parent);
      CHECK_EQ(gex_TM_QueryFlags(made), flags);
      is_team(made, ep, list, count, own);
      gex_Event_Wait(gex_Coll_BarrierNB(made, 0));
      returns(made, kinds[kind] == GEX_FLAG_TM_NO_SCRATCH ? NULL : mine, 64);
    }
  returns(parent, NULL, 0);
}

/* Even and odd ranks each make a team in one call. */
static void several(void) {
  gex_EP_Location_t list[64];
  gex_Rank_t count = 0, rank;
  gex_Addr_t mine = base;
  gex_TM_t made;
  for (rank = me % 2; rank < ranks; rank += 2) {
    list[count].gex_rank = rank;
    list[count++].gex_ep_index = 0;
  }
  gex_TM_Create(&made, 1, team, list, count, &mine, SCRATCH, GEX_FLAG_TM_LOCAL_SCRATCH);
  is_team(made, ep, list, count, me / 2);
  gex_Event_Wait(gex_Coll_BarrierNB(made, 0));
  returns(made, base, SCRATCH);
}

#if GASNET_MAXEPS > 2
/* A team of two endpoints of each process, one with a segment that messages reach; each handle puts
 * to all members. */
static void endpoints(void) {
  gex_EP_t eps[2];
  gex_Segment_t other;
  gex_EP_Location_t list[128];
  gex_TM_t made[2];
  gex_Event_t barriers[2];
  gex_Rank_t rank, count = 2 * ranks;
  unsigned char bytes[100], back[100];
  int i;
  eps[0] = ep;
  CHECK_OK(gex_EP_Create(&eps[1], client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_Segment_Create(&other, client, NULL, (uintptr_t)(4 * ranks) * EACH, GEX_MK_HOST, 0));
  CHECK_OK(gex_EP_BindSegment(eps[1], other, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &eps[1], 1, 0));
  /* The further endpoint of a process comes before the primordial one, and processes from
   * behind. */
  for (rank = 0; rank < count; ++rank) {
    list[rank].gex_rank = ranks - 1 - rank / 2;
    list[rank].gex_ep_index = rank % 2 ? 0 : gex_EP_QueryIndex(eps[1]);
  }
  gex_TM_Create(made, 2, team, list, count, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(made[0] != made[1]);
  for (i = 0; i < 2; ++i) is_team(made[i], eps[1 - i], list, count, 2 * (ranks - 1 - me) + (gex_Rank_t)i);
  for (i = 0; i < 2; ++i) barriers[i] = gex_Coll_BarrierNB(made[i], 0);
  gex_Event_WaitAll(barriers, 2, 0);
  for (i = 0; i < 2; ++i)
    for (rank = 0; rank < count; ++rank) {
      gex_Rank_t from = gex_TM_QueryRank(made[i]);
      char *owner, *local;
      uintptr_t size;
      uint32_t key = from * 300 + rank;
      check_bound(made[i], rank, &owner, &local, &size);
      CHECK(owner != NULL && size >= (uintptr_t)(2 * ranks) * EACH);
      /* Neighbors' attached segments are mapped here; other segments are in their own process
       * alone. */
      CHECK_EQ(local != NULL, list[rank].gex_rank == me || (rank % 2 == 1 && check_is_neighbor(list[rank].gex_rank)));
      owner += from * EACH;
      check_fill(bytes, sizeof bytes, key);
      CHECK_EQ(gex_RMA_PutBlocking(made[i], rank, owner, bytes, sizeof bytes, 0), 0);
      CHECK_EQ(gex_RMA_PutBlockingVal(made[i], rank, owner + 200, key, 4, 0), 0);
      memset(back, 0, sizeof back);
      gex_Event_Wait(gex_RMA_GetNB(made[i], back, rank, owner, sizeof back, 0));
      CHECK_FILLED(back, sizeof back, key);
      CHECK_EQ(gex_RMA_GetBlockingVal(made[i], rank, owner + 200, 4, 0), key);
      memset(back, 0, sizeof back);
      /* Offsets are from the beginning of that endpoint's segment. */
      CHECK_EQ(gex_RMA_GetBlocking(made[i], back, rank, (void *)(uintptr_t)(from * EACH), sizeof back, GEX_FLAG_PEER_SEG_OFFSET), 0);
      CHECK_FILLED(back, sizeof back, key);
    }
  for (i = 0; i < 2; ++i) barriers[i] = gex_Coll_BarrierNB(made[i], 0);
  gex_Event_WaitAll(barriers, 2, 0);
  /* The bytes that each member has put lie in the segment of their target. */
  for (i = 0; i < 2; ++i) {
    char *own = i ? base : (char *)gex_Segment_QueryAddr(other);
    for (rank = 0; rank < count; ++rank)
      CHECK_FILLED(own + rank * EACH, sizeof bytes, rank * 300 + gex_TM_QueryRank(made[i]));
  }
  for (i = 0; i < 2; ++i) CHECK_EQ(gex_TM_Destroy(made[i], NULL, i ? 0 : 0), 0);
  check_barrier();
  gex_Segment_Destroy(other, 0);
}
#endif

int main(int argc, char **argv) {
  check_start(&argc, &argv, "team_create");
  check_attach((uintptr_t)(2 * ranks) * EACH + 64 * ranks + SCRATCH);
  base = check_base(me);
  check_barrier();
  ways(0);
  ways(1);
  several();
#if GASNET_MAXEPS > 2
  endpoints();
#endif
  return check_finish();
}
