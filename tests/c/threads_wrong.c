/* `threads_wrong CASE`: threads where none may be. The driver's threads.rs says what must come of
 * it. */
#include "check_threads.h"

enum { HOLD = 230 };
static gasnett_atomic_t inside;

/* Keeps its thread in the library until the job ends. */
static void hold(gex_Token_t token) {
  (void)token;
  check_more(&inside);
  for (;;) gasnett_sched_yield();
}

static void *polls(void *argument) {
  (void)argument;
  gasnet_AMPoll();
  return NULL;
}
static void *stays(void *argument) {
  gasnet_AMPoll();
  check_more(&inside);
  GASNET_BLOCKUNTIL(check_count(&inside) < 0);
  return argument;
}
static void *holds(void *argument) {
  (void)argument;
  CHECK_EQ(gex_AM_RequestShort0(team, me, HOLD, 0), 0);
  for (;;) gasnet_AMPoll();
  return NULL;
}
static void *prepares(void *argument) {
  (void)argument;
  CHECK(gex_AM_PrepareRequestMedium(team, me, NULL, 10, 10, NULL, 0, 0) != NULL);
  return NULL;
}
static void *locks(void *argument) {
  static gex_HSL_t lock = GEX_HSL_INITIALIZER;
  gasnet_AMPoll();
  gex_HSL_Lock(&lock);
  return argument;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{HOLD, (gex_AM_Fn_t)hold, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "hold"}};
  const char *which;
  int i, most;
  check_start(&argc, &argv, "threads_wrong");
  if (argc != 2) check_fail(__FILE__, __LINE__, "threads_wrong CASE");
  which = argv[1];
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  most = (int)gex_System_QueryMaxThreads();
  if (strcmp(which, "beyond") == 0 || strcmp(which, "up-to") == 0) {
    /* This one has called, too. */
    int beyond = which[0] == 'b';
    CHECK(most < CHECK_MOST_THREADS);
    for (i = 0; i < most - 1; ++i) check_begin(i, stays);
    while (check_count(&inside) < most - 1) gasnett_sched_yield();
    if (beyond) check_begin(i, polls);
    else gasnet_exit(0);
  } else if (strcmp(which, "second") == 0) {
    check_begin(0, polls);
  } else if (strcmp(which, "overlap") == 0) {
    check_begin(0, holds);
    while (check_count(&inside) == 0) gasnett_sched_yield();
    gasnet_AMPoll();
  } else if (strcmp(which, "prepared") == 0) {
    check_begin(0, prepares);
  } else if (strcmp(which, "locked") == 0) {
    check_begin(0, locks);
  }
  CHECK_EQ(pthread_join(check_each[0].handle, NULL), 0);
  check_barrier();
  return check_finish();
}
