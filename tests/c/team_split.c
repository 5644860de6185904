/* gex_TM_Split against a model that sees what all ranks choose: random colors and keys, ranks that
 * join nothing, splits of splits; sizes, ranks and translations in both directions; queries for
 * scratch memory, which make nothing. */
#include "check.h"
#include <limits.h>

enum { ROUNDS = 30, COLORS = 3, SCRATCH = 192 };

/* Choice of one rank of a parent. */
struct choice {
  int joins, color, key;
};

static int a_key(void) {
  switch (check_below(6)) {
  case 0: return INT_MIN;
  case 1: return INT_MAX;
  case 2: return -(int)check_below(5);
  default: return (int)check_below(5);
  }
}

/* The members of the team of `own` in the model: their ranks in the parent, by rank. */
static gex_Rank_t model(const struct choice *all, gex_Rank_t size, gex_Rank_t own, gex_Rank_t *members) {
  gex_Rank_t count = 0, rank, at;
  for (rank = 0; rank < size; ++rank) {
    if (!all[rank].joins || all[rank].color != all[own].color) continue;
    for (at = count; at > 0 && all[members[at - 1]].key > all[rank].key; --at) members[at] = members[at - 1];
    members[at] = rank;
    ++count;
  }
  return count;
}

/* The team is that of the job ranks, in their order. */
static void is_team(gex_TM_t tm, const gex_Rank_t *jobranks, gex_Rank_t count, gex_Flags_t flags) {
  gex_Rank_t rank, other;
  int mark;
  CHECK_EQ(gex_TM_QuerySize(tm), count);
  CHECK(gex_TM_QueryRank(tm) < count);
  CHECK_EQ(jobranks[gex_TM_QueryRank(tm)], me);
  CHECK_SAME(gex_TM_QueryClient(tm), client);
  CHECK_SAME(gex_TM_QueryEP(tm), ep);
  CHECK_EQ(gex_TM_QueryFlags(tm), flags);
  CHECK_SAME(gex_TM_QueryCData(tm), NULL);
  gex_TM_SetCData(tm, &mark);
  CHECK_SAME(gex_TM_QueryCData(tm), &mark);
  for (rank = 0; rank < count; ++rank) {
    gex_EP_Location_t place = gex_TM_TranslateRankToEP(tm, rank, 0);
    CHECK_EQ(gex_TM_TranslateRankToJobrank(tm, rank), jobranks[rank]);
    CHECK_EQ(place.gex_rank, jobranks[rank]);
    CHECK_EQ(place.gex_ep_index, 0);
  }
  for (other = 0; other < ranks; ++other) {
    for (rank = 0; rank < count && jobranks[rank] != other; ++rank) {}
    CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, other), rank < count ? rank : GEX_RANK_INVALID);
  }
}

/* Splits a parent as all its ranks know that all choose; the new team, or GEX_TM_INVALID. */
static gex_TM_t split(gex_TM_t parent, const gex_Rank_t *of, gex_Rank_t size, uint64_t seed, int wants, char *scratch) {
  struct choice all[64];
  gex_Rank_t members[64], jobranks[64], count, rank, own = gex_TM_QueryRank(parent);
  gex_Flags_t flags;
  gex_TM_t made = parent;
  gex_TM_t *place;
  size_t bytes;
  check_seed(seed);
  for (rank = 0; rank < size; ++rank) {
    all[rank].joins = wants || check_below(8) > 0;
    all[rank].color = check_below(2) ? (int)check_below(COLORS) : INT_MAX;
    all[rank].key = a_key();
  }
  flags = check_below(2) ? GEX_FLAG_TM_NO_SCRATCH : 0;
  place = all[own].joins ? &made : NULL;
  bytes = gex_TM_Split(place, parent, all[own].color, all[own].key, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
  CHECK_SAME(made, parent);
  CHECK_EQ(bytes > 0, place != NULL);
  CHECK(bytes <= SCRATCH / 2);
  /* Sizes other than the recommended one will do. */
  if (check_below(2)) bytes = 1 + check_below(SCRATCH / 2);
  gex_TM_Split(place, parent, all[own].color, all[own].key, scratch, bytes, flags);
  if (!place) {
    CHECK_SAME(made, parent);
    return GEX_TM_INVALID;
  }
  CHECK(made != parent && made != GEX_TM_INVALID);
  count = model(all, size, own, members);
  for (rank = 0; rank < count; ++rank) jobranks[rank] = of[members[rank]];
  is_team(made, jobranks, count, flags);
  CHECK_EQ(members[gex_TM_QueryRank(made)], own);
  gex_Event_Wait(gex_Coll_BarrierNB(made, 0));
  return made;
}

static void destroy(gex_TM_t tm, const char *scratch, gex_Flags_t flags) {
  int has = !(gex_TM_QueryFlags(tm) & GEX_FLAG_TM_NO_SCRATCH);
  gex_Memvec_t back;
  back.gex_addr = &back;
  back.gex_len = 12345;
  CHECK_EQ(gex_TM_Destroy(tm, &back, flags) != 0, has);
  if (has) {
    uintptr_t base = flags & GEX_FLAG_SCRATCH_SEG_OFFSET ? (uintptr_t)gex_Segment_QueryAddr(segment) : 0;
    CHECK_SAME((char *)back.gex_addr + base, scratch);
    CHECK(back.gex_len > 0 && back.gex_len <= SCRATCH / 2);
  } else {
    CHECK_SAME(back.gex_addr, &back);
    CHECK_EQ(back.gex_len, 12345);
  }
}

int main(int argc, char **argv) {
  gex_Rank_t world[64], rank;
  char *scratch;
  int round;
  check_start(&argc, &argv, "team_split");
  check_attach(SCRATCH);
  scratch = (char *)gex_Segment_QueryAddr(segment);
  for (rank = 0; rank < ranks; ++rank) world[rank] = rank;
  /* No rank joins. */
  CHECK_EQ(gex_TM_Split(NULL, team, -1, 0, NULL, 0, 0), 0);
  for (round = 0; round < ROUNDS; ++round) {
    gex_TM_t first = split(team, world, ranks, (uint64_t)round, 0, scratch);
    if (first != GEX_TM_INVALID) {
      gex_Rank_t of[64], count = gex_TM_QuerySize(first);
      gex_TM_t second;
      for (rank = 0; rank < count; ++rank) of[rank] = gex_TM_TranslateRankToJobrank(first, rank);
      second = split(first, of, count, (uint64_t)round + 1000u * of[0], 1, scratch + SCRATCH / 2);
      /* The parent may go first. */
      if (round % 2) destroy(first, scratch, 0);
      gex_Event_Wait(gex_Coll_BarrierNB(second, 0));
      destroy(second, scratch + SCRATCH / 2, round % 3 ? 0 : GEX_FLAG_SCRATCH_SEG_OFFSET);
    }
    /* Behind a barrier of all, nothing of any team is under way. */
    check_barrier();
    if (first != GEX_TM_INVALID && round % 2 == 0) destroy(first, scratch, GEX_FLAG_GLOBALLY_QUIESCED);
  }
  /* A size that may be asked for, with a warning. */
  {
    gex_TM_t made = team;
    CHECK_EQ(gex_TM_Split(&made, team, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_MIN) > 0, 1);
    CHECK_EQ(gex_TM_Create(&made, 1, team, NULL, ranks, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_MIN) > 0, 1);
    CHECK_EQ(gex_TM_Create(&made, 1, team, NULL, ranks, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED) > 0, 1);
    CHECK_EQ(gex_TM_Create(&made, 1, team, NULL, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED), 0);
    CHECK_SAME(made, team);
  }
  return check_finish();
}
