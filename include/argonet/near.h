/* Where memory of ranks that share it lies in this process: what put and get need to reach it without a call.
 *
 * A team begins with struct argonet_near_team, which leads to a table of address deltas. For a rank r with
 * near_lo <= r < near_lo + near_len and d = delta[r - near_lo]:
 *
 *   d != ARGONET_NEAR_NONE   (char *)p + d is where this process has what the process of rank r has at p, for p in the
 *                            segment that r attached;
 *   d == ARGONET_NEAR_NONE   this process cannot reach the memory of r: make a call.
 *
 * near_len is 0 as long as segments are not attached, and in what gex_TM_Pair gives. */
#ifndef ARGONET_NEAR_H
#define ARGONET_NEAR_H

#include <stddef.h>
#include <stdint.h>

/* "ARGN" in ASCII, little-endian. */
#define ARGONET_NEAR_MAGIC UINT32_C(0x4e475241)

/* Changes with the layout of struct argonet_near_team and with the meaning of its fields. */
#define ARGONET_NEAR_VERSION 2

/* No memory is an odd distance away from itself. */
#define ARGONET_NEAR_NONE ((ptrdiff_t)-1)

/* The beginning of a team. The library fills it; delta and near_len change once, when segments are attached. */
struct argonet_near_team {
  uint32_t magic;         /* ARGONET_NEAR_MAGIC */
  uint32_t version;       /* ARGONET_NEAR_VERSION */
  uint32_t near_lo;       /* first rank of the team that the table has */
  uint32_t near_len;      /* ranks that the table has, from near_lo on */
  uint32_t rank;          /* this process's rank in the team */
  uint32_t size;          /* ranks of the team */
  const ptrdiff_t *delta; /* near_len address deltas */
};

/* The delta of a rank, or ARGONET_NEAR_NONE. Any rank is allowed. */
static inline ptrdiff_t argonet_near_delta(const struct argonet_near_team *team, uint32_t rank)
{
  /* One comparison for both ends: a rank below near_lo wraps around. */
  const uint32_t i = rank - team->near_lo;
  return __builtin_expect(i < team->near_len, 1) ? team->delta[i] : ARGONET_NEAR_NONE;
}

#endif
