/* Messages between endpoints of which one at least is a further one: each has handlers of its own
 * under the same indices; contents of tokens; 0 to 16 arguments; mediums and longs of all sizes,
 * into what the endpoint has bound, by address and by offset; negotiated payloads; replies of all
 * kinds, to the endpoint that asked; teams of such endpoints; floods. Handlers that are registered
 * with the first endpoint alone serve all of a process's endpoints. */
#include "check.h"
#include "check_args.h"
#include <gasnet_mk.h>

#if GASNET_MAXEPS > 3
/* `COUNTED` and `ANSWERED` are the first of 17 each. */
enum { SHORT = 130, MEDIUM, LONG, SHORT_BACK, MEDIUM_BACK, LONG_BACK, COUNT, SHARED, COUNTED = 140, ANSWERED = 160 };
enum { EPS = 4, SLOT = 1 << 18, HALF = SLOT / 2 };
static gex_EP_t eps[EPS];
static gex_Segment_t segments[EPS];
static volatile int got[EPS], answered, shared, counted;
static int marks[EPS];

/* The endpoint that a handler's token names is the one that it was registered with, and its entry
 * says the same. */
static void check_token(gex_Token_t token, int mine, int request, int is_long, gex_Rank_t *from) {
  gex_Token_Info_t info;
  gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK(known & GEX_TI_SRCRANK && known & GEX_TI_EP);
  CHECK_SAME(info.gex_ep, eps[mine]);
  CHECK(info.gex_srcrank < ranks);
  if (known & GEX_TI_ENTRY) CHECK_SAME(info.gex_entry->gex_cdata, &marks[mine]);
  if (known & GEX_TI_IS_REQ) CHECK_EQ(info.gex_is_req, request);
  if (known & GEX_TI_IS_LONG) CHECK_EQ(info.gex_is_long, is_long);
  *from = info.gex_srcrank;
}

/* Place of a rank's requests, or of replies to it, in the segment of an endpoint. */
static char *slot(char *base, gex_Rank_t rank) { return base + (size_t)rank * SLOT; }

/* Requests say from which endpoint they come, and how a long reply is to name its place. */
static void on_short(int mine, gex_Token_t token, gex_AM_Arg_t from) {
  gex_Rank_t source;
  check_token(token, mine, 1, 0, &source);
  got[mine] = got[mine] + 1;
  /* A handler may query the limit, and the query cannot ask the peer there. */
  CHECK(gex_AM_MaxReplyMedium(gex_TM_Pair(eps[mine], (gex_EP_Index_t)from), source, GEX_EVENT_NOW, 0, 2) >= gex_AM_LUBReplyMedium());
  CHECK_EQ(gex_AM_ReplyShort2(token, SHORT_BACK, 0, from, mine), 0);
}
static void on_medium(int mine, gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from, gex_AM_Arg_t key) {
  gex_Rank_t source;
  gex_AM_SrcDesc_t made;
  check_token(token, mine, 1, 0, &source);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  got[mine] = got[mine] + 1;
  if (key % 2) {
    check_fill(data, bytes, (uint32_t)key + 1);
    CHECK_EQ(gex_AM_ReplyMedium3(token, MEDIUM_BACK, data, bytes, GEX_EVENT_NOW, 0, from, mine, key + 1), 0);
    return;
  }
  made = gex_AM_PrepareReplyMedium(token, NULL, bytes, bytes, NULL, 0, 3);
  check_fill(gex_AM_SrcDescAddr(made), bytes, (uint32_t)key + 1);
  gex_AM_CommitReplyMedium3(made, MEDIUM_BACK, bytes, from, mine, key + 1);
}
static void on_long(int mine, gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from, gex_AM_Arg_t key, gex_AM_Arg_t back,
                    gex_AM_Arg_t low, gex_AM_Arg_t high) {
  gex_Rank_t source;
  gex_AM_SrcDesc_t made;
  void *place = (void *)(uintptr_t)((uint64_t)(uint32_t)low | (uint64_t)(uint32_t)high << 32);
  char *here = slot((char *)gex_Segment_QueryAddr(segments[mine]), 0);
  check_token(token, mine, 1, 1, &source);
  CHECK((char *)data == slot(here, source) + 8 * from);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  got[mine] = got[mine] + 1;
  /* By its address, by its offset, or prepared. */
  if (back == 2) {
    made = gex_AM_PrepareReplyLong(token, data, bytes, bytes, place, GEX_EVENT_NOW, 0, 3);
    gex_AM_CommitReplyLong3(made, LONG_BACK, bytes, place, from, mine, key);
    return;
  }
  CHECK_EQ(gex_AM_ReplyLong3(token, LONG_BACK, data, bytes, place, GEX_EVENT_NOW, back ? GEX_FLAG_PEER_SEG_OFFSET : 0, from, mine, key), 0);
}
static void on_short_back(int mine, gex_Token_t token, gex_AM_Arg_t asked, gex_AM_Arg_t replied) {
  gex_Rank_t source;
  check_token(token, mine, 0, 0, &source);
  CHECK_EQ(asked, mine);
  CHECK(replied >= 0 && replied < EPS);
  answered = answered + 1;
}
static void on_medium_back(int mine, gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t asked, gex_AM_Arg_t key) {
  gex_Rank_t source;
  check_token(token, mine, 0, 0, &source);
  CHECK_EQ(asked, mine);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  answered = answered + 1;
}
static void on_long_back(int mine, gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t asked, gex_AM_Arg_t replied, gex_AM_Arg_t key) {
  gex_Rank_t source;
  char *here = (char *)gex_Segment_QueryAddr(segments[mine]);
  check_token(token, mine, 0, 1, &source);
  CHECK_EQ(asked, mine);
  CHECK((char *)data == slot(here, source) + HALF + 8 * replied);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  answered = answered + 1;
}
static void on_count(int mine, gex_Token_t token) {
  (void)token;
  got[mine] = got[mine] + 1;
}

/* One set of functions for each endpoint. */
#define SET(N)                                                                                                             \
  static void short_##N(gex_Token_t token, gex_AM_Arg_t from) { on_short(N, token, from); }                                \
  static void medium_##N(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from, gex_AM_Arg_t key) {               \
    on_medium(N, token, data, bytes, from, key);                                                                           \
  }                                                                                                                        \
  static void long_##N(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from, gex_AM_Arg_t key, gex_AM_Arg_t back, \
                       gex_AM_Arg_t low, gex_AM_Arg_t high) {                                                              \
    on_long(N, token, data, bytes, from, key, back, low, high);                                                            \
  }                                                                                                                        \
  static void short_back_##N(gex_Token_t token, gex_AM_Arg_t asked, gex_AM_Arg_t replied) {                                \
    on_short_back(N, token, asked, replied);                                                                               \
  }                                                                                                                        \
  static void medium_back_##N(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t asked, gex_AM_Arg_t replied,       \
                              gex_AM_Arg_t key) {                                                                          \
    (void)replied;                                                                                                         \
    on_medium_back(N, token, data, bytes, asked, key);                                                                     \
  }                                                                                                                        \
  static void long_back_##N(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t asked, gex_AM_Arg_t replied,         \
                            gex_AM_Arg_t key) {                                                                            \
    on_long_back(N, token, data, bytes, asked, replied, key);                                                              \
  }                                                                                                                        \
  static void count_##N(gex_Token_t token) { on_count(N, token); }
SET(0) SET(1) SET(2) SET(3)
#define REQUEST_OF(KIND) (KIND | GEX_FLAG_AM_REQUEST)
#define REPLY_OF(KIND) (KIND | GEX_FLAG_AM_REPLY)
#define TABLE(N)                                                                                                           \
  {                                                                                                                        \
    {SHORT, (gex_AM_Fn_t)short_##N, REQUEST_OF(GEX_FLAG_AM_SHORT), 1, &marks[N], "short"},                                  \
    {MEDIUM, (gex_AM_Fn_t)medium_##N, REQUEST_OF(GEX_FLAG_AM_MEDIUM), 2, &marks[N], "medium"},                              \
    {LONG, (gex_AM_Fn_t)long_##N, REQUEST_OF(GEX_FLAG_AM_LONG), 5, &marks[N], "long"},                                      \
    {SHORT_BACK, (gex_AM_Fn_t)short_back_##N, REPLY_OF(GEX_FLAG_AM_SHORT), 2, &marks[N], "short back"},                     \
    {MEDIUM_BACK, (gex_AM_Fn_t)medium_back_##N, REPLY_OF(GEX_FLAG_AM_MEDIUM), 3, &marks[N], "medium back"},                 \
    {LONG_BACK, (gex_AM_Fn_t)long_back_##N, REPLY_OF(GEX_FLAG_AM_LONG), 3, &marks[N], "long back"},                         \
    {COUNT, (gex_AM_Fn_t)count_##N, REQUEST_OF(GEX_FLAG_AM_SHORT), 0, &marks[N], "count"},                                  \
    {0, (gex_AM_Fn_t)count_##N, REQUEST_OF(GEX_FLAG_AM_SHORT), 0, &marks[N], "anywhere"},                                   \
  }

/* Registered with the first endpoint alone. */
static void on_shared(gex_Token_t token, gex_AM_Arg_t endpoint) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_EP) & GEX_TI_EP);
  CHECK_SAME(info.gex_ep, eps[endpoint]);
  shared = shared + 1;
}
#define COUNTS(M)                                                                                \
  static void counted_##M(gex_Token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                   \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                    \
    check_arguments(received, M, 0);                                                             \
    CHECK_EQ(CHECK_CALL(gex_AM_ReplyShort##M, token, ANSWERED + M, 0 CHECK_LIST_##M(CHECK_REPLY_VALUE)), 0); \
  }                                                                                              \
  static void answered_##M(gex_Token_t token CHECK_LIST_##M(CHECK_PARAMETER)) {                  \
    const gex_AM_Arg_t received[] = {0 CHECK_LIST_##M(CHECK_PARAMETER_NAME)};                    \
    (void)token;                                                                                 \
    check_arguments(received, M, 1);                                                             \
    counted = counted + 1;                                                                       \
  }
CHECK_COUNTS(COUNTS)
#define COUNT_ENTRIES(M)                                                                                         \
  {COUNTED + M, (gex_AM_Fn_t)counted_##M, REQUEST_OF(GEX_FLAG_AM_SHORT), M, NULL, NULL},                         \
      {ANSWERED + M, (gex_AM_Fn_t)answered_##M, REPLY_OF(GEX_FLAG_AM_SHORT), M, NULL, NULL},

static void start(void) {
  gex_AM_Entry_t tables[EPS][8] = {TABLE(0), TABLE(1), TABLE(2), TABLE(3)};
  gex_AM_Entry_t all[] = {CHECK_COUNTS(COUNT_ENTRIES){SHARED, (gex_AM_Fn_t)on_shared, REQUEST_OF(GEX_FLAG_AM_SHORT), 1, NULL, "shared"}};
  int i;
  eps[0] = ep, segments[0] = segment;
  for (i = 1; i < EPS; ++i) {
    CHECK_OK(gex_EP_Create(&eps[i], client, i == 1 ? GEX_EP_CAPABILITY_ALL : GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM, 0));
    CHECK_EQ(gex_EP_QueryIndex(eps[i]), i);
    CHECK_OK(gex_Segment_Create(&segments[i], client, NULL, (uintptr_t)ranks * SLOT, GEX_MK_HOST, 0));
    CHECK_OK(gex_EP_BindSegment(eps[i], segments[i], 0));
  }
  check_register(all, CHECK_COUNT(all));
  for (i = 0; i < EPS; ++i) {
    CHECK_OK(gex_EP_RegisterHandlers(eps[i], tables[i], 8));
    /* Each endpoint has all of its indices. */
    CHECK_EQ(tables[i][7].gex_index, 255);
    gex_System_SetVerboseErrors(0);
    CHECK(gex_EP_RegisterHandlers(eps[i], tables[i], 1) != GASNET_OK);
    gex_System_SetVerboseErrors(1);
  }
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps + 1, EPS - 1, 0));
}

static void wait_for(volatile int *what, int total) {
  GASNET_BLOCKUNTIL(*what >= total);
  CHECK_EQ(*what, total);
}

/* A long from endpoint `from` to endpoint `to` of a rank, and its reply. */
static void one_long(gex_TM_t tm, gex_Rank_t peer, gex_Rank_t process, int from, int to, char *base, size_t bytes, uint32_t key, int way) {
  static unsigned char source[HALF];
  char *mine = (char *)gex_Segment_QueryAddr(segments[from]);
  uintptr_t back = (uintptr_t)(slot(mine, process) + HALF + 8 * to);
  char *dst = slot(base, me) + 8 * from;
  if (way == 1) back -= (uintptr_t)mine;
  check_fill(source, bytes, key);
#define BACK from, (gex_AM_Arg_t)key, way, (gex_AM_Arg_t)(uint32_t)back, (gex_AM_Arg_t)(uint32_t)((uint64_t)back >> 32)
  if (way == 0) {
    CHECK_EQ(gex_AM_RequestLong5(tm, peer, LONG, source, bytes, dst, GEX_EVENT_NOW, 0, BACK), 0);
  } else if (way == 1) {
    void *offset = (void *)(dst - base);
    CHECK_EQ(gex_AM_RequestLong5(tm, peer, LONG, source, bytes, offset, GEX_EVENT_NOW, GEX_FLAG_PEER_SEG_OFFSET, BACK), 0);
  } else {
    gex_AM_SrcDesc_t made = gex_AM_PrepareRequestLong(tm, peer, source, bytes, bytes, dst, GEX_EVENT_NOW, 0, 5);
    gex_AM_CommitRequestLong5(made, LONG, gex_AM_SrcDescSize(made), dst, BACK);
  }
  memset(source, 0xee, bytes);
}

static void one_medium(gex_TM_t tm, gex_Rank_t peer, int from, size_t bytes, uint32_t key) {
  static unsigned char source[1 << 17];
  gex_AM_SrcDesc_t made;
  check_fill(source, bytes, key);
  CHECK_EQ(gex_AM_RequestMedium2(tm, peer, MEDIUM, source, bytes, GEX_EVENT_NOW, 0, from, (gex_AM_Arg_t)key), 0);
  memset(source, 0xee, bytes);
  /* In the library's memory, and in the client's. */
  made = gex_AM_PrepareRequestMedium(tm, peer, NULL, bytes, bytes, NULL, 0, 2);
  CHECK_EQ(gex_AM_SrcDescSize(made), bytes);
  check_fill(gex_AM_SrcDescAddr(made), bytes, key + 1);
  gex_AM_CommitRequestMedium2(made, MEDIUM, bytes, from, (gex_AM_Arg_t)key + 1);
  check_fill(source, bytes, key);
  made = gex_AM_PrepareRequestMedium(tm, peer, source, bytes / 2, bytes, GEX_EVENT_NOW, 0, 2);
  gex_AM_CommitRequestMedium2(made, MEDIUM, gex_AM_SrcDescSize(made), from, (gex_AM_Arg_t)key);
}

#define ASK(M)                                                                                                        \
  CHECK_EQ(CHECK_CALL(gex_AM_RequestShort##M, tm, rank, COUNTED + M, 0 CHECK_LIST_##M(CHECK_REQUEST_VALUE)), 0);      \
  wait_for(&counted, ++arguments);

/* All kinds between two endpoints. */
static void talk(gex_Rank_t rank, int from, int to) {
  static int answers, arguments, served;
  gex_TM_t tm = gex_TM_Pair(eps[from], (gex_EP_Index_t)to);
  size_t most = gex_AM_MaxRequestMedium(tm, rank, GEX_EVENT_NOW, 0, 3), back = gex_AM_MaxReplyMedium(tm, rank, GEX_EVENT_NOW, 0, 3);
  size_t bytes;
  char *base = NULL;
  int way;
  gex_Event_t event = GEX_EVENT_INVALID;
  CHECK(most >= gex_AM_LUBRequestMedium() && gex_AM_MaxReplyLong(tm, rank, GEX_EVENT_NOW, 0, 5) >= gex_AM_LUBReplyLong());
  CHECK(gex_AM_MaxRequestLong(tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 5) >= gex_AM_LUBRequestLong());
  if (back < most) most = back;
  if (most > 1 << 17) most = 1 << 17;
  check_bound(tm, rank, &base, NULL, NULL);
  CHECK(base != NULL);
  CHECK_COUNTS(ASK)
  CHECK_EQ(gex_AM_RequestShort1(tm, rank, SHORT, 0, from), 0);
  /* On an idle system a message that may not wait is sent. */
  wait_for(&answered, answers += 1);
  CHECK_EQ(gex_AM_RequestShort1(tm, rank, SHORT, GEX_FLAG_IMMEDIATE, from), 0);
  CHECK_EQ(gex_AM_RequestShort1(tm, rank, SHARED, 0, to), 0);
  ++served;
  for (bytes = 0; bytes <= most; bytes = bytes * 4 + 1, answers += 3) {
    one_medium(tm, rank, from, bytes, (uint32_t)bytes * 2 + 4);
    wait_for(&answered, answers + 4);
  }
  one_medium(tm, rank, from, most, 6);
  answers += 3;
  CHECK_EQ(gex_AM_RequestMedium2(tm, rank, MEDIUM, &event, 0, &event, 0, from, 2), 0);
  gex_Event_Wait(event);
  wait_for(&answered, answers += 2);
  for (way = 0; way < 3; ++way)
    for (bytes = 1; bytes <= HALF - 8 * EPS; bytes = bytes * 5 + 3) {
      one_long(tm, rank, rank, from, to, base, bytes, (uint32_t)bytes, way);
      wait_for(&answered, ++answers);
    }
  (void)served;
}

/* A team of further endpoints, one of each process and two of rank 0. */
static void in_a_team(void) {
  gex_EP_Location_t *list = (gex_EP_Location_t *)malloc((ranks + 1) * sizeof *list);
  gex_TM_t made[2];
  gex_Rank_t rank;
  int before = answered, i;
  for (rank = 0; rank < ranks; ++rank) list[rank].gex_rank = ranks - 1 - rank, list[rank].gex_ep_index = 1 + rank % 2;
  list[ranks].gex_rank = 0, list[ranks].gex_ep_index = 3;
  gex_TM_Create(made, me ? 1 : 2, team, list, ranks + 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  check_barrier();
  for (i = 0; i < (me ? 1 : 2); ++i)
    for (rank = 0; rank <= ranks; ++rank) {
      char *base = NULL;
      int from = (int)gex_EP_QueryIndex(gex_TM_QueryEP(made[i]));
      check_bound(made[i], rank, &base, NULL, NULL);
      CHECK_EQ(gex_AM_RequestShort1(made[i], rank, SHORT, 0, from), 0);
      one_medium(made[i], rank, from, 300, rank + 10);
      one_long(made[i], rank, list[rank].gex_rank, from, (int)list[rank].gex_ep_index, base, 500, rank, 0);
      wait_for(&answered, before += 5);
    }
  check_barrier();
  for (i = 0; i < (me ? 1 : 2); ++i) gex_TM_Destroy(made[i], NULL, 0);
  free(list);
}

/* Limits of all endpoints are those of the endpoints that exist and can have messages. */
static void with_gaps(void) {
  gex_HSL_t lock = GEX_HSL_INITIALIZER;
  gex_TM_t one;
  gex_EP_t last;
  check_barrier();
  CHECK_OK(gex_EP_Create(&last, client, me == ranks - 1 ? GEX_EP_CAPABILITY_AM : GEX_EP_CAPABILITY_RMA, 0));
  CHECK_EQ(gex_EP_QueryIndex(last), EPS);
  if (me == ranks - 1) CHECK_OK(gex_EP_Create(&last, client, GEX_EP_CAPABILITY_ALL, 0));
  check_barrier();
  one = gex_TM_Pair(eps[1], EPS);
  CHECK_EQ(gex_AM_MaxRequestMedium(one, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 3), gex_AM_MaxRequestMedium(one, ranks - 1, GEX_EVENT_NOW, 0, 3));
  one = gex_TM_Pair(ep, EPS + 1);
  CHECK_EQ(gex_AM_MaxReplyLong(one, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 0), gex_AM_MaxReplyLong(one, ranks - 1, GEX_EVENT_NOW, 0, 0));
  /* Nor can the query ask the peer while this thread holds a lock. */
  gex_HSL_Lock(&lock);
  CHECK(gex_AM_MaxRequestLong(gex_TM_Pair(eps[2], 1), me, GEX_EVENT_NOW, 0, 3) >= gex_AM_LUBRequestLong());
  gex_HSL_Unlock(&lock);
  check_barrier();
}

/* Many at once to each endpoint of each rank: none is lost, doubled or at another endpoint. */
static void flood(void) {
  enum { MANY = 400 };
  int before[EPS], i, from, to, round, due = 0;
  gex_Rank_t rank;
  check_barrier();
  for (i = 0; i < EPS; ++i) before[i] = got[i];
  check_barrier();
  for (round = 0; round < MANY; ++round)
    for (from = 0; from < EPS; ++from)
      for (to = 0; to < EPS; ++to)
        for (rank = 0; rank < ranks; ++rank)
          if ((round + from + to) % (to + 1) == 0)
            CHECK_EQ(gex_AM_RequestShort0(gex_TM_Pair(eps[from], (gex_EP_Index_t)to), rank, COUNT, 0), 0);
  for (to = 0; to < EPS; ++to) {
    for (due = 0, round = 0; round < MANY; ++round)
      for (from = 0; from < EPS; ++from) due += (round + from + to) % (to + 1) == 0;
    wait_for(&got[to], before[to] + due * (int)ranks);
  }
  check_barrier();
}
#endif

int main(int argc, char **argv) {
  check_start(&argc, &argv, "endpoint_am");
#if GASNET_MAXEPS > 3
  {
    int from, to, total = 0;
    gex_Rank_t step;
    check_attach((uintptr_t)ranks * SLOT);
    start();
    check_barrier();
    for (step = 0; step < ranks; ++step)
      for (from = 0; from < EPS; ++from)
        for (to = 0; to < EPS; ++to) {
          talk((gex_Rank_t)((me + step) % ranks), from, to);
          ++total;
        }
    wait_for(&shared, total);
    in_a_team();
    flood();
#if GASNET_MAXEPS > 5
    with_gaps();
#endif
  }
#endif
  return check_finish();
}
