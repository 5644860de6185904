/* Where memory of ranks that share it lies in this process: what put and get need to reach it
 * without a call.
 *
 * A team begins with struct argonet_mapped_team, and right behind that is its table: one signed
 * 64-bit entry for each rank from 0 up to mapped_len. For a rank r below mapped_len and e = entry
 * r:
 *
 * e != ARGONET_MAPPED_NONE: (char *)p + (e - 1) is where this process has what the process of rank
 * r has at p, for p in the segment that r attached. e - 1 is the distance between the two, which
 * may be 0.
 *
 * e == ARGONET_MAPPED_NONE: this process cannot reach the memory of r; make a call.
 *
 * All entries are ARGONET_MAPPED_NONE as long as segments are not attached. mapped_len is 0 in what
 * gex_TM_Pair gives, and may be less than the size of any team. */
#ifndef ARGONET_MAPPED_H
#define ARGONET_MAPPED_H

#include <stddef.h>
#include <stdint.h>

/* "ARGN" in ASCII, little-endian. */
#define ARGONET_MAPPED_MAGIC 0x4e475241U

/* Changes with the layout of struct argonet_mapped_team and of the table, and with what they
 * mean. */
#define ARGONET_MAPPED_VERSION 3

/* Memory that has not been written has it too. */
#define ARGONET_MAPPED_NONE ((ptrdiff_t)0)

/* The beginning of a team. The library fills it before it hands the team out. */
struct argonet_mapped_team {
  uint32_t magic;      /* ARGONET_MAPPED_MAGIC */
  uint32_t version;    /* ARGONET_MAPPED_VERSION */
  uint32_t mapped_len; /* ranks that the table has, from 0 on */
  uint32_t rank;       /* this process's rank in the team */
  uint32_t size;       /* ranks of the team */
  uint32_t reserved;   /* 0 */
  uint64_t library[5]; /* the library's own */
};

/* The entry of a rank, or ARGONET_MAPPED_NONE. Any rank is allowed. The entry lies at a fixed
 * distance from the team, so that only one load comes before that of the neighbor's memory: the
 * pointer to the team's own excepted. */
static inline ptrdiff_t argonet_mapped_entry(const struct argonet_mapped_team *team, uint32_t rank)
{
  return __builtin_expect(rank < team->mapped_len, 1) ? ((const ptrdiff_t *)(team + 1))[rank] : ARGONET_MAPPED_NONE;
}

#endif
