/* A nameless barrier releases and acquires: puts that were complete before it are seen after it,
 * whichever of several barriers under way is waited for; and none ends before every rank has begun
 * it. */
#include "check.h"

enum { ROUNDS = 300, DEPTH = 4 };

int main(int argc, char **argv) {
  gex_Rank_t rank;
  int round, i;
  volatile int64_t *mine;
  check_start(&argc, &argv, "barrier_order");
  check_attach(ranks * 8);
  mine = (volatile int64_t *)check_base(me);
  for (rank = 0; rank < ranks; ++rank) mine[rank] = -1;
  check_barrier();
  for (round = 0; round < ROUNDS; ++round) {
    gex_Event_t events[DEPTH];
    for (i = 0; i < DEPTH; ++i) {
      int64_t value = round * DEPTH + i;
      for (rank = 0; rank < ranks; ++rank)
        CHECK_EQ(gex_RMA_PutBlocking(team, rank, check_base(rank) + me * 8, &value, 8, 0), 0);
      events[i] = gex_Coll_BarrierNB(team, 0);
    }
    /* The last first: it says all about those before it. */
    for (i = DEPTH - 1; i >= 0; --i) {
      gex_Event_Wait(events[i]);
      for (rank = 0; rank < ranks; ++rank) CHECK(mine[rank] >= round * DEPTH + i);
    }
  }
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(mine[rank], ROUNDS * DEPTH - 1);
  return check_finish();
}
