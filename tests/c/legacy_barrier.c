/* Barriers, locks, waits and interrupts of a program of GASNet-1. */
#include "legacy.h"

enum { HIT = 210 };
static volatile int hits;
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static int under_lock;

static void hit(gasnet_token_t token) {
  (void)token;
  gasnet_hsl_lock(&lock);
  under_lock = under_lock + 1;
  gasnet_hsl_unlock(&lock);
  hits = hits + 1;
}

static int by_try(int id, int flags) {
  int result;
  do result = gasnet_barrier_try(id, flags);
  while (result == GASNET_ERR_NOT_READY);
  return result;
}

static void barriers(void) {
  int id = 0, last = (int)ranks - 1;
  CHECK_OK(gasnet_barrier(-5, 0));
  CHECK_OK(gasnet_barrier_result(&id));
  CHECK_EQ(id, -5);
  gasnet_barrier_notify((int)0xcafef00du, 0);
  CHECK_OK(gasnet_barrier_wait((int)0xcafef00du, 0));
  gasnet_barrier_notify(3, 0);
  CHECK_OK(by_try(3, 0));
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
  CHECK(gasnet_barrier_result(&id) != 0);
  CHECK_OK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED));
  /* One rank names it, and so it is called for all. */
  CHECK_OK(gasnet_barrier(99, (int)me == last ? 0 : GASNET_BARRIERFLAG_ANONYMOUS));
  CHECK_OK(gasnet_barrier_result(&id));
  CHECK_EQ(id, 99);
  /* Two names, or one rank's GASNET_BARRIERFLAG_MISMATCH, are a mismatch for all. */
  if (ranks > 1) CHECK_EQ(gasnet_barrier((int)me == last ? 1 : 2, 0), GASNET_ERR_BARRIER_MISMATCH);
  CHECK_EQ(gasnet_barrier(1, (int)me == last ? GASNET_BARRIERFLAG_MISMATCH : 0), GASNET_ERR_BARRIER_MISMATCH);
  gasnet_barrier_notify(1, (int)me == last ? GASNET_BARRIERFLAG_MISMATCH : 0);
  CHECK_EQ(by_try(1, (int)me == last ? GASNET_BARRIERFLAG_MISMATCH : 0), GASNET_ERR_BARRIER_MISMATCH);
  gasnet_barrier_notify(6, 0);
  CHECK_EQ(gasnet_barrier_wait((int)me == last ? 7 : 6, 0), (int)me == last ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK);
  CHECK_OK(gasnet_barrier(8, 0));
}

static void locks(void) {
  gasnet_hsl_t dynamic, again;
  memset(&dynamic, 0, sizeof dynamic);
  memset(&again, 0, sizeof again);
  gasnet_hsl_init(&dynamic);
  gasnet_hsl_init(&again);
  CHECK(memcmp(&dynamic, &again, sizeof dynamic) == 0);
  gasnet_hsl_lock(&dynamic);
  CHECK_OK(gasnet_hsl_trylock(&again));
  gasnet_hsl_unlock(&again);
  gasnet_hsl_unlock(&dynamic);
  gasnet_hsl_destroy(&again);
  gasnet_hsl_destroy(&dynamic);
}

static void waits(void) {
  static const int modes[] = {GASNET_WAIT_SPIN, GASNET_WAIT_BLOCK, GASNET_WAIT_SPINBLOCK};
  size_t i;
  int should = 0, times = 0;
  GASNET_BLOCKUNTIL(++times);
  CHECK_EQ(times, 1);
  for (i = 0; i < CHECK_COUNT(modes); ++i) {
    CHECK_OK(gasnet_set_waitmode(modes[i]));
    CHECK_OK(gasnet_AMRequestShort0(check_next(), HIT));
    ++should;
    /* Nothing interrupts; messages still come where the library is called. */
    gasnet_hold_interrupts();
    GASNET_BLOCKUNTIL(hits == should);
    gasnet_resume_interrupts();
    CHECK_EQ(under_lock, should);
    CHECK_OK(gasnet_barrier((int)i, 0));
  }
}

static void names(void) {
  static const int codes[] = {GASNET_OK,           GASNET_ERR_NOT_INIT,  GASNET_ERR_RESOURCE,
                              GASNET_ERR_BAD_ARG, GASNET_ERR_NOT_READY, GASNET_ERR_BARRIER_MISMATCH};
  size_t i;
  for (i = 0; i < CHECK_COUNT(codes); ++i) {
    CHECK(strncmp(gasnet_ErrorName(codes[i]), "GASNET_", 7) == 0);
    CHECK(gasnet_ErrorDesc(codes[i])[0] != 0);
  }
  CHECK(gasnet_ErrorName(-1) != NULL && gasnet_ErrorDesc(-1) != NULL);
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{HIT, (gex_AM_Fn_t)hit}};
  GASNET_BEGIN_FUNCTION();
  legacy_init(&argc, &argv, "legacy_barrier");
  legacy_attach(table, CHECK_COUNT(table), 1);
  barriers();
  locks();
  waits();
  names();
  {
    GASNET_POST_THREADINFO(GASNET_GET_THREADINFO());
    CHECK_OK(gasnet_AMPoll());
  }
  return check_finish();
}
