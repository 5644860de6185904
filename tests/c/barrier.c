/* The barriers with names, by every way to enter and leave them: each row of the table of matches
 * and mismatches, with wait, with try and in one call; and the nameless barriers of teams, eight
 * under way and retired out of order. */
#include "check.h"
#include <sched.h>

/* How a rank leaves. A rank that tries yields in between, as there may be more ranks than
 * processors. */
enum { WAIT, TRY, WHOLE, WAYS };
static int way;

/* Enters with one name and flags, leaves with another; the result. */
static int pass(int in, int in_flags, int out, int out_flags) {
  int result;
  if (way == WHOLE && in == out && in_flags == out_flags) return gasnet_barrier(in, in_flags);
  gasnet_barrier_notify(in, in_flags);
  if (way == WAIT) return gasnet_barrier_wait(out, out_flags);
  while ((result = gasnet_barrier_try(out, out_flags)) == GASNET_ERR_NOT_READY) sched_yield();
  return result;
}

static void result_is_named(int id) {
  int result = ~id;
  CHECK_EQ(gasnet_barrier_result(&result), 0);
  CHECK_EQ(result, id);
  result = ~id;
  CHECK_EQ(gasnet_barrier_result(&result), 0);
  CHECK_EQ(result, id);
}
static void result_is_nameless(void) {
  int result = 0;
  CHECK(gasnet_barrier_result(&result) != 0);
}

static const int names[] = {0, 1, -1, (int)0xcafef00d, INT32_MAX, INT32_MIN, 42};

static void matches(int name) {
  const int none = GASNET_BARRIERFLAG_ANONYMOUS, unnamed = GASNET_BARRIERFLAG_UNNAMED;
  gex_Rank_t one;
  /* The same name everywhere. */
  CHECK_OK(pass(name, 0, name, 0));
  result_is_named(name);
  /* No name anywhere; numbers beside the flag do not count. */
  CHECK_OK(pass((int)me * 7, none, (int)me * 11, none));
  result_is_nameless();
  CHECK_OK(pass((int)me * 7, none, name, 0));
  result_is_nameless();
  CHECK_OK(pass(name, unnamed, name, unnamed));
  result_is_nameless();
  for (one = 0; one < ranks; ++one) {
    /* One has the name, all others none; and the other way about. */
    int mine = me == one;
    CHECK_OK(pass(mine ? name : name + 1, mine ? 0 : none, mine ? name : name + 1, mine ? 0 : none));
    result_is_named(name);
    if (ranks > 1) {
      CHECK_OK(pass(mine ? name + 1 : name, mine ? none : 0, mine ? name + 1 : name, mine ? none : 0));
      result_is_named(name);
    }
    /* Ranks that came without a name may leave by the right one; ranks with it must not leave
     * without. */
    CHECK_OK(pass(mine ? name : 0, mine ? 0 : none, name, 0));
    result_is_named(name);
  }
}

static void mismatches(int name) {
  const int none = GASNET_BARRIERFLAG_ANONYMOUS, bad = GASNET_BARRIERFLAG_MISMATCH;
  gex_Rank_t one;
  for (one = 0; one < ranks; ++one) {
    int mine = me == one;
    /* One says that it does not match. */
    CHECK_EQ(pass(name, mine ? bad : 0, name, mine ? bad : 0), GASNET_ERR_BARRIER_MISMATCH);
    CHECK_EQ(pass(name, mine ? bad : none, name, mine ? bad : none), GASNET_ERR_BARRIER_MISMATCH);
    if (ranks > 1) {
      /* One has another name than the rest. */
      int other = mine ? (int)((unsigned)name + 1) : name;
      CHECK_EQ(pass(other, 0, other, 0), GASNET_ERR_BARRIER_MISMATCH);
    }
    if (ranks > 2) {
      /* One has none, two of the others differ. */
      int other = me == (one + 1) % ranks ? (int)((unsigned)name + 5) : name;
      CHECK_EQ(pass(other, mine ? none : 0, other, mine ? none : 0), GASNET_ERR_BARRIER_MISMATCH);
    }
    /* One leaves by another name than it gave: it hears of it, the others need not. */
    {
      int result = pass(name, 0, mine ? (int)((unsigned)name + 1) : name, 0);
      if (mine) CHECK_EQ(result, GASNET_ERR_BARRIER_MISMATCH);
      else CHECK(result == GASNET_OK || result == GASNET_ERR_BARRIER_MISMATCH);
    }
    if (ranks > 1) {
      /* One came without a name and leaves by a wrong one. */
      int result = pass(name, mine ? none : 0, mine ? (int)((unsigned)name + 1) : name, 0);
      if (mine) CHECK_EQ(result, GASNET_ERR_BARRIER_MISMATCH);
      else CHECK(result == GASNET_OK || result == GASNET_ERR_BARRIER_MISMATCH);
    }
    /* A mismatch leaves no trace in the next one. */
    CHECK_OK(pass(name, 0, name, 0));
    result_is_named(name);
  }
}

/* No rank leaves before all have come. */
static void not_before_all(void) {
  gex_Rank_t late;
  char *base = check_base(me);
  for (late = 0; late < ranks && ranks > 1; ++late) {
    gex_Rank_t rank;
    volatile char *go = base + late;
    *go = 0;
    check_barrier();
    if (me == late) {
      for (rank = 0; rank < ranks; ++rank)
        CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, check_base(rank) + late, 1, 1, 0), 0);
      CHECK_OK(gasnet_barrier(5, 0));
    } else {
      int result;
      gasnet_barrier_notify(5, 0);
      result = gasnet_barrier_try(5, 0);
      /* Too early, or the late rank came meanwhile; it has announced that before. */
      while (result == GASNET_ERR_NOT_READY) {
        sched_yield();
        result = gasnet_barrier_try(5, 0);
      }
      CHECK_OK(result);
      CHECK_EQ(*go, 1);
    }
    check_barrier();
  }
}

static void of_teams(void) {
  static const int orders[4][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 0, 7, 1, 6, 2, 5, 4}, {4, 4, 4, 4, 4, 4, 4, 4}};
  gex_Event_t events[8];
  int round, i, by_test;
  for (round = 0; round < 200; ++round) {
    int how = (int)((me + (gex_Rank_t)round) % 4);
    by_test = (int)check_below(2);
    for (i = 0; i < 8; ++i) {
      events[i] = gex_Coll_BarrierNB(team, 0);
      CHECK(events[i] != GEX_EVENT_NO_OP);
    }
    if (how == 3) {
      gex_Event_WaitAll(events, 8, 0);
      continue;
    }
    for (i = 0; i < 8; ++i) {
      gex_Event_t event = events[orders[how][i]];
      if (by_test)
        while (gex_Event_Test(event)) {
          sched_yield();
          gasnet_AMPoll();
        }
      else
        gex_Event_Wait(event);
    }
  }
}

int main(int argc, char **argv) {
  size_t i;
  int round;
  check_start(&argc, &argv, "barrier");
  check_seed(me);
  /* Before any segment. */
  of_teams();
  way = WAIT;
  matches(3);
  check_attach(GASNET_PAGESIZE);
  for (way = 0; way < WAYS; ++way)
    for (i = 0; i < CHECK_COUNT(names); ++i) {
      matches(names[i]);
      mismatches(names[i]);
    }
  /* Each rank in its own way. */
  for (round = 0; round < 30; ++round) {
    way = (int)((me + (gex_Rank_t)round) % WAYS);
    matches(names[round % CHECK_COUNT(names)]);
    mismatches(names[round % CHECK_COUNT(names)]);
  }
  check_barrier();
  not_before_all();
  of_teams();
  /* By turns with those of teams, which they do not meet. */
  for (round = 0; round < 100; ++round) {
    CHECK_OK(gasnet_barrier(round, 0));
    check_barrier();
  }
  return check_finish();
}
