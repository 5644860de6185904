/* Wrong endpoints, and wrong messages between them. */
#include "bad.h"
#include <gasnet_mk.h>
#include <gasnet_vis.h>

enum { REQUEST = 160, LONG, REPLY, MEDIUM, ANSWER, UNKNOWN = 250 };

static gex_EP_t mute, open, bare;
static gex_Segment_t bound;
static char buffer[64];
static char *there_at;
static volatile int never;

static void request(gex_Token_t token) {
  CASE("reply-unknown-handler") gex_AM_ReplyShort0(token, UNKNOWN, 0);
  CASE("reply-outside") gex_AM_ReplyLong0(token, REPLY, buffer, 8, there_at + 4096, GEX_EVENT_NOW, 0);
  CASE("token-limit-in-reply") gex_AM_ReplyShort0(token, ANSWER, 0);
  CASE("two-replies") {
    gex_AM_ReplyShort0(token, ANSWER, 0);
    gex_AM_ReplyShort0(token, ANSWER, 0);
  }
}
static void answer(gex_Token_t token) {
  CASE("token-limit-in-reply") gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 0);
}
static void payload(gex_Token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

static void create(void) {
  gex_EP_t another;
  CASE("create-nothing") bad_returned(gex_EP_Create(&another, client, 0, 0));
  CASE("create-unknown") bad_returned(gex_EP_Create(&another, client, 1024, 0));
  CASE("create-nowhere") bad_returned(gex_EP_Create(NULL, client, GEX_EP_CAPABILITY_AM, 0));
  CASE("create-one-more") {
    int left = GASNET_MAXEPS - 4, result = GASNET_OK;
    while (left-- > 0 && result == GASNET_OK) result = gex_EP_Create(&another, client, GEX_EP_CAPABILITY_ALL, 0);
    CHECK_OK(result);
    bad_returned(gex_EP_Create(&another, client, GEX_EP_CAPABILITY_ALL, 0));
  }
}

/* A put whose completion cannot be reported to its peer. */
static void report(gex_EP_Index_t endpoint, gex_AM_Index_t handler) {
  gex_VIS_SetPeerCompletionHandler(handler, buffer, 8, 0);
  gex_VIS_VectorPutBlocking(gex_TM_Pair(open, endpoint), 1, 0, NULL, 0, NULL, 0);
}

/* What a debug build asks the target, or the process itself, before anything is sent. */
static void asked(void) {
  gex_TM_t there = gex_TM_Pair(open, 1), absent = gex_TM_Pair(ep, 9);
  CASE("limit-to-without") gex_AM_MaxRequestMedium(there, 1, GEX_EVENT_NOW, 0, 0);
  CASE("limit-to-absent") gex_AM_MaxReplyLong(absent, 1, GEX_EVENT_NOW, 0, 0);
  CASE("limit-to-own-without") gex_AM_MaxRequestLong(there, 0, GEX_EVENT_NOW, 0, 0);
  CASE("limit-of-absent") gex_AM_MaxReplyMedium(there, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 0);
  CASE("short-named-without") gex_AM_RequestShort0(there, 1, REQUEST, 0);
  CASE("long-named-absent") gex_AM_RequestLong0(absent, 1, LONG, buffer, 8, there_at, GEX_EVENT_NOW, 0);
  CASE("prepare-to-without") gex_AM_PrepareRequestMedium(there, 1, NULL, 8, 8, NULL, 0, 0);
  CASE("prepare-to-absent") gex_AM_PrepareRequestLong(absent, 1, buffer, 8, 8, NULL, GEX_EVENT_NOW, 0, 0);
  CASE("vis-named-absent") report(9, REPLY);
}

static void messages(void) {
  gex_TM_t from = gex_TM_Pair(mute, 0), between = gex_TM_Pair(open, 2);
  gex_Rank_t to = check_next();
  gex_AM_Entry_t again = {REQUEST, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
  CASE("register-without") bad_returned(gex_EP_RegisterHandlers(mute, &again, 1));
  CASE("register-twice") bad_returned(gex_EP_RegisterHandlers(open, &again, 1));
  CASE("short-from-without") gex_AM_RequestShort0(from, to, REQUEST, 0);
  CASE("medium-from-without") gex_AM_RequestMedium0(from, to, REQUEST, buffer, 8, GEX_EVENT_NOW, 0);
  CASE("long-from-without") gex_AM_RequestLong0(from, to, LONG, buffer, 8, there_at, GEX_EVENT_NOW, 0);
  CASE("prepare-from-without") gex_AM_PrepareRequestMedium(from, to, NULL, 8, 8, NULL, 0, 0);
  CASE("limit-from-without") gex_AM_MaxRequestMedium(from, to, GEX_EVENT_NOW, 0, 0);
  CASE("team-from-without") {
    gex_EP_Location_t both[2];
    gex_TM_t tm;
    both[0].gex_rank = 0, both[1].gex_rank = 1;
    both[0].gex_ep_index = both[1].gex_ep_index = 1;
    gex_TM_Create(&tm, 1, team, both, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_AM_RequestShort0(tm, 0, REQUEST, 0);
  }
  CASE("team-to-without") {
    gex_EP_Location_t both[2];
    gex_TM_t tm;
    both[0].gex_rank = 0, both[1].gex_rank = 1;
    both[0].gex_ep_index = 2, both[1].gex_ep_index = 1;
    gex_TM_Create(&tm, 1, team, both, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (me == 0) gex_AM_MaxRequestMedium(tm, 1, GEX_EVENT_NOW, 0, 0);
  }
  CASE("short-to-own-without") gex_AM_RequestShort0(gex_TM_Pair(open, 1), me, REQUEST, 0);
  CASE("medium-too-long") gex_AM_RequestMedium0(between, to, MEDIUM, there_at, gex_AM_MaxRequestMedium(between, to, GEX_EVENT_NOW, 0, 0) + 1, GEX_EVENT_NOW, 0);
  CASE("prepare-arguments") gex_AM_PrepareRequestMedium(between, to, NULL, 8, 8, NULL, 0, 17);
  CASE("rank") gex_AM_RequestShort0(between, ranks, REQUEST, 0);
  CASE("below-base") gex_AM_RequestShort0(between, to, 20, 0);
  CASE("other-kind") gex_AM_RequestMedium0(between, to, REQUEST, buffer, 8, GEX_EVENT_NOW, 0);
  check_barrier();
  /* What the target alone knows. */
  if (me == 0) {
    asked();
    CASE("vis-completion-absent") report(9, REPLY);
    CASE("vis-completion-unknown") report(2, UNKNOWN);
    CASE("short-to-without") gex_AM_RequestShort0(gex_TM_Pair(open, 1), 1, REQUEST, 0);
    CASE("medium-to-absent") gex_AM_RequestMedium0(gex_TM_Pair(ep, 9), 1, REQUEST, buffer, 8, GEX_EVENT_NOW, 0);
    CASE("unknown-handler") gex_AM_RequestShort0(between, 1, UNKNOWN, 0);
    CASE("long-outside") gex_AM_RequestLong0(between, 1, LONG, buffer, 8, there_at + 4089, GEX_EVENT_NOW, 0);
    CASE("long-not-bound") gex_AM_RequestLong0(gex_TM_Pair(ep, 3), 1, LONG, buffer, 8, there_at, GEX_EVENT_NOW, 0);
    gex_AM_RequestShort0(between, 1, REQUEST, 0);
  }
  /* Ranks that know nothing of the case wait for those that do; the driver ends a case that no rank
   * finds out. */
  if (strstr(bad_case, "register") == NULL) GASNET_BLOCKUNTIL(never);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{REQUEST, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
                            {LONG, (gex_AM_Fn_t)payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long"},
                            {REPLY, (gex_AM_Fn_t)payload, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 0, NULL, "reply"},
                            {MEDIUM, (gex_AM_Fn_t)payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  if (argc > 1) bad_case = argv[1];
  check_start(&argc, &argv, "bad_endpoints");
  gex_System_SetVerboseErrors(strstr(bad_case, "register") == NULL && strncmp(bad_case, "create", 6) != 0);
  CHECK_OK(gex_EP_Create(&mute, client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_EP_Create(&open, client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM, 0));
  CHECK_OK(gex_EP_Create(&bare, client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM, 0));
  CHECK_OK(gex_EP_RegisterHandlers(open, table, CHECK_COUNT(table)));
  CHECK_OK(gex_Segment_Create(&bound, client, NULL, 4096, GEX_MK_HOST, 0));
  CHECK_OK(gex_EP_BindSegment(open, bound, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &open, 1, 0));
  check_bound(gex_TM_Pair(open, 2), check_next(), &there_at, NULL, NULL);
  create();
  if (strncmp(bad_case, "create", 6) != 0) messages();
  return bad_finish();
}
