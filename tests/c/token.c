/* Tokens of each kind of message, in both directions; masks ask for parts; the token names the
 * sender by its rank in the job for any name of the target. */
#include "check.h"

enum { SHORT = 140, MEDIUM, LONG, SHORT_ANSWER, MEDIUM_ANSWER, LONG_ANSWER };

static const char *const name_of_short = "short";
static int cookie;
static volatile int answered;
static gex_Rank_t asked_of;
static char *bases[64];
static const gex_AM_Entry_t *registered;

static void check_token(gex_Token_t token, int index, int is_request, int is_long, gex_Rank_t source) {
  static const gex_TI_t bits[] = {GEX_TI_SRCRANK, GEX_TI_EP, GEX_TI_ENTRY, GEX_TI_IS_REQ, GEX_TI_IS_LONG};
  gex_Token_Info_t info;
  gex_TI_t known;
  size_t i;
  memset(&info, 0xee, sizeof info);
  known = gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK_EQ(known & ~GEX_TI_ALL, 0);
  CHECK_EQ(known & GEX_TI_SRCRANK, GEX_TI_SRCRANK);
  CHECK_EQ(known & GEX_TI_EP, GEX_TI_EP);
  CHECK_EQ(info.gex_srcrank, source);
  CHECK_SAME(info.gex_ep, ep);
#if GASNET_SUPPORTS_TI_ENTRY
  CHECK_EQ(known & GEX_TI_ENTRY, GEX_TI_ENTRY);
#endif
#if GASNET_SUPPORTS_TI_IS_REQ
  CHECK_EQ(known & GEX_TI_IS_REQ, GEX_TI_IS_REQ);
#endif
#if GASNET_SUPPORTS_TI_IS_LONG
  CHECK_EQ(known & GEX_TI_IS_LONG, GEX_TI_IS_LONG);
#endif
  if (known & GEX_TI_ENTRY) {
    const gex_AM_Entry_t *should = &registered[index - SHORT];
    CHECK(info.gex_entry != should);
    CHECK_EQ(info.gex_entry->gex_index, index);
    CHECK(info.gex_entry->gex_fnptr == should->gex_fnptr);
    CHECK_EQ(info.gex_entry->gex_flags, should->gex_flags);
    CHECK_EQ(info.gex_entry->gex_nargs, should->gex_nargs);
    CHECK_SAME(info.gex_entry->gex_cdata, should->gex_cdata);
    CHECK_SAME(info.gex_entry->gex_name, should->gex_name);
  }
  if (known & GEX_TI_IS_REQ) CHECK_EQ(info.gex_is_req, is_request);
  if (known & GEX_TI_IS_LONG) CHECK_EQ(info.gex_is_long, is_long);
  /* Each alone: at least what was asked for and can be had, and the same value. */
  for (i = 0; i < CHECK_COUNT(bits); ++i) {
    gex_Token_Info_t part;
    gex_TI_t had = gex_Token_Info(token, &part, bits[i]);
    CHECK_EQ(had & bits[i], known & bits[i]);
    if (had & GEX_TI_SRCRANK) CHECK_EQ(part.gex_srcrank, source);
    if (had & GEX_TI_EP) CHECK_SAME(part.gex_ep, ep);
    if (had & GEX_TI_ENTRY) CHECK_SAME(part.gex_entry, info.gex_entry);
    if (had & GEX_TI_IS_REQ) CHECK_EQ(part.gex_is_req, is_request);
    if (had & GEX_TI_IS_LONG) CHECK_EQ(part.gex_is_long, is_long);
  }
}

static void a_short(gex_Token_t token, gex_AM_Arg_t from) {
  check_token(token, SHORT, 1, 0, (gex_Rank_t)from);
  gex_AM_ReplyShort0(token, SHORT_ANSWER, 0);
}
static void a_medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from) {
  check_token(token, MEDIUM, 1, 0, (gex_Rank_t)from);
  gex_AM_ReplyMedium0(token, MEDIUM_ANSWER, data, bytes, GEX_EVENT_NOW, 0);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t from) {
  check_token(token, LONG, 1, 1, (gex_Rank_t)from);
  gex_AM_ReplyLong0(token, LONG_ANSWER, data, bytes, bases[from] + 64 * (64 + me), GEX_EVENT_NOW, 0);
}
static void short_answer(gex_Token_t token) {
  check_token(token, SHORT_ANSWER, 0, 0, asked_of);
  answered = answered + 1;
}
static void medium_answer(gex_Token_t token, void *data, size_t bytes) {
  (void)data;
  CHECK_EQ(bytes, 10);
  check_token(token, MEDIUM_ANSWER, 0, 0, asked_of);
  answered = answered + 1;
}
static void long_answer(gex_Token_t token, void *data, size_t bytes) {
  (void)data;
  CHECK_EQ(bytes, 10);
  check_token(token, LONG_ANSWER, 0, 1, asked_of);
  answered = answered + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {SHORT, (gex_AM_Fn_t)a_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, &cookie, name_of_short},
      {MEDIUM, (gex_AM_Fn_t)a_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP, 1, NULL, "medium"},
      {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 1, &client, NULL},
      {SHORT_ANSWER, (gex_AM_Fn_t)short_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "short answer"},
      {MEDIUM_ANSWER, (gex_AM_Fn_t)medium_answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "medium answer"},
      {LONG_ANSWER, (gex_AM_Fn_t)long_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, "long answer"}};
  char bytes[10] = "nine char";
  gex_Rank_t rank;
  int total = 0, i;
  check_start(&argc, &argv, "token");
  CHECK(ranks <= CHECK_COUNT(bases));
  registered = table;
  check_register(table, CHECK_COUNT(table));
  check_attach(64 * 128);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    asked_of = rank;
    for (i = 0; i < 2; ++i) {
      /* By the team, and by a pair. */
      gex_TM_t by = i ? gex_TM_Pair(ep, 0) : team;
      gex_AM_Arg_t from = (gex_AM_Arg_t)me;
      CHECK_EQ(gex_AM_RequestShort1(by, rank, SHORT, 0, from), 0);
      CHECK_EQ(gex_AM_RequestMedium1(by, rank, MEDIUM, bytes, sizeof bytes, GEX_EVENT_NOW, 0, from), 0);
      CHECK_EQ(gex_AM_RequestLong1(by, rank, LONG, bytes, sizeof bytes, bases[rank] + 64 * me, GEX_EVENT_NOW, 0, from), 0);
      total += 3;
      GASNET_BLOCKUNTIL(answered == total);
    }
  }
  return check_finish();
}
