/* Wrong uses of GASNet-1. */
#include "../legacy.h"

#include "bad.h"

enum { REQUEST = 160, REPLY, MEDIUM, LONG };

static char buffer[64];
static volatile int never;
static volatile size_t nine = 9, none = 0;
static char *base;

/* Handlers run in rank 0 alone. */
static void request(gasnet_token_t token) {
  gasnet_node_t from = 0;
  CASE("two-replies") {
    gasnet_AMReplyShort0(token, REPLY);
    gasnet_AMReplyShort0(token, REPLY);
  }
  CASE("reply-in-reply") gasnet_AMReplyShort0(token, REPLY);
  CASE("reply-count") gasnet_AMReplyMedium(token, MEDIUM, buffer, 8, 2, 1);
  CASE("reply-too-long") gasnet_AMReplyMedium0(token, MEDIUM, base, gasnet_AMMaxMedium() + 1);
  CASE("reply-long-nowhere") gasnet_AMReplyLong0(token, LONG, buffer, 8, NULL);
  CASE("source-no-place") bad_returned(gasnet_AMGetMsgSource(token, NULL));
  CASE("source-no-token") gasnet_AMGetMsgSource((gasnet_token_t)0, &from);
  CASE("request-in-handler") gasnet_AMRequestShort0(me, REQUEST);
  CASE("long-async-in-handler") gasnet_AMRequestLongAsync0(me, LONG, buffer, 8, base);
  CASE("try-in-handler") gasnet_try_syncnb(GASNET_INVALID_HANDLE);
  CASE("wait-in-handler") gasnet_wait_syncnbi_puts();
  CASE("put-in-handler") gasnet_put(me, base, buffer, 8);
  CASE("attach-in-handler") bad_returned(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
}
static void reply(gasnet_token_t token) {
  CASE("reply-in-reply") gasnet_AMReplyShort0(token, REPLY);
}
static void payload(gasnet_token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

static void before_init(int *argc, char ***argv) {
  gasnet_handle_t handles[1] = {GASNET_INVALID_HANDLE};
  CASE("attach-before-init") bad_returned(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
  CASE("node-before-init") gasnet_mynode();
  CASE("nodes-before-init") gasnet_nodes();
  CASE("objects-before-init") gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
  CASE("request-before-init") gasnet_AMRequestShort0(0, REQUEST);
  CASE("put-before-init") gasnet_put(0, buffer, buffer + 32, 8);
  CASE("get-before-init") gasnet_get_bulk(buffer, 0, buffer + 32, 8);
  CASE("value-before-init") gasnet_get_val(0, buffer, 8);
  CASE("memset-before-init") gasnet_memset(0, buffer, 1, 8);
  CASE("wait-before-init") gasnet_wait_syncnbi_all();
  CASE("wait-all-before-init") gasnet_wait_syncnb_all(handles, 1);
  CASE("region-before-init") gasnet_begin_nbi_accessregion();
  CASE("init-half") bad_returned(gasnet_init(argc, NULL));
  CASE("init-other-half") bad_returned(gasnet_init(NULL, argv));
}

static void begun_by_ex(int *argc, char ***argv) {
  gasnet_node_t to;
  if (strncmp(bad_case, "unasked-", 8) != 0) return;
  check_start(argc, argv, "bad legacy");
  check_attach(GASNET_PAGESIZE);
  base = check_base(me);
  to = me;
  CASE("unasked-request") gasnet_AMRequestShort0(to, REQUEST);
  CASE("unasked-medium") gasnet_AMRequestMedium0(to, MEDIUM, buffer, 8);
  CASE("unasked-put") gasnet_put(to, base, buffer, 8);
  CASE("unasked-attach") bad_returned(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
  bad_finish();
}

static void before_attach(void) {
  uintptr_t page = GASNET_PAGESIZE;
  gasnet_handlerentry_t table[256];
  int i, all = 256 - GEX_AM_INDEX_BASE;
  for (i = 0; i <= all; ++i) {
    table[i].index = 0;
    table[i].fnptr = (gex_AM_Fn_t)request;
  }
  CASE("init-twice") bad_returned(gasnet_init(NULL, NULL));
  CASE("request-before-attach") gasnet_AMRequestShort0(me, REQUEST);
  CASE("medium-before-attach") gasnet_AMRequestMedium0(me, MEDIUM, buffer, 8);
  CASE("put-before-attach") gasnet_put(me, buffer, buffer + 32, 8);
  CASE("get-before-attach") gasnet_get(buffer, me, buffer + 32, 8);
  CASE("put-nb-before-attach") gasnet_wait_syncnb(gasnet_put_nb_bulk(me, buffer, buffer + 32, 8));
  CASE("value-before-attach") gasnet_put_val(me, buffer, 1, 8);
  CASE("value-get-before-attach") gasnet_wait_syncnb_valget(gasnet_get_nb_val(me, buffer, 8));
  CASE("memset-before-attach") gasnet_memset(me, buffer, 1, 8);
  CASE("attach-unaligned") bad_returned(gasnet_attach(NULL, 0, page + 1, 0));
  CASE("attach-too-large") bad_returned(gasnet_attach(NULL, 0, gasnet_getMaxLocalSegmentSize() + page, 0));
  CASE("attach-no-table") bad_returned(gasnet_attach(NULL, 3, page, 0));
  CASE("attach-negative") bad_returned(gasnet_attach(table, -3, page, 0));
  CASE("attach-too-many") bad_returned(gasnet_attach(table, all + 1, page, 0));
  CASE("attach-same-index") {
    table[0].index = table[2].index = 222;
    bad_returned(gasnet_attach(table, 3, page, 0));
  }
  CASE("attach-below-base") {
    table[1].index = GEX_AM_INDEX_BASE - 1;
    bad_returned(gasnet_attach(table, 3, page, 0));
  }
  CASE("attach-no-function") {
    table[1].fnptr = (gex_AM_Fn_t)NULL;
    bad_returned(gasnet_attach(table, 3, page, 0));
  }
}

static void messages(void) {
  size_t most = gasnet_AMMaxMedium();
  CASE("attach-twice") bad_returned(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));
  CASE("request-node") gasnet_AMRequestShort0(ranks, REQUEST);
  CASE("medium-node") gasnet_AMRequestMedium0(GEX_RANK_INVALID, MEDIUM, buffer, 8);
  CASE("request-unknown") gasnet_AMRequestShort0(0, 250);
  CASE("request-index") gasnet_AMRequestShort0(0, 5);
  CASE("request-count-less") gasnet_AMRequestShort(0, REQUEST, 1, 1, 2);
  CASE("request-count-more") gasnet_AMRequestMedium(0, MEDIUM, buffer, 8, 3, 1, 2);
  CASE("request-count-negative") gasnet_AMRequestLong(0, LONG, buffer, 8, base, -1);
  CASE("request-count-async") gasnet_AMRequestLongAsync(0, LONG, buffer, 8, base, 1);
  CASE("medium-too-long") gasnet_AMRequestMedium0(0, MEDIUM, base, most + 1);
  CASE("medium-no-source") gasnet_AMRequestMedium0(0, MEDIUM, NULL, 8);
  CASE("long-too-long") gasnet_AMRequestLong0(0, LONG, base, gasnet_AMMaxLongRequest() + 1, base);
  CASE("long-past-segment") gasnet_AMRequestLong0(0, LONG, buffer, 8, base + (1 << 20) - 7);
  CASE("long-async-nowhere") gasnet_AMRequestLongAsync0(0, LONG, buffer, 8, NULL);
}

static void transfers(void) {
  gasnet_handle_t handle;
  char *end = base + (1 << 20);
  CASE("put-node") gasnet_put(ranks, base, buffer, 8);
  CASE("put-bulk-node") gasnet_put_bulk(ranks, base, buffer, 64);
  CASE("put-nb-node") gasnet_wait_syncnb(gasnet_put_nb(ranks, base, buffer, 8));
  CASE("put-nbi-node") gasnet_put_nbi(GEX_RANK_INVALID, base, buffer, 8);
  CASE("get-node") gasnet_get(buffer, ranks, base, 8);
  CASE("get-nbi-bulk-node") gasnet_get_nbi_bulk(buffer, ranks, base, 8);
  CASE("value-node") gasnet_get_val(ranks, base, 8);
  CASE("memset-node") gasnet_memset(ranks, base, 1, 8);
  CASE("memset-nbi-node") gasnet_memset_nbi(ranks, base, 1, 8);
  CASE("put-val-9-bytes") gasnet_put_val(me, base, 1, nine);
  CASE("put-nb-val-0-bytes") gasnet_wait_syncnb(gasnet_put_nb_val(me, base, 1, none));
  CASE("put-nbi-val-9-bytes") gasnet_put_nbi_val(me, base, 1, nine);
  CASE("get-val-0-bytes") gasnet_get_val(me, base, none);
  CASE("get-nb-val-9-bytes") gasnet_wait_syncnb_valget(gasnet_get_nb_val(me, base, nine));
  CASE("wait-no-value") gasnet_wait_syncnb_valget((gasnet_valget_handle_t)0);
  CASE("wait-value-twice") {
    gasnet_valget_handle_t value = gasnet_get_nb_val(me, base, 8);
    gasnet_wait_syncnb_valget(value);
    gasnet_wait_syncnb_valget(value);
  }
  CASE("putv-node") {
    const gasnet_memvec_t here = {buffer, 8}, there = {base, 8};
    gasnet_putv_bulk(ranks, 1, &there, 1, &here);
  }
  CASE("gets-past-segment") {
    static const size_t counts[] = {8, 4}, apart[] = {16}, far[] = {1 << 19};
    gasnet_wait_syncnb(gasnet_gets_nb_bulk(buffer, apart, me, base, far, counts, 1));
  }
  CASE("put-past-segment") gasnet_put(me, end - 7, buffer, 8);
  CASE("get-past-segment") gasnet_wait_syncnb(gasnet_get_nb_bulk(buffer, me, end - 7, 8));
  CASE("put-value-past-segment") gasnet_put_nbi_val(me, end - 7, 1, 8);
  CASE("memset-past-segment") gasnet_memset(me, end - 100000, 1, 100001);
  CASE("put-overlap") gasnet_put_bulk(me, base + 4, base, 8);
  CASE("wait-no-op") gasnet_wait_syncnb(GEX_EVENT_NO_OP);
  CASE("try-no-op") gasnet_try_syncnb(GEX_EVENT_NO_OP);
  CASE("wait-garbage") gasnet_wait_syncnb((gasnet_handle_t)(uintptr_t)0xdeadbee8u);
  CASE("wait-all-nowhere") gasnet_wait_syncnb_all(NULL, 2);
  CASE("region-in-region") {
    gasnet_begin_nbi_accessregion();
    gasnet_begin_nbi_accessregion();
  }
  CASE("region-end-alone") {
    handle = gasnet_end_nbi_accessregion();
    (void)handle;
  }
  CASE("wait-in-region") {
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnbi_all();
  }
  CASE("try-in-region") {
    gasnet_begin_nbi_accessregion();
    gasnet_try_syncnbi_gets();
  }
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{REQUEST, (gex_AM_Fn_t)request},
                                   {REPLY, (gex_AM_Fn_t)reply},
                                   {MEDIUM, (gex_AM_Fn_t)payload},
                                   {LONG, (gex_AM_Fn_t)payload}};
  int i;
  check_name = "bad legacy";
  if (argc > 1) bad_case = argv[1];
  before_init(&argc, &argv);
  if (bad_found) {
    printf("survived\n");
    return 0;
  }
  begun_by_ex(&argc, &argv);
  legacy_init(&argc, &argv, "bad legacy");
  before_attach();
  if (bad_found) return bad_finish();
  legacy_attach(table, CHECK_COUNT(table), 1 << 20);
  base = legacy_segment(me);
  /* One rank does it; the others stay reachable until the job ends. */
  if (me == 0) {
    messages();
    transfers();
    if (!bad_found) gasnet_AMRequestShort0(me, REQUEST);
    for (i = 0; i < 1000; ++i) gasnet_AMPoll();
    return bad_finish();
  }
  GASNET_BLOCKUNTIL(never);
  return 97;
}
