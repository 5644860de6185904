/* Waiting: one thread in barriers while others poll or wait for messages, and threads that sleep
 * until a handler, which runs on any thread, has changed what they wait for. */
#include "check_threads.h"

enum { BARRIERS = 60, ROUNDS = 40, NOTE = 190, TURN };

static gasnett_atomic_t notes, turns[CHECK_MOST_THREADS], stop;

static void on_note(gex_Token_t token) {
  (void)token;
  check_more(&notes);
}
static void on_turn(gex_Token_t token, gex_AM_Arg_t thread) {
  (void)token;
  check_more(&turns[thread]);
}

/* The first thread enters barriers of both kinds; the other threads keep no rank waiting. */
static void barriers(struct check_thread *self) {
  int i;
  if (self->index == 0) {
    for (i = 0; i < BARRIERS; ++i) {
      if (i % 3 == 0) check_barrier();
      else if (i % 3 == 1) {
        gasnet_barrier_notify(i, 0);
        CHECK_OK(gasnet_barrier_wait(i, 0));
      } else {
        gex_Event_t event = gex_Coll_BarrierNB(team, 0);
        while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll();
      }
      CHECK_EQ(gex_AM_RequestShort0(team, check_next(), NOTE, 0), 0);
    }
    check_barrier();
    GASNET_BLOCKUNTIL(check_count(&notes) == BARRIERS);
    check_more(&stop);
    /* Handlers wake waiting threads, so this sends a message. */
    CHECK_EQ(gex_AM_RequestShort0(team, me, NOTE, 0), 0);
  } else if (self->index % 2) {
    while (check_count(&stop) == 0) gasnet_AMPoll();
  } else {
    GASNET_BLOCKUNTIL(check_count(&notes) > BARRIERS);
  }
}

/* One turn goes round all threads of all ranks: every other thread waits. */
static void turns_about(struct check_thread *self) {
  int round;
  for (round = 1; round <= ROUNDS; ++round) {
    int thread = self->index, next = (thread + 1) % threads;
    /* First to the same thread of the next rank, at the last rank to the next thread. */
    gex_Rank_t to = check_next();
    GASNET_BLOCKUNTIL(check_count(&turns[thread]) >= round);
    CHECK_EQ(check_count(&turns[thread]), round);
    if (me == ranks - 1 && next == 0 && round == ROUNDS) break;
    CHECK_EQ(gex_AM_RequestShort1(team, to, TURN, 0, me == ranks - 1 ? next : thread), 0);
  }
}

static void *work(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  int mode;
  barriers(self);
  for (mode = 0; mode < 3; ++mode) {
    static const int modes[] = {GASNET_WAIT_BLOCK, GASNET_WAIT_SPINBLOCK, GASNET_WAIT_SPIN};
    check_meet();
    if (self->index == 0) {
      int i;
      CHECK_OK(gasnet_set_waitmode(threads * (int)ranks > 4 && modes[mode] == GASNET_WAIT_SPIN ? GASNET_WAIT_BLOCK : modes[mode]));
      for (i = 0; i < threads; ++i) gasnett_atomic_set(&turns[i], 0, 0);
      check_barrier();
    }
    check_meet();
    if (me == 0 && self->index == 0) CHECK_EQ(gex_AM_RequestShort1(team, 0, TURN, 0, 0), 0);
    turns_about(self);
  }
  check_meet();
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{NOTE, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "note"},
                            {TURN, (gex_AM_Fn_t)on_turn, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "turn"}};
  check_start(&argc, &argv, "threads_wait");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  /* A thread's message to its own rank has been handled when the call returns: others may wait for
   * it outside of the library. */
  CHECK_EQ(gex_AM_RequestShort1(team, me, TURN, 0, 0), 0);
  CHECK_EQ(check_count(&turns[0]), 1);
  check_run(work);
  check_barrier();
  return check_finish();
}
