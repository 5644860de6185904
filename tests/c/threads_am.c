/* Messages of all kinds from all threads to all ranks at once, with replies of all kinds; each
 * thread waits for its own. Nothing is lost, doubled or given the bytes of another. */
#include "check_threads.h"

enum { ROUNDS = 60, BYTES = 1500, KINDS = 5 };
enum { SHORT = 170, MEDIUM, LONG, SHORT_REPLY, MEDIUM_REPLY, LONG_REPLY };

static char *bases[64];
static gasnett_atomic_t handled[KINDS], replies[CHECK_MOST_THREADS];

/* Slots of a segment: of each thread of each rank one for its requests, one for the replies to
 * it. */
static char *slot(gex_Rank_t in, gex_Rank_t other, int thread, int reply) {
  return bases[in] + ((other * CHECK_MOST_THREADS + (unsigned)thread) * 2 + (unsigned)reply) * BYTES;
}
static uint32_t key_of(gex_Rank_t rank, int thread, int round, int kind) {
  return (((uint32_t)rank * CHECK_MOST_THREADS + (uint32_t)thread) * ROUNDS + (uint32_t)round) * KINDS + (uint32_t)kind;
}
static gex_Rank_t source_of(gex_Token_t token) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
  return info.gex_srcrank;
}

/* Requests: thread and round of the sender, and which kind they count for. Each asks for another
 * kind of reply. */
static void on_short(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t round, gex_AM_Arg_t check) {
  unsigned char bytes[200];
  CHECK_EQ(check, (gex_AM_Arg_t)key_of(source_of(token), thread, round, 0));
  check_more(&handled[0]);
  check_fill(bytes, sizeof bytes, (uint32_t)check);
  gex_AM_ReplyMedium2(token, MEDIUM_REPLY, bytes, sizeof bytes, GEX_EVENT_NOW, 0, thread, check);
}
static void on_medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t round, gex_AM_Arg_t kind) {
  gex_Rank_t from = source_of(token);
  uint32_t key = key_of(from, thread, round, kind);
  CHECK_FILLED(data, bytes, key);
  CHECK_EQ(bytes, (size_t)(round * 17) % BYTES);
  check_more(&handled[kind]);
  if (kind == 1) gex_AM_ReplyLong2(token, LONG_REPLY, data, bytes, slot(from, me, thread, 1), GEX_EVENT_NOW, 0, thread, (gex_AM_Arg_t)key);
  else gex_AM_ReplyShort2(token, SHORT_REPLY, 0, thread, (gex_AM_Arg_t)key);
}
static void on_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t round, gex_AM_Arg_t kind) {
  gex_Rank_t from = source_of(token);
  uint32_t key = key_of(from, thread, round, kind);
  CHECK_SAME(data, slot(me, from, thread, 0));
  CHECK_FILLED(data, bytes, key);
  check_more(&handled[kind]);
  gex_AM_ReplyShort2(token, SHORT_REPLY, 0, thread, (gex_AM_Arg_t)key);
}
static void on_short_reply(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t key) {
  (void)token, (void)key;
  check_more(&replies[thread]);
}
static void on_medium_reply(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t key) {
  (void)token;
  CHECK_FILLED(data, bytes, (uint32_t)key);
  check_more(&replies[thread]);
}
static void on_long_reply(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t key) {
  if (bytes) CHECK_SAME(data, slot(me, source_of(token), thread, 1));
  CHECK_FILLED(data, bytes, (uint32_t)key);
  check_more(&replies[thread]);
}

static void negotiated(gex_Rank_t to, int thread, int round, size_t bytes) {
  gex_AM_SrcDesc_t room = gex_AM_PrepareRequestMedium(team, to, NULL, bytes, bytes, NULL, 0, 3);
  CHECK(gex_AM_SrcDescSize(room) >= bytes);
  check_fill(gex_AM_SrcDescAddr(room), bytes, key_of(me, thread, round, 3));
  gex_AM_CommitRequestMedium3(room, MEDIUM, bytes, thread, round, 3);
}

static void *work(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  int thread = self->index, round, expected = 0;
  unsigned char bytes[BYTES];
  check_meet();
  for (round = 0; round < ROUNDS; ++round) {
    gex_Rank_t step, first = (gex_Rank_t)(check_draw(self) % ranks);
    for (step = 0; step < ranks; ++step) {
      gex_Rank_t to = (first + step) % ranks;
      size_t medium = (size_t)(round * 17) % BYTES;
      CHECK_EQ(gex_AM_RequestShort3(team, to, SHORT, 0, thread, round, (gex_AM_Arg_t)key_of(me, thread, round, 0)), 0);
      check_fill(bytes, medium, key_of(me, thread, round, 1));
      CHECK_EQ(gex_AM_RequestMedium3(team, to, MEDIUM, bytes, medium, GEX_EVENT_NOW, 0, thread, round, 1), 0);
      check_fill(bytes, BYTES, key_of(me, thread, round, 2));
      CHECK_EQ(gex_AM_RequestLong3(team, to, LONG, bytes, BYTES, slot(to, me, thread, 0), GEX_EVENT_NOW, 0, thread, round, 2), 0);
      negotiated(to, thread, round, medium);
      check_fill(bytes, medium, key_of(me, thread, round, 4));
      CHECK_EQ(gex_AM_RequestMedium3(team, to, MEDIUM, bytes, medium, GEX_EVENT_GROUP, 0, thread, round, 4), 0);
      gex_NBI_Wait(GEX_EC_AM, 0);
      expected += KINDS;
    }
    /* The slots are used again. */
    GASNET_BLOCKUNTIL(check_count(&replies[thread]) == expected);
  }
  check_meet();
  CHECK_EQ(check_count(&replies[thread]), expected);
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {SHORT, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 3, NULL, "short"},
      {MEDIUM, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 3, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, "long"},
      {SHORT_REPLY, (gex_AM_Fn_t)on_short_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL, "short_reply"},
      {MEDIUM_REPLY, (gex_AM_Fn_t)on_medium_reply, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 2, NULL, "medium_reply"},
      {LONG_REPLY, (gex_AM_Fn_t)on_long_reply, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 2, NULL, "long_reply"}};
  gex_Rank_t rank;
  int kind;
  check_start(&argc, &argv, "threads_am");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  CHECK(ranks <= CHECK_COUNT(bases));
  check_attach((uintptr_t)ranks * CHECK_MOST_THREADS * 2 * BYTES);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  check_run(work);
  check_barrier();
  for (kind = 0; kind < KINDS; ++kind) CHECK_EQ(check_count(&handled[kind]), (int)ranks * threads * ROUNDS);
  return check_finish();
}
