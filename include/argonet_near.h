/*
 * argonet_near.h: put and get of 8 bytes to a rank that shares memory, without a call.
 *
 * C99 and C++11 or newer, with gcc or clang. It stands alone: it needs no other header of argonet
 * and no library. The C API (gasnetex.h) is not here yet; this is the part of it whose layout
 * programs compile in.
 *
 * A team's public prefix (struct argonet_near_team) leads to a table of address deltas. For a rank
 * r with near_lo <= r < near_lo + near_len and d = delta[r - near_lo]:
 *
 *   d != 0   (char *)p + d is where this process sees, in the segment of rank r, the offset that
 *            p has in this process's own segment;
 *   d == 0   there is no such address (the rank itself, or a rank without a segment): make a call.
 *
 * The table reaches the part of each segment that was attached when it was made. Who made it
 * (argonet::raw::NearTable) tells how many bytes that is, and keeps it alive.
 *
 * Ordering: loads and stores are relaxed atomics of 8 bytes. They never tear; what orders them is
 * what synchronises the ranks (a barrier, a message).
 */
#ifndef ARGONET_NEAR_H
#define ARGONET_NEAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "ARGN" in ASCII, little-endian. */
#define ARGONET_NEAR_MAGIC UINT32_C(0x4e475241)

/* Changes with the layout of struct argonet_near_team and with the meaning of its fields. */
#define ARGONET_NEAR_VERSION UINT32_C(1)

/* The public beginning of a team. The library fills it; it never changes afterwards. */
struct argonet_near_team {
  uint32_t magic;         /* ARGONET_NEAR_MAGIC */
  uint32_t version;       /* ARGONET_NEAR_VERSION */
  uint32_t near_lo;       /* first rank of the team that the table has */
  uint32_t near_len;      /* ranks that the table has, from near_lo on */
  uint32_t rank;          /* this process's rank in the team */
  uint32_t size;          /* ranks of the team */
  const ptrdiff_t *delta; /* near_len address deltas */
};

/* An array of negative length, and so an error, if the condition is false: C99 has no better. */
#define ARGONET_NEAR_ASSERT(name, condition) typedef char argonet_near_assert_##name[(condition) ? 1 : -1]
ARGONET_NEAR_ASSERT(pointers, sizeof(void *) == 8 && sizeof(ptrdiff_t) == 8);
ARGONET_NEAR_ASSERT(size, sizeof(struct argonet_near_team) == 32);
ARGONET_NEAR_ASSERT(near_lo, offsetof(struct argonet_near_team, near_lo) == 8);
ARGONET_NEAR_ASSERT(rank, offsetof(struct argonet_near_team, rank) == 16);
ARGONET_NEAR_ASSERT(delta, offsetof(struct argonet_near_team, delta) == 24);

/* Whether the prefix is one that this header understands. Ask once, where the team is obtained. */
static inline int argonet_near_valid(const struct argonet_near_team *team) {
  return team->magic == ARGONET_NEAR_MAGIC && team->version == ARGONET_NEAR_VERSION;
}

/* The delta of a rank, 0 if there is none. Any rank is allowed. */
static inline ptrdiff_t argonet_near_delta(const struct argonet_near_team *team, uint32_t rank) {
  /* One comparison for both ends: a rank below near_lo wraps around. */
  const uint32_t i = rank - team->near_lo;
  return i < team->near_len ? team->delta[i] : 0;
}

/*
 * Stores a value in the segment of a rank, at the offset that `own` has in this process's segment.
 * `own` is aligned to 8 bytes and within the table's reach. Returns 1 if it is done, and 0 if
 * nothing was done and a call is needed.
 */
static inline int argonet_near_put8(const struct argonet_near_team *team, uint32_t rank, void *own,
                                    uint64_t value) {
  const ptrdiff_t delta = argonet_near_delta(team, rank);
  if (__builtin_expect(delta == 0, 0)) return 0;
  __atomic_store_n((uint64_t *)(void *)((char *)own + delta), value, __ATOMIC_RELAXED);
  return 1;
}

/*
 * Loads a value from the segment of a rank, from the offset that `own` has in this process's
 * segment, into *value. Conditions and result as for argonet_near_put8.
 */
static inline int argonet_near_get8(const struct argonet_near_team *team, uint32_t rank,
                                    const void *own, uint64_t *value) {
  const ptrdiff_t delta = argonet_near_delta(team, rank);
  if (__builtin_expect(delta == 0, 0)) return 0;
  *value = __atomic_load_n((const uint64_t *)(const void *)((const char *)own + delta), __ATOMIC_RELAXED);
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif
