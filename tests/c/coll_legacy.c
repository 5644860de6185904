/* gasnet_coll_*: all five operations, blocking and not, in all modes of synchronization; handles in
 * arrays; the barrier; files of limits. */
#include "check.h"
#include <gasnet_coll.h>
#include <unistd.h>

enum { MOST = 40000 };
static unsigned char *from, *to;

static const int ins[] = {GASNET_COLL_IN_NOSYNC, GASNET_COLL_IN_MYSYNC, GASNET_COLL_IN_ALLSYNC};
static const int outs[] = {GASNET_COLL_OUT_NOSYNC, GASNET_COLL_OUT_MYSYNC, GASNET_COLL_OUT_ALLSYNC};

static uint32_t key(gex_Rank_t giver, gex_Rank_t taker) { return giver * 100 + taker + 1; }

static void all_kinds(size_t bytes, int flags, int nb) {
  gasnet_team_handle_t all = GASNET_TEAM_ALL;
  gasnet_image_t root, r;
  gasnet_coll_handle_t handle = GASNET_COLL_INVALID_HANDLE;
#define DO(name, ...) do { \
    if (nb) { handle = gasnet_coll_##name##_nb(__VA_ARGS__); gasnet_coll_wait_sync(handle); } \
    else gasnet_coll_##name(__VA_ARGS__); \
    check_barrier(); \
  } while (0)
  for (root = 0; root < ranks; ++root) {
    check_fill(from, bytes, key(me, 0));
    memset(to, 0, bytes * ranks);
    DO(broadcast, all, to, root, from, bytes, flags);
    CHECK_FILLED(to, bytes, key(root, 0));
    DO(gather, all, root, to, from, bytes, flags);
    if (me == root) for (r = 0; r < ranks; ++r) CHECK_FILLED(to + r * bytes, bytes, key(r, 0));
    for (r = 0; r < ranks; ++r) check_fill(from + r * bytes, bytes, key(me, r));
    DO(scatter, all, to, root, from, bytes, flags);
    CHECK_FILLED(to, bytes, key(root, me));
  }
  DO(exchange, all, to, from, bytes, flags);
  for (r = 0; r < ranks; ++r) CHECK_FILLED(to + r * bytes, bytes, key(r, me));
  DO(gather_all, all, to, from + me * bytes, bytes, flags);
  for (r = 0; r < ranks; ++r) CHECK_FILLED(to + r * bytes, bytes, key(r, r));
}

static void arrays(void) {
  gasnet_coll_handle_t handles[8];
  int words[8], i, left;
  const int flags = GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC;
  for (i = 0; i < 24; ++i) {
    if (i % 8 == 0) for (left = 0; left < 8; ++left) {
      words[left] = me == 0 ? left + i : -1;
      handles[left] = gasnet_coll_broadcast_nb(GASNET_TEAM_ALL, &words[left], 0, &words[left], sizeof(int), flags);
    }
    if (i == 0) gasnet_coll_wait_sync_all(handles, 8);
    if (i == 8) while (gasnet_coll_try_sync_all(handles, 8) != GASNET_OK) {}
    if (i == 16) for (left = 0; left < 8;) {
      int k;
      if (left % 2) gasnet_coll_wait_sync_some(handles, 8);
      else while (gasnet_coll_try_sync_some(handles, 8) != GASNET_OK) {}
      for (left = k = 0; k < 8; ++k) left += handles[k] == GASNET_COLL_INVALID_HANDLE;
    }
    if (i % 8 == 0) for (left = 0; left < 8; ++left) {
      CHECK_EQ(words[left], left + i);
      CHECK(handles[left] == GASNET_COLL_INVALID_HANDLE);
      CHECK_EQ(gasnet_coll_try_sync(handles[left]), GASNET_OK);
    }
  }
}

/* No rank leaves an operation with OUT_ALLSYNC before all have called it. */
static void meets(void) {
  static int entered;
  int round, flags;
  for (round = 0; round < 20; ++round) {
    int word = (int)me, sum = 0;
    flags = GASNET_COLL_LOCAL | (round % 2 ? GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_NOSYNC : GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_ALLSYNC);
    entered = round + 1;
    gasnet_coll_broadcast(GASNET_TEAM_ALL, &word, 0, &word, sizeof word, flags);
    CHECK_EQ(word, 0);
    gex_Event_Wait(gex_Coll_ReduceToAllNB(team, &sum, &entered, GEX_DT_I32, 4, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK_EQ(sum, (int)ranks * (round + 1));
  }
}

static void barriers_of(gex_TM_t of) {
  int id = -1, i;
  gex_Rank_t mine = gex_TM_QueryRank(of), all = gex_TM_QuerySize(of);
  for (i = 0; i < 10; ++i) {
    gasnet_coll_barrier_notify(of, i, mine % 2 && all > 1 ? GASNET_BARRIERFLAG_ANONYMOUS : 0);
    if (i % 2) CHECK_OK(gasnet_coll_barrier_wait(of, i, 0));
    else while ((id = gasnet_coll_barrier_try(of, i, 0)) != GASNET_OK) CHECK_EQ(id, GASNET_ERR_NOT_READY);
    CHECK_OK(gasnet_coll_barrier_result(of, &id));
    CHECK_EQ(id, i);
    CHECK_OK(gasnet_coll_barrier(of, 0, GASNET_BARRIERFLAG_ANONYMOUS));
    CHECK_EQ(gasnet_coll_barrier_result(of, &id), 1);
    /* Names that differ, and a wait with another name than all have given. */
    CHECK_EQ(gasnet_coll_barrier(of, (int)mine, 0), all > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK);
    gasnet_coll_barrier_notify(of, 7, 0);
    CHECK_EQ(gasnet_coll_barrier_wait(of, 8, 0), GASNET_ERR_BARRIER_MISMATCH);
    CHECK_EQ(gasnet_coll_barrier(of, 7, mine + 1 == all ? GASNET_BARRIERFLAG_MISMATCH : 0), GASNET_ERR_BARRIER_MISMATCH);
  }
}

/* Teams that overlap, each with a barrier of its own under way. */
static void barriers(void) {
  gex_TM_t half = GEX_TM_INVALID, backwards = GEX_TM_INVALID;
  int i;
  gex_TM_Split(&half, team, (int)me % 2, (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_TM_Split(&backwards, team, 0, (int)(ranks - me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  barriers_of(GASNET_TEAM_ALL);
  barriers_of(half);
  barriers_of(backwards);
  for (i = 0; i < 20; ++i) {
    gasnet_coll_barrier_notify(half, i, 0);
    gasnet_coll_barrier_notify(backwards, i + 1, 0);
    gasnet_coll_barrier_notify(GASNET_TEAM_ALL, i + 2, 0);
    CHECK_OK(gasnet_coll_barrier_wait(backwards, i + 1, 0));
    CHECK_OK(gasnet_coll_barrier_wait(GASNET_TEAM_ALL, i + 2, 0));
    CHECK_OK(gasnet_coll_barrier_wait(half, i, 0));
  }
  check_barrier();
  CHECK_OK(gex_TM_Destroy(half, NULL, 0));
  CHECK_OK(gex_TM_Destroy(backwards, NULL, 0));
}

static void files(void) {
  char name[64], line[128];
  FILE *file;
  int lines = 0;
  unsigned key_of_job = (unsigned)getpid();
  gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, &key_of_job, &key_of_job, sizeof key_of_job, 0));
  snprintf(name, sizeof name, "coll_tuning_%u.txt", key_of_job);
  gasnet_coll_dumpTuningState(name, GASNET_TEAM_ALL);
  check_barrier();
  gasnet_coll_loadTuningState(name, GASNET_TEAM_ALL);
  check_barrier();
  if (me == 0) {
    file = fopen(name, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) lines += strchr(line, '=') != NULL;
    fclose(file);
    CHECK(lines >= 5);
    file = fopen(name, "w");
    CHECK(file);
    /* Everything in pieces of 128 bytes, and offered. */
    fputs("# small\nGASNET_COLL_PIPE_SEG_SIZE=128\nGASNET_COLL_SCRATCH_SIZE=512\nARGONET_COLL_EAGER_SIZE=16\nGASNET_COLL_ROOTED_GEOM=KNOMIAL_TREE,3\n", file);
    fclose(file);
  }
  check_barrier();
  gasnet_coll_loadTuningState(name, GASNET_TEAM_ALL);
  all_kinds(1000, GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC, 1);
  if (me == 0) remove(name);
  gasnet_coll_dumpProfile(NULL, GASNET_TEAM_ALL);
}

int main(int argc, char **argv) {
  size_t in, out, bytes;
  check_start(&argc, &argv, "coll_legacy");
  from = (unsigned char *)malloc((size_t)MOST * ranks);
  to = (unsigned char *)malloc((size_t)MOST * ranks);
  CHECK(from && to);
  CHECK(GASNET_TEAM_ALL == team);
  for (in = 0; in < 3; ++in)
    for (out = 0; out < 3; ++out)
      for (bytes = 1; bytes <= MOST; bytes = bytes * 9 + 1) {
        all_kinds(bytes, GASNET_COLL_LOCAL | ins[in] | outs[out], 0);
        all_kinds(bytes, GASNET_COLL_LOCAL | ins[in] | outs[out] | GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_NO_IMAGES, 1);
      }
  arrays();
  meets();
  barriers();
  files();
  free(from);
  free(to);
  return check_finish();
}
