/* Thousands of teams, made and destroyed in turn: their numbers and their memory come back. Some
 * ranks are behind others all the time, and teams are destroyed while others still use them. */
#include "check.h"

/* MOST is in KiB. */
enum { ROUNDS = 4096, SETTLED = 512, MOST = 256 };

/* KiB of this process's own memory; memory that it shares fills in the course of a job. */
static long resident(void) {
  char line[200];
  long own = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "RssAnon:", 8) == 0) own = strtol(line + 8, NULL, 10);
  if (file) fclose(file);
  return own;
}

int main(int argc, char **argv) {
  long before = 0, after;
  int round;
  check_start(&argc, &argv, "team_rounds");
  check_attach(GASNET_PAGESIZE);
  for (round = 0; round < ROUNDS; ++round) {
    gex_TM_t half = team, all = team;
    gex_EP_Location_t list[64];
    gex_Addr_t scratch = gex_Segment_QueryAddr(segment);
    gex_Memvec_t back;
    gex_Rank_t rank;
    int quiesced = round % 4 == 0;
    if (round == SETTLED) before = resident();
    gex_TM_Split((me + (unsigned)round) % 3 ? &half : NULL, team, (int)(me % 2), (int)me, scratch, 64, 0);
    for (rank = 0; rank < ranks; ++rank) {
      list[rank].gex_rank = (rank + (unsigned)round) % ranks;
      list[rank].gex_ep_index = 0;
    }
    gex_TM_Create(&all, 1, team, list, ranks, &scratch, 64, round % 2 ? GEX_FLAG_TM_LOCAL_SCRATCH : GEX_FLAG_TM_NO_SCRATCH);
    CHECK_EQ(gex_TM_TranslateRankToJobrank(all, gex_TM_QueryRank(all)), me);
    if (round % 8 == 0) gex_Event_Wait(gex_Coll_BarrierNB(all, 0));
    if (quiesced) {
      if (half != team) gex_Event_Wait(gex_Coll_BarrierNB(half, 0));
      check_barrier();
    }
    if (half != team) {
      CHECK(gex_TM_QuerySize(half) <= ranks);
      CHECK(gex_TM_Destroy(half, &back, quiesced ? GEX_FLAG_GLOBALLY_QUIESCED : 0));
      CHECK_SAME(back.gex_addr, scratch);
    }
    CHECK_EQ(gex_TM_Destroy(all, &back, 0), round % 2);
  }
  check_barrier();
  after = resident();
  /* A team has some thousand bytes: without those that come back it would be megabytes. */
  CHECK(before > 0 && after - before < MOST);
  return check_finish();
}
