/* Handlers of gasnet_attach: fixed and free indices, write-back, and that one serves requests and
 * replies. */
#include "legacy.h"

static volatile int requests, replies, late;

/* For a request it answers to itself: an entry says nothing of kinds. */
static void both(gasnet_token_t token, gasnet_handlerarg_t index, gasnet_handlerarg_t is_reply) {
  gasnet_node_t from = GEX_RANK_INVALID;
  CHECK_OK(gasnet_AMGetMsgSource(token, &from));
  CHECK(from < ranks);
  if (is_reply) {
    replies = replies + 1;
  } else {
    requests = requests + 1;
    CHECK_OK(gasnet_AMReplyShort2(token, (gasnet_handler_t)index, index, 1));
  }
}
static void other(gasnet_token_t token, gasnet_handlerarg_t index, gasnet_handlerarg_t is_reply) {
  both(token, index, is_reply);
}
static void registered_later(gex_Token_t token) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
  late = late + 1;
}

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{0, (gex_AM_Fn_t)both},    {255, (gex_AM_Fn_t)other}, {0, (gex_AM_Fn_t)other},
                                   {128, (gex_AM_Fn_t)both}, {0, (gex_AM_Fn_t)both}};
  gex_AM_Entry_t more[] = {{0, (gex_AM_Fn_t)registered_later, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "late"}};
  size_t i, j;
  int should = 0;
  gex_Rank_t rank;
  legacy_init(&argc, &argv, "legacy_handlers");
  CHECK_OK(gasnet_attach(table, (int)CHECK_COUNT(table), GASNET_PAGESIZE, 0));
  gasnet_QueryGexObjects(&client, &ep, &team, &segment);
  CHECK_EQ(table[1].index, 255);
  CHECK_EQ(table[3].index, 128);
  for (i = 0; i < CHECK_COUNT(table); ++i) {
    CHECK(table[i].index >= GEX_AM_INDEX_BASE);
    for (j = 0; j < i; ++j) CHECK(table[i].index != table[j].index);
  }
  /* At once: gasnet_attach is a barrier, and handlers are there before it. */
  for (rank = 0; rank < ranks; ++rank) {
    for (i = 0; i < CHECK_COUNT(table); ++i) {
      CHECK_OK(gasnet_AMRequestShort2(rank, table[i].index, table[i].index, 0));
      ++should;
    }
  }
  GASNET_BLOCKUNTIL(replies == should);
  check_register(more, 1);
  CHECK(more[0].gex_index >= GEX_AM_INDEX_BASE);
  for (i = 0; i < CHECK_COUNT(table); ++i) CHECK(more[0].gex_index != table[i].index);
  check_barrier();
  CHECK_EQ(requests, should);
  CHECK_OK(gasnet_AMRequestShort0(check_next(), more[0].gex_index));
  GASNET_BLOCKUNTIL(late == 1);
  return check_finish();
}
