/* Counted replies of GASNet-1, the largest payloads, and payloads of no bytes. */
#include "legacy.h"

enum { ASK = 130, ANSWER_SHORT, ANSWER_MEDIUM, ANSWER_LONG, BIG, BIG_ANSWER, NOTHING, DONE };

static volatile int shorts, mediums, longs, bigs, dones;
static char words[] = "of the reply";

static void ask(gasnet_token_t token, gasnet_handlerarg_t which) {
  gasnet_node_t from = GEX_RANK_INVALID;
  char *there;
  CHECK_OK(gasnet_AMGetMsgSource(token, &from));
  there = legacy_segment(from) + 64;
  if (which == ANSWER_SHORT)
    CHECK_OK(gasnet_AMReplyShort(token, ANSWER_SHORT, 2, which, -5));
  else if (which == ANSWER_MEDIUM)
    CHECK_OK(gasnet_AMReplyMedium(token, ANSWER_MEDIUM, words, sizeof words, 1, which));
  else
    CHECK_OK(gasnet_AMReplyLong(token, ANSWER_LONG, words, sizeof words, there, 0));
}
static void answer_short(gasnet_token_t token, gasnet_handlerarg_t which, gasnet_handlerarg_t value) {
  (void)token;
  CHECK_EQ(which, ANSWER_SHORT);
  CHECK_EQ(value, -5);
  shorts = shorts + 1;
}
static void answer_medium(gasnet_token_t token, void *data, size_t bytes, gasnet_handlerarg_t which) {
  (void)token;
  CHECK_EQ(which, ANSWER_MEDIUM);
  CHECK_EQ(bytes, sizeof words);
  CHECK(memcmp(data, words, bytes) == 0);
  mediums = mediums + 1;
}
static void answer_long(gasnet_token_t token, void *data, size_t bytes) {
  (void)token;
  CHECK_SAME(data, legacy_segment(me) + 64);
  CHECK_EQ(bytes, sizeof words);
  CHECK(memcmp(data, words, bytes) == 0);
  longs = longs + 1;
}
static void big(gasnet_token_t token, void *data, size_t bytes) {
  CHECK_EQ(bytes, gasnet_AMMaxMedium());
  CHECK_FILLED(data, bytes, 5);
  CHECK_OK(gasnet_AMReplyMedium0(token, BIG_ANSWER, data, bytes));
}
static void big_answer(gasnet_token_t token, void *data, size_t bytes) {
  (void)token;
  CHECK_EQ(bytes, gasnet_AMMaxMedium());
  CHECK_FILLED(data, bytes, 5);
  bigs = bigs + 1;
}
/* Whatever address a long of no bytes names arrives as it is. */
static void nothing(gasnet_token_t token, void *data, size_t bytes, gasnet_handlerarg_t address) {
  CHECK_EQ(bytes, 0);
  if (address) CHECK_SAME(data, (intptr_t)address);
  CHECK_OK(gasnet_AMReplyShort0(token, DONE));
}
static void done(gasnet_token_t token) {
  (void)token;
  dones = dones + 1;
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{ASK, (gex_AM_Fn_t)ask},
                                   {ANSWER_SHORT, (gex_AM_Fn_t)answer_short},
                                   {ANSWER_MEDIUM, (gex_AM_Fn_t)answer_medium},
                                   {ANSWER_LONG, (gex_AM_Fn_t)answer_long},
                                   {BIG, (gex_AM_Fn_t)big},
                                   {BIG_ANSWER, (gex_AM_Fn_t)big_answer},
                                   {NOTHING, (gex_AM_Fn_t)nothing},
                                   {DONE, (gex_AM_Fn_t)done}};
  size_t most;
  char *buffer;
  gasnet_node_t to;
  legacy_init(&argc, &argv, "legacy_replies");
  legacy_attach(table, CHECK_COUNT(table), 4096);
  most = gasnet_AMMaxMedium();
  buffer = (char *)malloc(most);
  CHECK(buffer != NULL);
  check_fill(buffer, most, 5);
  for (to = 0; to < ranks; ++to) {
    int n = (int)to + 1;
    CHECK_OK(gasnet_AMRequestShort1(to, ASK, ANSWER_SHORT));
    CHECK_OK(gasnet_AMRequestShort1(to, ASK, ANSWER_MEDIUM));
    CHECK_OK(gasnet_AMRequestShort1(to, ASK, ANSWER_LONG));
    CHECK_OK(gasnet_AMRequestMedium0(to, BIG, buffer, most));
    GASNET_BLOCKUNTIL(shorts == n && mediums == n && longs == n && bigs == n);
    CHECK_OK(gasnet_AMRequestMedium1(to, NOTHING, NULL, 0, 0));
    CHECK_OK(gasnet_AMRequestLong1(to, NOTHING, NULL, 0, (void *)(intptr_t)0x1234567, 0x1234567));
    CHECK_OK(gasnet_AMRequestLongAsync1(to, NOTHING, NULL, 0, (void *)(intptr_t)0x7654321, 0x7654321));
    GASNET_BLOCKUNTIL(dones == 3 * n);
  }
  free(buffer);
  return check_finish();
}
