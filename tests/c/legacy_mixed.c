/* Both interfaces in one program, used alike, begun by gasnet_init; legacy_mixed_ex.c begins it by
 * gex_Client_Init. */
#include "legacy.h"

#ifndef BEGUN_BY_EX
#define BEGUN_BY_EX 0
#endif

enum { OLD = 170, NEW, NEW_ANSWER };
static volatile int olds, answers;

static void by_old_name(gasnet_token_t token, void *data, size_t bytes, gasnet_handlerarg_t value) {
  gasnet_node_t from;
  gex_Token_Info_t info;
  CHECK_OK(gasnet_AMGetMsgSource(token, &from));
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
  CHECK_EQ(info.gex_srcrank, from);
  CHECK_EQ(value, 5);
  CHECK_FILLED(data, bytes, 5);
  olds = olds + 1;
}
static void by_new_name(gex_Token_t token) { CHECK_OK(gasnet_AMReplyShort0(token, NEW_ANSWER)); }
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

static gex_AM_Entry_t news[] = {{NEW, (gex_AM_Fn_t)by_new_name, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "new"},
                                {NEW_ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};

#if BEGUN_BY_EX
static void begin(int *argc, char ***argv) {
  static gex_AM_Entry_t old[] = {
      {OLD, (gex_AM_Fn_t)by_old_name, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "old"}};
  gex_Client_t same_client;
  gex_EP_t same_ep;
  gex_TM_t same_team;
  gex_Segment_t same_segment;
  check_start_with(argc, argv, "legacy_mixed_ex", GEX_FLAG_USES_GASNET1);
  CHECK_EQ(gasnet_mynode(), me);
  CHECK_EQ(gasnet_nodes(), ranks);
  check_register(old, 1);
  check_attach(4096);
  gasnet_QueryGexObjects(&same_client, &same_ep, &same_team, &same_segment);
  CHECK_SAME(same_client, client);
  CHECK_SAME(same_ep, ep);
  CHECK_SAME(same_team, team);
  CHECK_SAME(same_segment, segment);
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gasnet_init(argc, argv), GASNET_ERR_NOT_INIT);
  CHECK_EQ(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0), GASNET_ERR_NOT_INIT);
  gex_System_SetVerboseErrors(1);
  legacy_ask_segments();
}
#else
static void begin(int *argc, char ***argv) {
  static gasnet_handlerentry_t old[] = {{OLD, (gex_AM_Fn_t)by_old_name}};
  legacy_init(argc, argv, "legacy_mixed");
  legacy_attach(old, 1, 4096);
}
#endif

int main(int argc, char **argv) {
  static char data[300], back[300];
  gex_Rank_t next;
  gasnet_handle_t handle;
  char *there;
  begin(&argc, &argv);
  check_register(news, CHECK_COUNT(news));
  check_barrier();
  next = check_next();
  there = legacy_segment(next);
  check_fill(data, sizeof data, 5);
  CHECK_OK(gasnet_AMRequestMedium1(next, OLD, data, sizeof data, 5));
  CHECK_EQ(gex_AM_RequestMedium1(team, next, OLD, data, sizeof data, GEX_EVENT_NOW, 0, 5), 0);
  CHECK_EQ(gex_AM_RequestShort0(team, next, NEW, 0), 0);
  CHECK_OK(gasnet_AMRequestShort0(next, NEW));
  GASNET_BLOCKUNTIL(olds == 2 && answers == 2);
  /* One's handles are the other's events, and both move the same memory. */
  handle = gex_RMA_PutNB(team, next, there, data, sizeof data, GEX_EVENT_DEFER, 0);
  gasnet_wait_syncnb(handle);
  gex_Event_Wait(gasnet_get_nb(back, next, there, sizeof back));
  CHECK_FILLED(back, sizeof back, 5);
  memset(back, 0, sizeof back);
  gex_NBI_BeginAccessRegion(0);
  gasnet_get_nbi(back, next, there, 100);
  CHECK_EQ(gex_RMA_GetNBI(team, back + 100, next, there + 100, 200, 0), 0);
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
  CHECK_FILLED(back, sizeof back, 5);
  gasnet_put_nbi_val(next, there, 0x41, 1);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, next, there, 1, 0), 0x41);
  return check_finish();
}
