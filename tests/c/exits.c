/* The ends of a job: `exits CASE CODE` ends as the case says. The driver looks at the status, the
 * output, and that nothing is left over. Each rank prints a line without flushing it, which must
 * not be lost. */
#include "check.h"

#include <gasnet_tools.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { END = 160, END_BY_REPLY, NOTHING };
static int code;
static volatile int endless;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

static void end(gex_Token_t token) {
  (void)token;
  gasnet_exit(code);
}
static void end_by_reply(gex_Token_t token) { gex_AM_ReplyShort0(token, END, 0); }
static void nothing(gex_Token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

static int is(const char *which, const char *name) { return strcmp(which, name) == 0; }

/* Computes for so long, and calls nothing of the library. */
static void compute(unsigned ms) {
  uint64_t begun = gasnett_ticks_now();
  while (gasnett_ticks_to_ns(gasnett_ticks_now() - begun) < (uint64_t)ms * 1000000) endless = 0;
}

static void *compute_in_thread(void *ms) {
  compute(*(const unsigned *)ms);
  return NULL;
}

static void at_exit(void) {
  static const char text[] = "atexit ran\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(99);
}

/* Work of the ranks that do not end. */
static void otherwise(const char *doing) {
  static char bytes[100];
  if (is(doing, "barrier")) check_barrier();
  else if (is(doing, "named-barrier")) gasnet_barrier(1, 0);
  else if (is(doing, "polling")) for (;;) gasnet_AMPoll();
  else if (is(doing, "computing")) for (;;) endless = endless + 1;
  else if (is(doing, "sending"))
    for (;;) gex_AM_RequestMedium0(team, check_next(), NOTHING, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
  else if (is(doing, "waiting")) GASNET_BLOCKUNTIL(endless);
  else if (is(doing, "sleeping")) for (;;) sleep(1);
  check_fail(__FILE__, __LINE__, "no rank should come here");
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{END, (gex_AM_Fn_t)end, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, "end"},
                            {END_BY_REPLY, (gex_AM_Fn_t)end_by_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "by_reply"},
                            {NOTHING, (gex_AM_Fn_t)nothing, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "nothing"}};
  const char *which, *doing;
  gex_Rank_t last;
  check_start(&argc, &argv, "exits");
  if (argc != 3) check_fail(__FILE__, __LINE__, "exits CASE CODE");
  which = argv[1];
  code = atoi(argv[2]);
  last = ranks - 1;
  check_register(table, CHECK_COUNT(table));
  atexit(at_exit);
  check_barrier();
  printf("rank %u was here\n", (unsigned)me);
  if (is(which, "before-attach")) gasnet_exit(code);
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  if (is(which, "collective")) gasnet_exit(code);
  if (is(which, "return")) return code;
  if (is(which, "return-late")) {
    compute(250 * me);
    return code;
  }
  if (strncmp(which, "masked-", 7) == 0) {
    /* Longer than the exit time-out and one grace of 2 s. */
    const char *timeout = getenv("GASNET_EXITTIMEOUT");
    unsigned late_ms = (unsigned)((timeout ? atof(timeout) : 1.5) * 1000) + 4000;
    sigset_t all;
    sigfillset(&all);
    if (me == 0 && sigprocmask(SIG_BLOCK, &all, NULL) == 0) {
      if (is(which, "masked-computing") && code == 0) compute(late_ms);
      else if (is(which, "masked-computing")) otherwise("computing");
      else if (is(which, "masked-joining")) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, compute_in_thread, &late_ms), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
      } else otherwise("sleeping");
    }
    return code;
  }
  if (is(which, "exit")) exit(code);
  if (is(which, "locked")) {
    (void)&lock;
    gex_HSL_Lock(&lock);
    gasnet_exit(code);
  }
  if (is(which, "prepared")) {
    (void)gex_AM_PrepareRequestMedium(team, check_next(), NULL, 1, 100, NULL, 0, 0);
    gasnet_exit(code);
  }
  if (is(which, "handler")) {
    if (me == last) CHECK_EQ(gex_AM_RequestShort0(team, 0, END, 0), 0);
    otherwise("polling");
  }
  if (is(which, "reply-handler")) {
    if (me == last) CHECK_EQ(gex_AM_RequestShort0(team, 0, END_BY_REPLY, 0), 0);
    otherwise("polling");
  }
  /* One ends, the others do something: one-DOING by gasnet_exit, return-DOING by a return of
   * main. */
  doing = strchr(which, '-');
  if (doing == NULL) check_fail(__FILE__, __LINE__, "no such case");
  if (me != last) otherwise(doing + 1);
  if (is(which, "fault-polling")) raise(SIGSEGV);
  if (is(which, "fatal-polling")) gasnett_fatalerror("it was %s", "on purpose");
  if (strncmp(which, "return-", 7) == 0) return code;
  gasnet_exit(code);
  return 99;
}
