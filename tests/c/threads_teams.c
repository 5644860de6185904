/* Teams of different parents made, used and destroyed at once by several threads: each thread of a
 * rank has a parent with the threads of the same number of the other ranks. */
#include "check_threads.h"

enum { ROUNDS = 60, HANDLER = 160 };

static gex_TM_t parents[CHECK_MOST_THREADS];
static gasnett_atomic_t got[CHECK_MOST_THREADS];

static void handler(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t to) {
  (void)token;
  CHECK_EQ(to, me);
  check_more(&got[thread]);
}

static void *run(void *argument) {
  struct check_thread *thread = (struct check_thread *)argument;
  gex_TM_t parent = parents[thread->index];
  gex_Rank_t size = gex_TM_QuerySize(parent), own = gex_TM_QueryRank(parent);
  int round, expected = 0;
  for (round = 0; round < ROUNDS; ++round) {
    int kind = (round + thread->index) % 3;
    gex_TM_t made = GEX_TM_INVALID;
    gex_Rank_t next;
    if (kind < 2) {
      gex_TM_Split(&made, parent, kind ? (int)(own % 2) : 5, round % 2 ? (int)own : -(int)own, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    } else {
      gex_EP_Location_t list[64];
      gex_Rank_t rank;
      for (rank = 0; rank < size; ++rank) {
        list[rank].gex_rank = (rank + (unsigned)round) % size;
        list[rank].gex_ep_index = 0;
      }
      gex_TM_Create(&made, 1, parent, list, size, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
      CHECK_EQ(gex_TM_QuerySize(made), size);
      CHECK_EQ((gex_TM_QueryRank(made) + (unsigned)round) % size, own);
    }
    CHECK_EQ(gex_TM_TranslateRankToJobrank(made, gex_TM_QueryRank(made)), me);
    /* Each member sends one message, and gets one. */
    next = (gex_TM_QueryRank(made) + 1) % gex_TM_QuerySize(made);
    CHECK_EQ(gex_AM_RequestShort2(made, next, HANDLER, 0, thread->index,
                                  (gex_AM_Arg_t)gex_TM_TranslateRankToJobrank(made, next)), 0);
    ++expected;
    GASNET_BLOCKUNTIL(check_count(&got[thread->index]) >= expected);
    if (round % 2) gex_Event_Wait(gex_Coll_BarrierNB(made, 0));
    CHECK_EQ(gex_TM_Destroy(made, NULL, 0), 0);
  }
  return NULL;
}

#if GASNET_MAXEPS > 1
/* A parent with two members in each process, for each of which a thread calls. */
enum { TWICE = 20 };
static gex_EP_t eps[2];
static gex_TM_t both[2], handles[2][2];

static void *member(void *argument) {
  int index = ((struct check_thread *)argument)->index;
  gex_TM_t half, parent = both[index];
  gex_EP_Location_t list[128];
  gex_Rank_t rank, size = gex_TM_QuerySize(parent);
  gex_TM_Split(&half, parent, index, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK_EQ(gex_TM_QuerySize(half), ranks);
  CHECK_EQ(gex_TM_QueryRank(half), ranks - 1 - me);
  CHECK_SAME(gex_TM_QueryEP(half), eps[index]);
  CHECK_EQ(gex_TM_TranslateRankToEP(half, 0, 0).gex_ep_index, gex_EP_QueryIndex(eps[index]));
  gex_Event_Wait(gex_Coll_BarrierNB(half, 0));
  CHECK_EQ(gex_TM_Destroy(half, NULL, 0), 0);
  /* The same list by both: the same handles. */
  for (rank = 0; rank < size; ++rank) list[rank] = gex_TM_TranslateRankToEP(parent, size - 1 - rank, 0);
  gex_TM_Create(handles[index], 2, parent, list, size, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
  gex_Event_Wait(gex_Coll_BarrierNB(handles[index][index], 0));
  return NULL;
}

static void members(void) {
  gex_EP_Location_t list[128];
  gex_Rank_t rank;
  int i, round;
  eps[0] = ep;
  CHECK_OK(gex_EP_Create(&eps[1], client, GEX_EP_CAPABILITY_RMA, 0));
  for (rank = 0; rank < 2 * ranks; ++rank) {
    list[rank].gex_rank = rank % ranks;
    list[rank].gex_ep_index = rank < ranks ? 0 : gex_EP_QueryIndex(eps[1]);
  }
  gex_TM_Create(both, 2, team, list, 2 * ranks, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  for (round = 0; round < TWICE; ++round) {
    for (i = 0; i < 2; ++i) check_begin(i, member);
    for (i = 0; i < 2; ++i) CHECK_EQ(pthread_join(check_each[i].handle, NULL), 0);
    for (i = 0; i < 2; ++i) {
      CHECK_SAME(handles[0][i], handles[1][i]);
      CHECK(handles[0][i] != both[i] && handles[0][i] != handles[0][1 - i]);
      /* From behind, further endpoints come first. */
      CHECK_SAME(gex_TM_QueryEP(handles[0][i]), eps[1 - i]);
      CHECK_EQ(gex_TM_Destroy(handles[0][i], NULL, 0), 0);
    }
  }
  for (i = 0; i < 2; ++i) CHECK_EQ(gex_TM_Destroy(both[i], NULL, 0), 0);
}
#endif

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{HANDLER, (gex_AM_Fn_t)handler, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "handler"}};
  int i;
  check_start(&argc, &argv, "threads_teams");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  for (i = 0; i < threads; ++i) {
    gasnett_atomic_set(&got[i], 0, 0);
    gex_TM_Split(&parents[i], team, 0, i % 2 ? (int)me : -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  }
  check_barrier();
  check_run(run);
  check_barrier();
#if GASNET_MAXEPS > 1
  members();
#endif
  for (i = 0; i < threads; ++i) {
    CHECK_EQ(check_count(&got[i]), ROUNDS);
    CHECK_EQ(gex_TM_Destroy(parents[i], NULL, 0), 0);
  }
  return check_finish();
}
