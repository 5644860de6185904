/* GASNET_BLOCKUNTIL on a word that a neighbor's put changes, without a message that reports it: a
 * token goes around all ranks many times, each time after a while in which all sleep; it takes
 * minutes if a wait sleeps for long without looking. */
#include "check.h"

#include <gasnet_tools.h>

enum { ROUNDS = 100 };

int main(int argc, char **argv) {
  volatile int32_t *mine;
  char *next;
  gex_Rank_t after;
  int32_t round;
  check_start(&argc, &argv, "wait_memory");
  check_attach(GASNET_PAGESIZE);
  mine = (volatile int32_t *)check_base(me);
  after = (me + 1) % ranks;
  next = check_base(after);
  *mine = 0;
  check_barrier();
  for (round = 1; round <= ROUNDS; ++round) {
    if (me == 0) CHECK_EQ(gasnett_nsleep(10000000), 0);
    if (me == 0) CHECK_EQ(gex_RMA_PutBlocking(team, after, next, &round, sizeof round, 0), 0);
    GASNET_BLOCKUNTIL(*mine == round);
    if (me != 0) CHECK_EQ(gex_RMA_PutBlocking(team, after, next, &round, sizeof round, 0), 0);
  }
  return check_finish();
}
