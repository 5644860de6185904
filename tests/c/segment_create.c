/* gex_Segment_Create, bind and publish beside an attached segment: memory of the library and of the
 * client, odd sizes and addresses, what is refused with which code, the client's memory left as it
 * is, destruction. */
#include "check.h"
#include <gasnet_mk.h>

static gex_Segment_t make(void *at, uintptr_t size) {
  gex_Segment_t made = GEX_SEGMENT_INVALID;
  CHECK_OK(gex_Segment_Create(&made, client, at, size, GEX_MK_HOST, 0));
  CHECK(made != GEX_SEGMENT_INVALID);
  CHECK_SAME(gex_Segment_QueryClient(made), client);
  CHECK_EQ(gex_Segment_QueryFlags(made), 0);
  CHECK_SAME(gex_Segment_QueryCData(made), NULL);
  return made;
}

static void from_library(void) {
  static const uintptr_t sizes[] = {1, 7, 100, 4095, 4096, 4097, 65536, 100001};
  size_t i;
  gex_Segment_t made[CHECK_COUNT(sizes)];
  for (i = 0; i < CHECK_COUNT(sizes); ++i) {
    char *at;
    uintptr_t size;
    int mark;
    made[i] = make(NULL, sizes[i]);
    at = (char *)gex_Segment_QueryAddr(made[i]);
    size = gex_Segment_QuerySize(made[i]);
    CHECK(at != NULL && size >= sizes[i]);
    check_fill(at, size, (uint32_t)i);
    gex_Segment_SetCData(made[i], &mark);
    CHECK_SAME(gex_Segment_QueryCData(made[i]), &mark);
  }
  for (i = 0; i < CHECK_COUNT(sizes); ++i)
    CHECK_FILLED(gex_Segment_QueryAddr(made[i]), gex_Segment_QuerySize(made[i]), (uint32_t)i);
  for (i = 0; i < CHECK_COUNT(sizes); ++i) gex_Segment_Destroy(made[i], 0);
}

/* Any memory of the client, at any place and of any size, on the heap, in statics and on the
 * stack. */
static void from_client(void) {
  static unsigned char fixed[3000];
  unsigned char local[500];
  unsigned char *heap = (unsigned char *)malloc(20000);
  size_t i;
  unsigned char *places[6];
  uintptr_t sizes[6];
  CHECK(heap != NULL);
  places[0] = heap;
  sizes[0] = 20000;
  places[1] = heap + 1;
  sizes[1] = 1;
  places[2] = heap + 4097;
  sizes[2] = 4095;
  places[3] = fixed + 3;
  sizes[3] = sizeof fixed - 3;
  places[4] = local + 5;
  sizes[4] = 77;
  places[5] = fixed + sizeof fixed - 1;
  sizes[5] = 1;
  for (i = 0; i < 6; ++i) {
    gex_Segment_t made;
    check_fill(places[i], sizes[i], (uint32_t)i + 10);
    made = make(places[i], sizes[i]);
    CHECK_SAME(gex_Segment_QueryAddr(made), places[i]);
    CHECK_EQ(gex_Segment_QuerySize(made), sizes[i]);
    CHECK_FILLED(places[i], sizes[i], (uint32_t)i + 10);
    gex_Segment_Destroy(made, 0);
    CHECK_FILLED(places[i], sizes[i], (uint32_t)i + 10);
  }
  free(heap);
}

/* Refused, and nothing changed. */
static void refused(void) {
  gex_Segment_t made;
  gex_Segment_t bound = gex_EP_QuerySegment(ep);
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gex_EP_BindSegment(GEX_EP_INVALID, bound, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gex_EP_BindSegment(ep, GEX_SEGMENT_INVALID, 0), GASNET_ERR_BAD_ARG);
  made = make(NULL, 4096);
  /* This one has a segment. */
  CHECK_EQ(gex_EP_BindSegment(ep, made, 0), GASNET_ERR_BAD_ARG);
  CHECK_SAME(gex_EP_QuerySegment(ep), bound);
  gex_Segment_Destroy(made, 0);
  gex_System_SetVerboseErrors(1);
}

/* An attached segment may be published, too, by all, some or none, again and again. */
static void published(void) {
  gex_EP_t eps[1];
  gex_Rank_t rank;
  eps[0] = ep;
  CHECK_OK(gex_EP_PublishBoundSegment(team, NULL, 0, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps, me % 2, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps, 1, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps, 1, 0));
  for (rank = 0; rank < ranks; ++rank) {
    char *to = check_base(rank) + me;
    CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, to, me + 1, 1, 0), 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, to, 1, 0), me + 1);
  }
  check_barrier();
}

int main(int argc, char **argv) {
  gex_EP_t none[1];
  check_start(&argc, &argv, "segment_create");
  from_library();
  from_client();
  none[0] = ep;
  /* An endpoint without a segment is passed over. */
  CHECK_OK(gex_EP_PublishBoundSegment(team, none, 1, 0));
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  from_library();
  from_client();
  refused();
  published();
  return check_finish();
}
