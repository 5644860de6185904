/* Medium messages: every number of arguments, all sizes, the source overwritten as soon as that is
 * allowed, replies from the handler's own buffer, sources that cannot be written. No segment is
 * attached. */
#include "check.h"
#include "check_args.h"

enum { NUMBERED = 130, COUNTED = NUMBERED + 17, ANSWER = COUNTED + 17, SIZED = ANSWER + 17, SIZED_ANSWER, CONSTANT };
enum { SMALL = 13 };

static volatile int answered, constants;
static unsigned char *source;
static gex_Event_t left_behind[4096];
static volatile int left;
static const unsigned char constant[40] = "in a page that is mapped read-only     ";

#define HANDLERS(M)                                                                             \
  static void numbered_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    check_arguments(received, M, 0);                                                            \
    CHECK_EQ(bytes, SMALL + M);                                                                 \
    CHECK_FILLED(data, bytes, M);                                                               \
    check_fill(data, bytes, M + 100);                                                           \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyMedium##M, token, ANSWER + M, data, bytes, GEX_EVENT_NOW,   \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
  }                                                                                             \
  static void counted_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    unsigned char mine[SMALL + CHECK_MOST_ARGS];                                                \
    check_arguments(received, M, 0);                                                            \
    CHECK_EQ(bytes, SMALL + M);                                                                 \
    CHECK_FILLED(data, bytes, M);                                                               \
    check_fill(mine, bytes, M + 100);                                                           \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyMedium, token, ANSWER + M, mine, bytes, GEX_EVENT_NOW,      \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
    memset(mine, 0xee, sizeof mine);                                                            \
  }                                                                                             \
  static void answer_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    (void)token;                                                                                \
    check_arguments(received, M, 1);                                                            \
    CHECK_EQ(bytes, SMALL + M);                                                                 \
    CHECK_FILLED(data, bytes, M + 100);                                                         \
    answered = answered + 1;                                                                    \
  }
CHECK_COUNTS(HANDLERS)

/* Any size: the key is the argument. */
static void sized(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t key) {
  size_t most = gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 2);
  CHECK_EQ(bytes, size);
  CHECK_EQ((uintptr_t)data % 8, bytes ? 0 : (uintptr_t)data % 8);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  /* The buffer is the handler's: it may write there, and send from there. */
  check_fill(data, bytes, (uint32_t)key + 1);
  if (bytes > most) bytes = most;
  CHECK_EQ(gex_AM_ReplyMedium2(token, SIZED_ANSWER, data, bytes, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)bytes, key + 1), 0);
}
static void sized_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t key) {
  (void)token;
  CHECK_EQ(bytes, size);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  memset(data, 0, bytes);
  answered = answered + 1;
}
/* Answers from read-only memory, with an event that is waited for outside of the handler. */
static void with_constant(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t again) {
  CHECK_EQ(bytes, sizeof constant);
  CHECK(memcmp(data, constant, bytes) == 0);
  if (again) {
    CHECK(left < (int)CHECK_COUNT(left_behind));
    left_behind[left] = GEX_EVENT_INVALID;
    CHECK_EQ(gex_AM_ReplyMedium1(token, CONSTANT, constant, sizeof constant, &left_behind[left], 0, 0), 0);
    left = left + 1;
  } else {
    constants = constants + 1;
  }
}

#define ENTRIES(M)                                                                              \
  {NUMBERED + M, (gex_AM_Fn_t)numbered_##M, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {COUNTED + M, (gex_AM_Fn_t)counted_##M, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {ANSWER + M, (gex_AM_Fn_t)answer_##M, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, M, NULL, NULL},

static void wait_for(int total) { GASNET_BLOCKUNTIL(answered >= total); CHECK_EQ(answered, total); }

#define ASK(M)                                                                                  \
  check_fill(small, SMALL + M, M);                                                              \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestMedium##M, team, rank, NUMBERED + M, small, SMALL + M, GEX_EVENT_NOW, \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  memset(small, 0xdd, sizeof small);                                                            \
  wait_for(++total);                                                                            \
  check_fill(small, SMALL + M, M);                                                              \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestMedium, team, rank, COUNTED + M, small, SMALL + M, GEX_EVENT_NOW, \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  memset(small, 0xdd, sizeof small);                                                            \
  wait_for(++total);

static int arguments(gex_Rank_t rank, int total) {
  unsigned char small[SMALL + CHECK_MOST_ARGS];
  CHECK_COUNTS(ASK)
  return total;
}

/* One message; the source is spoilt as soon as the chosen way allows it. */
static void send(gex_Rank_t rank, size_t bytes, uint32_t key, int way) {
  size_t shift = check_below(9);
  unsigned char *from = source + shift;
  gex_Event_t event = GEX_EVENT_INVALID;
  gex_Event_t *how = way == 0 ? GEX_EVENT_NOW : way == 1 ? GEX_EVENT_GROUP : &event;
  check_fill(from, bytes, key);
  CHECK_EQ(gex_AM_RequestMedium2(team, rank, SIZED, from, bytes, how, 0, (gex_AM_Arg_t)bytes, (gex_AM_Arg_t)key), 0);
  if (way == 1) gex_NBI_Wait(GEX_EC_AM, 0);
  if (way == 2) gex_Event_Wait(event);
  if (way == 3) while (gex_Event_Test(event)) gasnet_AMPoll();
  memset(from, 0xcc, bytes);
}

static int sizes(gex_Rank_t rank, int total) {
  size_t most = gex_AM_MaxRequestMedium(team, rank, GEX_EVENT_NOW, 0, 2);
  size_t grouped = gex_AM_MaxRequestMedium(team, rank, GEX_EVENT_GROUP, 0, 2);
  size_t other = gex_AM_MaxRequestMedium(team, rank, NULL, 0, 2);
  size_t bytes;
  int way;
  if (grouped < most) most = grouped;
  if (other < most) most = other;
  for (way = 0; way < 4; ++way) {
    for (bytes = 0; bytes <= 64; ++bytes) {
      send(rank, bytes, (uint32_t)bytes + 7, way);
      wait_for(++total);
    }
    for (bytes = 128; bytes <= most; bytes *= 2) {
      int off;
      for (off = -1; off <= 1; ++off)
        if (bytes + off <= most) {
          send(rank, bytes + off, (uint32_t)bytes, way);
          wait_for(++total);
        }
    }
    send(rank, most, 3, way);
    wait_for(++total);
    send(rank, most - 1, 4, way);
    wait_for(++total);
  }
  return total;
}

/* Many before any poll of our own. */
static int flood(gex_Rank_t rank, int total) {
  size_t most = gex_AM_LUBRequestMedium();
  int i;
  for (i = 0; i < 500; ++i) {
    size_t bytes = check_below(i % 10 ? 200 : most);
    send(rank, bytes, (uint32_t)i, i % 3);
    ++total;
  }
  wait_for(total);
  return total;
}

/* No byte is looked at when there are none. */
static int nothing(gex_Rank_t rank, int total) {
  static const uintptr_t wild[] = {0, 1, 8, (uintptr_t)-1, (uintptr_t)-4096, 0x7fff};
  size_t i;
  for (i = 0; i < CHECK_COUNT(wild); ++i) {
    gex_Event_t event = GEX_EVENT_INVALID;
    CHECK_EQ(gex_AM_RequestMedium2(team, rank, SIZED, (void *)wild[i], 0, GEX_EVENT_NOW, 0, 0, 1), 0);
    CHECK_EQ(gex_AM_RequestMedium2(team, rank, SIZED, (void *)wild[i], 0, GEX_EVENT_GROUP, 0, 0, 1), 0);
    CHECK_EQ(gex_AM_RequestMedium2(team, rank, SIZED, (void *)wild[i], 0, &event, 0, 0, 1), 0);
    gex_Event_Wait(event);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    total += 3;
  }
  wait_for(total);
  return total;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      CHECK_COUNTS(ENTRIES)
      {SIZED, (gex_AM_Fn_t)sized, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "sized"},
      {SIZED_ANSWER, (gex_AM_Fn_t)sized_answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 2, NULL, "sized_answer"},
      {CONSTANT, (gex_AM_Fn_t)with_constant, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP, 1, NULL, "with_constant"}};
  gex_Rank_t rank;
  int total = 0, i;
  check_start(&argc, &argv, "am_medium");
  check_seed(me);
  check_register(table, CHECK_COUNT(table));
  source = (unsigned char *)malloc(gex_AM_MaxRequestMedium(team, me, GEX_EVENT_NOW, 0, 0) +
                                   gex_AM_LUBRequestMedium() + 4096);
  CHECK(source != NULL);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    total = arguments(rank, total);
    total = nothing(rank, total);
    total = sizes(rank, total);
  }
  total = flood(check_next(), total);
  total = flood(me, total);
  for (rank = 0; rank < ranks; ++rank) {
    for (i = 0; i < 5; ++i)
      CHECK_EQ(gex_AM_RequestMedium1(team, rank, CONSTANT, constant, sizeof constant, GEX_EVENT_NOW, 0, 1), 0);
  }
  GASNET_BLOCKUNTIL(constants == 5 * (int)ranks);
  check_barrier();
  CHECK_EQ(left, 5 * ranks);
  for (i = 0; i < left; ++i) gex_Event_Wait(left_behind[i]);
  free(source);
  return check_finish();
}
