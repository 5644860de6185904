/* Put and get in all forms: every size from 0 to 64 and around powers of two and pages, every
 * misalignment, to each rank and to the own segment, with every way of local completion; nothing
 * beside the destination is touched. */
#include "check.h"

enum { GUARD = 32 };
#define AREA ((size_t)1 << 17)

static char *target;    /* Where this rank works in the other's segment. */
static gex_Rank_t peer;
static unsigned char *local_source, *local_copy;

/* The ways to put, each spoiling the source as early as it may. */
enum { BLOCKING, NB_NOW, NB_DEFER, NB_EVENT, NBI_NOW, NBI_DEFER, NBI_GROUP, PUTS };

static void put(int way, char *to, unsigned char *from, size_t bytes) {
  gex_Event_t root = GEX_EVENT_INVALID, leaf = GEX_EVENT_INVALID;
  switch (way) {
    case BLOCKING:
      CHECK_EQ(gex_RMA_PutBlocking(team, peer, to, from, bytes, 0), 0);
      break;
    case NB_NOW:
      root = gex_RMA_PutNB(team, peer, to, from, bytes, GEX_EVENT_NOW, 0);
      memset(from, 0x11, bytes);
      CHECK(root != GEX_EVENT_NO_OP);
      gex_Event_Wait(root);
      break;
    case NB_DEFER:
      root = gex_RMA_PutNB(team, peer, to, from, bytes, GEX_EVENT_DEFER, 0);
      gex_Event_Wait(root);
      break;
    case NB_EVENT:
      root = gex_RMA_PutNB(team, peer, to, from, bytes, &leaf, 0);
      CHECK(leaf != GEX_EVENT_NO_OP);
      gex_Event_Wait(leaf);
      memset(from, 0x22, bytes);
      gex_Event_Wait(root);
      break;
    case NBI_NOW:
      CHECK_EQ(gex_RMA_PutNBI(team, peer, to, from, bytes, GEX_EVENT_NOW, 0), 0);
      memset(from, 0x33, bytes);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      break;
    case NBI_DEFER:
      CHECK_EQ(gex_RMA_PutNBI(team, peer, to, from, bytes, GEX_EVENT_DEFER, 0), 0);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      break;
    default:
      CHECK_EQ(gex_RMA_PutNBI(team, peer, to, from, bytes, GEX_EVENT_GROUP, 0), 0);
      gex_NBI_Wait(GEX_EC_LC, 0);
      memset(from, 0x44, bytes);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      break;
  }
  memset(from, 0x55, bytes);
}

enum { GET_BLOCKING, GET_NB, GET_NBI, GETS };

static void get(int way, unsigned char *to, char *from, size_t bytes) {
  gex_Event_t root;
  switch (way) {
    case GET_BLOCKING:
      CHECK_EQ(gex_RMA_GetBlocking(team, to, peer, from, bytes, 0), 0);
      break;
    case GET_NB:
      root = gex_RMA_GetNB(team, to, peer, from, bytes, 0);
      CHECK(root != GEX_EVENT_NO_OP);
      gex_Event_Wait(root);
      break;
    default:
      CHECK_EQ(gex_RMA_GetNBI(team, to, peer, from, bytes, 0), 0);
      gex_NBI_Wait(GEX_EC_GET, 0);
      break;
  }
}

/* There and back, with all that lies around compared. */
static void transfer(size_t bytes, size_t to_shift, size_t from_shift, int put_way, int get_way) {
  static uint32_t key = 0;
  unsigned char *from = local_source + from_shift;
  unsigned char *back = local_copy + GUARD + to_shift;
  char *to = target + GUARD + to_shift;
  char *around = target + to_shift;
  ++key;
  CHECK_EQ(gex_RMA_PutBlocking(team, peer, around, local_source + AREA, bytes + 2 * GUARD, 0), 0);
  check_fill(from, bytes, key);
  put(put_way, to, from, bytes);
  memset(local_copy + to_shift, 0xa5, bytes + 2 * GUARD);
  get(get_way, back, to, bytes);
  CHECK_ALL(back - GUARD, GUARD, 0xa5);
  CHECK_FILLED(back, bytes, key);
  CHECK_ALL(back + bytes, GUARD, 0xa5);
  /* The whole, guards included. */
  get(GET_BLOCKING, back - GUARD, around, bytes + 2 * GUARD);
  CHECK_ALL(back - GUARD, GUARD, 0x77);
  CHECK_FILLED(back, bytes, key);
  CHECK_ALL(back + bytes, GUARD, 0x77);
}

static void sizes(void) {
  size_t bytes;
  int way, off;
  memset(local_source + AREA, 0x77, AREA);
  for (way = 0; way < PUTS; ++way) {
    for (bytes = 0; bytes <= 64; ++bytes) transfer(bytes, bytes % 9, way, way, way % GETS);
    for (bytes = 128; bytes < AREA / 2; bytes *= 2)
      for (off = -1; off <= 1; ++off) transfer(bytes + off, way, 0, way, (way + off + 3) % GETS);
    for (off = -1; off <= 1; ++off) transfer(3 * GASNET_PAGESIZE + off, 1, 2, way, GET_NB);
    transfer(AREA - 4 * GUARD, 3, 5, way, GET_NBI);
  }
}

static void misalignments(void) {
  size_t to, from, bytes;
  for (to = 0; to < 16; ++to)
    for (from = 0; from < 16; ++from)
      for (bytes = 1; bytes < 40; bytes += 1 + bytes % 5)
        transfer(bytes, to, from, (int)((to + bytes) % PUTS), (int)((from + bytes) % GETS));
}

static void at_random(void) {
  const int rounds = (int)check_trips(300, 100);
  int i;
  for (i = 0; i < rounds; ++i)
    transfer(check_below(i % 8 ? 300 : AREA / 2), check_below(64), check_below(64), (int)check_below(PUTS),
             (int)check_below(GETS));
}

/* Values: the low bytes are written, and read back with zeroes above. */
static void values(void) {
  size_t bytes, at;
  const int rounds = (int)check_trips(40, 5);
  int way, i;
  for (i = 0; i < rounds; ++i)
    for (bytes = 1; bytes <= SIZEOF_GEX_RMA_VALUE_T; ++bytes)
      for (way = 0; way < 3; ++way) {
        gex_RMA_Value_t value = i == 0 ? ~(gex_RMA_Value_t)0 : i == 1 ? 0 : (gex_RMA_Value_t)check_random();
        gex_RMA_Value_t kept = value & (~(gex_RMA_Value_t)0 >> (8 * (SIZEOF_GEX_RMA_VALUE_T - bytes)));
        unsigned char around[24 + 2 * SIZEOF_GEX_RMA_VALUE_T], bits[SIZEOF_GEX_RMA_VALUE_T];
        char *to;
        at = check_below(8);
        to = target + 8 + at;
        memset(around, 0x99, sizeof around);
        CHECK_EQ(gex_RMA_PutBlocking(team, peer, target, around, sizeof around, 0), 0);
        if (way == 0) CHECK_EQ(gex_RMA_PutBlockingVal(team, peer, to, value, bytes, 0), 0);
        if (way == 1) gex_Event_Wait(gex_RMA_PutNBVal(team, peer, to, value, bytes, 0));
        if (way == 2) {
          CHECK_EQ(gex_RMA_PutNBIVal(team, peer, to, value, bytes, 0), 0);
          gex_NBI_Wait(GEX_EC_PUT, 0);
        }
        CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, to, bytes, 0), kept);
        CHECK_EQ(gex_RMA_GetBlocking(team, around, peer, target, sizeof around, 0), 0);
        CHECK_ALL(around, 8 + at, 0x99);
        CHECK_ALL(around + 8 + at + bytes, sizeof around - 8 - at - bytes, 0x99);
        /* The bytes in memory are those of the number, in this machine's order. */
        memcpy(bits, &value, sizeof bits);
#if PLATFORM_ARCH_BIG_ENDIAN
        CHECK(memcmp(around + 8 + at, bits + SIZEOF_GEX_RMA_VALUE_T - bytes, bytes) == 0);
#else
        CHECK(memcmp(around + 8 + at, bits, bytes) == 0);
#endif
      }
}

/* IMMEDIATE: done or nothing; repeated with polls between, each is done some time. */
static void immediate(void) {
  unsigned char bytes[200];
  gex_Event_t event;
  check_fill(bytes, sizeof bytes, 5);
  while (gex_RMA_PutBlocking(team, peer, target, bytes, sizeof bytes, GEX_FLAG_IMMEDIATE)) gasnet_AMPoll();
  memset(bytes, 0, sizeof bytes);
  while (gex_RMA_GetBlocking(team, bytes, peer, target, sizeof bytes, GEX_FLAG_IMMEDIATE)) gasnet_AMPoll();
  CHECK_FILLED(bytes, sizeof bytes, 5);
  check_fill(bytes, sizeof bytes, 6);
  while ((event = gex_RMA_PutNB(team, peer, target, bytes, sizeof bytes, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE)) ==
         GEX_EVENT_NO_OP)
    gasnet_AMPoll();
  gex_Event_Wait(event);
  memset(bytes, 0, sizeof bytes);
  while ((event = gex_RMA_GetNB(team, bytes, peer, target, sizeof bytes, GEX_FLAG_IMMEDIATE)) == GEX_EVENT_NO_OP)
    gasnet_AMPoll();
  gex_Event_Wait(event);
  CHECK_FILLED(bytes, sizeof bytes, 6);
  while (gex_RMA_PutBlockingVal(team, peer, target, 0x1234, 2, GEX_FLAG_IMMEDIATE)) gasnet_AMPoll();
  while (gex_RMA_PutNBIVal(team, peer, target + 2, 0x5678, 2, GEX_FLAG_IMMEDIATE)) gasnet_AMPoll();
  while (gex_RMA_GetNBI(team, bytes, peer, target + 4, 8, GEX_FLAG_IMMEDIATE)) gasnet_AMPoll();
  gex_NBI_Wait(GEX_EC_ALL, 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, target, 2, 0), 0x1234);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, target + 2, 2, 0), 0x5678);
}

/* Asserting that a rank is not this one or no neighbor, where that is so. */
static void never(void) {
  gex_RankInfo_t *near_ranks = NULL;
  gex_Rank_t count = 0, i;
  int near_by = 0;
  unsigned char bytes[100];
  gex_System_QueryNbrhdInfo(&near_ranks, &count, NULL);
  for (i = 0; i < count; ++i) near_by |= near_ranks[i].gex_jobrank == peer;
  if (peer == me) return;
  check_fill(bytes, sizeof bytes, 9);
  CHECK_EQ(gex_RMA_PutBlocking(team, peer, target, bytes, sizeof bytes, GEX_FLAG_PEER_NEVER_SELF), 0);
  memset(bytes, 0, sizeof bytes);
  CHECK_EQ(gex_RMA_GetBlocking(team, bytes, peer, target, sizeof bytes,
                               near_by ? GEX_FLAG_PEER_NEVER_SELF : GEX_FLAG_PEER_NEVER_NBRHD), 0);
  CHECK_FILLED(bytes, sizeof bytes, 9);
}

/* From and to read-only memory, the stack, the heap, and the own segment. */
static void places(char *own) {
  static const char text[] = "constant data, which lies in pages that are not writable";
  char stack[sizeof text];
  CHECK_EQ(gex_RMA_PutBlocking(team, peer, target, text, sizeof text, 0), 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, stack, peer, target, sizeof text, 0), 0);
  CHECK(memcmp(stack, text, sizeof text) == 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, own, peer, target, sizeof text, 0), 0);
  CHECK(memcmp(own, text, sizeof text) == 0);
  memset(own, 'x', 50);
  gex_Event_Wait(gex_RMA_PutNB(team, peer, target, own, 50, GEX_EVENT_NOW, 0));
  CHECK_EQ(gex_RMA_GetBlocking(team, stack, peer, target, 50, 0), 0);
  CHECK(memcmp(own, stack, 50) == 0);
}

/* The last byte of a segment belongs to it. */
static void last_bytes(void) {
  char *base = NULL;
  uintptr_t size = 0;
  check_bound(team, peer, &base, NULL, &size);
  CHECK_EQ(gex_RMA_PutBlockingVal(team, peer, base + size - 1 - (me + ranks) % 64, me + 1, 1, 0), 0);
  check_barrier();
  CHECK_EQ(gex_RMA_GetBlockingVal(team, peer, base + size - 1 - (me + ranks) % 64, 1, 0), me + 1);
  check_barrier();
}

int main(int argc, char **argv) {
  gex_Rank_t step;
  check_start(&argc, &argv, "rma");
  check_seed(me);
  check_attach((ranks + 1) * AREA + AREA);
  local_source = (unsigned char *)malloc(2 * AREA);
  local_copy = (unsigned char *)malloc(2 * AREA);
  CHECK(local_source && local_copy);
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    peer = (gex_Rank_t)((me + step) % ranks);
    target = check_base(peer) + me * AREA;
    sizes();
    misalignments();
    at_random();
    values();
    immediate();
    never();
    places(check_base(me) + ranks * AREA);
    last_bytes();
    check_barrier();
  }
  free(local_source);
  free(local_copy);
  return check_finish();
}
