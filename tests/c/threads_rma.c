/* Puts and gets of all forms by all threads at once, to memory that is mapped and to memory that is
 * not; implicit operations and access regions are a thread's own; an event may be waited for by
 * another thread than its operation's. */
#include "check_threads.h"

enum { PIECE = 700, MANY = 12, SLOT = PIECE * MANY, ROUNDS = 12 };

static char *bases[64];
static gex_TM_t bound_team;
static gex_EP_t second;

/* Operations that a thread starts and another one waits for. */
static struct {
  gex_Event_t events[MANY + 1];
  unsigned char out[SLOT], in[PIECE];
} handed[CHECK_MOST_THREADS];

static char *slot(gex_Rank_t rank, int thread) {
  return bases[rank] + ((uintptr_t)me * CHECK_MOST_THREADS + (unsigned)thread) * SLOT;
}
static uint32_t key_of(int thread, int round) { return ((uint32_t)me * CHECK_MOST_THREADS + (uint32_t)thread) * 1000u + (uint32_t)round; }

static void forms(gex_TM_t by, gex_Rank_t rank, int thread, int round, unsigned char *out, unsigned char *in) {
  gex_Event_t events[MANY], local;
  char *to = slot(rank, thread);
  uint32_t key = key_of(thread, round * 8);
  int i;
  /* Blocking. */
  check_fill(out, SLOT, key);
  CHECK_EQ(gex_RMA_PutBlocking(by, rank, to, out, SLOT, 0), 0);
  memset(in, 0, SLOT);
  CHECK_EQ(gex_RMA_GetBlocking(by, in, rank, to, SLOT, 0), 0);
  CHECK_FILLED(in, SLOT, key);
  /* With events. */
  check_fill(out, SLOT, key + 1);
  for (i = 0; i < MANY; ++i) events[i] = gex_RMA_PutNB(by, rank, to + i * PIECE, out + i * PIECE, PIECE, GEX_EVENT_DEFER, 0);
  gex_Event_WaitAll(events, MANY, 0);
  events[0] = gex_RMA_PutNB(by, rank, to, out, PIECE, &local, 0);
  gex_Event_Wait(local);
  gex_Event_Wait(events[0]);
  for (i = 0; i < MANY; ++i) events[i] = gex_RMA_GetNB(by, in + i * PIECE, rank, to + i * PIECE, PIECE, 0);
  for (i = MANY - 1; i >= 0; --i) gex_Event_Wait(events[i]);
  CHECK_FILLED(in, SLOT, key + 1);
  /* Implicit, and in a region. */
  check_fill(out, SLOT, key + 2);
  for (i = 0; i < MANY / 2; ++i) CHECK_EQ(gex_RMA_PutNBI(by, rank, to + i * PIECE, out + i * PIECE, PIECE, GEX_EVENT_DEFER, 0), 0);
  gex_NBI_BeginAccessRegion(0);
  for (; i < MANY; ++i) CHECK_EQ(gex_RMA_PutNBI(by, rank, to + i * PIECE, out + i * PIECE, PIECE, GEX_EVENT_DEFER, 0), 0);
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  gex_NBI_Wait(GEX_EC_PUT, 0);
  memset(in, 0, SLOT);
  for (i = 0; i < MANY; ++i) CHECK_EQ(gex_RMA_GetNBI(by, in + i * PIECE, rank, to + i * PIECE, PIECE, 0), 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(in, SLOT, key + 2);
  /* Values. */
  CHECK_EQ(gex_RMA_PutBlockingVal(by, rank, to + 8, key + 3, 4, 0), 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(by, rank, to + 8, 4, 0), key + 3);
}

static pthread_barrier_t stand;

/* Waits of one thread don't include operations of another. */
static void own_operations(int thread, unsigned char *out) {
  gex_Rank_t rank = check_next();
  char *to = slot(rank, thread);
  check_fill(out, SLOT, key_of(thread, 777));
  pthread_barrier_wait(&stand);
  if (thread % 2 == 0) {
    CHECK_EQ(gex_RMA_PutNBI(bound_team, rank, to, out, PIECE, GEX_EVENT_DEFER, 0), 0);
    gex_NBI_BeginAccessRegion(0);
    CHECK_EQ(gex_RMA_PutNBI(bound_team, rank, to + PIECE, out + PIECE, PIECE, GEX_EVENT_DEFER, 0), 0);
  }
  pthread_barrier_wait(&stand);
  if (thread % 2) {
    /* No thread polls here, so that operations that the others have started are under way, unless
     * their targets are this rank. */
    CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    gex_NBI_BeginAccessRegion(0);
    CHECK_SAME(gex_NBI_EndAccessRegion(0), GEX_EVENT_INVALID);
  }
  pthread_barrier_wait(&stand);
  if (thread % 2 == 0) {
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    gex_NBI_Wait(GEX_EC_PUT, 0);
  }
}

/* Each thread starts, and the next one waits. */
static void hand_over(int thread, int round) {
  gex_Rank_t rank = (gex_Rank_t)((me + (unsigned)round) % ranks);
  int i, other = (thread + 1) % threads;
  check_fill(handed[thread].out, SLOT, key_of(thread, round));
  for (i = 0; i < MANY - 1; ++i)
    handed[thread].events[i] =
        gex_RMA_PutNB(bound_team, rank, slot(rank, thread) + i * PIECE, handed[thread].out + i * PIECE, PIECE, GEX_EVENT_DEFER, 0);
  handed[thread].events[i] = gex_RMA_GetNB(bound_team, handed[thread].in, rank, slot(rank, thread) + i * PIECE, PIECE, 0);
  gex_NBI_BeginAccessRegion(0);
  CHECK_EQ(gex_RMA_GetNBI(bound_team, handed[thread].in, rank, slot(rank, thread) + i * PIECE, PIECE, 0), 0);
  handed[thread].events[MANY] = gex_NBI_EndAccessRegion(0);
  check_meet();
  if (round % 2) gex_Event_WaitAll(handed[other].events, MANY + 1, 0);
  else
    for (i = MANY; i >= 0; --i)
      while (gex_Event_Test(handed[other].events[i]) != GASNET_OK) gasnet_AMPoll();
  CHECK_EQ(gex_RMA_GetBlocking(team, handed[other].in, rank, slot(rank, other), PIECE, 0), 0);
  CHECK_FILLED(handed[other].in, PIECE, key_of(other, round));
  check_meet();
}

static void *work(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  int thread = self->index, round;
  unsigned char *out = (unsigned char *)malloc(2 * SLOT);
  CHECK(out != NULL);
  own_operations(thread, out);
  check_meet();
  for (round = 0; round < ROUNDS; ++round) {
    forms(team, (gex_Rank_t)(check_draw(self) % ranks), thread, 2 * round, out, out + SLOT);
    forms(bound_team, (gex_Rank_t)(check_draw(self) % ranks), thread, 2 * round + 1, out, out + SLOT);
  }
  check_meet();
  for (round = 0; round < ROUNDS; ++round) hand_over(thread, round);
  free(out);
  return NULL;
}

int main(int argc, char **argv) {
  gex_EP_t both[2];
  gex_Rank_t rank;
  check_start(&argc, &argv, "threads_rma");
  check_threads_of(argc, argv);
  CHECK(ranks <= CHECK_COUNT(bases));
  check_attach((uintptr_t)ranks * CHECK_MOST_THREADS * SLOT);
  /* The same memory by another endpoint is not mapped by others: operations on it complete
   * later. */
  CHECK_OK(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_EP_BindSegment(second, segment, 0));
  both[0] = ep;
  both[1] = second;
  CHECK_OK(gex_EP_PublishBoundSegment(team, both, 2, 0));
  bound_team = gex_TM_Pair(ep, gex_EP_QueryIndex(second));
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  CHECK_EQ(pthread_barrier_init(&stand, NULL, (unsigned)threads), 0);
  check_barrier();
  check_run(work);
  check_barrier();
  return check_finish();
}
