/* GASNET_PARSYNC: any thread may call, one at a time; the client excludes them. A
 * thread may end operations of another one. */
#include "check_threads.h"

enum { ROUNDS = 300, ASK = 220, ANSWER };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char *base;
static int asked, answered;
static int left;

static void ask(gex_Token_t token, gex_AM_Arg_t value) { gex_AM_ReplyShort1(token, ANSWER, 0, value); }
static void answer(gex_Token_t token, gex_AM_Arg_t value) {
  (void)token;
  CHECK_EQ(value, 77);
  answered = answered + 1;
}

static void *work(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  int round;
  for (round = 0; round < ROUNDS; ++round) {
    gex_Rank_t to = (gex_Rank_t)(check_draw(self) % ranks);
    uint64_t value = check_draw(self), seen = 0;
    gex_HSL_t lock = GEX_HSL_INITIALIZER;
    (void)&lock;
    CHECK_EQ(pthread_mutex_lock(&turn), 0);
    CHECK_EQ(gex_RMA_PutBlocking(team, check_next(), base + 8 * self->index, &value, 8, 0), 0);
    gex_Event_Wait(gex_RMA_GetNB(team, &seen, check_next(), base + 8 * self->index, 8, 0));
    CHECK(seen == value);
    gex_HSL_Lock(&lock);
    asked = asked + 1;
    gex_HSL_Unlock(&lock);
    CHECK_EQ(gex_AM_RequestShort1(team, to, ASK, 0, 77), 0);
    if (round % 8 == 0) GASNET_BLOCKUNTIL(answered == asked);
    CHECK_EQ(pthread_mutex_unlock(&turn), 0);
  }
  CHECK_EQ(pthread_mutex_lock(&turn), 0);
  left = left - 1;
  CHECK_EQ(pthread_mutex_unlock(&turn), 0);
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ask"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "answer"}};
  int i;
  check_start(&argc, &argv, "threads_serial");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  base = check_base(check_next());
  check_barrier();
  left = threads;
  for (i = 0; i < threads; ++i) check_begin(i, work);
  for (;;) {
    /* The others need this rank's handlers. */
    CHECK_EQ(pthread_mutex_lock(&turn), 0);
    gasnet_AMPoll();
    i = left;
    CHECK_EQ(pthread_mutex_unlock(&turn), 0);
    if (i == 0) break;
    gasnett_sched_yield();
  }
  for (i = 0; i < threads; ++i) CHECK_EQ(pthread_join(check_each[i].handle, NULL), 0);
  GASNET_BLOCKUNTIL(answered == asked);
  check_barrier();
  return check_finish();
}
