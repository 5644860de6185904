/* GASNET_SEGMENT_LARGE: the same calls as for GASNET_SEGMENT_FAST, and segments that are mapped by
 * neighbors. */
#include "check.h"

#if !GASNET_SEGMENT_LARGE || defined(GASNET_SEGMENT_FAST) || defined(GASNET_SEGMENT_EVERYTHING)
#error this program is about GASNET_SEGMENT_LARGE
#endif
#if !GASNET_PSHM
#error neighbors map segments
#endif

int main(int argc, char **argv) {
  const uintptr_t size = (uintptr_t)64 << 20;
  gasnet_seginfo_t own;
  gex_Rank_t to;
  char *base, *local;
  unsigned char bytes[5000];
  check_start(&argc, &argv, "segment_large");
  CHECK(strstr(GASNET_CONFIG_STRING, "SEGMENT=LARGE,") != NULL);
  CHECK(gasnet_getMaxLocalSegmentSize() >= gasnet_getMaxGlobalSegmentSize());
  CHECK_EQ(gasnet_getMaxGlobalSegmentSize() % GASNET_PAGESIZE, 0);
  check_attach(size);
  to = check_next();
  check_bound(team, to, &base, &local, NULL);
  CHECK_EQ(local != NULL, check_is_neighbor(to));
  check_fill(bytes, sizeof bytes, me);
  CHECK_EQ(gex_RMA_PutBlocking(team, to, base + size - sizeof bytes, bytes, sizeof bytes, 0), 0);
  if (local != NULL) CHECK_FILLED(local + size - sizeof bytes, sizeof bytes, me);
  check_barrier();
  CHECK_OK(gasnet_getSegmentInfo(&own, 1));
  CHECK_EQ(own.size, size);
  CHECK_FILLED((char *)gex_Segment_QueryAddr(segment) + size - sizeof bytes, sizeof bytes, check_previous());
  check_barrier();
  return check_finish();
}
