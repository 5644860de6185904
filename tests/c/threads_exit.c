/* `threads_exit THREADS CASE CODE`: any thread of any rank ends the job, during any work of the
 * others. */
#include "check_threads.h"

enum { END = 210, NOTHING };
static const char *which;
static int code;
static volatile int endless;
static gasnett_atomic_t ready;

static int is(const char *name) { return strcmp(which, name) == 0; }

static void on_end(gex_Token_t token) {
  (void)token;
  gasnet_exit(code);
}
static void on_nothing(gex_Token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

/* A thread of each kind. */
static void otherwise(int thread) {
  static char bytes[100];
  switch (thread % 5) {
    case 0:
      /* Not all ranks do, so that it lasts. */
      if (me != ranks - 1) check_barrier();
      else for (;;) gasnet_AMPoll();
      break;
    case 1:
      for (;;) gasnet_AMPoll();
    case 2:
      GASNET_BLOCKUNTIL(endless);
      break;
    case 3:
      for (;;) gex_AM_RequestMedium0(team, check_next(), NOTHING, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    default:
      for (;;) endless = 0;
  }
  check_fail(__FILE__, __LINE__, "no thread should come here");
}

static void *work(void *argument) {
  int thread = ((struct check_thread *)argument)->index, ends = thread == threads - 1;
  check_more(&ready);
  GASNET_BLOCKUNTIL(check_count(&ready) == threads);
  if (is("all")) gasnet_exit(code);
  if (is("all-of-one") && me == ranks - 1) gasnet_exit(code);
  if (is("one") && me == ranks - 1 && ends) gasnet_exit(code);
  if (is("exit") && me == ranks - 1 && ends) exit(code);
  if (is("handler") && me == 0 && ends) {
    CHECK_EQ(gex_AM_RequestShort0(team, ranks - 1, END, 0), 0);
    for (;;) gasnet_AMPoll();
  }
  otherwise(thread);
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{END, (gex_AM_Fn_t)on_end, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "end"},
                            {NOTHING, (gex_AM_Fn_t)on_nothing, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "nothing"}};
  check_start(&argc, &argv, "threads_exit");
  check_threads_of(argc, argv);
  if (argc != 4) check_fail(__FILE__, __LINE__, "threads_exit THREADS CASE CODE");
  which = argv[2];
  code = atoi(argv[3]);
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  printf("rank %u was here\n", (unsigned)me);
  check_barrier();
  /* The first thread has gone, but for its wait. */
  check_run(work);
  return 99;
}
