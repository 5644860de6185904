/* Handler-safe locks that threads and handlers contend for: they exclude each other. */
#include "check_threads.h"

enum { LOCKS = 3, ROUNDS = 1500, ADD = 180, ADDED };

/* Counters are plain: increments outside of the lock are lost. */
static struct {
  gex_HSL_t lock;
  uint64_t sum, twice;
} places[LOCKS];
static gasnett_atomic_t answered, sent, by_threads[LOCKS], by_handlers[LOCKS];

static void add(int place, int with_pause) {
  uint64_t seen = places[place].sum;
  CHECK_EQ(places[place].twice, 2 * seen);
  if (with_pause) gasnett_sched_yield();
  places[place].sum = seen + 1;
  places[place].twice = 2 * seen + 2;
}

static void on_add(gex_Token_t token, gex_AM_Arg_t place) {
  gex_HSL_Lock(&places[place].lock);
  add(place, 0);
  check_more(&by_handlers[place]);
  gex_HSL_Unlock(&places[place].lock);
  gex_AM_ReplyShort0(token, ADDED, 0);
}
static void on_added(gex_Token_t token) {
  (void)token;
  check_more(&answered);
}

static void *work(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  int round;
  check_meet();
  for (round = 0; round < ROUNDS; ++round) {
    uint64_t draw = check_draw(self);
    int place = (int)(draw % LOCKS), next = (place + 1) % LOCKS;
    if (draw & 0x100) {
      check_more(&sent);
      CHECK_EQ(gex_AM_RequestShort1(team, (gex_Rank_t)((draw >> 16) % ranks), ADD, 0, place), 0);
    }
    if (draw & 0x200) {
      /* With yields: a lock of a thread that is in a library call would keep handlers from
       * running. */
      int tries = 0;
      while (gex_HSL_Trylock(&places[place].lock) != GASNET_OK)
        if (++tries % 50 == 0) gasnett_sched_yield();
    } else {
      gex_HSL_Lock(&places[place].lock);
    }
    /* In one order, so that no thread waits forever. */
    if (next > place) gex_HSL_Lock(&places[next].lock);
    add(place, (draw & 0xff000) == 0);
    check_more(&by_threads[place]);
    if (next > place) {
      add(next, 0);
      check_more(&by_threads[next]);
      gex_HSL_Unlock(&places[next].lock);
    }
    gex_HSL_Unlock(&places[place].lock);
  }
  GASNET_BLOCKUNTIL(check_count(&answered) >= check_count(&sent));
  check_meet();
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ADD, (gex_AM_Fn_t)on_add, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "add"},
                            {ADDED, (gex_AM_Fn_t)on_added, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "added"}};
  int place;
  check_start(&argc, &argv, "threads_hsl");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  for (place = 0; place < LOCKS; ++place) gex_HSL_Init(&places[place].lock);
  check_barrier();
  check_run(work);
  check_barrier();
  CHECK_EQ(check_count(&answered), check_count(&sent));
  for (place = 0; place < LOCKS; ++place) {
    CHECK_EQ(places[place].sum, check_count(&by_threads[place]) + check_count(&by_handlers[place]));
    CHECK_OK(gex_HSL_Trylock(&places[place].lock));
    gex_HSL_Unlock(&places[place].lock);
    gex_HSL_Destroy(&places[place].lock);
  }
  return check_finish();
}
