/* Plain loads at the target see the bytes of puts: after a barrier, and after a message that
 * followed a blocking put. Gets see the target's stores before a barrier. */
#include "check.h"

enum { SLOT = 4096, ROUNDS = 50, ASK = 180, ANSWER };

static char *mine;
static volatile int answers;

static void ask(gex_Token_t token, gex_AM_Arg_t key, gex_AM_Arg_t bytes) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK_FILLED(mine + info.gex_srcrank * SLOT, (size_t)bytes, (uint32_t)key);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "ask"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  static unsigned char buffer[SLOT];
  int round, expected = 0;
  gex_Rank_t rank;
  check_start(&argc, &argv, "rma_visible");
  check_register(table, CHECK_COUNT(table));
  check_attach(ranks * SLOT);
  check_seed(me);
  mine = check_base(me);
  check_barrier();
  for (round = 0; round < ROUNDS; ++round) {
    for (rank = 0; rank < ranks; ++rank) {
      size_t bytes = 1 + check_below(SLOT);
      uint32_t key = (uint32_t)(round * 64 + (int)rank);
      check_fill(buffer, bytes, key);
      CHECK_EQ(gex_RMA_PutBlocking(team, rank, check_base(rank) + me * SLOT, buffer, bytes, 0), 0);
      CHECK_EQ(gex_AM_RequestShort2(team, rank, ASK, 0, (gex_AM_Arg_t)key, (gex_AM_Arg_t)bytes), 0);
      ++expected;
    }
    GASNET_BLOCKUNTIL(answers == expected);
    check_barrier();
    for (rank = 0; rank < ranks; ++rank) {
      check_fill(buffer, SLOT, (uint32_t)(round + (int)me));
      CHECK_EQ(gex_RMA_PutNBI(team, rank, check_base(rank) + me * SLOT, buffer, SLOT, GEX_EVENT_NOW, 0), 0);
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_barrier();
    for (rank = 0; rank < ranks; ++rank) {
      CHECK_FILLED(mine + rank * SLOT, SLOT, (uint32_t)(round + (int)rank));
      check_fill(mine + rank * SLOT, SLOT, (uint32_t)(round + 1000 + (int)me));
    }
    check_barrier();
    for (rank = 0; rank < ranks; ++rank) {
      CHECK_EQ(gex_RMA_GetBlocking(team, buffer, rank, check_base(rank) + me * SLOT, SLOT, 0), 0);
      CHECK_FILLED(buffer, SLOT, (uint32_t)(round + 1000 + (int)rank));
    }
    check_barrier();
  }
  return check_finish();
}
