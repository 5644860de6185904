/* Start of a GASNet-1 program: calls allowed before gasnet_attach, its errors, and the objects
 * afterwards. */
#include "legacy.h"

#if GASNET_VERSION != 1 || GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR < 8
#error the version of the interface
#endif
#if SIZEOF_GASNET_REGISTER_VALUE_T != 8
#error the size of a value
#endif

static uintptr_t hooked;
static void hook(void *base, uintptr_t size) {
  CHECK(base != NULL);
  hooked = size;
}

static void before_attach(void) {
  uintptr_t page = GASNET_PAGESIZE;
  uintptr_t local = gasnet_getMaxLocalSegmentSize();
  gasnet_nodeinfo_t *nodes = (gasnet_nodeinfo_t *)malloc(ranks * sizeof *nodes);
  gex_Segment_t none = (gex_Segment_t)&page;
  CHECK(me < ranks);
  CHECK_EQ(me, gex_System_QueryJobRank());
  CHECK_EQ(ranks, gex_System_QueryJobSize());
  CHECK_EQ(gasneti_mynode, me);
  CHECK_EQ(gasneti_nodes, ranks);
  CHECK(local >= gasnet_getMaxGlobalSegmentSize() && gasnet_getMaxGlobalSegmentSize() > 0);
  CHECK_EQ(local % page, 0);
  CHECK(gasnet_getenv("PATH") != NULL);
  CHECK(gasnet_getenv("NEVER_SET_BY_TESTS") == NULL);
  CHECK(nodes != NULL);
  CHECK_OK(gasnet_getNodeInfo(nodes, (int)ranks));
  CHECK_EQ(nodes[0].host, 0);
  CHECK_EQ(nodes[0].supernode, 0);
  free(nodes);
  CHECK_EQ(gasnet_AMMaxArgs(), gex_AM_MaxArgs());
  CHECK(gasnet_AMMaxMedium() <= gex_AM_LUBRequestMedium() && gasnet_AMMaxMedium() <= gex_AM_LUBReplyMedium());
  CHECK(gasnet_AMMaxMedium() >= 512);
  CHECK_EQ(gasnet_AMMaxLongRequest(), gex_AM_LUBRequestLong());
  CHECK_EQ(gasnet_AMMaxLongReply(), gex_AM_LUBReplyLong());
  gasnet_QueryGexObjects(&client, &ep, &team, &none);
  CHECK_SAME(none, GEX_SEGMENT_INVALID);
  CHECK_SAME(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
  CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_USES_GASNET1);
  gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
}

/* Nothing of these stays. */
static void refused(void) {
  uintptr_t page = GASNET_PAGESIZE;
  gasnet_handlerentry_t table[2] = {{200, (gex_AM_Fn_t)hook}, {200, (gex_AM_Fn_t)hook}};
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gasnet_init(NULL, NULL), GASNET_ERR_NOT_INIT);
  CHECK_EQ(gasnet_attach(NULL, 0, page + 1, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gasnet_attach(NULL, 0, page / 2, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gasnet_attach(NULL, 0, gasnet_getMaxLocalSegmentSize() + page, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gasnet_attach(NULL, 1, page, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gasnet_attach(table, -1, page, 0), GASNET_ERR_BAD_ARG);
  CHECK_EQ(gasnet_attach(table, 2, page, 0), GASNET_ERR_BAD_ARG);
  table[1].index = GEX_AM_INDEX_BASE - 1;
  CHECK_EQ(gasnet_attach(table, 2, page, 0), GASNET_ERR_BAD_ARG);
  table[1].index = 0;
  table[1].fnptr = (gex_AM_Fn_t)NULL;
  CHECK_EQ(gasnet_attach(table, 2, page, 0), GASNET_ERR_BAD_ARG);
  gex_System_SetVerboseErrors(1);
}

int main(void) {
  gasnet_seginfo_t table[2] = {{NULL, 77}, {NULL, 77}};
  gex_Client_t same_client;
  gex_EP_t same_ep;
  gex_TM_t same_team;
  gex_Rank_t rank;
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gasnet_attach(NULL, 0, 0, 0), GASNET_ERR_NOT_INIT);
  gex_System_SetVerboseErrors(1);
  /* No program has to give arguments; the others do. */
  legacy_init(NULL, NULL, "legacy_start");
  before_attach();
  refused();
  gasnet_client_attach_hook = hook;
  /* No bytes become one page; the last argument has no effect any more. */
  CHECK_OK(gasnet_attach(NULL, 0, 0, 123));
  CHECK_EQ(hooked, GASNET_PAGESIZE);
  gasnet_QueryGexObjects(&same_client, &same_ep, &same_team, &segment);
  CHECK_SAME(same_client, client);
  CHECK_SAME(same_ep, ep);
  CHECK_SAME(same_team, team);
  CHECK_SAME(gex_TM_QueryEP(team), ep);
  CHECK_SAME(gex_EP_QuerySegment(ep), segment);
  CHECK_EQ(gex_Segment_QuerySize(segment), GASNET_PAGESIZE);
  legacy_ask_segments();
  for (rank = 0; rank < ranks; ++rank) {
    CHECK_EQ(legacy_segments[rank].size, GASNET_PAGESIZE);
    CHECK(legacy_segment(rank) != NULL);
  }
  CHECK_SAME(legacy_segment(me), gex_Segment_QueryAddr(segment));
  /* No more than asked for. */
  CHECK_OK(gasnet_getSegmentInfo(table, 1));
  CHECK_EQ(table[1].size, 77);
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gasnet_attach(NULL, 0, 0, 0), GASNET_ERR_NOT_INIT);
  CHECK_EQ(gasnet_init(NULL, NULL), GASNET_ERR_NOT_INIT);
  CHECK_EQ(gex_Client_Init(&same_client, &same_ep, &same_team, "SECOND", NULL, NULL, 0), GASNET_ERR_NOT_INIT);
  gex_System_SetVerboseErrors(1);
  CHECK_OK(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS));
  return check_finish();
}
