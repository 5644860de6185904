/* A race on purpose: two threads of a job of one rank add to a number, and their calls of the
 * library in between order nothing. `cargo xtask tsan` builds this as the programs of tests/c and
 * is content only if ThreadSanitizer reports it. */
#include "../../tests/c/check_threads.h"

static int number;

static void add(void) { number = number + 1; }

static void *work(void *argument) {
  (void)argument;
  add();
  gasnet_AMPoll();
  add();
  return NULL;
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "planted_race");
  threads = 2;
  check_run(work);
  return check_finish();
}
