/* Long messages: every number of arguments, all sizes, sources that are overwritten early or
 * read-only, replies into the requester's segment, no byte outside of the destination touched,
 * empty messages whose address arrives as it was sent. */
#include "check.h"
#include "check_args.h"

enum { NUMBERED = 130, COUNTED = NUMBERED + 17, ANSWER = COUNTED + 17, SIZED = ANSWER + 17, SIZED_ANSWER, EMPTY, EMPTY_ANSWER, CONSTANT };
enum { SMALL = 21, GUARD = 64 };

/* Each rank has one slot in every other's segment for its requests, and one for its replies. */
#define SLOT ((size_t)1 << 16)

static volatile int answered, constants;
static char *mine;
static char *bases[64];
static unsigned char *source;
static unsigned char copy[SLOT];
static const unsigned char constant[3000] = {1, 2, 3, 4, 5};

static char *request_slot(gex_Rank_t at, gex_Rank_t from) { return bases[at] + from * SLOT + GUARD; }
static char *reply_slot(gex_Rank_t at, gex_Rank_t from) { return bases[at] + (ranks + from) * SLOT + GUARD; }

static gex_Rank_t source_of(gex_Token_t token) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  return info.gex_srcrank;
}

#define HANDLERS(M)                                                                             \
  static void numbered_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    gex_Rank_t from = source_of(token);                                                         \
    check_arguments(received, M, 0);                                                            \
    CHECK_SAME(data, request_slot(me, from) + M);                                               \
    CHECK_EQ(bytes, SMALL + M);                                                                 \
    CHECK_FILLED(data, bytes, M);                                                               \
    check_fill(data, bytes, M + 100);                                                           \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyLong##M, token, ANSWER + M, data, bytes,                    \
                        reply_slot(from, me) + M, GEX_EVENT_NOW,                                \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
  }                                                                                             \
  static void counted_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    gex_Rank_t from = source_of(token);                                                         \
    unsigned char own[SMALL + CHECK_MOST_ARGS];                                                 \
    check_arguments(received, M, 0);                                                            \
    CHECK_SAME(data, request_slot(me, from) + M);                                               \
    CHECK_FILLED(data, bytes, M);                                                               \
    check_fill(own, bytes, M + 100);                                                            \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyLong, token, ANSWER + M, own, bytes,                        \
                        reply_slot(from, me) + M, GEX_EVENT_NOW,                                \
                        0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                               \
    memset(own, 0xee, sizeof own);                                                              \
  }                                                                                             \
  static void answer_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                   \
    check_arguments(received, M, 1);                                                            \
    CHECK_SAME(data, reply_slot(me, source_of(token)) + M);                                     \
    CHECK_EQ(bytes, SMALL + M);                                                                 \
    CHECK_FILLED(data, bytes, M + 100);                                                         \
    answered = answered + 1;                                                                    \
  }
CHECK_COUNTS(HANDLERS)

static void sized(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t at, gex_AM_Arg_t key) {
  gex_Rank_t from = source_of(token);
  CHECK_EQ(bytes, size);
  CHECK_SAME(data, request_slot(me, from) + at);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  /* Only this handler has cleaned the slot since the last message. */
  CHECK_ALL((char *)data - 8, 8, 0);
  CHECK_ALL((char *)data + bytes, 8, 0);
  /* The next message may come as soon as the reply has left: the slot is cleaned before. */
  memcpy(copy, data, bytes);
  memset(data, 0, bytes);
  CHECK_EQ(gex_AM_ReplyLong3(token, SIZED_ANSWER, copy, bytes, reply_slot(from, me) + at, GEX_EVENT_NOW, 0, size, at,
                             key), 0);
}
static void sized_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t at,
                         gex_AM_Arg_t key) {
  CHECK_EQ(bytes, size);
  CHECK_SAME(data, reply_slot(me, source_of(token)) + at);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  CHECK_ALL((char *)data - 8, 8, 0);
  CHECK_ALL((char *)data + bytes, 8, 0);
  memset(data, 0, bytes);
  answered = answered + 1;
}

static uintptr_t joined(gex_AM_Arg_t high, gex_AM_Arg_t low) {
  return (uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
static void empty(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  CHECK_EQ(bytes, 0);
  CHECK_SAME(data, joined(high, low));
  CHECK_EQ(gex_AM_ReplyLong2(token, EMPTY_ANSWER, (void *)5, 0, data, GEX_EVENT_NOW, 0, high, low), 0);
}
static void empty_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  (void)token;
  CHECK_EQ(bytes, 0);
  CHECK_SAME(data, joined(high, low));
  answered = answered + 1;
}

/* From memory that cannot be written, there and back. */
static void with_constant(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t again) {
  gex_Rank_t from = source_of(token);
  CHECK_EQ(bytes, sizeof constant);
  CHECK(memcmp(data, constant, bytes) == 0);
  if (again)
    CHECK_EQ(gex_AM_ReplyLong1(token, CONSTANT, constant, sizeof constant, reply_slot(from, me), GEX_EVENT_NOW, 0, 0), 0);
  else
    constants = constants + 1;
}

#define ENTRIES(M)                                                                              \
  {NUMBERED + M, (gex_AM_Fn_t)numbered_##M, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {COUNTED + M, (gex_AM_Fn_t)counted_##M, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, M, NULL, NULL}, \
      {ANSWER + M, (gex_AM_Fn_t)answer_##M, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, M, NULL, NULL},

static void wait_for(int total) { GASNET_BLOCKUNTIL(answered >= total); CHECK_EQ(answered, total); }

#define ASK(M)                                                                                  \
  check_fill(small, SMALL + M, M);                                                              \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestLong##M, team, rank, NUMBERED + M, small, SMALL + M,        \
                      request_slot(rank, me) + M, GEX_EVENT_NOW,                                \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  memset(small, 0xdd, sizeof small);                                                            \
  wait_for(++total);                                                                            \
  check_fill(small, SMALL + M, M);                                                              \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestLong, team, rank, COUNTED + M, small, SMALL + M,            \
                      request_slot(rank, me) + M, GEX_EVENT_NOW,                                \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                               \
  memset(small, 0xdd, sizeof small);                                                            \
  wait_for(++total);

static int arguments(gex_Rank_t rank, int total) {
  unsigned char small[SMALL + CHECK_MOST_ARGS];
  CHECK_COUNTS(ASK)
  return total;
}

/* The handler of an empty message gets its address unchanged; no segment is needed, no source
 * read. */
static int nothing(gex_Rank_t rank, int total) {
  static const uintptr_t wild[] = {0, 1, (uintptr_t)-1, (uintptr_t)-4096, 0x7fff, (uintptr_t)1 << 40};
  size_t i;
  for (i = 0; i < CHECK_COUNT(wild); ++i) {
    void *to = (void *)wild[i];
    void *from = (void *)wild[CHECK_COUNT(wild) - 1 - i];
    gex_AM_Arg_t high = (gex_AM_Arg_t)((uint64_t)wild[i] >> 32);
    gex_AM_Arg_t low = (gex_AM_Arg_t)(uint32_t)wild[i];
    gex_Event_t event = GEX_EVENT_INVALID;
    CHECK_EQ(gex_AM_RequestLong2(team, rank, EMPTY, from, 0, to, GEX_EVENT_NOW, 0, high, low), 0);
    CHECK_EQ(gex_AM_RequestLong2(team, rank, EMPTY, from, 0, to, GEX_EVENT_GROUP, 0, high, low), 0);
    CHECK_EQ(gex_AM_RequestLong(team, rank, EMPTY, from, 0, to, &event, 0, high, low), 0);
    gex_Event_Wait(event);
    gex_NBI_Wait(GEX_EC_AM, 0);
    total += 3;
  }
  wait_for(total);
  return total;
}

static int send(gex_Rank_t rank, size_t bytes, size_t at, uint32_t key, int way, int total) {
  unsigned char *from = source + check_below(9);
  gex_Event_t event = GEX_EVENT_INVALID;
  gex_Event_t *how = way == 0 ? GEX_EVENT_NOW : way == 1 ? GEX_EVENT_GROUP : &event;
  check_fill(from, bytes, key);
  CHECK_EQ(gex_AM_RequestLong3(team, rank, SIZED, from, bytes, request_slot(rank, me) + at, how, 0, (gex_AM_Arg_t)bytes,
                               (gex_AM_Arg_t)at, (gex_AM_Arg_t)key), 0);
  if (way == 1) gex_NBI_Wait(GEX_EC_AM, 0);
  if (way == 2) gex_Event_Wait(event);
  if (way == 3) while (gex_Event_Test(event)) gasnet_AMPoll();
  memset(from, 0xcc, bytes);
  wait_for(++total);
  return total;
}

/* The source may lie in the sender's segment too, and the event may be waited for late. */
static int from_segment(gex_Rank_t rank, int total) {
  char *from = bases[me] + 2 * (size_t)ranks * SLOT;
  gex_Event_t event = GEX_EVENT_INVALID;
  check_fill(from, 5000, 77);
  CHECK_EQ(gex_AM_RequestLong3(team, rank, SIZED, from, 5000, request_slot(rank, me) + 16, &event, 0, 5000, 16, 77), 0);
  wait_for(++total);
  gex_Event_Wait(event);
  CHECK_FILLED(from, 5000, 77);
  return total;
}

static int sizes(gex_Rank_t rank, int total) {
  size_t most = gex_AM_MaxRequestLong(team, rank, NULL, 0, 3);
  size_t answer = gex_AM_MaxReplyLong(team, rank, GEX_EVENT_NOW, 0, 3);
  size_t bytes;
  int way, off;
  if (answer < most) most = answer;
  if (most > SLOT - 2 * GUARD - 8) most = SLOT - 2 * GUARD - 8;
  memset(request_slot(me, me) - 8, 0, 8);
  for (way = 0; way < 4; ++way) {
    for (bytes = 0; bytes <= 40; ++bytes)
      total = send(rank, bytes, bytes % 8, (uint32_t)bytes + 7, way, total);
    for (bytes = 64; bytes <= most; bytes *= 2)
      for (off = -1; off <= 1; ++off)
        if (bytes + off <= most) total = send(rank, bytes + off, bytes % 7, (uint32_t)bytes, way, total);
    total = send(rank, most, 8, 3, way, total);
  }
  return total;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      CHECK_COUNTS(ENTRIES)
      {SIZED, (gex_AM_Fn_t)sized, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, "sized"},
      {SIZED_ANSWER, (gex_AM_Fn_t)sized_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 3, NULL, "sized_answer"},
      {EMPTY, (gex_AM_Fn_t)empty, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 2, NULL, "empty"},
      {EMPTY_ANSWER, (gex_AM_Fn_t)empty_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQREP, 2, NULL, "empty_answer"},
      {CONSTANT, (gex_AM_Fn_t)with_constant, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQREP, 1, NULL, "with_constant"}};
  gex_Rank_t rank;
  int total = 0;
  check_start(&argc, &argv, "am_long");
  check_seed(me);
  CHECK(ranks <= CHECK_COUNT(bases));
  check_register(table, CHECK_COUNT(table));
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) total = nothing(rank, total);
  check_barrier();

  check_attach((2 * (uintptr_t)ranks + 1) * SLOT);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  mine = bases[me];
  memset(mine, 0, 2 * ranks * SLOT);
  source = (unsigned char *)malloc(SLOT + 4096);
  CHECK(source != NULL);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) total = arguments(rank, total);
  check_barrier();
  memset(mine, 0, 2 * ranks * SLOT);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    total = nothing(rank, total);
    total = sizes(rank, total);
    total = from_segment(rank, total);
  }
  check_barrier();

  for (rank = 0; rank < ranks; ++rank)
    CHECK_EQ(gex_AM_RequestLong1(team, rank, CONSTANT, constant, sizeof constant, request_slot(rank, me), GEX_EVENT_NOW,
                                 0, 1), 0);
  GASNET_BLOCKUNTIL(constants == (int)ranks);
  check_barrier();
  free(source);
  return check_finish();
}
