/* Wrong messages, handlers and locks. */
#include "bad.h"

enum { REQUEST = 160, MEDIUM, LONG, REPLY, UNKNOWN = 250 };

static char buffer[64];
/* This rank's segment; the query for it may not be called everywhere. */
static char *base;
static volatile int never;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

/* Calls that are wrong inside of a request's handler. */
static void request(gex_Token_t token) {
  CASE("put-in-handler") gex_RMA_PutBlocking(team, me, base, buffer, 8, 0);
  CASE("get-in-handler") gex_RMA_GetBlocking(team, buffer, me, base, 8, 0);
  CASE("request-in-handler") gex_AM_RequestShort0(team, me, REPLY, 0);
  CASE("poll-in-handler") gasnet_AMPoll();
  CASE("wait-in-handler") gex_NBI_Wait(GEX_EC_ALL, 0);
  CASE("barrier-in-handler") gex_Coll_BarrierNB(team, 0);
  CASE("named-barrier-in-handler") gasnet_barrier_notify(0, 0);
  CASE("attach-in-handler") gex_Segment_Attach(&segment, team, GASNET_PAGESIZE);
  CASE("translate-in-handler") gex_TM_TranslateRankToJobrank(team, 0);
  CASE("two-replies") {
    gex_AM_ReplyShort0(token, REPLY, 0);
    gex_AM_ReplyShort0(token, REPLY, 0);
  }
  CASE("reply-in-reply") gex_AM_ReplyShort0(token, REPLY, 0);
  CASE("reply-unknown-handler") gex_AM_ReplyShort0(token, UNKNOWN, 0);
  CASE("reply-grouped") gex_AM_ReplyMedium0(token, MEDIUM, buffer, 8, GEX_EVENT_GROUP, 0);
  CASE("reply-too-long") gex_AM_ReplyMedium0(token, MEDIUM, buffer, gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 0) + 1, GEX_EVENT_NOW, 0);
  CASE("reply-locked") {
    gex_HSL_Lock(&lock);
    gex_AM_ReplyShort0(token, REPLY, 0);
  }
  CASE("handler-keeps-lock") gex_HSL_Lock(&lock);
  (void)&lock;
}
static void reply(gex_Token_t token) {
  CASE("reply-in-reply") gex_AM_ReplyShort0(token, REPLY, 0);
}
static void payload(gex_Token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

static void requests(void) {
  size_t medium = gex_AM_MaxRequestMedium(team, me, GEX_EVENT_NOW, 0, 0);
  size_t most = gex_AM_MaxRequestLong(team, me, GEX_EVENT_NOW, 0, 0);
  uintptr_t size = segment == GEX_SEGMENT_INVALID ? 0 : gex_Segment_QuerySize(segment);
  CASE("unknown-handler") gex_AM_RequestShort0(team, 0, UNKNOWN, 0);
  CASE("request-rank") gex_AM_RequestShort0(team, ranks, REQUEST, 0);
  CASE("request-rank-invalid") gex_AM_RequestMedium0(team, GEX_RANK_INVALID, MEDIUM, buffer, 8, GEX_EVENT_NOW, 0);
  CASE("request-no-team") gex_AM_RequestShort0(GEX_TM_INVALID, 0, REQUEST, 0);
  CASE("limit-rank") gex_AM_MaxRequestMedium(team, ranks, GEX_EVENT_NOW, 0, 0);
  CASE("limit-arguments") gex_AM_MaxRequestMedium(team, 0, GEX_EVENT_NOW, 0, gex_AM_MaxArgs() + 1);
  CASE("medium-too-long") gex_AM_RequestMedium0(team, me, MEDIUM, base, medium + 1, GEX_EVENT_NOW, 0);
  CASE("medium-no-source") gex_AM_RequestMedium0(team, me, MEDIUM, NULL, 8, GEX_EVENT_NOW, 0);
  CASE("medium-no-completion") gex_AM_RequestMedium0(team, me, MEDIUM, buffer, 8, NULL, 0);
  CASE("medium-deferred") gex_AM_RequestMedium0(team, me, MEDIUM, buffer, 8, GEX_EVENT_DEFER, 0);
  CASE("long-too-long") gex_AM_RequestLong0(team, me, LONG, base, most + 1, base, GEX_EVENT_NOW, 0);
  CASE("long-deferred") gex_AM_RequestLong0(team, me, LONG, buffer, 8, base, GEX_EVENT_DEFER, 0);
  CASE("long-past-segment") gex_AM_RequestLong0(team, me, LONG, buffer, 8, base + size - 7, GEX_EVENT_NOW, 0);
  CASE("long-before-segment") gex_AM_RequestLong0(team, me, LONG, buffer, 8, base - 1, GEX_EVENT_NOW, 0);
  CASE("long-nowhere") gex_AM_RequestLong0(team, me, LONG, buffer, 8, NULL, GEX_EVENT_NOW, 0);
  /* These break the promises of the table of handlers. */
  CASE("short-to-medium") gex_AM_RequestShort0(team, me, MEDIUM, 0);
  CASE("medium-to-long") gex_AM_RequestMedium0(team, me, LONG, buffer, 8, GEX_EVENT_NOW, 0);
  CASE("request-to-reply") gex_AM_RequestShort0(team, me, REPLY, 0);
  CASE("other-count") gex_AM_RequestShort2(team, me, REQUEST, 0, 1, 2);
}

static void prepared(void) {
  gex_AM_SrcDesc_t made;
  size_t limit = gex_AM_MaxRequestMedium(team, me, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 0);
  CASE("prepare-least-over-limit") (void)gex_AM_PrepareRequestMedium(team, me, NULL, limit + 1, 2 * limit, NULL, 0, 0);
  CASE("prepare-least-over-most") (void)gex_AM_PrepareRequestMedium(team, me, NULL, 100, 99, NULL, 0, 0);
  CASE("prepare-null-completion") (void)gex_AM_PrepareRequestMedium(team, me, NULL, 1, 10, GEX_EVENT_NOW, 0, 0);
  CASE("prepare-client-no-completion") (void)gex_AM_PrepareRequestMedium(team, me, buffer, 1, 10, NULL, 0, 0);
  CASE("prepare-arguments") (void)gex_AM_PrepareRequestMedium(team, me, NULL, 1, 10, NULL, 0, gex_AM_MaxArgs() + 1);
  CASE("prepare-rank") (void)gex_AM_PrepareRequestMedium(team, ranks, NULL, 1, 10, NULL, 0, 0);
  CASE("prepare-twice") {
    (void)gex_AM_PrepareRequestMedium(team, me, NULL, 1, 10, NULL, 0, 0);
    (void)gex_AM_PrepareRequestMedium(team, me, NULL, 1, 10, NULL, 0, 0);
  }
  CASE("commit-too-long") {
    made = gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_AM_CommitRequestMedium0(made, MEDIUM, gex_AM_SrcDescSize(made) + 1);
  }
  CASE("commit-elsewhere") {
    made = gex_AM_PrepareRequestLong(team, me, NULL, 10, 10, base, NULL, 0, 0);
    gex_AM_CommitRequestLong0(made, LONG, 10, base + 8);
  }
  CASE("commit-other-count") {
    made = gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_AM_CommitRequestMedium1(made, MEDIUM, 10, 1);
  }
  CASE("commit-nothing") gex_AM_CommitRequestMedium0(GEX_AM_SRCDESC_NO_OP, MEDIUM, 10);
  CASE("commit-other-kind") {
    made = gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_AM_CommitRequestLong0(made, LONG, 10, base);
  }
  CASE("commit-twice") {
    made = gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_AM_CommitRequestMedium0(made, MEDIUM, 10);
    gex_AM_CommitRequestMedium0(made, MEDIUM, 10);
  }
  CASE("cancel-twice") {
    made = gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_AM_CancelRequestMedium(made, 0);
    gex_AM_CancelRequestMedium(made, 0);
  }
  CASE("put-while-prepared") {
    (void)gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0);
    gex_RMA_PutBlocking(team, me, base, buffer, 8, 0);
  }
}

static void locks(void) {
  (void)&lock;
  CASE("lock-twice") {
    gex_HSL_Lock(&lock);
    gex_HSL_Lock(&lock);
  }
  CASE("try-twice") {
    gex_HSL_Lock(&lock);
    if (gex_HSL_Trylock(&lock)) never = 1;
  }
  CASE("unlock-free") gex_HSL_Unlock(&lock);
  CASE("initialize-twice") {
    gex_HSL_Init(&lock);
    gex_HSL_Init(&lock);
  }
  CASE("destroy-twice") {
    gex_HSL_Destroy(&lock);
    gex_HSL_Destroy(&lock);
  }
  CASE("destroy-held") {
    gex_HSL_Lock(&lock);
    gex_HSL_Destroy(&lock);
  }
  CASE("unlock-out-of-order") {
    static gex_HSL_t other = GEX_HSL_INITIALIZER;
    (void)&other;
    gex_HSL_Lock(&lock);
    gex_HSL_Lock(&other);
    gex_HSL_Unlock(&lock);
  }
  CASE("poll-locked") {
    gex_HSL_Lock(&lock);
    gasnet_AMPoll();
  }
  CASE("request-locked") {
    gex_HSL_Lock(&lock);
    gex_AM_RequestShort0(team, me, REQUEST, 0);
  }
  CASE("put-locked") {
    gex_HSL_Lock(&lock);
    gex_RMA_PutBlocking(team, me, base, buffer, 8, 0);
  }
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{REQUEST, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
                            {MEDIUM, (gex_AM_Fn_t)payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP, 0, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQREP, 0, NULL, "long"},
                            {REPLY, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"}};
  int i;
  check_start(&argc, &argv, "bad messages");
  if (argc > 1) bad_case = argv[1];
  check_register(table, CHECK_COUNT(table));
  /* An attach in a handler is wrong even if it is the first one. */
  if (strcmp(bad_case, "attach-in-handler") != 0) {
    check_attach(1 << 20);
    base = check_base(me);
  }
  check_barrier();
  /* One rank does it; the others stay reachable until the job ends. */
  if (me == 0) {
    requests();
    prepared();
    locks();
    if (!bad_found) gex_AM_RequestShort0(team, me, REQUEST, 0);
    for (i = 0; i < 1000; ++i) gasnet_AMPoll();
    return bad_finish();
  }
  GASNET_BLOCKUNTIL(never);
  return 97;
}
