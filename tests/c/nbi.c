/* Implicit events: each category by itself and all together, messages among them, access regions
 * and their leaves. */
#include "check.h"

enum { COUNT = 200, SLOT = 64, BYTES = COUNT * SLOT, MESSAGE = 160 };

static char *target;
static gex_Rank_t peer;
static unsigned char source[BYTES], copy[BYTES];
static volatile int messages;

static void message(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t key) {
  (void)token;
  CHECK_EQ(bytes, SLOT);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  messages = messages + 1;
}

static void put_all(uint32_t key, gex_Event_t *how) {
  int i;
  check_fill(source, BYTES, key);
  for (i = 0; i < COUNT; ++i)
    CHECK_EQ(gex_RMA_PutNBI(team, peer, target + i * SLOT, source + i * SLOT, SLOT, how, 0), 0);
}
static void get_all(void) {
  int i;
  memset(copy, 0, BYTES);
  for (i = 0; i < COUNT; ++i)
    CHECK_EQ(gex_RMA_GetNBI(team, copy + i * SLOT, peer, target + i * SLOT, SLOT, 0), 0);
}
static void done(gex_EC_t category, int wait) {
  if (wait)
    gex_NBI_Wait(category, 0);
  else
    while (gex_NBI_Test(category, 0)) gasnet_AMPoll();
}

static void categories(int wait) {
  /* Nothing under way is done. */
  CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_GET, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_PUT, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_AM, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_LC, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_RMW, 0), 0);
  CHECK_EQ(gex_NBI_Test(GEX_EC_GET | GEX_EC_PUT | GEX_EC_LC, 0), 0);

  put_all(1, GEX_EVENT_DEFER);
  done(GEX_EC_PUT, wait);
  memset(source, 0, BYTES);
  get_all();
  done(GEX_EC_GET, wait);
  CHECK_FILLED(copy, BYTES, 1);

  put_all(2, GEX_EVENT_GROUP);
  done(GEX_EC_LC, wait);
  memset(source, 0, BYTES);
  done(GEX_EC_PUT, wait);
  get_all();
  done(GEX_EC_ALL, wait);
  CHECK_FILLED(copy, BYTES, 2);

  put_all(3, GEX_EVENT_NOW);
  memset(source, 0, BYTES);
  done(GEX_EC_PUT | GEX_EC_LC, wait);
  get_all();
  done(GEX_EC_GET | GEX_EC_PUT, wait);
  CHECK_FILLED(copy, BYTES, 3);

  /* Values take part in the puts. */
  {
    int i;
    for (i = 0; i < COUNT; ++i)
      CHECK_EQ(gex_RMA_PutNBIVal(team, peer, target + i, (gex_RMA_Value_t)check_byte(4, (size_t)i), 1, 0), 0);
    done(GEX_EC_PUT, wait);
    CHECK_EQ(gex_RMA_GetBlocking(team, copy, peer, target, COUNT, 0), 0);
    CHECK_FILLED(copy, COUNT, 4);
  }
}

/* Messages with GROUP: their sources are the caller's again after a wait for messages. */
static void with_messages(int wait) {
  int i;
  for (i = 0; i < COUNT; ++i) {
    check_fill(source + i * SLOT, SLOT, (uint32_t)i);
    CHECK_EQ(gex_AM_RequestMedium1(team, peer, MESSAGE, source + i * SLOT, SLOT, GEX_EVENT_GROUP, 0, i), 0);
  }
  done(wait ? GEX_EC_AM : GEX_EC_ALL, wait);
  memset(source, 0xff, BYTES);
}

static void regions(int wait) {
  gex_Event_t event, leaf;
  int i;
  gex_NBI_BeginAccessRegion(0);
  event = gex_NBI_EndAccessRegion(0);
  CHECK(event != GEX_EVENT_NO_OP);
  gex_Event_Wait(event);

  gex_NBI_BeginAccessRegion(0);
  put_all(5, GEX_EVENT_DEFER);
  event = gex_NBI_EndAccessRegion(0);
  CHECK(event != GEX_EVENT_NO_OP);
  /* The operations of the region are not among the implicit ones after it. */
  CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), 0);
  if (wait)
    gex_Event_Wait(event);
  else
    while (gex_Event_Test(event)) gasnet_AMPoll();
  memset(source, 0, BYTES);
  gex_NBI_BeginAccessRegion(0);
  get_all();
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  CHECK_FILLED(copy, BYTES, 5);

  /* Its local completion is a leaf. */
  gex_NBI_BeginAccessRegion(0);
  put_all(6, GEX_EVENT_GROUP);
  event = gex_NBI_EndAccessRegion(0);
  leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
  while (gex_Event_Test(leaf)) gasnet_AMPoll();
  memset(source, 0, BYTES);
  gex_Event_Wait(event);
  get_all();
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(copy, BYTES, 6);

  /* One before and one after, several at once, waited for out of order. */
  {
    gex_Event_t events[8];
    check_fill(source, BYTES, 7);
    CHECK_EQ(gex_RMA_PutNBI(team, peer, target, source, SLOT, GEX_EVENT_DEFER, 0), 0);
    for (i = 0; i < 8; ++i) {
      gex_NBI_BeginAccessRegion(0);
      CHECK_EQ(gex_RMA_PutNBI(team, peer, target + (i + 1) * SLOT, source + (i + 1) * SLOT, SLOT, GEX_EVENT_DEFER, 0), 0);
      events[i] = gex_NBI_EndAccessRegion(0);
    }
    for (i = 7; i >= 0; --i) gex_Event_Wait(events[i]);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK_EQ(gex_RMA_GetBlocking(team, copy, peer, target, 9 * SLOT, 0), 0);
    CHECK_FILLED(copy, 9 * SLOT, 7);
  }

  /* Explicit and blocking operations inside a region are no part of it. */
  gex_NBI_BeginAccessRegion(0);
  put_all(8, GEX_EVENT_DEFER);
  leaf = gex_RMA_GetNB(team, copy, peer, target + BYTES, 1, 0);
  CHECK_EQ(gex_RMA_PutBlockingVal(team, peer, target + BYTES, 77, 1, 0), 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, target + BYTES, 1, 0), 77);
  gex_Event_Wait(leaf);
  event = gex_NBI_EndAccessRegion(0);
  gex_Event_Wait(event);
  get_all();
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(copy, BYTES, 8);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {MESSAGE, (gex_AM_Fn_t)message, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "message"}};
  gex_Rank_t step;
  check_start(&argc, &argv, "nbi");
  check_register(table, 1);
  check_attach(ranks * (uintptr_t)(BYTES + SLOT));
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    int wait;
    peer = (gex_Rank_t)((me + step) % ranks);
    target = check_base(peer) + me * (uintptr_t)(BYTES + SLOT);
    for (wait = 0; wait < 2; ++wait) {
      categories(wait);
      with_messages(wait);
      regions(wait);
    }
  }
  GASNET_BLOCKUNTIL(messages == 2 * COUNT * (int)ranks);
  return check_finish();
}
