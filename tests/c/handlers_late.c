/* Handlers that are registered after the segment was attached, with different functions on
 * different ranks, and one function under several indices with several kinds of data. */
#include "check.h"

static volatile int by_even, by_odd, data_seen;
static const int first_data = 11, second_data = 22;

static void even(gex_Token_t token) {
  (void)token;
  by_even = by_even + 1;
}
static void odd(gex_Token_t token) {
  (void)token;
  by_odd = by_odd + 1;
}
static void with_data(gex_Token_t token) {
#if GASNET_SUPPORTS_TI_ENTRY
  gex_Token_Info_t info;
  CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_ENTRY) & GEX_TI_ENTRY, GEX_TI_ENTRY);
  data_seen = data_seen + *(const int *)info.gex_entry->gex_cdata;
#else
  (void)token;
  ++data_seen;
#endif
}

int main(int argc, char **argv) {
  gex_AM_Entry_t own[1], shared[2];
  gex_Rank_t rank;
  int expected;
  check_start(&argc, &argv, "handlers_late");
  check_attach(GASNET_PAGESIZE);

  memset(own, 0, sizeof own);
  own[0].gex_index = 140;
  own[0].gex_fnptr = me % 2 ? (gex_AM_Fn_t)odd : (gex_AM_Fn_t)even;
  own[0].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP;
  check_register(own, 1);

  memset(shared, 0, sizeof shared);
  shared[0].gex_index = 150;
  shared[0].gex_fnptr = (gex_AM_Fn_t)with_data;
  shared[0].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
  shared[1] = shared[0];
  shared[1].gex_index = 151;
  shared[0].gex_cdata = &first_data;
  shared[1].gex_cdata = &second_data;
  check_register(shared, 2);
  check_barrier();

  for (rank = 0; rank < ranks; ++rank) {
    CHECK_EQ(gex_AM_RequestShort0(team, rank, 140, 0), 0);
    CHECK_EQ(gex_AM_RequestShort0(team, rank, 150, 0), 0);
    CHECK_EQ(gex_AM_RequestShort0(team, rank, 151, 0), 0);
  }
  GASNET_BLOCKUNTIL(by_even + by_odd == (int)ranks);
  CHECK_EQ(me % 2 ? by_odd : by_even, ranks);
#if GASNET_SUPPORTS_TI_ENTRY
  expected = (int)ranks * (first_data + second_data);
#else
  expected = (int)ranks * 2;
#endif
  GASNET_BLOCKUNTIL(data_seen >= expected);
  CHECK_EQ(data_seen, expected);
  return check_finish();
}
