/* Wrong starts, segments, endpoints and handler tables. */
#include "bad.h"
#include <gasnet_mk.h>

static void handler(gex_Token_t token) { (void)token; }

static gex_AM_Entry_t entry(int index) {
  gex_AM_Entry_t made;
  memset(&made, 0, sizeof made);
  made.gex_index = (gex_AM_Index_t)index;
  made.gex_fnptr = (gex_AM_Fn_t)handler;
  made.gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
  return made;
}

static void before_start(void) {
  char byte = 0;
  CASE("rank-before-start") gex_System_QueryJobRank();
  CASE("poll-before-start") gasnet_AMPoll();
  CASE("limit-before-start") gasnet_getMaxLocalSegmentSize();
  CASE("barrier-before-start") gasnet_barrier_notify(0, 0);
  CASE("put-before-start") gex_RMA_PutBlocking(GEX_TM_INVALID, 0, &byte, &byte, 1, 0);
  CASE("request-before-start") gex_AM_RequestShort0(GEX_TM_INVALID, 0, 200, 0);
  CASE("losses-before-start") argonet_QueryLostPeers(NULL, 0);
  CASE("region-before-start") gex_NBI_BeginAccessRegion(0);
}

static void lost(gex_Rank_t jobrank, void *context) { (void)jobrank, (void)context; }

static void wrong_start(int *argc, char ***argv) {
  CASE("losses-no-handler") bad_returned(argonet_SetPeerLostHandler(NULL, NULL));
  CASE("start-no-name") bad_returned(gex_Client_Init(&client, &ep, &team, NULL, argc, argv, 0));
  CASE("start-no-client") bad_returned(gex_Client_Init(NULL, &ep, &team, "BAD", argc, argv, 0));
  CASE("start-no-team") bad_returned(gex_Client_Init(&client, &ep, NULL, "BAD", argc, argv, 0));
  CASE("start-unknown-flags") bad_returned(gex_Client_Init(&client, &ep, &team, "BAD", argc, argv, (gex_Flags_t)1 << 31));
}

static void segments(void) {
  uintptr_t page = GASNET_PAGESIZE;
  gex_Segment_t made = (gex_Segment_t)&page;
  CASE("start-twice") bad_returned(gex_Client_Init(&client, &ep, &team, "TWICE", NULL, NULL, 0));
  CASE("losses-late") bad_returned(argonet_SetPeerLostHandler(lost, NULL));
  CASE("losses-nowhere") argonet_QueryLostPeers(NULL, 1);
  CASE("attach-unaligned") bad_returned(gex_Segment_Attach(&segment, team, page + 1));
  CASE("attach-nothing") bad_returned(gex_Segment_Attach(&segment, team, 0));
  CASE("attach-too-much") bad_returned(gex_Segment_Attach(&segment, team, gasnet_getMaxLocalSegmentSize() + page));
  CASE("attach-nowhere") bad_returned(gex_Segment_Attach(NULL, team, page));
  CASE("attach-no-team") bad_returned(gex_Segment_Attach(&segment, GEX_TM_INVALID, page));
  CASE("attach-pair") bad_returned(gex_Segment_Attach(&segment, gex_TM_Pair(ep, 0), page));
  CASE("attach-twice") {
    check_attach(page);
    bad_returned(gex_Segment_Attach(&segment, team, page));
  }
  CASE("create-nothing") {
    bad_returned(gex_Segment_Create(&made, client, NULL, 0, GEX_MK_HOST, 0));
    CHECK_SAME(made, &page);
  }
  CASE("create-too-much") {
    bad_returned(gex_Segment_Create(&made, client, NULL, (uintptr_t)-1 / 2, GEX_MK_HOST, 0));
    CHECK_SAME(made, &page);
  }
  CASE("create-wrapping") {
    bad_returned(gex_Segment_Create(&made, client, (void *)&page, (uintptr_t)-16, GEX_MK_HOST, 0));
    CHECK_SAME(made, &page);
  }
  CASE("create-flags") {
    bad_returned(gex_Segment_Create(&made, client, NULL, page, GEX_MK_HOST, 1));
    CHECK_SAME(made, &page);
  }
  CASE("create-no-kind") {
    bad_returned(gex_Segment_Create(&made, client, NULL, page, GEX_MK_INVALID, 0));
    CHECK_SAME(made, &page);
  }
  CASE("destroy-attached") {
    check_attach(page);
    gex_Segment_Destroy(segment, 0);
  }
  CASE("bind-flags") {
    CHECK_OK(gex_Segment_Create(&made, client, NULL, page, GEX_MK_HOST, 0));
    bad_returned(gex_EP_BindSegment(ep, made, 1));
    CHECK_SAME(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
  }
  CASE("threads-no-count") {
    const gex_ProgressThreadInfo_t *info;
    bad_returned(gex_System_QueryProgressThreads(client, NULL, &info, 0));
  }
  CASE("threads-no-info") {
    unsigned count;
    bad_returned(gex_System_QueryProgressThreads(client, &count, NULL, 0));
  }
  CASE("threads-flags") {
    unsigned count;
    const gex_ProgressThreadInfo_t *info;
    bad_returned(gex_System_QueryProgressThreads(client, &count, &info, 1));
  }
  CASE("invalid-team-size") gex_TM_QuerySize(GEX_TM_INVALID);
  CASE("invalid-endpoint-index") gex_EP_QueryIndex(GEX_EP_INVALID);
  CASE("invalid-segment-size") gex_Segment_QuerySize(GEX_SEGMENT_INVALID);
}

static void tables(void) {
  gex_AM_Entry_t table[256];
  int i, all = 256 - GEX_AM_INDEX_BASE;
  CASE("too-many-handlers") {
    for (i = 0; i <= all; ++i) table[i] = entry(0);
    bad_returned(gex_EP_RegisterHandlers(ep, table, (size_t)all + 1));
  }
  CASE("one-handler-more") {
    for (i = 0; i <= all; ++i) table[i] = entry(0);
    CHECK_OK(gex_EP_RegisterHandlers(ep, table, (size_t)all));
    bad_returned(gex_EP_RegisterHandlers(ep, table + all, 1));
  }
  CASE("same-handler-twice") {
    table[0] = entry(200);
    table[1] = entry(200);
    bad_returned(gex_EP_RegisterHandlers(ep, table, 2));
  }
  CASE("same-handler-later") {
    table[0] = entry(200);
    CHECK_OK(gex_EP_RegisterHandlers(ep, table, 1));
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handler-below-base") {
    table[0] = entry(GEX_AM_INDEX_BASE - 1);
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handler-without-function") {
    table[0] = entry(200);
    table[0].gex_fnptr = (gex_AM_Fn_t)NULL;
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handler-without-category") {
    table[0] = entry(200);
    table[0].gex_flags = GEX_FLAG_AM_REQUEST;
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handler-without-direction") {
    table[0] = entry(200);
    table[0].gex_flags = GEX_FLAG_AM_SHORT;
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handler-too-many-arguments") {
    table[0] = entry(200);
    table[0].gex_nargs = gex_AM_MaxArgs() + 1;
    bad_returned(gex_EP_RegisterHandlers(ep, table, 1));
  }
  CASE("handlers-no-table") bad_returned(gex_EP_RegisterHandlers(ep, NULL, 1));
  CASE("handlers-no-endpoint") {
    table[0] = entry(200);
    bad_returned(gex_EP_RegisterHandlers(GEX_EP_INVALID, table, 1));
  }
}

int main(int argc, char **argv) {
  gex_Flags_t flags;
  check_name = "bad start";
  if (argc > 1) bad_case = argv[1];
  before_start();
  wrong_start(&argc, &argv);
  flags = strncmp(bad_case, "threads-", 8) == 0 ? GEX_FLAG_DEFER_THREADS : 0;
  if (!bad_found) {
    check_start_with(&argc, &argv, "bad start", flags);
    segments();
    tables();
  } else {
    printf("survived\n");
    return 0;
  }
  return bad_finish();
}
