/* Thousands of threads that live shortly and leave things behind: operations under way, an access
 * region that is open, a payload that no thread has committed. None of it stays: not the slot of a
 * thread, not memory. The driver allows few threads. */
#include "check_threads.h"

enum { LIVES = 1600, WARM = 100, BYTES = 512, PING = 200, PONG };
/* Memory that the system may keep of stacks and heaps; and over connections, whose buffers grow
 * once, with the first long burst. This is 130 and 350 bytes a life. */
enum { SLACK_KB = 192, SLACK_KB_OF_CONNECTIONS = 512 };

static char *bases[64];
static gex_TM_t bound_team;
static gasnett_atomic_t pongs[CHECK_MOST_THREADS];

static void ping(gex_Token_t token, gex_AM_Arg_t thread) { gex_AM_ReplyShort1(token, PONG, 0, thread); }
static void pong(gex_Token_t token, gex_AM_Arg_t thread) {
  (void)token;
  check_more(&pongs[thread]);
}

/* Memory of this process that no other process shares. */
static long private_kb(void) {
  char line[200];
  long found = 0, value;
  FILE *file = fopen("/proc/self/status", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "RssAnon: %ld", &value) == 1) found = value;
  fclose(file);
  return found;
}

static unsigned char source[BYTES];

static void *live(void *argument) {
  struct check_thread *self = (struct check_thread *)argument;
  uint64_t draw = check_draw(self);
  gex_Rank_t rank = (gex_Rank_t)(draw % ranks);
  char *to = bases[rank] + ((uintptr_t)me * CHECK_MOST_THREADS + (unsigned)self->index) * BYTES;
  int before = check_count(&pongs[self->index]);
  /* Operations under way, for which no thread waits: their memory is static. */
  CHECK_EQ(gex_RMA_PutNBI(bound_team, rank, to, source, BYTES, GEX_EVENT_DEFER, 0), 0);
  if (draw & 0x100) gex_NBI_Wait(GEX_EC_PUT, 0);
  if (draw & 0x200) {
    gex_NBI_BeginAccessRegion(0);
    CHECK_EQ(gex_RMA_PutNBI(bound_team, rank, to, source, BYTES, GEX_EVENT_DEFER, 0), 0);
  }
  if (draw & 0x400) {
    CHECK_EQ(gex_AM_RequestShort1(team, rank, PING, 0, self->index), 0);
    GASNET_BLOCKUNTIL(check_count(&pongs[self->index]) > before);
  }
  /* Debug builds say that this is wrong. */
#if !GASNET_DEBUG
  if (draw & 0x800) CHECK(gex_AM_PrepareRequestMedium(team, rank, NULL, 100, 100, NULL, 0, 0) != NULL);
#endif
  return NULL;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping"},
                            {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong"}};
  gex_EP_t both[2];
  gex_Rank_t rank;
  long warm = 0;
  int turn, i;
  check_start(&argc, &argv, "threads_churn");
  check_threads_of(argc, argv);
  check_register(table, CHECK_COUNT(table));
  check_attach((uintptr_t)ranks * CHECK_MOST_THREADS * BYTES);
  CHECK_OK(gex_EP_Create(&both[1], client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_EP_BindSegment(both[1], segment, 0));
  both[0] = ep;
  CHECK_OK(gex_EP_PublishBoundSegment(team, both, 2, 0));
  bound_team = gex_TM_Pair(ep, gex_EP_QueryIndex(both[1]));
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  /* Others than the one that began, which counts too. */
  CHECK(gex_System_QueryMaxThreads() < LIVES);
  for (turn = 0; turn < LIVES; ++turn) {
    for (i = 0; i < threads; ++i) check_begin(i, live);
    for (i = 0; i < threads; ++i) CHECK_EQ(pthread_join(check_each[i].handle, NULL), 0);
    /* Polls of other threads complete the operations that they have left. */
    gasnet_AMPoll();
    if (turn == WARM) warm = private_kb();
  }
  check_barrier();
  /* ThreadSanitizer keeps notes of each thread there was. */
#ifdef CHECK_WITH_THREAD_SANITIZER
  warm += 1 << 20;
#endif
  if (private_kb() > warm + (long)(check_all_neighbors() ? SLACK_KB : SLACK_KB_OF_CONNECTIONS)) {
    fprintf(stderr, "%ld KB of private memory after %d turns, %ld KB after %d\n", warm, WARM, private_kb(), LIVES);
    check_fail(__FILE__, __LINE__, "threads leave something behind");
  }
  return check_finish();
}
