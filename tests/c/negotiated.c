/* Negotiated payloads: prepare, commit, cancel, for requests and replies; buffers of the client and
 * of the library; sizes between the least and the most; every way of local completion; the second
 * form of commit; every number of arguments. */
#include "check.h"
#include "check_args.h"

enum {
  MEDIUM = 130,  /* A request; it is answered in a way that its argument chooses. */
  LONG,
  MEDIUM_ANSWER,
  LONG_ANSWER,
  COUNTED_MEDIUM,                      /* With 0 to 16 arguments. */
  COUNTED_LONG = COUNTED_MEDIUM + 17,
  ANSWER_MEDIUM = COUNTED_LONG + 17,
  ANSWER_LONG = ANSWER_MEDIUM + 17
};

#define SLOT ((size_t)1 << 17)

/* The library's buffers hold any type. */
struct any {
  char before;
  union {
    long double number;
    void *pointer;
    uint64_t integer;
  } all;
};
#ifndef BUFFER_ALIGNMENT
#define BUFFER_ALIGNMENT offsetof(struct any, all)
#endif

static volatile int answered;
static unsigned char *source;
static unsigned char reply_source[1 << 16];
static gex_Event_t reply_event;
static volatile int reply_event_used;

static gex_Rank_t source_of(gex_Token_t token) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  return info.gex_srcrank;
}
static char *bases[64];
static char *request_slot(gex_Rank_t at, gex_Rank_t from) { return bases[at] + from * SLOT; }
static char *reply_slot(gex_Rank_t at, gex_Rank_t from) { return bases[at] + (ranks + from) * SLOT; }

static void descriptor(gex_AM_SrcDesc_t made, const void *buffer, size_t least, size_t most) {
  CHECK(made != GEX_AM_SRCDESC_NO_OP);
  CHECK(gex_AM_SrcDescSize(made) >= least);
  CHECK(gex_AM_SrcDescSize(made) <= most);
  if (buffer) CHECK_SAME(gex_AM_SrcDescAddr(made), buffer);
  else CHECK_EQ((uintptr_t)gex_AM_SrcDescAddr(made) % BUFFER_ALIGNMENT, 0);
  CHECK(gex_AM_SrcDescAddr(made) != NULL);
  /* Asked again it says the same. */
  CHECK_EQ(gex_AM_SrcDescSize(made), gex_AM_SrcDescSize(made));
}

/* Ways to make a reply. */
enum { OWN_BUFFER, CLIENT_NOW, CLIENT_EVENT, LIBRARY, LIBRARY_EMPTY_FIRST, REPLIES };

static void reply(gex_Token_t token, int is_long, void *data, size_t bytes, int how, gex_AM_Arg_t key) {
  gex_Rank_t from = source_of(token);
  char *to = reply_slot(from, me) + 24;
  const void *buffer = how == OWN_BUFFER ? data : how >= LIBRARY ? NULL : reply_source;
  gex_Event_t *lc = how == CLIENT_EVENT ? &reply_event : how >= LIBRARY ? NULL : GEX_EVENT_NOW;
  gex_Flags_t least_kind = buffer ? GEX_FLAG_AM_PREPARE_LEAST_CLIENT : GEX_FLAG_AM_PREPARE_LEAST_ALLOC;
  size_t limit = is_long ? gex_Token_MaxReplyLong(token, lc, least_kind, 2) : gex_Token_MaxReplyMedium(token, lc, least_kind, 2);
  size_t least = bytes < limit ? bytes : limit;
  size_t most = bytes;
  gex_AM_SrcDesc_t made;
  size_t size;
  int round, dst_now = key % 2;
  if (how == CLIENT_EVENT) reply_event_used = 1;
  for (round = 0;; ++round) {
    if (is_long)
      made = gex_AM_PrepareReplyLong(token, buffer, least, most, dst_now ? to : NULL, lc, 0, 2);
    else
      made = gex_AM_PrepareReplyMedium(token, buffer, least, most, lc, 0, 2);
    descriptor(made, buffer, least, most);
    if (how != LIBRARY_EMPTY_FIRST || round == 1) break;
    /* Given up once, and then again. */
    if (is_long) CHECK_EQ(gex_AM_CancelReplyLong(made, 0), 0);
    else CHECK_EQ(gex_AM_CancelReplyMedium(made, 0), 0);
  }
  size = gex_AM_SrcDescSize(made);
  if (size > bytes) size = bytes;
  check_fill(gex_AM_SrcDescAddr(made), size, (uint32_t)key + 1);
  if (key % 3 == 0) {
    if (is_long) gex_AM_CommitReplyLong2(made, LONG_ANSWER, size, to, (gex_AM_Arg_t)size, key + 1);
    else gex_AM_CommitReplyMedium2(made, MEDIUM_ANSWER, size, (gex_AM_Arg_t)size, key + 1);
  } else if (key % 3 == 1) {
    if (is_long) gex_AM_CommitReplyLong(made, LONG_ANSWER, size, to, (gex_AM_Arg_t)size, key + 1);
    else gex_AM_CommitReplyMedium(made, MEDIUM_ANSWER, size, (gex_AM_Arg_t)size, key + 1);
  } else {
    if (is_long) CHECK_EQ(gex_AM_CommitReplyLong2_v2(made, LONG_ANSWER, size, to, 0, (gex_AM_Arg_t)size, key + 1), 0);
    else CHECK_EQ(gex_AM_CommitReplyMedium_v2(made, MEDIUM_ANSWER, size, 0, (gex_AM_Arg_t)size, key + 1), 0);
  }
  if (how == CLIENT_NOW) memset(reply_source, 0xbb, size);
}

static void medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t how, gex_AM_Arg_t key) {
  CHECK_EQ(bytes, size);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  reply(token, 0, data, bytes < sizeof reply_source ? bytes : sizeof reply_source, how, key);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t how, gex_AM_Arg_t key) {
  CHECK_EQ(bytes, size);
  CHECK_SAME(data, request_slot(me, source_of(token)) + 8);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  reply(token, 1, data, bytes < sizeof reply_source ? bytes : sizeof reply_source, how, key);
}
static void medium_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t key) {
  (void)token;
  CHECK_EQ(bytes, size);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  answered = answered + 1;
}
static void long_answer(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t size, gex_AM_Arg_t key) {
  CHECK_EQ(bytes, size);
  CHECK_SAME(data, reply_slot(me, source_of(token)) + 24);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  answered = answered + 1;
}

/* Every number of arguments, in both forms of commit, by numbered and by counted names. */
#define COUNTED_HANDLERS(M)                                                                               \
  static void counted_medium_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    gex_AM_SrcDesc_t made;                                                                                \
    check_arguments(received, M, 0);                                                                      \
    CHECK_EQ(bytes, 8 + M);                                                                               \
    made = gex_AM_PrepareReplyMedium(token, data, bytes, bytes, GEX_EVENT_NOW, 0, M);                     \
    if (((char *)data)[0] == 'n')                                                                         \
      CHECK_CALL(gex_AM_CommitReplyMedium##M, made, ANSWER_MEDIUM + M, bytes CHECK_LIST_##M(CHECK_REPLY_VALUE)); \
    else                                                                                                  \
      CHECK_EQ(CHECK_CALL(gex_AM_CommitReplyMedium_v2, made, ANSWER_MEDIUM + M, bytes,                    \
                          0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                                       \
  }                                                                                                       \
  static void counted_long_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) { \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    char *to = reply_slot(source_of(token), me);                                                          \
    gex_AM_SrcDesc_t made;                                                                                \
    check_arguments(received, M, 0);                                                                      \
    CHECK_EQ(bytes, 8 + M);                                                                               \
    made = gex_AM_PrepareReplyLong(token, data, bytes, bytes, to, GEX_EVENT_NOW, 0, M);                   \
    if (((char *)data)[0] == 'n')                                                                         \
      CHECK_CALL(gex_AM_CommitReplyLong, made, ANSWER_LONG + M, bytes, to CHECK_LIST_##M(CHECK_REPLY_VALUE)); \
    else                                                                                                  \
      CHECK_EQ(CHECK_CALL(gex_AM_CommitReplyLong##M##_v2, made, ANSWER_LONG + M, bytes, to,               \
                          0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0);                                       \
  }                                                                                                       \
  static void answer_##M(gex_Token_t token, void *data, size_t bytes CHECK_LIST_##M(CHECK_PARAMETER)) {   \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                             \
    (void)token;                                                                                          \
    check_arguments(received, M, 1);                                                                      \
    CHECK_EQ(bytes, 8 + M);                                                                               \
    CHECK(((char *)data)[1] == '+' && ((char *)data)[7 + M] == '+');                                      \
    answered = answered + 1;                                                                              \
  }
CHECK_COUNTS(COUNTED_HANDLERS)

#define ENTRIES(M)                                                                                                   \
  {COUNTED_MEDIUM + M, (gex_AM_Fn_t)counted_medium_##M, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, M, NULL, NULL},    \
      {COUNTED_LONG + M, (gex_AM_Fn_t)counted_long_##M, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, M, NULL, NULL},      \
      {ANSWER_MEDIUM + M, (gex_AM_Fn_t)answer_##M, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, M, NULL, NULL},           \
      {ANSWER_LONG + M, (gex_AM_Fn_t)answer_##M, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, M, NULL, NULL},

static void wait_for(int total) { GASNET_BLOCKUNTIL(answered >= total); CHECK_EQ(answered, total); }

static void fill_counted(void *data, size_t bytes, char first) {
  memset(data, '+', bytes);
  ((char *)data)[0] = first;
}

#define COUNTED(M)                                                                                                   \
  made = gex_AM_PrepareRequestMedium(team, rank, NULL, 8 + M, 100, NULL, 0, M);                                      \
  fill_counted(gex_AM_SrcDescAddr(made), 8 + M, 'n');                                                                \
  CHECK_CALL(gex_AM_CommitRequestMedium##M, made, COUNTED_MEDIUM + M, 8 + M CHECK_LIST_##M(CHECK_REQUEST_VALUE));    \
  wait_for(++total);                                                                                                 \
  made = gex_AM_PrepareRequestMedium(team, rank, source, 8 + M, 8 + M, GEX_EVENT_NOW, 0, M);                         \
  fill_counted(source, 8 + M, 'v');                                                                                  \
  CHECK_CALL(gex_AM_CommitRequestMedium, made, COUNTED_MEDIUM + M, 8 + M CHECK_LIST_##M(CHECK_REQUEST_VALUE));       \
  wait_for(++total);                                                                                                 \
  made = gex_AM_PrepareRequestMedium(team, rank, source, 8 + M, 8 + M, GEX_EVENT_GROUP, 0, M);                       \
  CHECK_EQ(CHECK_CALL(gex_AM_CommitRequestMedium##M##_v2, made, COUNTED_MEDIUM + M, 8 + M,                           \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                                                    \
  wait_for(++total);                                                                                                 \
  gex_NBI_Wait(GEX_EC_AM, 0);                                                                                        \
  made = gex_AM_PrepareRequestLong(team, rank, NULL, 8 + M, 100, NULL, NULL, 0, M);                                  \
  fill_counted(gex_AM_SrcDescAddr(made), 8 + M, 'n');                                                                \
  CHECK_CALL(gex_AM_CommitRequestLong##M, made, COUNTED_LONG + M, 8 + M, request_slot(rank, me)                      \
             CHECK_LIST_##M(CHECK_REQUEST_VALUE));                                                                   \
  wait_for(++total);                                                                                                 \
  made = gex_AM_PrepareRequestLong(team, rank, source, 8 + M, 8 + M, request_slot(rank, me), GEX_EVENT_NOW, 0, M);   \
  fill_counted(source, 8 + M, 'v');                                                                                  \
  CHECK_EQ(CHECK_CALL(gex_AM_CommitRequestLong_v2, made, COUNTED_LONG + M, 8 + M, request_slot(rank, me),            \
                      0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);                                                    \
  wait_for(++total);

static int counted(gex_Rank_t rank, int total) {
  gex_AM_SrcDesc_t made;
  CHECK_COUNTS(COUNTED)
  return total;
}

/* Ways to make a request. */
enum { REQUEST_NOW, REQUEST_GROUP, REQUEST_EVENT, REQUEST_LIBRARY, REQUESTS };

/* One request of up to `most` bytes, at least `least`; a quarter of them is canceled at first, some
 * are committed only if that needs no waiting, and again until it works. */
static int request(gex_Rank_t rank, int is_long, int how, int answer, size_t least, size_t most, int total) {
  static gex_AM_Arg_t key = 0;
  gex_Event_t event = GEX_EVENT_INVALID;
  unsigned char *buffer = how == REQUEST_LIBRARY ? NULL : source + check_below(8);
  gex_Event_t *lc = how == REQUEST_NOW ? GEX_EVENT_NOW : how == REQUEST_GROUP ? GEX_EVENT_GROUP : how == REQUEST_EVENT ? &event : NULL;
  char *to = request_slot(rank, me) + 8;
  int immediately = (int)check_below(3) == 0, cancel = (int)check_below(4) == 0, dst_now = (int)check_below(2);
  size_t bytes;
  void *from;
  gex_AM_SrcDesc_t made;
  key = (key + 1) % 1000000;
  for (;;) {
    gex_Flags_t flags = immediately ? GEX_FLAG_IMMEDIATE : 0;
    if (is_long) made = gex_AM_PrepareRequestLong(team, rank, buffer, least, most, dst_now ? to : NULL, lc, flags, 3);
    else made = gex_AM_PrepareRequestMedium(team, rank, buffer, least, most, lc, flags, 3);
    if (made == GEX_AM_SRCDESC_NO_OP) {
      CHECK(immediately);
      gasnet_AMPoll();
      continue;
    }
    descriptor(made, buffer, least, most);
    if (!cancel) break;
    cancel = 0;
    if (is_long) CHECK_EQ(gex_AM_CancelRequestLong(made, 0), 0);
    else CHECK_EQ(gex_AM_CancelRequestMedium(made, 0), 0);
  }
  bytes = gex_AM_SrcDescSize(made);
  if (bytes > SLOT - 64) bytes = SLOT - 64;
  /* Less than was agreed may be sent. */
  if (check_below(5) == 0) bytes = check_below(bytes + 1);
  from = gex_AM_SrcDescAddr(made);
  check_fill(from, bytes, (uint32_t)key);
  if (check_below(2)) {
    if (is_long) gex_AM_CommitRequestLong3(made, LONG, bytes, to, (gex_AM_Arg_t)bytes, answer, key);
    else gex_AM_CommitRequestMedium(made, MEDIUM, bytes, (gex_AM_Arg_t)bytes, answer, key);
  } else {
    /* No poll may stand between; in the end it is committed with leave to wait. */
    gex_Flags_t flags = check_below(2) ? GEX_FLAG_IMMEDIATE : 0;
    int result, tries = 0;
    do {
      if (tries++ > 3) flags = 0;
      if (is_long) result = gex_AM_CommitRequestLong3_v2(made, LONG, bytes, to, flags, (gex_AM_Arg_t)bytes, answer, key);
      else result = gex_AM_CommitRequestMedium3_v2(made, MEDIUM, bytes, flags, (gex_AM_Arg_t)bytes, answer, key);
      CHECK(result == 0 || flags);
    } while (result);
  }
  if (how == REQUEST_GROUP) gex_NBI_Wait(GEX_EC_AM, 0);
  if (how == REQUEST_EVENT) gex_Event_Wait(event);
  if (buffer) memset(buffer, 0xdd, bytes);
  wait_for(++total);
  return total;
}

static int requests(gex_Rank_t rank, int total) {
  int is_long, how, answer, i;
  for (is_long = 0; is_long < 2; ++is_long)
    for (how = 0; how < REQUESTS; ++how) {
      gex_Event_t some;
      gex_Event_t *lc = how == REQUEST_NOW ? GEX_EVENT_NOW : how == REQUEST_GROUP ? GEX_EVENT_GROUP : how == REQUEST_EVENT ? &some : NULL;
      gex_Flags_t kind = how == REQUEST_LIBRARY ? GEX_FLAG_AM_PREPARE_LEAST_ALLOC : GEX_FLAG_AM_PREPARE_LEAST_CLIENT;
      size_t limit = is_long ? gex_AM_MaxRequestLong(team, rank, lc, kind, 3) : gex_AM_MaxRequestMedium(team, rank, lc, kind, 3);
      if (limit > SLOT - 64) limit = SLOT - 64;
      for (answer = 0; answer < REPLIES; ++answer) {
        total = request(rank, is_long, how, answer, limit, limit, total);
        total = request(rank, is_long, how, answer, 1, 2 * limit < SLOT - 64 ? 2 * limit : SLOT - 64, total);
        total = request(rank, is_long, how, answer, 1, 1, total);
        total = request(rank, is_long, how, answer, limit, SLOT - 64, total);
        for (i = 0; i < 4; ++i) {
          size_t least = 1 + check_below(i % 2 ? limit : 300);
          size_t most = least + check_below(SLOT - 64 - least + 1);
          total = request(rank, is_long, how, answer, least, most, total);
        }
      }
    }
  return total;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      CHECK_COUNTS(ENTRIES)
      {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 3, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, "long"},
      {MEDIUM_ANSWER, (gex_AM_Fn_t)medium_answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 2, NULL, "medium_answer"},
      {LONG_ANSWER, (gex_AM_Fn_t)long_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 2, NULL, "long_answer"}};
  gex_Rank_t step;
  int total = 0;
  check_start(&argc, &argv, "negotiated");
  check_seed(me);
  check_register(table, CHECK_COUNT(table));
  check_attach(2 * ranks * SLOT);
  for (step = 0; step < ranks; ++step) bases[step] = check_base(step);
  source = (unsigned char *)malloc(SLOT + 64);
  CHECK(source != NULL);
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    gex_Rank_t rank = (gex_Rank_t)((me + step) % ranks);
    total = counted(rank, total);
    check_barrier();
    total = requests(rank, total);
    check_barrier();
  }
  if (reply_event_used) gex_Event_Wait(reply_event);
  free(source);
  return check_finish();
}
