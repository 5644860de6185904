/* Addresses of segments, in the process of their rank and here, by which all operations find them:
 * bytes for the address that the owner gives arrive there and nowhere else. The driver reads how
 * many segments rank 0 has at other addresses than their owners: none of ranks that were forked,
 * all but its own if each rank was started by itself. */
#include "check.h"

enum { LONG = 181, WORDS = 16 };
static volatile int taken;
static uint64_t *mine;

/* The handler runs at the owner, so the address must be in its own segment. */
static void take(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from) {
  (void)token;
  CHECK_EQ(bytes, sizeof(uint64_t));
  CHECK_SAME(data, mine + WORDS + from);
  taken = taken + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{LONG, (gex_AM_Fn_t)take, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, "take"}};
  gex_Rank_t rank, elsewhere = 0;
  check_start(&argc, &argv, "addresses");
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  CHECK(ranks <= WORDS);
  mine = (uint64_t *)check_base(me);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    char *owner = NULL, *local = NULL;
    uint64_t word = 1000 * (uint64_t)me + rank;
    check_bound(team, rank, &owner, &local, NULL);
    if (rank == me) CHECK_SAME(owner, local);
    if (local != NULL && local != owner) ++elsewhere;
    CHECK_EQ(gex_RMA_PutBlocking(team, rank, owner + me * sizeof word, &word, sizeof word, 0), 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, owner + me * sizeof word, sizeof word, 0), word);
    CHECK_EQ(gex_AM_RequestLong1(team, rank, LONG, &word, sizeof word, owner + (WORDS + me) * sizeof word,
                                 GEX_EVENT_NOW, 0, (gex_AM_Arg_t)me),
             0);
    /* A neighbor's memory by the address here, if there is one. */
    if (local != NULL) CHECK_EQ(((volatile uint64_t *)local)[me], word);
  }
  GASNET_BLOCKUNTIL(taken == (int)ranks);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    CHECK_EQ(mine[rank], 1000 * (uint64_t)rank + me);
    CHECK_EQ(mine[WORDS + rank], 1000 * (uint64_t)rank + me);
  }
  CHECK_ALL(mine + 2 * WORDS, GASNET_PAGESIZE - 2 * WORDS * sizeof *mine, 0);
  if (me == 0) printf("%u of %u segments are elsewhere\n", (unsigned)elsewhere, (unsigned)ranks);
  return check_finish();
}
