/* Remote atomic operations on bound segments that are not attached: their owners do them. Teams of some of the ranks, by ranks of
 * the team and of the job. */
#include "ratomic.h"
#include <gasnet_mk.h>

/* Ranks that are odd or even, the last one first. */
static void part(char *const *bases) {
  gex_TM_t half = GEX_TM_INVALID;
  gex_Rank_t size, rank;
  gex_TM_Split(&half, team, (gex_Rank_t)(me % 2), (gex_Rank_t)(ranks - me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(half != GEX_TM_INVALID);
  size = gex_TM_QuerySize(half);
  for (rank = 0; rank < size; ++rank) {
    gex_Rank_t jobrank = gex_TM_TranslateRankToJobrank(half, rank);
    CHECK_EQ(jobrank % 2, me % 2);
    model(half, rank, jobrank, bases[jobrank] + 64 * (1 + me), 20);
  }
  check_barrier();
  gex_TM_Destroy(half, NULL, 0);
}

int main(int argc, char **argv) {
  char *bases[64];
  gex_Rank_t rank, step;
  uintptr_t size;
  check_start(&argc, &argv, "ratomic_far");
  check_seed(me + 1000);
  CHECK(ranks <= 64);
  size = 64 * ((uintptr_t)ranks + 2);
  CHECK_OK(gex_Segment_Create(&segment, client, NULL, size, GEX_MK_HOST, 0));
  CHECK_OK(gex_EP_BindSegment(ep, segment, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &ep, 1, 0));
  memset(gex_Segment_QueryAddr(segment), 0, size);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    rank = (gex_Rank_t)((me + step) % ranks);
    model(team, rank, rank, bases[rank] + 64 * (1 + me), 40);
  }
  hammer(team, bases, 200 / ranks);
  part(bases);
  return check_finish();
}
