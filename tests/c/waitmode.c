/* GASNET_BLOCKUNTIL and gasnet_set_waitmode: the condition is looked at even if nothing is to be
 * waited for, changes made by handlers end the wait, in each mode and in any number of nested
 * expressions. */
#include "check.h"

enum { TICK = 165 };
static volatile int ticks;
static int looked;

static void tick(gex_Token_t token) {
  (void)token;
  ticks = ticks + 1;
}
static int look(int result) {
  ++looked;
  return result;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{TICK, (gex_AM_Fn_t)tick, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "tick"}};
  static const int modes[] = {GASNET_WAIT_SPIN, GASNET_WAIT_BLOCK, GASNET_WAIT_SPINBLOCK};
  int round, expected = 0;
  check_start(&argc, &argv, "waitmode");
  check_register(table, 1);
  check_barrier();
  for (round = 0; round < 30; ++round) {
    CHECK_OK(gasnet_set_waitmode(modes[round % 3]));
    looked = 0;
    GASNET_BLOCKUNTIL(look(1));
    CHECK(looked >= 1);
    /* As a statement under if and else. */
    if (round % 2)
      GASNET_BLOCKUNTIL(look(1) && ticks >= 0);
    else
      GASNET_BLOCKUNTIL((look(1), ticks >= 0));
    CHECK_EQ(gex_AM_RequestShort0(team, check_next(), TICK, 0), 0);
    CHECK_EQ(gex_AM_RequestShort0(team, me, TICK, 0), 0);
    expected += 2;
    GASNET_BLOCKUNTIL(ticks >= expected && look(1));
    check_barrier();
    CHECK_EQ(gasnet_AMPoll(), GASNET_OK);
    CHECK_EQ(ticks, expected);
    check_barrier();
  }
  CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK));
  return check_finish();
}
