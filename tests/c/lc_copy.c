/* GEX_FLAG_LC_COPY_YES and _NO: advice on whether a source is copied. Data and completion are those
 * of any other put or message. */
#include "check.h"

enum { BYTES = 30000, MEDIUM = 152, LONG, ANSWER };
static volatile int answered;
static unsigned char source[BYTES], back[BYTES];

static void medium(gex_Token_t token, void *data, size_t bytes) {
  CHECK_FILLED(data, bytes, 5);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  answered = answered + 1;
}

static void with(gex_Rank_t rank, gex_Flags_t flags, size_t bytes) {
  char *to = check_base(rank) + me * BYTES;
  gex_Event_t leaf = GEX_EVENT_INVALID, root;
  size_t small = bytes < 500 ? bytes : 500;
  int total = answered;
  check_fill(source, bytes, 1);
  root = gex_RMA_PutNB(team, rank, to, source, bytes, &leaf, flags);
  gex_Event_Wait(leaf);
  memset(source, 0, bytes);
  gex_Event_Wait(root);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, bytes, 0), 0);
  CHECK_FILLED(back, bytes, 1);
  check_fill(source, bytes, 2);
  CHECK_EQ(gex_RMA_PutNBI(team, rank, to, source, bytes, GEX_EVENT_NOW, flags), 0);
  memset(source, 0, bytes);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, bytes, 0), 0);
  CHECK_FILLED(back, bytes, 2);
  check_fill(source, bytes, 3);
  CHECK_EQ(gex_RMA_PutNBI(team, rank, to, source, bytes, GEX_EVENT_GROUP, flags), 0);
  gex_NBI_Wait(GEX_EC_LC, 0);
  memset(source, 0, bytes);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, bytes, 0), 0);
  CHECK_FILLED(back, bytes, 3);
  check_fill(source, bytes, 4);
  gex_Event_Wait(gex_RMA_PutNB(team, rank, to, source, bytes, GEX_EVENT_DEFER, flags));
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, bytes, 0), 0);
  CHECK_FILLED(back, bytes, 4);

  check_fill(source, small, 5);
  leaf = GEX_EVENT_INVALID;
  CHECK_EQ(gex_AM_RequestMedium0(team, rank, MEDIUM, source, small, &leaf, flags), 0);
  gex_Event_Wait(leaf);
  memset(source, 0, small);
  check_fill(source, small, 5);
  CHECK_EQ(gex_AM_RequestLong0(team, rank, LONG, source, small, to, GEX_EVENT_NOW, flags), 0);
  memset(source, 0, small);
  GASNET_BLOCKUNTIL(answered == total + 2);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)medium, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  static const size_t sizes[] = {1, 8, 100, 512, 4096, BYTES};
  gex_Rank_t rank;
  size_t i;
  CHECK((GEX_FLAG_LC_COPY_YES & GEX_FLAG_LC_COPY_NO) == 0);
  CHECK((GEX_FLAG_LC_COPY_YES | GEX_FLAG_LC_COPY_NO) != 0 && !((GEX_FLAG_LC_COPY_YES | GEX_FLAG_LC_COPY_NO) & GEX_FLAG_IMMEDIATE));
  check_start(&argc, &argv, "lc_copy");
  check_register(table, CHECK_COUNT(table));
  check_attach(ranks * (uintptr_t)BYTES);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank)
    for (i = 0; i < CHECK_COUNT(sizes); ++i) {
      with(rank, 0, sizes[i]);
      with(rank, GEX_FLAG_LC_COPY_YES, sizes[i]);
      with(rank, GEX_FLAG_LC_COPY_NO, sizes[i]);
    }
  return check_finish();
}
