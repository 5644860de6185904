/* Remote atomic operations on bound segments that are not attached: their owners do them. */
#include "ratomic.h"
#include <gasnet_mk.h>

int main(int argc, char **argv) {
  char *bases[64];
  gex_Rank_t rank, step;
  uintptr_t size;
  check_start(&argc, &argv, "ratomic_bound");
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
  parts(bases);
  return check_finish();
}
