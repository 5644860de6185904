/* Handler-safe locks: static and made at run time, taken in order and given back in reverse, tried,
 * and taken by handlers; a handler never runs while its thread waits inside of a lock call. */
#include "check.h"

enum { COUNT = 150, ADD = 170, ADDED };

static gex_HSL_t fixed = GEX_HSL_INITIALIZER;
static gex_HSL_t another = GEX_HSL_INITIALIZER;
static struct {
  int before;
  gex_HSL_t lock;
  int after;
} inside = {1, GEX_HSL_INITIALIZER, 2};
static volatile int sum, calls, added, under_lock;

static void add(gex_Token_t token, gex_AM_Arg_t value) {
  /* A message may not be handled while the lock is held on this thread. */
  CHECK_EQ(under_lock, 0);
  gex_HSL_Lock(&fixed);
  CHECK_OK(gex_HSL_Trylock(&another));
  sum = sum + value;
  calls = calls + 1;
  gex_HSL_Unlock(&another);
  gex_HSL_Unlock(&fixed);
  gex_AM_ReplyShort0(token, ADDED, 0);
}
static void was_added(gex_Token_t token) {
  (void)token;
  gex_HSL_Lock(&inside.lock);
  added = added + 1;
  gex_HSL_Unlock(&inside.lock);
}

static void alone(void) {
  gex_HSL_t local = GEX_HSL_INITIALIZER;
  gex_HSL_t made[10];
  int i, round;
  /* In SEQ the calls may be nothing at all. */
  (void)&local, (void)&made, (void)&fixed, (void)&another;
  gex_HSL_Lock(&local);
  gex_HSL_Unlock(&local);
  for (round = 0; round < 3; ++round) {
    for (i = 0; i < 10; ++i) gex_HSL_Init(&made[i]);
    for (i = 0; i < 10; ++i)
      if (i % 2) gex_HSL_Lock(&made[i]);
      else CHECK_OK(gex_HSL_Trylock(&made[i]));
    for (i = 9; i >= 0; --i) gex_HSL_Unlock(&made[i]);
    for (i = 0; i < 10; ++i) CHECK_OK(gex_HSL_Trylock(&made[9 - i]));
    for (i = 9; i >= 0; --i) gex_HSL_Unlock(&made[9 - i]);
    for (i = 0; i < 10; ++i) gex_HSL_Destroy(&made[i]);
  }
  CHECK(inside.before == 1 && inside.after == 2);
  /* Calls that are allowed while a lock is held. */
  gex_HSL_Lock(&fixed);
  CHECK_EQ(gex_System_QueryJobRank(), me);
  CHECK_EQ(gex_TM_QuerySize(team), ranks);
  CHECK(gex_AM_LUBRequestMedium() >= 512);
  CHECK_SAME(gex_EP_QueryClient(ep), client);
  CHECK(gex_TM_Pair(ep, 0) != GEX_TM_INVALID);
  CHECK(gex_AM_MaxRequestLong(team, 0, NULL, 0, 0) >= 512);
  gex_HSL_Unlock(&fixed);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ADD, (gex_AM_Fn_t)add, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "add"},
                            {ADDED, (gex_AM_Fn_t)was_added, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "added"}};
  gex_Rank_t rank;
  int i;
  check_start(&argc, &argv, "hsl");
  check_register(table, CHECK_COUNT(table));
  alone();
  check_barrier();
  for (i = 0; i < COUNT; ++i) {
    for (rank = 0; rank < ranks; ++rank) CHECK_EQ(gex_AM_RequestShort1(team, rank, ADD, 0, i), 0);
    gex_HSL_Lock(&fixed);
    under_lock = 1;
    sum = sum + 1000;
    under_lock = 0;
    gex_HSL_Unlock(&fixed);
  }
  GASNET_BLOCKUNTIL(added == COUNT * (int)ranks);
  check_barrier();
  CHECK_EQ(calls, COUNT * (int)ranks);
  CHECK_EQ(sum, (int)ranks * (COUNT * (COUNT - 1) / 2) + 1000 * COUNT);
  alone();
  return check_finish();
}
