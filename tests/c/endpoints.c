/* Further endpoints: their numbers, what they can do, segments of their own, reached through pairs;
 * refusals leave the outputs alone. If there can be one only, a second one is refused for want of
 * resources. */
#include "check.h"
#include <gasnet_mk.h>

enum { SLOT = 4096 };
/* For the preprocessor too. */
#define MORE 3

static void refused(void) {
  gex_EP_t made = ep;
  int result;
  gex_System_SetVerboseErrors(0);
  /* If there can be one endpoint only, this has two errors. */
  result = gex_EP_Create(&made, client, 0, 0);
  if (GASNET_MAXEPS > 1) CHECK_EQ(result, GASNET_ERR_BAD_ARG);
  else CHECK(result == GASNET_ERR_BAD_ARG || result == GASNET_ERR_RESOURCE);
  CHECK_SAME(made, ep);
  gex_System_SetVerboseErrors(1);
}

#if GASNET_MAXEPS > MORE
static void used(void) {
  gex_EP_t eps[MORE];
  gex_EP_Index_t indices[MORE];
  gex_Segment_t segments[MORE], other;
  int i, j, mark;
  gex_Rank_t rank;
  for (i = 0; i < MORE; ++i) {
    CHECK_OK(gex_EP_Create(&eps[i], client, GEX_EP_CAPABILITY_RMA, 0));
    CHECK(eps[i] != GEX_EP_INVALID && eps[i] != ep);
    CHECK_SAME(gex_EP_QueryClient(eps[i]), client);
    CHECK_EQ(gex_EP_QueryFlags(eps[i]), 0);
    CHECK_SAME(gex_EP_QuerySegment(eps[i]), GEX_SEGMENT_INVALID);
    CHECK_SAME(gex_EP_QueryCData(eps[i]), NULL);
    gex_EP_SetCData(eps[i], &mark);
    CHECK_SAME(gex_EP_QueryCData(eps[i]), &mark);
    indices[i] = gex_EP_QueryIndex(eps[i]);
    CHECK(indices[i] > 0 && indices[i] < GASNET_MAXEPS);
    for (j = 0; j < i; ++j) CHECK(indices[j] != indices[i]);
  }
  /* One segment may belong to two; an endpoint has but one. */
  CHECK_OK(gex_Segment_Create(&segments[0], client, NULL, (uintptr_t)ranks * SLOT, GEX_MK_HOST, 0));
  CHECK_OK(gex_Segment_Create(&segments[2], client, NULL, (uintptr_t)ranks * SLOT, GEX_MK_HOST, 0));
  segments[1] = segments[0];
  for (i = 0; i < MORE; ++i) {
    CHECK_OK(gex_EP_BindSegment(eps[i], segments[i], 0));
    CHECK_SAME(gex_EP_QuerySegment(eps[i]), segments[i]);
  }
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gex_EP_BindSegment(eps[0], segments[2], 0), GASNET_ERR_BAD_ARG);
  CHECK_OK(gex_Segment_Create(&other, client, NULL, 1, GEX_MK_HOST, 0));
  CHECK_EQ(gex_EP_BindSegment(eps[1], other, 0), GASNET_ERR_BAD_ARG);
  gex_Segment_Destroy(other, 0);
  gex_System_SetVerboseErrors(1);
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps, MORE, 0));
  check_barrier();
  /* Endpoints were made in one order everywhere, so that indices agree here. */
  for (rank = 0; rank < ranks; ++rank)
    for (i = 0; i < MORE; ++i)
      for (j = -1; j < MORE; ++j) {
        gex_TM_t pair = gex_TM_Pair(j < 0 ? ep : eps[j], indices[i]);
        unsigned char bytes[300], back[300];
        char *to;
        uintptr_t size;
        check_bound(pair, rank, &to, NULL, &size);
        CHECK(to != NULL && size >= (uintptr_t)ranks * SLOT);
        to += me * SLOT + 1000 * i;
        check_fill(bytes, sizeof bytes, (uint32_t)(i * 10 + j + 2));
        CHECK_EQ(gex_RMA_PutBlocking(pair, rank, to, bytes, sizeof bytes, 0), 0);
        CHECK_EQ(gex_RMA_GetBlocking(pair, back, rank, to, sizeof back, 0), 0);
        CHECK_FILLED(back, sizeof back, (uint32_t)(i * 10 + j + 2));
        gex_Event_Wait(gex_RMA_PutNB(pair, rank, to + 301, bytes, sizeof bytes, GEX_EVENT_NOW, 0));
        CHECK_EQ(gex_RMA_PutNBIVal(pair, rank, to + 650, 77, 1, 0), 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        CHECK_EQ(gex_RMA_GetBlockingVal(pair, rank, to + 650, 1, 0), 77);
        gex_Event_Wait(gex_RMA_GetNB(pair, back, rank, to + 301, sizeof back, 0));
        CHECK_FILLED(back, sizeof back, (uint32_t)(i * 10 + j + 2));
      }
  check_barrier();
}
#endif

int main(int argc, char **argv) {
  int made;
  check_start(&argc, &argv, "endpoints");
  check_attach(GASNET_PAGESIZE);
  refused();
#if GASNET_MAXEPS > MORE
  used();
  made = MORE;
#else
  made = 0;
#endif
  /* Any capabilities, in any number. */
  {
    const gex_EP_Capabilities_t some[] = {GEX_EP_CAPABILITY_AM, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM,
                                          GEX_EP_CAPABILITY_ALL, GEX_EP_CAPABILITY_VIS | GEX_EP_CAPABILITY_COLL | GEX_EP_CAPABILITY_AD};
    size_t i;
    for (i = 0; i < CHECK_COUNT(some); ++i, ++made) {
      gex_EP_t another = ep;
      CHECK_OK(gex_EP_Create(&another, client, some[i], 0));
      CHECK(another != ep);
    }
  }
  /* As many as there may be, and no more. */
  for (;; ++made) {
    gex_EP_t another = ep;
    int result;
    gex_System_SetVerboseErrors(0);
    result = gex_EP_Create(&another, client, GEX_EP_CAPABILITY_RMA, 0);
    gex_System_SetVerboseErrors(1);
    if (result != GASNET_OK) {
      CHECK_EQ(result, GASNET_ERR_RESOURCE);
      CHECK_SAME(another, ep);
      break;
    }
  }
  CHECK(made <= GASNET_MAXEPS - 1);
  check_barrier();
  return check_finish();
}
