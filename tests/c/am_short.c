/* Short messages: every number of arguments, numbered and counted, as request and as reply, before
 * any segment exists. */
#include "check.h"
#include "check_args.h"

/* A numbered request, a counted one, and the reply to both; the counted request is answered by a
 * counted reply. */
enum { NUMBERED = 130, COUNTED = NUMBERED + 17, ANSWER = COUNTED + 17 };

static volatile int asked, answered, answered_with;
static gex_Rank_t expected_source;

static void source_is(gex_Token_t token, gex_Rank_t should) {
  gex_Token_Info_t info;
  CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK, GEX_TI_SRCRANK);
  if (should != GEX_RANK_INVALID) CHECK_EQ(info.gex_srcrank, should);
  CHECK(info.gex_srcrank < ranks);
}

#define HANDLERS(M)                                                                             \
  static void numbered_##M(gex_Token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                 \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    source_is(token, GEX_RANK_INVALID);                                                         \
    check_arguments(received, M, 0);                                                            \
    asked = asked + 1;                                                                          \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyShort##M, token, ANSWER + M,                                \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
  }                                                                                             \
  static void counted_##M(gex_Token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                  \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    check_arguments(received, M, 0);                                                            \
    asked = asked + 1;                                                                          \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyShort, token, ANSWER + M,                                   \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
  }                                                                                             \
  static void answer_##M(gex_Token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                   \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    source_is(token, expected_source);                                                          \
    check_arguments(received, M, 1);                                                            \
    answered_with = M;                                                                          \
    answered = answered + 1;                                                                    \
  }
CHECK_COUNTS(HANDLERS)

#define ENTRIES(M)                                                                              \
  {NUMBERED + M, (gex_AM_Fn_t)numbered_##M, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {COUNTED + M, (gex_AM_Fn_t)counted_##M, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {ANSWER + M, (gex_AM_Fn_t)answer_##M, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, M, NULL, NULL},

static void wait_for(int total, int with) {
  GASNET_BLOCKUNTIL(answered == total);
  CHECK_EQ(answered_with, with);
}

#define ASK(M)                                                                                  \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestShort##M, team, rank, NUMBERED + M,                         \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  wait_for(++total, M);                                                                         \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestShort, team, rank, COUNTED + M,                             \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  wait_for(++total, M);

/* Many at once, more than any queue holds: the library polls for the caller. */
static int flood(gex_Rank_t rank, int total) {
  int i;
  expected_source = rank;
  for (i = 0; i < 3000; ++i) {
    CHECK_EQ(gex_AM_RequestShort(team, rank, NUMBERED, 0), 0);
    CHECK_EQ(gex_AM_RequestShort2(team, rank, COUNTED + 2, 0, check_argument(0), check_argument(1)), 0);
    total += 2;
  }
  GASNET_BLOCKUNTIL(answered == total);
  return total;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {CHECK_COUNTS(ENTRIES)};
  gex_Rank_t rank;
  int total = 0;
  check_start(&argc, &argv, "am_short");
  CHECK(gex_AM_MaxArgs() >= CHECK_MOST_ARGS);
  check_register(table, CHECK_COUNT(table));
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    expected_source = rank;
    CHECK_COUNTS(ASK)
  }
  total = flood(check_next(), total);
  total = flood(me, total);
  total = flood(0, total);
  check_barrier();
  CHECK_EQ(answered, total);
  /* Each rank was asked by all in turn, and flooded by one neighbor, itself, and at rank 0 by all
   * ranks. */
  CHECK_EQ(asked, 34 * (int)ranks + 6000 * 2 + (me == 0 ? 6000 * (int)ranks : 0));
  return check_finish();
}
