/* gex_Segment_Attach: sizes that differ between ranks, what can be asked before and after, the
 * least and nearly the largest size, memory that is there and zero or at least writable from end to
 * end, neighbors' segments mapped. */
#include "check.h"

static uintptr_t size_of(gex_Rank_t rank) { return (uintptr_t)GASNET_PAGESIZE * (1 + 3 * (rank % 5)); }

/* No rank has a segment yet. */
static void before(void) {
  gex_Rank_t rank;
  CHECK_SAME(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
  for (rank = 0; rank < ranks; ++rank) {
    void *owner = &rank, *local = &rank;
    uintptr_t size = 99;
    gex_Event_t event = gex_EP_QueryBoundSegmentNB(team, rank, &owner, &local, &size, 0);
    CHECK(event != GEX_EVENT_NO_OP);
    if (rank == me) CHECK_SAME(event, GEX_EVENT_INVALID);
    gex_Event_Wait(event);
    CHECK_EQ(size, 0);
    /* The older form says so by its result and writes nothing. */
    owner = &rank;
    local = &rank;
    size = 99;
    CHECK(gex_Segment_QueryBound(team, rank, &owner, &local, &size) != 0);
    CHECK_SAME(owner, &rank);
    CHECK_SAME(local, &rank);
    CHECK_EQ(size, 99);
  }
}

int main(int argc, char **argv) {
  int mark;
  char *base;
  uintptr_t size, at;
  gex_Rank_t rank, count = 0, i;
  gex_RankInfo_t *near_ranks = NULL;
  check_start(&argc, &argv, "segment_attach");
  before();
  CHECK(size_of(me) <= gasnet_getMaxLocalSegmentSize());
  CHECK_OK(gex_Segment_Attach(&segment, team, size_of(me)));

  /* No barrier: the call has one. */
  CHECK(segment != GEX_SEGMENT_INVALID);
  CHECK_SAME(gex_EP_QuerySegment(ep), segment);
  CHECK_SAME(gex_Segment_QueryClient(segment), client);
  CHECK_EQ(gex_Segment_QueryFlags(segment), 0);
  CHECK_SAME(gex_Segment_QueryCData(segment), NULL);
  gex_Segment_SetCData(segment, &mark);
  CHECK_SAME(gex_Segment_QueryCData(segment), &mark);
  base = (char *)gex_Segment_QueryAddr(segment);
  size = gex_Segment_QuerySize(segment);
  CHECK_EQ(size, size_of(me));
  CHECK_EQ((uintptr_t)base % GASNET_PAGESIZE, 0);
  for (rank = 0; rank < ranks; ++rank) {
    gex_Rank_t to = (gex_Rank_t)((me + rank) % ranks);
    char *owner, *local;
    uintptr_t theirs;
    check_bound(team, to, &owner, &local, &theirs);
    CHECK_EQ(theirs, size_of(to));
    CHECK(owner != NULL);
    if (to == me) {
      CHECK_SAME(owner, base);
      CHECK_SAME(local, base);
    }
    CHECK_EQ(gex_RMA_PutBlockingVal(team, to, owner + theirs - 64 + me, 0x40 + me, 1, 0), 0);
  }
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(base[size - 64 + rank], 0x40 + (int)rank);
  check_barrier();

  /* All of it can be written, by the owner, and read and written by its neighbors through their own
   * addresses. */
  for (at = 0; at < size; ++at) base[at] = (char)check_byte(me, at);
  check_barrier();
  gex_System_QueryNbrhdInfo(&near_ranks, &count, NULL);
  for (i = 0; i < count; ++i) {
    char *local;
    uintptr_t theirs;
    gex_Rank_t whose = near_ranks[i].gex_jobrank;
    check_bound(team, whose, NULL, &local, &theirs);
    CHECK(local != NULL);
    CHECK_FILLED(local, theirs, whose);
  }
  check_barrier();
  for (i = 0; i < count; ++i) {
    char *local;
    check_bound(team, near_ranks[i].gex_jobrank, NULL, &local, NULL);
    local[me] = (char)(me + 100);
  }
  check_barrier();
  for (i = 0; i < count; ++i) CHECK_EQ(base[near_ranks[i].gex_jobrank], (char)(near_ranks[i].gex_jobrank + 100));
  return check_finish();
}
