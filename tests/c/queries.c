/* Queries of the job: neighbors, hosts, positions, threads, names of errors, limits; from handlers,
 * too, if that is allowed, with the same answers at all ranks. */
#include "check.h"
#include <gasnet_coll.h>

enum { ASK = 190, DONE };
static volatile int done;

/* Members of a set: sorted, with this rank at its index. */
static void members(const gex_RankInfo_t *all, gex_Rank_t count, gex_Rank_t index) {
  gex_Rank_t i;
  CHECK(count >= 1 && count <= ranks);
  CHECK(index < count);
  CHECK_EQ(all[index].gex_jobrank, me);
  for (i = 0; i < count; ++i) {
    CHECK(all[i].gex_jobrank < ranks);
    if (i) CHECK(all[i].gex_jobrank > all[i - 1].gex_jobrank);
  }
}

static void sets(void) {
  gex_RankInfo_t *near_ranks = NULL, *host = NULL, *again = NULL;
  gex_Rank_t near_count = 0, near_index = 0, host_count = 0, host_index = 0, count, i, j;
  gex_System_QueryNbrhdInfo(&near_ranks, &near_count, &near_index);
  gex_System_QueryHostInfo(&host, &host_count, &host_index);
  members(near_ranks, near_count, near_index);
  members(host, host_count, host_index);
  CHECK(near_count <= host_count);
  for (i = j = 0; i < near_count; ++i) {
    while (j < host_count && host[j].gex_jobrank < near_ranks[i].gex_jobrank) ++j;
    CHECK(j < host_count && host[j].gex_jobrank == near_ranks[i].gex_jobrank);
  }
  /* Any output may be left out. */
  gex_System_QueryNbrhdInfo(NULL, NULL, NULL);
  gex_System_QueryHostInfo(NULL, NULL, NULL);
  gex_System_QueryNbrhdInfo(&again, NULL, NULL);
  CHECK_SAME(again, near_ranks);
  count = 0;
  gex_System_QueryNbrhdInfo(NULL, &count, NULL);
  CHECK_EQ(count, near_count);
  count = ranks;
  gex_System_QueryNbrhdInfo(NULL, NULL, &count);
  CHECK_EQ(count, near_index);
  count = ranks;
  gex_System_QueryHostInfo(NULL, NULL, &count);
  CHECK_EQ(count, host_index);
}

typedef struct {
  gex_Rank_t near_size, near_rank, host_size, host_rank, near_count;
} Position;

static Position position(void) {
  Position mine;
  gex_Rank_t part = ranks;
  memset(&mine, 0xff, sizeof mine);
  gex_System_QueryMyPosition(&mine.near_size, &mine.near_rank, &mine.host_size, &mine.host_rank);
  gex_System_QueryNbrhdInfo(NULL, &mine.near_count, NULL);
  CHECK(mine.near_size >= 1 && mine.near_size <= ranks);
  CHECK(mine.host_size >= 1 && mine.host_size <= mine.near_size);
  CHECK(mine.near_rank < mine.near_size);
  CHECK(mine.host_rank < mine.host_size);
  gex_System_QueryMyPosition(NULL, NULL, NULL, NULL);
  gex_System_QueryMyPosition(&part, NULL, NULL, NULL);
  CHECK_EQ(part, mine.near_size);
  gex_System_QueryMyPosition(NULL, &part, NULL, NULL);
  CHECK_EQ(part, mine.near_rank);
  gex_System_QueryMyPosition(NULL, NULL, &part, NULL);
  CHECK_EQ(part, mine.host_size);
  gex_System_QueryMyPosition(NULL, NULL, NULL, &part);
  CHECK_EQ(part, mine.host_rank);
  return mine;
}

/* Same set, same number; other set, other number; the same totals everywhere. */
static void agreed(void) {
  Position mine = position(), theirs;
  gex_RankInfo_t *near_ranks = NULL, *host = NULL;
  gex_Rank_t near_count = 0, host_count = 0, rank, i;
  gasnet_nodeinfo_t *nodes = (gasnet_nodeinfo_t *)calloc(ranks, sizeof *nodes);
  CHECK_OK(gasnet_getNodeInfo(nodes, (int)ranks));
  gex_System_QueryNbrhdInfo(&near_ranks, &near_count, NULL);
  gex_System_QueryHostInfo(&host, &host_count, NULL);
  for (rank = 0; rank < ranks; ++rank) {
    int in_near = 0, on_host = 0;
    theirs = mine;
    gex_Event_Wait(gex_Coll_BroadcastNB(team, rank, &theirs, &theirs, sizeof theirs, 0));
    for (i = 0; i < near_count; ++i) in_near |= near_ranks[i].gex_jobrank == rank;
    for (i = 0; i < host_count; ++i) on_host |= host[i].gex_jobrank == rank;
    CHECK_EQ(theirs.near_size, mine.near_size);
    CHECK_EQ(theirs.host_size, mine.host_size);
    CHECK_EQ(theirs.near_rank == mine.near_rank, in_near);
    CHECK_EQ(theirs.host_rank == mine.host_rank, on_host);
    if (in_near) CHECK_EQ(theirs.near_count, mine.near_count);
    CHECK_EQ(nodes[rank].supernode, theirs.near_rank);
    CHECK_EQ(nodes[rank].host, theirs.host_rank);
  }
  free(nodes);
}

static void threads(void) {
  unsigned count = 99;
  const gex_ProgressThreadInfo_t *info = NULL;
  int hidden = gex_System_QueryHiddenAMConcurrencyLevel();
#if GASNET_SEQ
  CHECK_EQ(gex_System_QueryMaxThreads(), 1);
#else
  CHECK(gex_System_QueryMaxThreads() > 1);
#endif
  CHECK(hidden >= 0 && hidden <= GASNET_HIDDEN_AM_CONCURRENCY_LEVEL);
  CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), hidden);
  /* The threads were not left to the client. The library reports errors like these on stderr unless
   * that is turned off. */
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gex_System_QueryProgressThreads(client, &count, &info, 0), GASNET_ERR_RESOURCE);
  gex_System_SetVerboseErrors(1);
}

static void errors(void) {
  static const struct {
    int code;
    const char *name;
  } all[] = {{GASNET_OK, "GASNET_OK"},
             {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT"},
             {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE"},
             {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG"},
             {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY"},
             {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH"}};
  static const int unknown[] = {-1, 1, 9999, 20000, INT32_MAX, INT32_MIN};
  size_t i;
  for (i = 0; i < CHECK_COUNT(all); ++i) {
    CHECK(strcmp(gasnet_ErrorName(all[i].code), all[i].name) == 0);
    CHECK(gasnet_ErrorDesc(all[i].code)[0] != 0);
  }
  for (i = 0; i < CHECK_COUNT(unknown); ++i) {
    CHECK(gasnet_ErrorName(unknown[i]) != NULL && gasnet_ErrorName(unknown[i])[0] != 0);
    CHECK(gasnet_ErrorDesc(unknown[i]) != NULL && gasnet_ErrorDesc(unknown[i])[0] != 0);
  }
}

static void limits(void) {
  uintptr_t local = gasnet_getMaxLocalSegmentSize(), global = gasnet_getMaxGlobalSegmentSize(), other, least = local;
  gex_Rank_t rank;
  CHECK(global > 0 && local >= global);
  CHECK_EQ(local % GASNET_PAGESIZE, 0);
  CHECK_EQ(global % GASNET_PAGESIZE, 0);
  for (rank = 0; rank < ranks; ++rank) {
    other = global;
    gex_Event_Wait(gex_Coll_BroadcastNB(team, rank, &other, &other, sizeof other, 0));
    CHECK_EQ(other, global);
    other = local;
    gex_Event_Wait(gex_Coll_BroadcastNB(team, rank, &other, &other, sizeof other, 0));
    if (other < least) least = other;
  }
  CHECK(global <= least);
}

/* All of these are legal here. */
static void ask(gex_Token_t token) {
  sets();
  position();
  CHECK_EQ(gex_System_QueryJobRank(), me);
  CHECK_EQ(gex_System_QueryJobSize(), ranks);
#if GASNET_SEQ
  CHECK_EQ(gex_System_QueryMaxThreads(), 1);
#else
  CHECK(gex_System_QueryMaxThreads() > 1);
#endif
  CHECK(gex_System_QueryHiddenAMConcurrencyLevel() >= 0);
  CHECK_EQ(gex_TM_QueryRank(team), me);
  CHECK_SAME(gex_TM_QueryEP(team), ep);
  CHECK_SAME(gex_EP_QuerySegment(ep), segment);
  CHECK(gex_Segment_QuerySize(segment) > 0);
  CHECK_SAME(gex_Segment_QueryClient(segment), client);
  gex_TM_SetCData(team, &ranks);
  CHECK_SAME(gex_TM_QueryCData(team), &ranks);
  CHECK(gex_System_GetVerboseErrors() != 0);
  gex_AM_ReplyShort0(token, DONE, 0);
}
static void asked(gex_Token_t token) {
  (void)token;
  done = done + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
                            {DONE, (gex_AM_Fn_t)asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "done"}};
  gex_Rank_t rank;
  check_start(&argc, &argv, "queries");
  check_register(table, CHECK_COUNT(table));
  sets();
  agreed();
  threads();
  errors();
  limits();
  check_attach(GASNET_PAGESIZE);
  sets();
  agreed();
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(gex_AM_RequestShort0(team, rank, ASK, 0), 0);
  GASNET_BLOCKUNTIL(done == (int)ranks);
  return check_finish();
}
