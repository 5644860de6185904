/* gex_EP_RegisterHandlers: fixed and free indices, what is written back, many calls, all the
 * indices there are. */
#include "check.h"

enum { ALL = 256 - GEX_AM_INDEX_BASE };

static volatile int calls[256];
static volatile int answers;

static void handler(gex_Token_t token, gex_AM_Arg_t index) {
  gex_Token_Info_t info;
  gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
  if (known & GEX_TI_ENTRY) {
    CHECK_EQ(info.gex_entry->gex_index, index);
    CHECK_SAME(info.gex_entry->gex_cdata, (const char *)&calls + index);
  }
  calls[index] = calls[index] + 1;
  gex_AM_ReplyShort0(token, 255, 0);
}

static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

static gex_AM_Entry_t entry(int index, int will_be) {
  gex_AM_Entry_t made;
  memset(&made, 0, sizeof made);
  made.gex_index = (gex_AM_Index_t)index;
  made.gex_fnptr = (gex_AM_Fn_t)handler;
  made.gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
  made.gex_nargs = 1;
  made.gex_cdata = (const char *)&calls + will_be;
  made.gex_name = "handler";
  return made;
}

/* Nothing but the indices that were 0 may change. */
static void registers(gex_AM_Entry_t *table, const int *expected, size_t count) {
  gex_AM_Entry_t before[ALL];
  size_t i;
  for (i = 0; i < count; ++i) before[i] = table[i];
  check_register(table, count);
  for (i = 0; i < count; ++i) {
    CHECK_EQ(table[i].gex_index, expected[i]);
    CHECK(table[i].gex_fnptr == before[i].gex_fnptr);
    CHECK_EQ(table[i].gex_flags, before[i].gex_flags);
    CHECK_EQ(table[i].gex_nargs, before[i].gex_nargs);
    CHECK_SAME(table[i].gex_cdata, before[i].gex_cdata);
    CHECK_SAME(table[i].gex_name, before[i].gex_name);
  }
  /* The library has its own copy. */
  memset(table, 0xff, count * sizeof *table);
}

int main(int argc, char **argv) {
  int used[256];
  int index, free_ones, sent = 0;
  size_t count;
  gex_AM_Entry_t table[ALL];
  int expected[ALL];
  gex_Rank_t rank;

  check_start(&argc, &argv, "handlers");
  memset(used, 0, sizeof used);
  CHECK(GEX_AM_INDEX_BASE <= 128);

  /* An empty table is no error. */
  check_register(table, 0);

  /* The first free index is the highest. */
  memset(table, 0, sizeof table);
  table[0].gex_fnptr = (gex_AM_Fn_t)answer;
  table[0].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY;
  table[0].gex_name = "answer";
  expected[0] = 255;
  registers(table, expected, 1);
  used[255] = 1;

  /* Fixed ones come first, wherever they stand, and then free ones from above, around them. */
  table[0] = entry(0, expected[0] = 253);
  table[1] = entry(254, expected[1] = 254);
  table[2] = entry(0, expected[2] = 251);
  table[3] = entry(252, expected[3] = 252);
  table[4] = entry(GEX_AM_INDEX_BASE, expected[4] = GEX_AM_INDEX_BASE);
  registers(table, expected, 5);
  used[253] = used[254] = used[251] = used[252] = used[GEX_AM_INDEX_BASE] = 1;

  /* Only fixed ones. */
  table[0] = entry(200, expected[0] = 200);
  table[1] = entry(249, expected[1] = 249);
  registers(table, expected, 2);
  used[200] = used[249] = 1;

  /* A later call goes on where the last one stopped, around indices that are taken. */
  table[0] = entry(0, expected[0] = 250);
  table[1] = entry(0, expected[1] = 248);
  registers(table, expected, 2);
  used[250] = used[248] = 1;

  /* All remaining indices, in one call. */
  count = 0;
  for (free_ones = 255; free_ones >= GEX_AM_INDEX_BASE; --free_ones)
    if (!used[free_ones]) {
      expected[count] = free_ones;
      table[count] = entry(0, free_ones);
      ++count;
    }
  CHECK_EQ(count, ALL - 10);
  registers(table, expected, count);
  check_barrier();

  /* Each of them is there, at every rank. */
  for (rank = 0; rank < ranks; ++rank)
    for (index = GEX_AM_INDEX_BASE; index < 255; ++index) {
      CHECK_EQ(gex_AM_RequestShort1(team, rank, (gex_AM_Index_t)index, 0, index), 0);
      ++sent;
    }
  GASNET_BLOCKUNTIL(answers == sent);
  check_barrier();
  for (index = GEX_AM_INDEX_BASE; index < 255; ++index) CHECK_EQ(calls[index], ranks);
  return check_finish();
}
