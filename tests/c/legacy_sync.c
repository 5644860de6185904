/* Waiting of GASNet-1: tries that poll and tries that do not, arrays, categories, access regions.
 * The events of barriers of gasnetex.h, which are handles too, stand for operations that go on for
 * as long as another rank wants. */
#include "legacy.h"

enum { COUNT = 200, GO };
static volatile int counted, go;

static void count(gasnet_token_t token) {
  (void)token;
  counted = counted + 1;
}
static void may_go(gasnet_token_t token) {
  (void)token;
  go = 1;
}

/* Rank 0 has a barrier that cannot be complete before it says so to the others. */
static void unfinished(void) {
  gasnet_handle_t handle, all[3], some[3];
  gasnet_node_t node;
  go = 0;
  check_barrier();
  if (me != 0) {
    GASNET_BLOCKUNTIL(go);
    check_barrier();
    return;
  }
  handle = gex_Coll_BarrierNB(team, 0);
  if (ranks > 1) {
    all[0] = some[0] = handle;
    all[1] = some[1] = GASNET_INVALID_HANDLE;
    CHECK_EQ(gasnet_try_syncnb(handle), GASNET_ERR_NOT_READY);
    CHECK_EQ(gasnet_try_syncnb_nopoll(handle), GASNET_ERR_NOT_READY);
    CHECK_EQ(gasnet_try_syncnb_all(all, 2), GASNET_ERR_NOT_READY);
    CHECK_EQ(gasnet_try_syncnb_all_nopoll(all, 2), GASNET_ERR_NOT_READY);
    CHECK_EQ(gasnet_try_syncnb_some(some, 2), GASNET_ERR_NOT_READY);
    CHECK_EQ(gasnet_try_syncnb_some_nopoll(some, 2), GASNET_ERR_NOT_READY);
    CHECK_SAME(all[0], handle);
    CHECK_SAME(some[0], handle);
  }
  for (node = 1; node < ranks; ++node) CHECK_OK(gasnet_AMRequestShort0(node, GO));
  while (gasnet_try_syncnb(handle) != GASNET_OK) {
  }
}

/* Two at once, one of which is over earlier. */
static void arrays(void) {
  gasnet_handle_t handles[4];
  int left;
  handles[0] = GASNET_INVALID_HANDLE;
  handles[1] = gex_Coll_BarrierNB(team, 0);
  handles[2] = gex_Coll_BarrierNB(team, 0);
  handles[3] = gasnet_put_nb(me, legacy_segment(me), &ranks, sizeof ranks);
  do {
    gasnet_wait_syncnb_some(handles, 4);
    left = (handles[1] != GASNET_INVALID_HANDLE) + (handles[2] != GASNET_INVALID_HANDLE);
  } while (left > 0);
  CHECK_SAME(handles[0], GASNET_INVALID_HANDLE);
  CHECK_EQ(gasnet_try_syncnb_some(handles, 3), GASNET_OK);
  CHECK_EQ(gasnet_try_syncnb_all(handles, 3), GASNET_OK);
  CHECK_EQ(gasnet_try_syncnb_some(NULL, 0), GASNET_OK);
  CHECK_EQ(gasnet_try_syncnb_all_nopoll(NULL, 0), GASNET_OK);
  gasnet_wait_syncnb_some(handles, 3);
  gasnet_wait_syncnb_all(NULL, 0);
  handles[1] = gex_Coll_BarrierNB(team, 0);
  handles[2] = gex_Coll_BarrierNB(team, 0);
  gasnet_wait_syncnb_all(handles, 3);
  CHECK_SAME(handles[1], GASNET_INVALID_HANDLE);
  CHECK_SAME(handles[2], GASNET_INVALID_HANDLE);
  handles[1] = gex_Coll_BarrierNB(team, 0);
  while (gasnet_try_syncnb_all(handles, 2) != GASNET_OK) {
  }
  CHECK_SAME(handles[1], GASNET_INVALID_HANDLE);
  handles[1] = gex_Coll_BarrierNB(team, 0);
  while (gasnet_try_syncnb_some(handles, 2) != GASNET_OK) {
  }
  gasnet_wait_syncnb_all(handles, 2);
}

/* A message waits until a call polls. Each rank sends to the next one after that has left the
 * library: a put reports this, and another put that the message is there; both must complete
 * without a call of their target. Elsewhere the test only sees that the call handles the message
 * some time. */
static void polls(void) {
  enum { READY = 0, SENT = 64 };
  char *mine = legacy_segment(me), *next = legacy_segment(check_next()), *previous = legacy_segment(check_previous());
  volatile int *ready = (volatile int *)(void *)(mine + READY), *arrived = (volatile int *)(void *)(mine + SENT);
  gasnet_handle_t none[1] = {GASNET_INVALID_HANDLE};
  const int by_memory = check_all_neighbors();
  int one = 1, turn, was, before, tries;
  for (turn = 0; turn < 4; ++turn) {
    *ready = 0;
    *arrived = 0;
    was = counted;
    CHECK_OK(gasnet_barrier(turn, 0));
    if (by_memory) {
      gasnet_put(check_previous(), previous + READY, &one, sizeof one);
      while (!*ready) gasnett_sched_yield();
    }
    CHECK_OK(gasnet_AMRequestShort0(check_next(), COUNT));
    if (by_memory) {
      gasnet_put(check_next(), next + SENT, &one, sizeof one);
      while (!*arrived) gasnett_sched_yield();
    }
    /* It may have been taken already by a call above. */
    before = counted;
    CHECK_EQ(gasnet_try_syncnb_nopoll(GASNET_INVALID_HANDLE), GASNET_OK);
    CHECK_EQ(gasnet_try_syncnb_all_nopoll(none, 1), GASNET_OK);
    CHECK_EQ(gasnet_try_syncnb_some_nopoll(none, 1), GASNET_OK);
    CHECK_EQ(counted, before);
    tries = 0;
    do {
      CHECK(++tries < 1000000 || !by_memory);
      switch (turn) {
        case 0: CHECK_OK(gasnet_try_syncnb(GASNET_INVALID_HANDLE)); break;
        case 1: CHECK_OK(gasnet_try_syncnb_all(none, 1)); break;
        case 2: CHECK_OK(gasnet_try_syncnb_some(none, 1)); break;
        default: CHECK_OK(gasnet_try_syncnbi_all());
      }
    } while (counted == was);
    CHECK_OK(gasnet_barrier(100 + turn, 0));
  }
}

static void implicit(void) {
  char *to = legacy_segment(check_next());
  int values[50], i, mine;
  for (i = 0; i < 50; ++i) {
    mine = (int)me * 1000 + i;
    gasnet_put_nbi(check_next(), to + 64 + 4 * i, &mine, sizeof mine);
  }
  while (gasnet_try_syncnbi_puts() != GASNET_OK) {
  }
  for (i = 0; i < 50; ++i) gasnet_get_nbi(&values[i], check_next(), to + 64 + 4 * i, sizeof values[i]);
  while (gasnet_try_syncnbi_gets() != GASNET_OK) {
  }
  for (i = 0; i < 50; ++i) CHECK_EQ(values[i], (int)me * 1000 + i);
  gasnet_wait_syncnbi_gets();
  gasnet_wait_syncnbi_puts();
  gasnet_wait_syncnbi_all();
  CHECK_OK(gasnet_try_syncnbi_all());
  gasnet_begin_nbi_accessregion();
  for (i = 0; i < 50; ++i) gasnet_put_nbi_val(check_next(), to + 64 + 4 * i, (gasnet_register_value_t)(7000 + i), 4);
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
  gasnet_get(values, check_next(), to + 64, sizeof values);
  for (i = 0; i < 50; ++i) CHECK_EQ(values[i], 7000 + i);
  gasnet_begin_nbi_accessregion();
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{COUNT, (gex_AM_Fn_t)count}, {GO, (gex_AM_Fn_t)may_go}};
  legacy_init(&argc, &argv, "legacy_sync");
  legacy_attach(table, CHECK_COUNT(table), 4096);
  unfinished();
  arrays();
  polls();
  implicit();
  return check_finish();
}
