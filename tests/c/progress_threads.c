/* GEX_FLAG_DEFER_THREADS: all works before the client has started the library's threads, which
 * gex_System_QueryProgressThreads reports once. */
#include "check.h"

#include <pthread.h>

enum { ASK = 150, ANSWER };
static volatile int answers;

static void ask(gex_Token_t token) { gex_AM_ReplyShort0(token, ANSWER, 0); }
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

static void traffic(int total) {
  gex_Rank_t rank;
  for (rank = 0; rank < ranks; ++rank) {
    CHECK_EQ(gex_AM_RequestShort0(team, rank, ASK, 0), 0);
    CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, check_base(rank) + me, me + 1, 1, 0), 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, check_base(rank) + me, 1, 0), me + 1);
  }
  GASNET_BLOCKUNTIL(answers == total * (int)ranks);
  check_barrier();
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  unsigned count = 99, i;
  const gex_ProgressThreadInfo_t *info = NULL;
  int hidden;
  check_start_with(&argc, &argv, "progress_threads", GEX_FLAG_DEFER_THREADS);
  CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_DEFER_THREADS);
  check_register(table, CHECK_COUNT(table));
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  hidden = gex_System_QueryHiddenAMConcurrencyLevel();
  traffic(1);
  CHECK_OK(gex_System_QueryProgressThreads(client, &count, &info, 0));
  CHECK(count < 99);
  traffic(2);
  for (i = 0; i < count; ++i) {
    pthread_t thread;
    unsigned roles = info[i].gex_thread_roles;
    CHECK(info[i].gex_device_list != NULL && info[i].gex_progress_fn != NULL);
    CHECK(roles != 0 && (roles & ~(unsigned)(GEX_THREAD_ROLE_RCV | GEX_THREAD_ROLE_SND)) == 0);
#if !GASNET_RCV_THREAD
    CHECK_EQ(roles & GEX_THREAD_ROLE_RCV, 0);
#endif
#if !GASNET_SND_THREAD
    CHECK_EQ(roles & GEX_THREAD_ROLE_SND, 0);
#endif
    CHECK_EQ(pthread_create(&thread, NULL, info[i].gex_progress_fn, info[i].gex_progress_arg), 0);
  }
  CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), hidden);
  traffic(3);
  return check_finish();
}
