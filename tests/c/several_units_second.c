/* The other unit of several_units. */
#include <gasnetex.h>
#include <gasnet_tools.h>
#include <gasnet_mk.h>
#include <gasnet_coll.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
gex_Rank_t second_rank(gex_TM_t of);
void second_put_and_get(gex_TM_t of, gex_Rank_t to, void *at, gex_Segment_t known);
gex_AM_Entry_t *second_table(size_t *count);
int second_answers(void);
void *second_address(int which);
extern gex_HSL_t second_lock;
#ifdef __cplusplus
}
#endif

gex_HSL_t second_lock = GEX_HSL_INITIALIZER;
static volatile int answers;

static void ask(gex_Token_t token) { gex_AM_ReplyShort0(token, 181, 0); }
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

gex_Rank_t second_rank(gex_TM_t of) { return gex_TM_QueryRank(of); }

void second_put_and_get(gex_TM_t of, gex_Rank_t to, void *at, gex_Segment_t known) {
  char out[32] = "from the second unit", back[32];
  if (gex_Segment_QuerySize(known) == 0) gasnet_exit(3);
  gex_Event_Wait(gex_RMA_PutNB(of, to, at, out, sizeof out, GEX_EVENT_NOW, 0));
  gex_RMA_GetBlocking(of, back, to, at, sizeof back, 0);
  if (memcmp(out, back, sizeof out) != 0) gasnet_exit(4);
}

gex_AM_Entry_t *second_table(size_t *count) {
  static gex_AM_Entry_t table[2];
  memset(table, 0, sizeof table);
  table[0].gex_index = 180;
  table[0].gex_fnptr = (gex_AM_Fn_t)ask;
  table[0].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
  table[1].gex_index = 181;
  table[1].gex_fnptr = (gex_AM_Fn_t)answer;
  table[1].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY;
  *count = 2;
  return table;
}

int second_answers(void) { return answers; }

void *second_address(int which) {
  return which == 0 ? GEX_EVENT_NOW : which == 1 ? GEX_EVENT_DEFER : GEX_EVENT_GROUP;
}
