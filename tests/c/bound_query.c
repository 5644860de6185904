/* gex_EP_QueryBoundSegmentNB and gex_Segment_QueryBound: every combination of outputs, by team and
 * by pair, at once and later, from handlers too; all ways agree. */
#include "check.h"

enum { ASK = 175, DONE };
static volatile int done;

/* All outputs that `which` selects; the others stay as they are. */
static gex_Event_t query(gex_TM_t by, gex_Rank_t rank, int which, void **owner, void **local, uintptr_t *size,
                         gex_Flags_t flags) {
  *owner = owner;
  *local = local;
  *size = 12345;
  return gex_EP_QueryBoundSegmentNB(by, rank, which & 1 ? owner : NULL, which & 2 ? local : NULL,
                                    which & 4 ? size : NULL, flags);
}

static void all_ways(gex_Rank_t rank, int in_handler) {
  gex_TM_t by[2];
  void *owner, *local, *first_owner = NULL, *first_local = NULL;
  uintptr_t size, first_size = 0;
  int way, which, known = 0;
  by[0] = team;
  by[1] = gex_TM_Pair(ep, 0);
  for (way = 0; way < 2; ++way)
    for (which = 7; which >= 0; --which) {
      gex_Event_t event = query(by[way], rank, which, &owner, &local, &size, GEX_FLAG_IMMEDIATE);
      CHECK(event == GEX_EVENT_INVALID || event == GEX_EVENT_NO_OP);
      if (rank == me) CHECK_SAME(event, GEX_EVENT_INVALID);
      if (event == GEX_EVENT_NO_OP) {
        if (in_handler) return;
        event = query(by[way], rank, which, &owner, &local, &size, 0);
        CHECK(event != GEX_EVENT_NO_OP);
        gex_Event_Wait(event);
      }
      if (!known) {
        known = 1;
        first_owner = owner;
        first_local = local;
        first_size = size;
        CHECK_EQ(size, 2 * GASNET_PAGESIZE * (rank + 1));
      }
      CHECK_SAME(owner, which & 1 ? first_owner : (void *)&owner);
      CHECK_SAME(local, which & 2 ? first_local : (void *)&local);
      CHECK_EQ(size, which & 4 ? first_size : 12345);
      if (!in_handler) {
        event = query(by[way], rank, which, &owner, &local, &size, 0);
        CHECK(event != GEX_EVENT_NO_OP);
        if (rank == me) CHECK_SAME(event, GEX_EVENT_INVALID);
        gex_Event_Wait(event);
        CHECK_SAME(owner, which & 1 ? first_owner : (void *)&owner);
        CHECK_SAME(local, which & 2 ? first_local : (void *)&local);
        CHECK_EQ(size, which & 4 ? first_size : 12345);
        owner = &owner;
        local = &local;
        size = 12345;
        CHECK_OK(gex_Segment_QueryBound(by[way], rank, which & 1 ? &owner : NULL, which & 2 ? &local : NULL,
                                        which & 4 ? &size : NULL));
        CHECK_SAME(owner, which & 1 ? first_owner : (void *)&owner);
        CHECK_SAME(local, which & 2 ? first_local : (void *)&local);
        CHECK_EQ(size, which & 4 ? first_size : 12345);
      }
    }
}

static void ask(gex_Token_t token) {
  gex_Rank_t rank;
  for (rank = 0; rank < ranks; ++rank) all_ways(rank, 1);
  gex_AM_ReplyShort0(token, DONE, 0);
}
static void asked(gex_Token_t token) {
  (void)token;
  done = done + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
                            {DONE, (gex_AM_Fn_t)asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "done"}};
  gex_Rank_t rank;
  check_start(&argc, &argv, "bound_query");
  check_register(table, CHECK_COUNT(table));
  CHECK_OK(gex_Segment_Attach(&segment, team, 2 * (uintptr_t)GASNET_PAGESIZE * (me + 1)));
  for (rank = 0; rank < ranks; ++rank) all_ways(rank, 0);
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(gex_AM_RequestShort0(team, rank, ASK, 0), 0);
  GASNET_BLOCKUNTIL(done == (int)ranks);
  /* Many under way. */
  {
    enum { MANY = 100 };
    gex_Event_t events[MANY];
    void *owners[MANY];
    uintptr_t sizes[MANY];
    int i;
    for (i = 0; i < MANY; ++i)
      events[i] = gex_EP_QueryBoundSegmentNB(team, (gex_Rank_t)i % ranks, &owners[i], NULL, &sizes[i], 0);
    gex_Event_WaitAll(events, MANY, 0);
    for (i = 0; i < MANY; ++i) {
      CHECK_EQ(sizes[i], 2 * GASNET_PAGESIZE * ((uintptr_t)i % ranks + 1));
      CHECK_SAME(owners[i], owners[(gex_Rank_t)i % ranks]);
    }
  }
  return check_finish();
}
