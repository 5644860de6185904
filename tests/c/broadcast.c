/* gex_Coll_BroadcastNB: every root, many sizes, source and destination in and out of the segment,
 * in place at the root, many under way at once and waited for in any order; before any segment is
 * attached. */
#include "check.h"
#include <gasnet_coll.h>

enum { MANY = 64 };

static unsigned char *to, *from;

static void one(gex_Rank_t root, size_t bytes, unsigned char *to_here, unsigned char *from_here, uint32_t key) {
  memset(to_here - 8, 0x5a, bytes + 16);
  if (me == root) check_fill(from_here, bytes, key);
  gex_Event_Wait(gex_Coll_BroadcastNB(team, root, to_here, from_here, bytes, 0));
  CHECK_FILLED(to_here, bytes, key);
  CHECK_ALL(to_here - 8, 8, 0x5a);
  CHECK_ALL(to_here + bytes, 8, 0x5a);
  if (me == root) CHECK_FILLED(from_here, bytes, key);
}

static void sizes(unsigned char *to_here, unsigned char *from_here) {
  static const size_t around[] = {128, 512, 1024, 4096, 8192, 65536, 200000};
  gex_Rank_t root;
  size_t i, bytes;
  int off;
  for (root = 0; root < ranks; ++root) {
    for (bytes = 1; bytes <= 40; ++bytes) one(root, bytes, to_here + bytes % 8 + 8, from_here + bytes % 3, (uint32_t)bytes);
    for (i = 0; i < CHECK_COUNT(around); ++i)
      for (off = -1; off <= 1; ++off) one(root, around[i] + off, to_here + 8, from_here, (uint32_t)(i * 3) + root);
  }
}

static void in_place(void) {
  gex_Rank_t root;
  size_t bytes;
  for (root = 0; root < ranks; ++root)
    for (bytes = 1; bytes < 100000; bytes *= 7) {
      if (me == root) check_fill(to, bytes, root + 1);
      else memset(to, 0, bytes);
      gex_Event_Wait(gex_Coll_BroadcastNB(team, root, to, me == root ? to : NULL, bytes, 0));
      CHECK_FILLED(to, bytes, root + 1);
    }
}

static void many(void) {
  gex_Event_t events[MANY];
  int round, i;
  for (round = 0; round < 20; ++round) {
    for (i = 0; i < MANY; ++i) {
      gex_Rank_t root = (gex_Rank_t)((i * 7 + round) % (int)ranks);
      size_t bytes = (size_t)(1 + (i * 37 + round * 101) % 2000);
      if (me == root) check_fill(from + i * 2048, bytes, (uint32_t)(round * MANY + i));
      memset(to + i * 2048, 0, 2048);
      events[i] = gex_Coll_BroadcastNB(team, root, to + i * 2048, from + i * 2048, bytes, 0);
      CHECK(events[i] != GEX_EVENT_NO_OP);
    }
    if (round % 3 == 0) gex_Event_WaitAll(events, MANY, 0);
    if (round % 3 == 1) for (i = MANY - 1; i >= 0; --i) gex_Event_Wait(events[i]);
    if (round % 3 == 2)
      for (i = 0; i < MANY; ++i)
        while (gex_Event_Test(events[(i * 5) % MANY])) gasnet_AMPoll();
    for (i = 0; i < MANY; ++i)
      CHECK_FILLED(to + i * 2048, (size_t)(1 + (i * 37 + round * 101) % 2000), (uint32_t)(round * MANY + i));
    if (round % 5 == 4) check_barrier();
  }
}

int main(int argc, char **argv) {
  unsigned char *base;
  check_start(&argc, &argv, "broadcast");
  to = (unsigned char *)malloc(300000);
  from = (unsigned char *)malloc(300000);
  CHECK(to && from);
  sizes(to, from);
  in_place();
  many();
  check_attach(3 << 18);
  base = (unsigned char *)check_base(me);
  sizes(base, base + (3 << 17));
  sizes(base, from);
  sizes(to, base + 5);
  many();
  check_barrier();
  free(to);
  free(from);
  return check_finish();
}
