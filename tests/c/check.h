/* Common part of the programs of this directory: starting and ending a job, checks that end it,
 * patterns and random numbers.
 *
 * A program that ends well prints "PASS name" last, from rank 0, when all ranks have come to its
 * end. */
#ifndef ARGONET_TESTS_CHECK_H
#define ARGONET_TESTS_CHECK_H

#include <gasnetex.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gex_Client_t client = GEX_CLIENT_INVALID;
static gex_EP_t ep = GEX_EP_INVALID;
static gex_TM_t team = GEX_TM_INVALID;
static gex_Segment_t segment = GEX_SEGMENT_INVALID;
static gex_Rank_t me = 0;
static gex_Rank_t ranks = 0;
static const char *check_name = "unnamed";

/* Ends the job; `what` is the condition or the values. Legal in handlers, as gasnet_exit is. */
static inline void check_fail(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: rank %u of %u: %s\n", file, line, (unsigned)me, (unsigned)ranks, what);
  fflush(stderr);
  gasnet_exit(1);
}

static inline void check_equal(const char *file, int line, const char *what, int64_t is, int64_t should) {
  if (is != should) {
    char text[400];
    snprintf(text, sizeof text, "%s is %lld (0x%llx), should be %lld (0x%llx)", what, (long long)is,
             (unsigned long long)is, (long long)should, (unsigned long long)should);
    check_fail(file, line, text);
  }
}

#define CHECK(condition) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, #condition))
/* For integers of any type. */
#define CHECK_EQ(is, should) check_equal(__FILE__, __LINE__, #is, (int64_t)(is), (int64_t)(should))
/* For pointers, data or opaque. */
#define CHECK_SAME(is, should) \
  check_equal(__FILE__, __LINE__, #is, (int64_t)(intptr_t)(is), (int64_t)(intptr_t)(should))
#define CHECK_OK(call) CHECK_EQ(call, GASNET_OK)

#define CHECK_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A call whose arguments come from macros; they are expanded before the call is looked at. */
#define CHECK_CALL(function, ...) function(__VA_ARGS__)

static inline void check_barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

/* Starts the job with the given flags; the objects above are set afterwards. */
static inline void check_start_with(int *argc, char ***argv, const char *name, gex_Flags_t flags) {
  check_name = name;
  CHECK_OK(gex_Client_Init(&client, &ep, &team, "ARGONET_CHECK", argc, argv, flags));
  me = gex_TM_QueryRank(team);
  ranks = gex_TM_QuerySize(team);
}

static inline void check_start(int *argc, char ***argv, const char *name) {
  check_start_with(argc, argv, name, 0);
}

/* The bound segment of a rank, as the endpoint reports it; any output may be NULL. */
static inline void check_bound(gex_TM_t of, gex_Rank_t rank, char **owner, char **local, uintptr_t *size) {
  void *owner_address = NULL;
  void *local_address = NULL;
  uintptr_t length = 0;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(of, rank, &owner_address, &local_address, &length, 0));
  if (owner) *owner = (char *)owner_address;
  if (local) *local = (char *)local_address;
  if (size) *size = length;
}

/* A rank's segment, by its own address. */
static inline char *check_base(gex_Rank_t rank) {
  char *owner = NULL;
  uintptr_t size = 0;
  check_bound(team, rank, &owner, NULL, &size);
  CHECK(owner != NULL && size > 0);
  return owner;
}

/* Attaches a segment of at least `bytes`, the same on all ranks. */
static inline void check_attach(uintptr_t bytes) {
  uintptr_t page = GASNET_PAGESIZE;
  uintptr_t size = (bytes + page - 1) / page * page;
  CHECK(size <= gasnet_getMaxLocalSegmentSize());
  CHECK_OK(gex_Segment_Attach(&segment, team, size));
}

static inline void check_register(gex_AM_Entry_t *table, size_t count) {
  CHECK_OK(gex_EP_RegisterHandlers(ep, table, count));
}

/* Whether a rank of the job shares memory with this one. */
static inline int check_is_neighbor(gex_Rank_t jobrank) {
  gex_RankInfo_t *near_ranks = NULL;
  gex_Rank_t count = 0, i;
  gex_System_QueryNbrhdInfo(&near_ranks, &count, NULL);
  for (i = 0; i < count && near_ranks[i].gex_jobrank != jobrank; ++i) {}
  return i < count;
}

/* Whether every rank reaches every other by memory, so that memory changes without a call of its
 * owner. */
static inline int check_all_neighbors(void) {
  gex_RankInfo_t *near_ranks = NULL;
  gex_Rank_t count = 0;
  gex_System_QueryNbrhdInfo(&near_ranks, &count, NULL);
  return count == ranks;
}

/* Number of repetitions of an operation with a trip to a peer each time: a trip over a network
 * takes a hundred times as long. */
static inline unsigned check_trips(unsigned by_memory, unsigned by_network) {
  return check_all_neighbors() ? by_memory : by_network;
}

/* A rank beside this one; this one itself in a job of one. */
static inline gex_Rank_t check_next(void) { return (gex_Rank_t)((me + 1) % ranks); }
static inline gex_Rank_t check_previous(void) { return (gex_Rank_t)((me + ranks - 1) % ranks); }

/* xorshift: the same numbers in every run for one seed. */
static uint64_t check_random_state = 0x9e3779b97f4a7c15u;
static inline void check_seed(uint64_t seed) {
  check_random_state = (seed + 1) * 0x9e3779b97f4a7c15u;
  if (!check_random_state) check_random_state = 1;
}
static inline uint64_t check_random(void) {
  uint64_t x = check_random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return check_random_state = x;
}
/* A number below `end`. */
static inline size_t check_below(size_t end) { return (size_t)((check_random() >> 11) % end); }

/* Bytes that depend on their place and on a key, so that nothing shifted or stale passes. */
static inline unsigned char check_byte(uint32_t key, size_t at) {
  uint32_t mixed = (uint32_t)(key * 2654435761u + at * 40503u + (at >> 8) * 97u);
  return (unsigned char)(mixed >> 7);
}
static inline void check_fill(void *to, size_t bytes, uint32_t key) {
  size_t at;
  for (at = 0; at < bytes; ++at) ((unsigned char *)to)[at] = check_byte(key, at);
}
static inline void check_filled_at(const char *file, int line, const void *from, size_t bytes, uint32_t key) {
  size_t at;
  for (at = 0; at < bytes; ++at) {
    if (((const unsigned char *)from)[at] != check_byte(key, at)) {
      char text[160];
      snprintf(text, sizeof text, "byte %lu of %lu is 0x%02x, should be 0x%02x (key %lu)", (unsigned long)at,
               (unsigned long)bytes, ((const unsigned char *)from)[at], check_byte(key, at), (unsigned long)key);
      check_fail(file, line, text);
    }
  }
}
#define CHECK_FILLED(from, bytes, key) check_filled_at(__FILE__, __LINE__, from, bytes, key)
static inline void check_all_at(const char *file, int line, const void *from, size_t bytes, int value) {
  size_t at;
  for (at = 0; at < bytes; ++at)
    check_equal(file, line, "a byte that should stay unchanged", ((const unsigned char *)from)[at],
                (unsigned char)value);
}
/* `bytes` bytes that hold all the same value. */
#define CHECK_ALL(from, bytes, value) check_all_at(__FILE__, __LINE__, from, bytes, value)

/* The end of each program that ends well. */
static inline int check_finish(void) {
  fflush(stdout);
  check_barrier();
  if (me == 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  check_barrier();
  gasnet_exit(0);
  return 2;
}

#endif
