/* One or more ranks that put and get around a ring, or make the one mistake that the argument
 * names, which ends the job. */
#define _POSIX_C_SOURCE 200809L
#include "parts.h"
#include "argonet/variant.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(condition)                                                                                                \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                          \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { SEGMENT = 1 << 20, HALF = SEGMENT / 2, LARGE = 100000 };

static gex_TM_t tm;
static gex_EP_t ep;
static gex_Rank_t me, ranks;
static char *mine, *theirs;

static void meet(void) { gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); }

/* Every rank reports in the next one's memory that it has come. */
static void words(void)
{
  volatile uint64_t *flag = (volatile uint64_t *)mine;
  MUST(gex_RMA_PutBlockingVal(tm, (me + 1) % ranks, theirs, 7, 8, 0) == 0);
  meet();
  GASNET_BLOCKUNTIL(*flag == 7);
  meet();
}

/* Memory that is bound to another endpoint and mapped nowhere else. */
static void far(gex_Client_t client)
{
  static uint64_t memory[4096], source[1024], target[1024];
  const gex_Rank_t next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  const gex_Flags_t flags = GEX_FLAG_PEER_SEG_OFFSET;
  gex_EP_t other;
  gex_Segment_t segment;
  gex_Event_t leaf = GEX_EVENT_NO_OP, both[2];
  gex_TM_t pair;
  size_t i;
  MUST(gex_EP_Create(&other, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  MUST(gex_Segment_Create(&segment, client, memory, sizeof memory, GEX_MK_HOST, 0) == GASNET_OK);
  MUST(gex_EP_BindSegment(other, segment, 0) == GASNET_OK);
  meet();
  pair = gex_TM_Pair(ep, gex_EP_QueryIndex(other));
  for (i = 0; i < 1024; i++) source[i] = i * 3 + me;
  both[0] = gex_RMA_PutNB(pair, next, (void *)(uintptr_t)8, source, sizeof source, &leaf, flags);
  both[1] = leaf;
  gex_Event_WaitAll(both, 2, 0);
  MUST(both[0] == GEX_EVENT_INVALID && both[1] == GEX_EVENT_INVALID);
  gex_NBI_BeginAccessRegion(0);
  MUST(gex_RMA_PutNBI(pair, next, NULL, &source[5], 8, GEX_EVENT_NOW, flags) == 0);
  MUST(gex_RMA_PutNBIVal(pair, next, (void *)(uintptr_t)16384, 77, 8, flags) == 0);
  both[0] = gex_NBI_EndAccessRegion(0);
  while (gex_Event_Test(both[0]) != GASNET_OK) gasnet_AMPoll();
  MUST(gex_RMA_GetNBI(pair, target, next, (void *)(uintptr_t)8, sizeof target, flags) == 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  MUST(memcmp(target, source, sizeof target) == 0);
  MUST(gex_RMA_GetBlockingVal(pair, next, (void *)(uintptr_t)16384, 8, flags) == 77);
  meet();
  MUST(memory[0] == 15 + before && memory[1024] == 1023 * 3 + before);
  meet();
}

static void check_bytes(const char *bytes, size_t count, int seed)
{
  size_t i;
  for (i = 0; i < count; i++) MUST(bytes[i] == (char)(i * 7 + (size_t)seed));
}

static void transfers(void)
{
  static char source[LARGE], target[LARGE];
  static const size_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4096, LARGE};
  const gex_Rank_t next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  const gex_Flags_t offset = GEX_FLAG_PEER_SEG_OFFSET;
  char *at = theirs + 64;
  size_t i, k;
  for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const size_t n = sizes[k];
    gex_Event_t leaf = GEX_EVENT_NO_OP, root;
    for (i = 0; i < n; i++) source[i] = (char)(i * 7 + me + k);
    switch (k % 6) {
    case 0: MUST(gex_RMA_PutBlocking(tm, next, at, source, n, 0) == 0); break;
    case 1: MUST(gex_RMA_PutNBI(tm, next, at, source, n, GEX_EVENT_GROUP, GEX_FLAG_IMMEDIATE) == 0); break;
    case 2:
      root = gex_RMA_PutNB(tm, next, at, source, n, &leaf, 0);
      gex_Event_Wait(leaf);
      gex_Event_Wait(root);
      break;
    case 3: MUST(gex_RMA_PutBlocking(tm, next, (void *)(uintptr_t)64, source, n, offset) == 0); break;
    case 4:
      memcpy(mine + HALF, source, n);
      MUST(gex_RMA_PutBlocking(tm, next, at, (void *)(uintptr_t)HALF, n, GEX_FLAG_SELF_SEG_OFFSET) == 0);
      break;
    default: gex_Event_Wait(gex_RMA_PutNB(gex_TM_Pair(ep, 0), next, at, source, n, GEX_EVENT_DEFER, 0));
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    meet();
    check_bytes(mine + 64, n, (int)(before + k));
    memset(target, 0, n);
    MUST(gex_RMA_GetBlocking(tm, target, next, at, n, 0) == 0);
    check_bytes(target, n, (int)(me + k));
    memset(target, 0, n);
    MUST(gex_RMA_GetNBI(tm, target, next, (void *)(uintptr_t)64, n, offset) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    check_bytes(target, n, (int)(me + k));
    memset(target, 0, n);
    root = gex_RMA_GetNB(gex_TM_Pair(ep, 0), target, next, at, n, 0);
    MUST(gex_Event_Test(root) == GASNET_OK);
    check_bytes(target, n, (int)(me + k));
    meet();
  }
}

static void values(void)
{
  const gex_Rank_t next = (me + 1) % ranks;
  const uint64_t value = UINT64_C(0xf1f2f3f4f5f6f7f8);
  size_t n;
  for (n = 1; n <= 8; n++) {
    const uint64_t low = n == 8 ? value : value & ((UINT64_C(1) << (8 * n)) - 1);
    uint64_t seen = 0;
    memset(mine + 64, 0, 16);
    meet();
    switch (n % 3) {
    case 0: MUST(gex_RMA_PutBlockingVal(tm, next, theirs + 64, value, n, 0) == 0); break;
    case 1: MUST(gex_RMA_PutNBIVal(tm, next, theirs + 64, value, n, 0) == 0); break;
    default: gex_Event_Wait(gex_RMA_PutNBVal(tm, next, theirs + 64, value, n, 0));
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    MUST(gex_RMA_GetBlockingVal(tm, next, theirs + 64, n, 0) == low);
    MUST(gex_RMA_GetBlockingVal(gex_TM_Pair(ep, 0), next, theirs + 64, 8, 0) == low);
    meet();
    memcpy(&seen, mine + 64, 8);
    MUST(seen == low);
    meet();
  }
}

static int calls;
static int once(void) { return ++calls; }

static void events(void)
{
  gex_Event_t none[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
  void *nowhere = (void *)(uintptr_t)1;
  MUST(gex_Event_TestSome(none, 3, 0) == GASNET_OK && gex_Event_TestAll(none, 3, 0) == GASNET_OK);
  MUST(gex_Event_TestSome(NULL, 0, 0) == GASNET_OK && gex_Event_TestAll(NULL, 0, 0) == GASNET_OK);
  gex_Event_WaitSome(none, 3, 0);
  gex_Event_WaitAll(NULL, 0, 0);
  MUST(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC) == GEX_EVENT_INVALID);
  gex_NBI_BeginAccessRegion(0);
  MUST(gex_RMA_PutNBI(tm, me, mine + 64, &none, 8, GEX_EVENT_DEFER, 0) == 0);
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  MUST(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
  MUST(gex_RMA_PutBlocking(tm, me, nowhere, NULL, 0, 0) == 0);
  MUST(gex_RMA_GetNB(tm, NULL, 0, nowhere, 0, 0) == GEX_EVENT_INVALID);
  GASNET_BLOCKUNTIL(once());
  MUST(calls == 1);
  GASNET_BLOCKUNTIL(once() > 4);
  MUST(calls == 5);
  MUST(gasnet_AMPoll() == GASNET_OK);
  MUST(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK && gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK);
  MUST(gasnet_set_waitmode(3) == GASNET_ERR_BAD_ARG);
}

static gex_HSL_t lock = GEX_HSL_INITIALIZER;

#if GASNET_PAR
static int counter;

static void *count(void *unused)
{
  int i;
  for (i = 0; i < 20000; i++) {
    gex_HSL_Lock(&lock);
    counter++;
    gex_HSL_Unlock(&lock);
  }
  return unused;
}

static void *try_it(void *result)
{
  *(int *)result = gex_HSL_Trylock(&lock);
  return result;
}
#endif

static void locks(void)
{
  gex_HSL_t other;
  /* Not what it is when it lives. */
  memset(&other, 0x5a, sizeof other);
  gex_HSL_Init(&other);
  gex_HSL_Lock(&lock);
  MUST(gex_HSL_Trylock(&other) == GASNET_OK);
  gex_HSL_Unlock(&other);
  gex_HSL_Unlock(&lock);
  gex_HSL_Destroy(&other);
#if GASNET_PAR
  {
    pthread_t threads[3];
    int i, result = GASNET_OK;
    for (i = 0; i < 3; i++) MUST(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (i = 0; i < 3; i++) MUST(pthread_join(threads[i], NULL) == 0);
    MUST(counter == 60000);
    gex_HSL_Lock(&lock);
    MUST(pthread_create(&threads[0], NULL, try_it, &result) == 0);
    MUST(pthread_join(threads[0], NULL) == 0);
    MUST(result == GASNET_ERR_NOT_READY);
    gex_HSL_Unlock(&lock);
  }
#endif
}

/* One mistake. None returns. */
static void mistake(const char *which)
{
  static gex_HSL_t other = GEX_HSL_INITIALIZER;
  uint64_t value = 0;
  gex_Event_t stale = (gex_Event_t)(uintptr_t)0x8000002, some = GEX_EVENT_NO_OP;
#define IS(name) (strcmp(which, name) == 0)
  if (IS("rank")) gex_RMA_PutBlocking(tm, ranks, theirs, &value, 8, 0);
  if (IS("outside")) gex_RMA_GetBlocking(tm, &value, me, mine + SEGMENT - 4, 8, 0);
  if (IS("offset")) gex_RMA_PutNBI(tm, me, (void *)(uintptr_t)SEGMENT, &value, 8, GEX_EVENT_NOW, GEX_FLAG_PEER_SEG_OFFSET);
  if (IS("own")) gex_RMA_PutNB(tm, me, mine, (void *)(uintptr_t)SEGMENT, 8, GEX_EVENT_NOW, GEX_FLAG_SELF_SEG_OFFSET);
  if (IS("overlap")) gex_RMA_PutBlocking(tm, me, mine + 64, mine + 68, 8, 0);
  if (IS("null")) gex_RMA_GetNBI(tm, NULL, me, mine, 8, 0);
  if (IS("group")) gex_RMA_PutNB(tm, me, mine, &value, 8, GEX_EVENT_GROUP, 0);
  if (IS("leaf")) gex_RMA_PutNBI(tm, me, mine, &value, 8, &some, 0);
  if (IS("lc null")) gex_RMA_PutNB(tm, me, mine, &value, 8, NULL, 0);
  if (IS("self")) gex_RMA_PutBlocking(tm, me, mine, &value, 8, GEX_FLAG_PEER_NEVER_SELF);
  if (IS("neighbor")) gex_RMA_GetBlockingVal(tm, (me + 1) % ranks, theirs, 8, GEX_FLAG_PEER_NEVER_NBRHD);
  if (IS("flags")) gex_RMA_PutBlockingVal(tm, me, mine, 0, 8, GEX_FLAG_AM_PREPARE_LEAST_CLIENT);
  if (IS("value")) gex_RMA_PutNBIVal(tm, me, mine, 0, 9, 0);
  if (IS("stale")) gex_Event_Test(stale);
  if (IS("no-op")) gex_Event_Wait(GEX_EVENT_NO_OP);
  if (IS("several")) gex_Event_WaitAll(&some, 1, 0);
  if (IS("array")) gex_Event_TestSome(NULL, 1, 0);
  if (IS("event flags")) gex_Event_TestAll(&some, 1, 1);
  if (IS("category")) gex_NBI_Wait(64, 0);
  if (IS("leaves")) gex_Event_QueryLeaf(stale, GEX_EC_ALL);
  if (IS("region")) {
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_Test(GEX_EC_ALL, 0);
  }
  if (IS("no region")) gex_NBI_EndAccessRegion(0);
  if (IS("init")) gex_HSL_Init(&lock);
  if (IS("unlock")) gex_HSL_Unlock(&lock);
  if (IS("relock") || IS("poll") || IS("put") || IS("wait") || IS("order") || IS("destroy held")) gex_HSL_Lock(&lock);
  if (IS("relock")) gex_HSL_Lock(&lock);
  if (IS("poll")) gasnet_AMPoll();
  if (IS("put")) gex_RMA_PutBlocking(tm, me, mine, &value, 8, 0);
  if (IS("wait")) gex_Event_Wait(GEX_EVENT_INVALID);
  if (IS("destroy held")) gex_HSL_Destroy(&lock);
  if (IS("order")) {
    gex_HSL_Lock(&other);
    gex_HSL_Unlock(&lock);
  }
  if (IS("destroyed")) {
    gex_HSL_Destroy(&other);
    gex_HSL_Destroy(&other);
  }
  if (IS("long")) {
    const struct timespec time = {0, 600000000};
    gex_HSL_Lock(&lock);
    nanosleep(&time, NULL);
    gex_HSL_Unlock(&lock);
    gasnet_exit(0);
  }
  MUST(!"the mistake was not noticed");
}

int main(int argc, char **argv)
{
  static const struct argonet_variant own = {ARGONET_VARIANT_VERSION, ARGONET_THREADS_NUMBER, ARGONET_DEBUG,
                                             ARGONET_SEGMENT_NUMBER, "smp", ARGONET_VARIANT_ERRORS};
  gex_Client_t client;
  gex_Segment_t segment;
  void *base = NULL;
  MUST(argonet_client_init(&own, &client, &ep, &tm, "ONE_SIDED", &argc, &argv, 0) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  ranks = gex_TM_QuerySize(tm);
  MUST(gex_Segment_Attach(&segment, tm, SEGMENT) == GASNET_OK);
  mine = (char *)gex_Segment_QueryAddr(segment);
  MUST(gex_Segment_QueryBound(tm, (me + 1) % ranks, &base, NULL, NULL) == 0);
  theirs = (char *)base;
  if (argc > 1) mistake(argv[1]);
  words();
  transfers();
  values();
  events();
  locks();
  far(client);
  gasnet_exit(0);
  return 0;
}
