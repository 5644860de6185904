/* Events: test and wait for one, some and all; arrays of nothing, of the invalid, of roots with
 * their leaves in any order; leaves asked for again and again; many events at once. */
#include "check.h"

enum { MANY = 3000, SLOT = 64 };

static char *target;
static gex_Rank_t peer;
static unsigned char bytes[MANY * 8];

static gex_Event_t a_put(int at) {
  return gex_RMA_PutNB(team, peer, target + at % SLOT, bytes + at, 1, GEX_EVENT_DEFER, 0);
}

static void nothing(void) {
  gex_Event_t none[5];
  size_t i;
  for (i = 0; i < 5; ++i) none[i] = GEX_EVENT_INVALID;
  CHECK_EQ(gex_Event_Test(GEX_EVENT_INVALID), 0);
  gex_Event_Wait(GEX_EVENT_INVALID);
  for (i = 0; i <= 5; ++i) {
    CHECK_EQ(gex_Event_TestSome(none, i, 0), 0);
    CHECK_EQ(gex_Event_TestAll(none, i, 0), 0);
    gex_Event_WaitSome(none, i, 0);
    gex_Event_WaitAll(none, i, 0);
  }
  for (i = 0; i < 5; ++i) CHECK_SAME(none[i], GEX_EVENT_INVALID);
}

static int left_of(const gex_Event_t *events, int count) {
  int i, left = 0;
  for (i = 0; i < count; ++i) left += events[i] != GEX_EVENT_INVALID;
  return left;
}

/* A barrier's event is not done before the last rank came: the only event whose end we can hold
 * back. */
static void pending(void) {
  gex_Event_t events[4];
  int i;
  check_barrier();
  for (i = 0; i < 4; ++i) events[i] = GEX_EVENT_INVALID;
  if (ranks > 1 && me == 0) {
    events[2] = gex_Coll_BarrierNB(team, 0);
    for (i = 0; i < 100; ++i) {
      CHECK(gex_Event_Test(events[2]) != 0);
      CHECK(gex_Event_TestSome(events, 4, 0) != 0);
      CHECK(gex_Event_TestAll(events, 4, 0) != 0);
      gasnet_AMPoll();
    }
    CHECK(events[2] != GEX_EVENT_INVALID);
    /* A done event and a pending one: some, not all; the done one is struck out. */
    events[0] = a_put(0);
    while (events[0] != GEX_EVENT_INVALID) {
      int result = gex_Event_TestSome(events, 4, 0);
      if (events[0] == GEX_EVENT_INVALID) CHECK_EQ(result, 0);
      gasnet_AMPoll();
      if (result == 0) break;
    }
    CHECK_SAME(events[0], GEX_EVENT_INVALID);
    CHECK(events[2] != GEX_EVENT_INVALID);
    events[3] = a_put(1);
    gex_Event_Wait(events[3]);
    events[3] = GEX_EVENT_INVALID;
    CHECK(gex_Event_TestAll(events, 4, 0) != 0);
    CHECK(events[2] != GEX_EVENT_INVALID);
    /* Now the others may come. */
    {
      gex_Rank_t rank;
      for (rank = 1; rank < ranks; ++rank)
        CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, check_base(rank) + 4096, 1, 1, 0), 0);
    }
    gex_Event_WaitAll(events, 4, 0);
    CHECK_EQ(left_of(events, 4), 0);
  } else if (ranks > 1) {
    volatile char *flag = check_base(me) + 4096;
    GASNET_BLOCKUNTIL(*flag);
    check_barrier();
  }
  check_barrier();
}

static void some(void) {
  static gex_Event_t events[MANY];
  int i, left, before;
  for (i = 0; i < MANY; ++i) events[i] = i % 7 ? a_put(i) : GEX_EVENT_INVALID;
  left = left_of(events, MANY);
  while (left > 0) {
    before = left;
    gex_Event_WaitSome(events, MANY, 0);
    left = left_of(events, MANY);
    CHECK(left < before);
  }
  gex_Event_WaitSome(events, MANY, 0);
  for (i = 0; i < MANY; ++i) events[i] = a_put(i);
  while ((left = left_of(events, MANY)) > 0) {
    int result = gex_Event_TestSome(events, MANY, 0);
    CHECK((result == 0) == (left_of(events, MANY) < left));
    gasnet_AMPoll();
  }
}

static void all(void) {
  static gex_Event_t events[MANY];
  int i;
  for (i = 0; i < MANY; ++i) events[i] = i % 5 ? a_put(i) : GEX_EVENT_INVALID;
  gex_Event_WaitAll(events, MANY, 0);
  CHECK_EQ(left_of(events, MANY), 0);
  for (i = 0; i < MANY; ++i) events[i] = a_put(i);
  while (gex_Event_TestAll(events, MANY, 0)) gasnet_AMPoll();
  CHECK_EQ(left_of(events, MANY), 0);
}

/* Roots and leaves in one array, leaves before and after. */
static void mixed(void) {
  gex_Event_t events[20];
  int i, round;
  for (round = 0; round < 4; ++round) {
    for (i = 0; i < 10; ++i) {
      gex_Event_t leaf = GEX_EVENT_INVALID;
      gex_Event_t root = gex_RMA_PutNB(team, peer, target, bytes, SLOT, &leaf, 0);
      events[round % 2 ? i : 19 - i] = root;
      events[round % 2 ? 10 + i : 9 - i] = leaf;
    }
    if (round < 2)
      gex_Event_WaitAll(events, 20, 0);
    else
      while (gex_Event_TestAll(events, 20, 0)) gasnet_AMPoll();
    CHECK_EQ(left_of(events, 20), 0);
  }
}

static void leaves(void) {
  int round;
  CHECK_EQ(gex_Event_Test(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC)), 0);
  for (round = 0; round < 20; ++round) {
    gex_Event_t leaf = GEX_EVENT_INVALID, first, again;
    gex_Event_t root = gex_RMA_PutNB(team, peer, target, bytes, SLOT, &leaf, 0);
    first = gex_Event_QueryLeaf(root, GEX_EC_LC);
    again = gex_Event_QueryLeaf(root, GEX_EC_LC);
    /* It is one event, unless it is over. */
    if (first != GEX_EVENT_INVALID && again != GEX_EVENT_INVALID) CHECK_SAME(first, again);
    if (leaf != GEX_EVENT_INVALID && again != GEX_EVENT_INVALID) CHECK_SAME(leaf, again);
    if (leaf != GEX_EVENT_INVALID) {
      while (gex_Event_Test(first)) gasnet_AMPoll();
    }
    gex_Event_Wait(root);
  }
}

int main(int argc, char **argv) {
  gex_Rank_t step;
  check_start(&argc, &argv, "events");
  check_attach(GASNET_PAGESIZE + 2 * 4096 + 64 * SLOT);
  memset(check_base(me), 0, 2 * 4096);
  check_barrier();
  nothing();
  for (step = 0; step < ranks; ++step) {
    peer = (gex_Rank_t)((me + step) % ranks);
    target = check_base(peer) + 8192 + me % 32 * SLOT;
    some();
    all();
    mixed();
    leaves();
  }
  peer = check_next();
  target = check_base(peer) + 8192;
  pending();
  return check_finish();
}
