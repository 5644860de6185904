/* Messages of GASNet-1: 0 to 16 arguments, numbered and counted, short, medium, long and LongAsync,
 * as requests and replies. Payloads may be overwritten as soon as a call returns. */
#include "legacy.h"
#include "check_args.h"

/* For each number of arguments a handler of requests and one of replies, for messages with payload
 * and for those without. */
enum { SHORT = 128, ANSWER_SHORT = SHORT + 17, LOADED = ANSWER_SHORT + 17, ANSWER_LOADED = LOADED + 17 };
enum { BYTES = 1500, KEY = 11, ANSWER_KEY = 12 };
/* Places of longs in a segment, and of their replies. */
enum { PLACE = 4096, ANSWER_PLACE = 8192 };

static volatile int answers;
static gasnet_node_t partner;
static char *partner_base;
static char answer[BYTES];
/* Whether numbered calls are made or counted ones, and what kind; replies are of the same. */
static enum { MEDIUM, LONG, LONG_ASYNC } kind;
static int counted;

static gasnet_node_t source(gasnet_token_t token) {
  gasnet_node_t from = GEX_RANK_INVALID;
  CHECK_OK(gasnet_AMGetMsgSource(token, &from));
  CHECK(from < ranks);
  return from;
}

/* Not by the macro: it would have the whole call in its message. */
static void sent(int result) { CHECK_OK(result); }

/* Promises about the payload of a handler. */
static void check_payload(const void *data, size_t bytes, uint32_t key, const char *place) {
  CHECK_EQ(bytes, BYTES);
  if (place) CHECK_SAME(data, place);
  CHECK_FILLED(data, bytes, key);
}

#define REPLY_VALUES(M) CHECK_LIST_##M(CHECK_REPLY_VALUE)
#define REQUEST_VALUES(M) CHECK_LIST_##M(CHECK_REQUEST_VALUE)

#define HANDLERS(M)                                                                                       \
  static void short_##M(gasnet_token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                           \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    check_arguments(received, M, 0);                                                                      \
    source(token);                                                                                        \
    sent(CHECK_CALL(gasnet_AMReplyShort##M, token, ANSWER_SHORT + M REPLY_VALUES(M)));                \
  }                                                                                                       \
  static void answer_short_##M(gasnet_token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                    \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    check_arguments(received, M, 1);                                                                      \
    CHECK_EQ(source(token), partner);                                                                     \
    answers = answers + 1;                                                                                \
  }                                                                                                       \
  static void loaded_##M(gasnet_token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    gex_Token_Info_t info;                                                                                \
    char *there;                                                                                          \
    int is_long;                                                                                          \
    check_arguments(received, M, 0);                                                                      \
    CHECK(gex_Token_Info(token, &info, GEX_TI_IS_LONG) & GEX_TI_IS_LONG);                                 \
    is_long = info.gex_is_long;                                                                           \
    check_payload(data, bytes, KEY, is_long ? legacy_segment(me) + PLACE : NULL);                         \
    check_fill(answer, BYTES, ANSWER_KEY);                                                                \
    there = legacy_segment(source(token)) + ANSWER_PLACE;                                           \
    if (is_long) {                                                                                        \
      sent(CHECK_CALL(gasnet_AMReplyLong##M, token, ANSWER_LOADED + M, answer, BYTES, there REPLY_VALUES(M))); \
    } else {                                                                                              \
      sent(CHECK_CALL(gasnet_AMReplyMedium##M, token, ANSWER_LOADED + M, answer, BYTES REPLY_VALUES(M))); \
    }                                                                                                     \
    memset(answer, 0, BYTES);                                                                             \
  }                                                                                                       \
  static void answer_loaded_##M(gasnet_token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    check_arguments(received, M, 1);                                                                      \
    CHECK_EQ(source(token), partner);                                                                     \
    check_payload(data, bytes, ANSWER_KEY, kind == MEDIUM ? NULL : legacy_segment(me) + ANSWER_PLACE);    \
    answers = answers + 1;                                                                                \
  }
CHECK_COUNTS(HANDLERS)

#define ENTRIES(M)                                                                                      \
  {SHORT + M, (gex_AM_Fn_t)short_##M}, {ANSWER_SHORT + M, (gex_AM_Fn_t)answer_short_##M},               \
      {LOADED + M, (gex_AM_Fn_t)loaded_##M}, {ANSWER_LOADED + M, (gex_AM_Fn_t)answer_loaded_##M},

static char data[BYTES];
static int total;

static void wait_for_answer(void) {
  ++total;
  GASNET_BLOCKUNTIL(answers == total);
}

#define ASK_SHORT(M)                                                                                    \
  sent(CHECK_CALL(gasnet_AMRequestShort##M, partner, SHORT + M REQUEST_VALUES(M)));                 \
  wait_for_answer();                                                                                    \
  sent(CHECK_CALL(gasnet_AMRequestShort, partner, SHORT + M, M REQUEST_VALUES(M)));                 \
  wait_for_answer();

#define ASK_LOADED(M)                                                                                   \
  check_fill(data, BYTES, KEY);                                                                         \
  if (kind == MEDIUM && !counted)                                                                       \
    sent(CHECK_CALL(gasnet_AMRequestMedium##M, partner, LOADED + M, data, BYTES REQUEST_VALUES(M))); \
  else if (kind == MEDIUM)                                                                              \
    sent(CHECK_CALL(gasnet_AMRequestMedium, partner, LOADED + M, data, BYTES, M REQUEST_VALUES(M))); \
  else if (kind == LONG && !counted)                                                                    \
    sent(CHECK_CALL(gasnet_AMRequestLong##M, partner, LOADED + M, data, BYTES, partner_base + PLACE REQUEST_VALUES(M))); \
  else if (kind == LONG)                                                                                \
    sent(CHECK_CALL(gasnet_AMRequestLong, partner, LOADED + M, data, BYTES, partner_base + PLACE, M REQUEST_VALUES(M))); \
  else if (!counted)                                                                                    \
    sent(CHECK_CALL(gasnet_AMRequestLongAsync##M, partner, LOADED + M, data, BYTES, partner_base + PLACE REQUEST_VALUES(M))); \
  else                                                                                                  \
    sent(CHECK_CALL(gasnet_AMRequestLongAsync, partner, LOADED + M, data, BYTES, partner_base + PLACE, M REQUEST_VALUES(M))); \
  /* Also of LongAsync, which may read its payload later elsewhere, but says here that it does not. */  \
  memset(data, 0, BYTES);                                                                               \
  wait_for_answer();

/* Arguments of calls that are macros are evaluated once. */
static void once(void) {
  int node = 0, handler = 0, value = 0;
  CHECK_OK(gasnet_AMRequestShort((gasnet_node_t)(node++, partner), (gasnet_handler_t)(SHORT + 1 + handler++), 1,
                                 (gasnet_handlerarg_t)(value++, check_argument(0))));
  CHECK_EQ(node + handler + value, 3);
  wait_for_answer();
}

static void talk(void) {
  CHECK_COUNTS(ASK_SHORT)
  for (counted = 0; counted < 2; ++counted) {
    kind = MEDIUM;
    CHECK_COUNTS(ASK_LOADED)
    kind = LONG;
    CHECK_COUNTS(ASK_LOADED)
    kind = LONG_ASYNC;
    CHECK_COUNTS(ASK_LOADED)
  }
  once();
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {CHECK_COUNTS(ENTRIES)};
  gasnet_node_t turn, with;
  legacy_init(&argc, &argv, "legacy_am");
  CHECK(gasnet_AMMaxArgs() >= CHECK_MOST_ARGS);
  legacy_attach(table, CHECK_COUNT(table), 16384);
  /* One rank at a time: all longs to a rank have one place. */
  for (turn = 0; turn < ranks; ++turn) {
    if (turn == me) {
      for (with = 0; with < ranks; ++with) {
        partner = with;
        partner_base = legacy_segment(with);
        talk();
      }
    }
    CHECK_OK(gasnet_barrier((int)turn, 0));
  }
  return check_finish();
}
