/* A job that another launcher started: who its ranks are, a message to the next of them, the code
 * of its end. Arguments: the number of ranks, that of neighbors of each, and the code. */
#include "check.h"

enum { ASK = 130, ANSWER };

static volatile int asked, answered;

static void ask(gex_Token_t token, gex_AM_Arg_t from) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK_EQ(info.gex_srcrank, from);
  CHECK_EQ(from, check_previous());
  asked = asked + 1;
  CHECK_EQ(gex_AM_ReplyShort1(token, ANSWER, 0, from + 100), 0);
}

static void answer(gex_Token_t token, gex_AM_Arg_t value) {
  (void)token;
  CHECK_EQ(value, me + 100);
  answered = answered + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
      {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
  };
  gex_Rank_t near_count = 0, near_index = 0;
  check_start(&argc, &argv, "launched");
  CHECK_EQ(argc, 4);
  CHECK_EQ(ranks, atoi(argv[1]));
  CHECK(me < ranks);
  CHECK_EQ(gex_System_QueryJobRank(), me);
  CHECK_EQ(gex_System_QueryJobSize(), ranks);
  gex_System_QueryNbrhdInfo(NULL, &near_count, &near_index);
  CHECK_EQ(near_count, atoi(argv[2]));
  CHECK_EQ(near_index, me % near_count);
  check_register(table, CHECK_COUNT(table));
  check_barrier();
  CHECK_EQ(gex_AM_RequestShort1(team, check_next(), ASK, 0, (gex_AM_Arg_t)me), 0);
  GASNET_BLOCKUNTIL(asked == 1 && answered == 1);
  check_barrier();
  if (me == 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  check_barrier();
  gasnet_exit(atoi(argv[3]));
  return 2;
}
