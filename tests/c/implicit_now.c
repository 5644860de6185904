/* Implicit puts with GEX_EVENT_NOW, and puts of values, do not wait for their target: it may be
 * stopped meanwhile. Longer
 *    ones return when their source is free, in access regions, too. */
#include "check.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

enum { PUTS = 300, LONG_BYTES = 1 << 24, PID_AT = 0, WORDS_AT = 64, LONG_AT = 1 << 16, BYTES = LONG_AT + LONG_BYTES };

static unsigned char longer[LONG_BYTES], copy[LONG_BYTES];

static void small(gex_Rank_t peer) {
  char *base = check_base(peer);
  uint64_t pid = 0, word;
  gex_Event_t last;
  int i;
  pid = gex_RMA_GetBlockingVal(team, peer, base + PID_AT, 8, 0);
  CHECK(pid > 1 && pid != (uint64_t)getpid());
  /* A put that waited would never return: this ends the job then. */
  alarm(60);
  CHECK_EQ(kill((pid_t)pid, SIGSTOP), 0);
  for (i = 0; i < PUTS; ++i) {
    word = (uint64_t)i + 1;
    CHECK_EQ(gex_RMA_PutNBI(team, peer, base + WORDS_AT + 24 * i, &word, 8, GEX_EVENT_NOW, 0), 0);
    word = 0;
    CHECK_EQ(gex_RMA_PutNBIVal(team, peer, base + WORDS_AT + 24 * i + 8, (gex_RMA_Value_t)i + 2, 8, 0), 0);
  }
  last = gex_RMA_PutNBVal(team, peer, base + WORDS_AT + 16, 3, 4, 0);
  CHECK_EQ(kill((pid_t)pid, SIGCONT), 0);
  alarm(0);
  gex_Event_Wait(last);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  for (i = 0; i < PUTS; ++i) {
    CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, base + WORDS_AT + 24 * i, 8, 0), i + 1);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, base + WORDS_AT + 24 * i + 8, 8, 0), i + 2);
  }
  CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, base + WORDS_AT + 16, 4, 0), 3);
}

static void longer_ones(gex_Rank_t peer) {
  char *to = check_base(peer) + LONG_AT;
  int region;
  for (region = 0; region < 2; ++region) {
    gex_Event_t event;
    check_fill(longer, LONG_BYTES, (uint32_t)region);
    if (region) gex_NBI_BeginAccessRegion(0);
    CHECK_EQ(gex_RMA_PutNBI(team, peer, to, longer, LONG_BYTES, GEX_EVENT_NOW, 0), 0);
    memset(longer, 0xee, LONG_BYTES);
    if (region) {
      event = gex_NBI_EndAccessRegion(0);
      gex_Event_Wait(event);
    } else {
      gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    CHECK_EQ(gex_RMA_GetBlocking(team, copy, peer, to, LONG_BYTES, 0), 0);
    CHECK_FILLED(copy, LONG_BYTES, (uint32_t)region);
  }
}

int main(int argc, char **argv) {
  uint64_t pid;
  check_start(&argc, &argv, "implicit_now");
  /* Only now, as a start may fork. */
  pid = (uint64_t)getpid();
  check_attach(BYTES);
  memcpy(check_base(me) + PID_AT, &pid, sizeof pid);
  check_barrier();
  if (me == 0) {
    if (ranks > 1) small(1);
    longer_ones(ranks - 1);
  }
  check_barrier();
  return check_finish();
}
