/* The largest payloads: every query in every class of arguments; symmetric, never growing with more
 * arguments, the least over all ranks where no rank is named, never under 512, the same by pair and
 * by team, the same inside a handler. */
#include "check.h"

typedef size_t (*Query)(gex_TM_t, gex_Rank_t, const gex_Event_t *, gex_Flags_t, unsigned);

/* Functions of our own, as the queries may be macros. */
static size_t request_medium(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc, gex_Flags_t flags, unsigned count) {
  return gex_AM_MaxRequestMedium(tm, rank, lc, flags, count);
}
static size_t reply_medium(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc, gex_Flags_t flags, unsigned count) {
  return gex_AM_MaxReplyMedium(tm, rank, lc, flags, count);
}
static size_t request_long(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc, gex_Flags_t flags, unsigned count) {
  return gex_AM_MaxRequestLong(tm, rank, lc, flags, count);
}
static size_t reply_long(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc, gex_Flags_t flags, unsigned count) {
  return gex_AM_MaxReplyLong(tm, rank, lc, flags, count);
}

static const struct {
  Query max;
  int reply;
  int medium;
} queries[4] = {{request_medium, 0, 1}, {reply_medium, 1, 1}, {request_long, 0, 0}, {reply_long, 1, 0}};

static gex_Event_t some_event;
static const gex_Event_t *local_completions[3];
static gex_Flags_t flag_sets[6];

enum { ASK = 200, ANSWER, INSIDE, INSIDE_DONE };
static volatile int answered, inside_done;
static volatile uint64_t answer_value;

/* The same query as seen from the other side. */
static void ask(gex_Token_t token, gex_AM_Arg_t which, gex_AM_Arg_t lc, gex_AM_Arg_t set, gex_AM_Arg_t count) {
  gex_Token_Info_t info;
  uint64_t value;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  value = queries[which].max(team, info.gex_srcrank, local_completions[lc], flag_sets[set], (unsigned)count);
  gex_AM_ReplyShort2(token, ANSWER, 0, (gex_AM_Arg_t)(value >> 32), (gex_AM_Arg_t)(uint32_t)value);
}
static void answer(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  (void)token;
  answer_value = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
  answered = answered + 1;
}

/* A limit by token is that by team and rank. */
static void inside(gex_Token_t token) {
  gex_Token_Info_t info;
  int lc, set;
  unsigned count;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  for (lc = 0; lc < 3; ++lc) {
    if (local_completions[lc] == GEX_EVENT_GROUP) continue;
    for (set = 0; set < 6; ++set)
      for (count = 0; count <= gex_AM_MaxArgs(); ++count) {
        const gex_Event_t *how = local_completions[lc];
        if ((flag_sets[set] & GEX_FLAG_AM_PREPARE_LEAST_ALLOC) && how != NULL) continue;
        CHECK_EQ(gex_Token_MaxReplyMedium(token, how, flag_sets[set], count),
                 gex_AM_MaxReplyMedium(team, info.gex_srcrank, how, flag_sets[set], count));
        CHECK_EQ(gex_Token_MaxReplyLong(token, how, flag_sets[set], count),
                 gex_AM_MaxReplyLong(team, info.gex_srcrank, how, flag_sets[set], count));
      }
  }
  gex_AM_ReplyShort0(token, INSIDE_DONE, 0);
}
static void inside_finished(gex_Token_t token) {
  (void)token;
  inside_done = inside_done + 1;
}

/* GROUP is for requests alone, an allocated buffer has no local completion. */
static int legal(int which, int lc, int set) {
  if (queries[which].reply && local_completions[lc] == GEX_EVENT_GROUP) return 0;
  return !(flag_sets[set] & GEX_FLAG_AM_PREPARE_LEAST_ALLOC) || local_completions[lc] == NULL;
}

static void check_class(int which, int lc, int set) {
  const gex_Event_t *how = local_completions[lc];
  gex_Flags_t flags = flag_sets[set];
  unsigned most = gex_AM_MaxArgs(), count;
  size_t least = (size_t)-1;
  gex_Rank_t rank;
  for (rank = 0; rank < ranks; ++rank) {
    size_t before = (size_t)-1;
    for (count = 0; count <= most; ++count) {
      size_t bytes = queries[which].max(team, rank, how, flags, count);
      CHECK(bytes >= 512);
      CHECK(bytes <= before);
      if (queries[which].medium) CHECK(bytes <= 0x7fffffff);
      CHECK_EQ(queries[which].max(team, rank, how, flags, count), bytes);
      CHECK_EQ(queries[which].max(gex_TM_Pair(ep, 0), rank, how, flags, count), bytes);
      before = bytes;
      if (count % 8 == 0 && me < rank) {
        int now = answered;
        CHECK_EQ(gex_AM_RequestShort4(team, rank, ASK, 0, which, lc, set, (gex_AM_Arg_t)count), 0);
        GASNET_BLOCKUNTIL(answered == now + 1);
        CHECK_EQ(answer_value, bytes);
      }
    }
    if (before < least) least = before;
  }
  for (count = 0; count <= most; ++count) {
    size_t min = (size_t)-1;
    for (rank = 0; rank < ranks; ++rank) {
      size_t bytes = queries[which].max(team, rank, how, flags, count);
      if (bytes < min) min = bytes;
    }
    CHECK_EQ(queries[which].max(team, GEX_RANK_INVALID, how, flags, count), min);
    CHECK_EQ(queries[which].max(gex_TM_Pair(ep, 0), GEX_RANK_INVALID, how, flags, count), min);
  }
  if (!(flags & (GEX_FLAG_AM_PREPARE_LEAST_CLIENT | GEX_FLAG_AM_PREPARE_LEAST_ALLOC))) {
    size_t bound = which == 0   ? gex_AM_LUBRequestMedium()
                   : which == 1 ? gex_AM_LUBReplyMedium()
                   : which == 2 ? gex_AM_LUBRequestLong()
                                : gex_AM_LUBReplyLong();
    CHECK(bound >= 512);
    CHECK(bound <= least);
  }
}

/* The bound for the job is reached by some call with all arguments. */
static void bounds(void) {
  size_t bound[4], least[4];
  int which, lc;
  bound[0] = gex_AM_LUBRequestMedium();
  bound[1] = gex_AM_LUBReplyMedium();
  bound[2] = gex_AM_LUBRequestLong();
  bound[3] = gex_AM_LUBReplyLong();
  for (which = 0; which < 4; ++which) {
    least[which] = (size_t)-1;
    for (lc = 0; lc < 3; ++lc) {
      size_t bytes;
      if (!legal(which, lc, 0)) continue;
      bytes = queries[which].max(team, GEX_RANK_INVALID, local_completions[lc], 0, gex_AM_MaxArgs());
      if (bytes < least[which]) least[which] = bytes;
    }
    CHECK_EQ(bound[which], least[which]);
  }
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL, "ask"},
      {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL, "answer"},
      {INSIDE, (gex_AM_Fn_t)inside, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "inside"},
      {INSIDE_DONE, (gex_AM_Fn_t)inside_finished, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "inside_finished"}};
  int which, lc, set, round;
  gex_Rank_t rank;
  check_start(&argc, &argv, "am_limits");
  local_completions[0] = GEX_EVENT_NOW;
  local_completions[1] = GEX_EVENT_GROUP;
  local_completions[2] = NULL;
  flag_sets[0] = 0;
  flag_sets[1] = GEX_FLAG_IMMEDIATE;
  flag_sets[2] = GEX_FLAG_AM_PREPARE_LEAST_CLIENT;
  flag_sets[3] = GEX_FLAG_AM_PREPARE_LEAST_ALLOC;
  flag_sets[4] = GEX_FLAG_AM_PREPARE_LEAST_CLIENT | GEX_FLAG_IMMEDIATE;
  flag_sets[5] = GEX_FLAG_AM_PREPARE_LEAST_ALLOC | GEX_FLAG_IMMEDIATE;
  CHECK(gex_AM_MaxArgs() >= 2 * sizeof(void *));
  CHECK_EQ(gex_AM_MaxArgs(), gex_AM_MaxArgs());
  check_register(table, CHECK_COUNT(table));
  check_barrier();
  /* Before the segment and after: the same rules. */
  for (round = 0; round < 2; ++round) {
    for (which = 0; which < 4; ++which)
      for (lc = 0; lc < 3; ++lc)
        for (set = 0; set < 6; ++set)
          if (legal(which, lc, set)) check_class(which, lc, set);
    bounds();
    /* Any event's address is of one class with NULL. */
    for (which = 0; which < 4; ++which)
      CHECK_EQ(queries[which].max(team, check_next(), &some_event, 0, 3),
               queries[which].max(team, check_next(), NULL, 0, 3));
    check_barrier();
    if (round == 0) check_attach(GASNET_PAGESIZE);
  }
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(gex_AM_RequestShort0(team, rank, INSIDE, 0), 0);
  GASNET_BLOCKUNTIL(inside_done == (int)ranks);
  return check_finish();
}
