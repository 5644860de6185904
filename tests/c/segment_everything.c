/* GASNET_SEGMENT_EVERYTHING: queries, and put, get, values and long messages to static data,
 * constants, stack, heap and mapped memory of every rank, memory that comes and goes, offsets, and
 * a target that does not call the library. With the argument "messages" the kernel copies nothing
 * between the ranks. */
/* Memory that is mapped, and process_vm_readv. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"
#include <gasnet_coll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#if !GASNET_SEGMENT_EVERYTHING || defined(GASNET_SEGMENT_FAST) || defined(GASNET_SEGMENT_LARGE)
#error this program is about GASNET_SEGMENT_EVERYTHING
#endif
#if defined(GASNET_PSHM) || defined(GASNETI_PSHM_ENABLED)
#error memory in no segment is not shared
#endif

enum { ECHO = 150, BACK, MOST = 200000, AT = 5, RANKS = 8 };
enum { STATIC, INITIALIZED, HEAP, STACK, MAPPED, AREAS };

static const char constant[] = "a constant, which lies in pages that are not writable, and is read all the same";
static char static_area[RANKS * MOST], initialized_area[RANKS * MOST] = {1};
static volatile char waited_for;

/* Addresses that a rank publishes to the others. */
typedef struct {
  char *area[AREAS];
  const char *constant;
  volatile char *waited_for;
  unsigned char *reply;
} Places;
static Places places[RANKS];
static unsigned char bytes[MOST + AT], copy[MOST + AT], reply_area[MOST];
static volatile int answers;

/* The part of an area that belongs to a rank. */
static char *part(gex_Rank_t owner, int area, gex_Rank_t user) { return places[owner].area[area] + (size_t)user * MOST; }

static void exchange(Places mine) {
  gex_Rank_t root;
  for (root = 0; root < ranks; ++root)
    gex_Event_Wait(gex_Coll_BroadcastNB(team, root, &places[root], &mine, sizeof mine, 0));
}

static void questions(void) {
  gasnet_seginfo_t table[RANKS];
  gasnet_nodeinfo_t nodes[RANKS];
  gex_RankInfo_t *info = NULL;
  gex_Rank_t rank, count = 0, index = 77, sets = 0;
  CHECK_EQ(gasnet_getMaxLocalSegmentSize(), (uintptr_t)-1);
  CHECK_EQ(gasnet_getMaxGlobalSegmentSize(), (uintptr_t)-1);
  CHECK_OK(gasnet_getSegmentInfo(table, (int)ranks));
  CHECK_OK(gasnet_getNodeInfo(nodes, (int)ranks));
  CHECK_SAME(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
  for (rank = 0; rank < ranks; ++rank) {
    void *owner = &rank;
    uintptr_t size = 99;
    CHECK_SAME(table[rank].addr, NULL);
    CHECK_EQ(table[rank].size, (uintptr_t)-1);
    CHECK_EQ(nodes[rank].supernode, rank);
    CHECK_EQ(nodes[rank].host, 0);
    /* There is no segment that a query could report. */
    check_bound(team, rank, NULL, NULL, &size);
    CHECK_EQ(size, 0);
    CHECK(gex_Segment_QueryBound(team, rank, &owner, NULL, NULL) != 0);
    CHECK_SAME(owner, &rank);
  }
  gex_System_QueryNbrhdInfo(&info, &count, &index);
  CHECK_EQ(count, 1);
  CHECK_EQ(index, 0);
  CHECK_EQ(info[0].gex_jobrank, me);
  gex_System_QueryHostInfo(&info, &count, &index);
  CHECK_EQ(count, ranks);
  CHECK_EQ(index, me);
  gex_System_QueryMyPosition(&sets, &index, NULL, NULL);
  CHECK_EQ(sets, ranks);
  CHECK_EQ(index, me);
}

static void transfers(gex_Rank_t to, int area, size_t size, uint32_t key) {
  char *there = part(to, area, me) + AT;
  gex_Event_t event, leaf = GEX_EVENT_INVALID;
  check_fill(bytes, size, key);
  switch (key % 4) {
    case 0: CHECK_EQ(gex_RMA_PutBlocking(team, to, there, bytes, size, 0), 0); break;
    case 1:
      event = gex_RMA_PutNB(team, to, there, bytes, size, &leaf, GEX_FLAG_PEER_SEG_BOUND);
      gex_Event_Wait(leaf);
      memset(bytes, 1, size);
      gex_Event_Wait(event);
      break;
    case 2:
      CHECK_EQ(gex_RMA_PutNBI(team, to, there, bytes, size, GEX_EVENT_NOW, 0), 0);
      memset(bytes, 2, size);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      break;
    default:
      while ((event = gex_RMA_PutNB(team, to, there, bytes, size, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE)) ==
             GEX_EVENT_NO_OP)
        gasnet_AMPoll();
      gex_Event_Wait(event);
      break;
  }
  memset(copy, 0, size);
  /* All memory is bound, from address 0: offsets are addresses. */
  if (key % 3 == 0) CHECK_EQ(gex_RMA_GetBlocking(team, copy, to, there, size, 0), 0);
  if (key % 3 == 1) gex_Event_Wait(gex_RMA_GetNB(team, copy, to, there, size, GEX_FLAG_PEER_SEG_OFFSET));
  if (key % 3 == 2) {
    CHECK_EQ(gex_RMA_GetNBI(team, copy, to, there, size, GEX_FLAG_SELF_SEG_OFFSET), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
  }
  CHECK_FILLED(copy, size, key);
}

static void values(gex_Rank_t to, int area) {
  char *there = part(to, area, me) + 8;
  size_t size;
  for (size = 1; size <= 8; ++size) {
    gex_RMA_Value_t value = (gex_RMA_Value_t)check_random();
    gex_RMA_Value_t kept = value & (~(gex_RMA_Value_t)0 >> (8 * (8 - size)));
    uint64_t word = 0;
    CHECK_EQ(gex_RMA_PutBlockingVal(team, to, there + size, value, size, 0), 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, to, there + size, size, 0), kept);
    gex_Event_Wait(gex_RMA_PutNBVal(team, to, there + 32, ~value, size, 0));
    CHECK_EQ(gex_RMA_PutNBIVal(team, to, there + 32, value, size, 0), 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK_EQ(gex_RMA_GetBlocking(team, &word, to, there + 32, size, 0), 0);
    CHECK_EQ(word, kept);
    /* A size that compilers know. */
    CHECK_EQ(gex_RMA_PutBlocking(team, to, there + 40, &value, 8, 0), 0);
    CHECK_EQ(gex_RMA_GetBlocking(team, &word, to, there + 40, 8, 0), 0);
    CHECK_EQ(word, value);
  }
}

/* A long to memory of any kind is answered by one to static memory. */
static void echo(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t area, gex_AM_Arg_t key) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK_SAME(data, part(me, area, info.gex_srcrank) + 1);
  CHECK_FILLED(data, size, (uint32_t)key);
  if (key % 2) {
    gex_AM_ReplyLong1(token, BACK, data, size, places[info.gex_srcrank].reply, GEX_EVENT_NOW, 0, key);
  } else {
    gex_AM_SrcDesc_t made = gex_AM_PrepareReplyLong(token, NULL, size, size, NULL, NULL, 0, 1);
    memcpy(gex_AM_SrcDescAddr(made), data, size);
    gex_AM_CommitReplyLong1(made, BACK, size, places[info.gex_srcrank].reply, key);
  }
}
static void back(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t key) {
  (void)token;
  CHECK_SAME(data, reply_area);
  CHECK_FILLED(data, size, (uint32_t)key);
  answers = answers + 1;
}

static void longs(gex_Rank_t to, int area, size_t size, gex_AM_Arg_t key) {
  char *there = part(to, area, me) + 1;
  int before = answers;
  check_fill(bytes, size, (uint32_t)key);
  if (key % 3) {
    CHECK_EQ(gex_AM_RequestLong2(team, to, ECHO, bytes, size, there, GEX_EVENT_NOW, 0, area, key), 0);
    memset(bytes, 3, size);
  } else {
    gex_AM_SrcDesc_t made = gex_AM_PrepareRequestLong(team, to, NULL, size, size, there, NULL, 0, 2);
    memcpy(gex_AM_SrcDescAddr(made), bytes, size);
    gex_AM_CommitRequestLong2(made, ECHO, size, there, area, key);
  }
  GASNET_BLOCKUNTIL(answers == before + 1);
}

/* Memory that did not exist when anything was started, at addresses where other memory was. */
static void comes_and_goes(void) {
  static char *mapped[RANKS];
  const size_t size = 16 * GASNET_PAGESIZE;
  int round;
  for (round = 0; round < 4; ++round) {
    void *map = mmap(round ? mapped[me] : NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gex_Rank_t root, to = check_next();
    CHECK(map != MAP_FAILED);
    for (root = 0; root < ranks; ++root)
      gex_Event_Wait(gex_Coll_BroadcastNB(team, root, &mapped[root], &map, sizeof map, 0));
    check_fill(bytes, size, (uint32_t)round);
    CHECK_EQ(gex_RMA_PutBlocking(team, to, mapped[to], bytes, size, 0), 0);
    check_barrier();
    CHECK_FILLED(map, size, (uint32_t)round);
    check_barrier();
    CHECK_EQ(munmap(map, size), 0);
  }
}

/* The kernel copies without the target's help: it does nothing but look at its memory. */
static void unattended(void) {
  char byte = 0;
  struct iovec local, remote;
  local.iov_base = &byte;
  remote.iov_base = (void *)(uintptr_t)&waited_for;
  local.iov_len = remote.iov_len = 1;
  check_barrier();
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) return;
  if (me + 1 < ranks) {
    char one = 1;
    CHECK_EQ(gex_RMA_PutBlocking(team, me + 1, (void *)(uintptr_t)places[me + 1].waited_for, &one, 1, 0), 0);
  }
  if (me > 0) {
    while (!waited_for) { }
  }
  check_barrier();
}

int main(int argc, char **argv) {
  static const size_t sizes[] = {1, 8, 1000, 65536, 70000, MOST - 2 * AT};
  gex_AM_Entry_t table[] = {
      {ECHO, (gex_AM_Fn_t)echo, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, "echo"},
      {BACK, (gex_AM_Fn_t)back, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "back"}};
  char stack_area[RANKS * MOST];
  int by_messages = argc > 1 && strcmp(argv[1], "messages") == 0, area, key = 0;
  Places mine;
  gex_Rank_t peer;
  size_t i;
  if (by_messages) setenv("ARGONET_CROSS_MEMORY", "0", 1);
  check_start(&argc, &argv, "segment_everything");
  check_register(table, CHECK_COUNT(table));
  CHECK(ranks <= RANKS);
  questions();
  /* The size means nothing; the call may be left out, which ranks cannot see of each other. */
  segment = (gex_Segment_t)&mine;
  CHECK_OK(gex_Segment_Attach(&segment, team, 1));
  CHECK_SAME(segment, GEX_SEGMENT_INVALID);
  questions();
  memset(stack_area, 0, sizeof stack_area);
  memset(&mine, 0, sizeof mine);
  mine.area[STATIC] = static_area;
  mine.area[INITIALIZED] = initialized_area;
  mine.area[HEAP] = (char *)malloc(RANKS * MOST);
  mine.area[STACK] = stack_area;
  mine.area[MAPPED] = (char *)mmap(NULL, RANKS * MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mine.constant = constant;
  mine.waited_for = &waited_for;
  mine.reply = reply_area;
  CHECK(mine.area[HEAP] != NULL && (void *)mine.area[MAPPED] != MAP_FAILED);
  exchange(mine);
  for (peer = 0; peer < ranks; ++peer) {
    gex_Rank_t to = (gex_Rank_t)((me + peer) % ranks);
    for (area = 0; area < AREAS; ++area) {
      for (i = 0; i < CHECK_COUNT(sizes); ++i) transfers(to, area, sizes[i], (uint32_t)++key);
      values(to, area);
      longs(to, area, 0, ++key);
      for (i = 0; i < CHECK_COUNT(sizes); ++i) longs(to, area, sizes[i], ++key);
    }
    CHECK_EQ(gex_RMA_GetBlocking(team, copy, to, (void *)(uintptr_t)places[to].constant, sizeof constant, 0), 0);
    CHECK(memcmp(copy, constant, sizeof constant) == 0);
  }
  check_barrier();
  comes_and_goes();
  if (!by_messages) unattended();
  return check_finish();
}
