/* Common part of the programs with several threads: starting threads, letting them meet,
 * counting. */
#ifndef ARGONET_TESTS_CHECK_THREADS_H
#define ARGONET_TESTS_CHECK_THREADS_H

#include "check.h"

#include <gasnet_tools.h>
#include <pthread.h>

enum { CHECK_MOST_THREADS = 16 };

/* Threads of this rank that run, without the one that started them. */
static int threads = 1;

struct check_thread {
  pthread_t handle;
  int index;
  uint64_t random;
};
static struct check_thread check_each[CHECK_MOST_THREADS];

/* The number of threads: the program's first argument. */
static inline void check_threads_of(int argc, char **argv) {
  if (argc < 2) check_fail(__FILE__, __LINE__, "the first argument is the number of threads");
  threads = atoi(argv[1]);
  CHECK(threads >= 1 && threads <= CHECK_MOST_THREADS);
  CHECK(gex_System_QueryMaxThreads() > (uint64_t)threads);
}

static inline void check_begin(int index, void *(*run)(void *)) {
  struct check_thread *thread = &check_each[index];
  thread->index = index;
  thread->random = ((uint64_t)me * CHECK_MOST_THREADS + (uint64_t)index + 1) * 0x9e3779b97f4a7c15u;
  CHECK_EQ(pthread_create(&thread->handle, NULL, run, thread), 0);
}

/* Runs that many threads, each with its struct check_thread, to their ends. */
static inline void check_run(void *(*run)(void *)) {
  int i;
  for (i = 0; i < threads; ++i) check_begin(i, run);
  for (i = 0; i < threads; ++i) CHECK_EQ(pthread_join(check_each[i].handle, NULL), 0);
}

/* Waits until all threads of this rank have come; messages are handled meanwhile. */
static inline void check_meet(void) {
  static gasnett_atomic_t came = gasnett_atomic_init(0);
  gasnett_atomic_val_t before = gasnett_atomic_add(&came, 1, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ) - 1;
  gasnett_atomic_val_t all = (before / (gasnett_atomic_val_t)threads + 1) * (gasnett_atomic_val_t)threads;
  GASNET_BLOCKUNTIL(gasnett_atomic_read(&came, GASNETT_ATOMIC_ACQ) >= all);
}

static inline uint64_t check_draw(struct check_thread *thread) {
  uint64_t x = thread->random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return thread->random = x;
}

static inline int check_count(gasnett_atomic_t *counter) {
  return (int)gasnett_atomic_read(counter, GASNETT_ATOMIC_ACQ);
}
static inline void check_more(gasnett_atomic_t *counter) {
  gasnett_atomic_increment(counter, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ);
}

#endif
