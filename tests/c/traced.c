/* Messages of the client in traces and statistics, and what puts, gets, messages and barriers leave
 * there. Run as it is nothing is traced, and no argument of a message is evaluated; with the
 * argument "traced" the environment says where the trace goes. */
#include "check.h"
#include <gasnet_ratomic.h>

#include <gasnet_tools.h>

enum { PING = 150, PONG };

static volatile int pongs;
static int evaluated;
static const char one[] = "one.c";

static int evaluate(int value) {
  ++evaluated;
  return value;
}
static void ping(gex_Token_t token, void *payload, size_t bytes, gex_AM_Arg_t number) {
  (void)payload;
  CHECK_EQ(bytes, 12);
  GASNETT_TRACE_PRINTF("in the handler of %d", (int)number);
  CHECK_EQ(gex_AM_ReplyShort1(token, PONG, 0, number), 0);
}
static void pong(gex_Token_t token, gex_AM_Arg_t number) {
  (void)token;
  CHECK_EQ(number, 42);
  pongs = pongs + 1;
}
static void add_lines(void (*line)(const char *format, ...)) {
  line("lines of the client: %d and %s", 1, "two");
}

static void source_lines(int on) {
  const char *file = "none";
  uint32_t line = 99;
  GASNETT_TRACE_SETSOURCELINE(one, 11);
  GASNETT_TRACE_GETSOURCELINE(&file, &line);
  CHECK_SAME(file, on ? one : NULL);
  CHECK_EQ(line, on ? 11 : 0);
  GASNETT_TRACE_SETSOURCELINE(NULL, 12);
  GASNETT_TRACE_FREEZESOURCELINE();
  GASNETT_TRACE_SETSOURCELINE("two.c", 13);
  GASNETT_TRACE_GETSOURCELINE(&file, &line);
  CHECK_SAME(file, on ? one : NULL);
  CHECK_EQ(line, on ? 12 : 0);
  GASNETT_TRACE_UNFREEZESOURCELINE();
}

static void masks(int on) {
  char before[32];
  strcpy(before, GASNETT_TRACE_GETMASK());
  CHECK_EQ(strlen(before), on ? 16 : 0);
  GASNETT_TRACE_SETMASK("^H");
  CHECK(!GASNETT_TRACE_ENABLED);
  GASNETT_TRACE_PRINTF("left out: %d", evaluate(1));
  GASNETT_TRACE_PRINTF_FORCE("not left out: %d", evaluate(2));
  CHECK_EQ(evaluated, on);
  GASNETT_TRACE_SETMASK(before);
  CHECK(strcmp(GASNETT_TRACE_GETMASK(), before) == 0);
  GASNETT_STATS_SETMASK(GASNETT_STATS_GETMASK());
  CHECK_EQ(GASNETT_TRACE_GET_TRACELOCAL(), on);
  GASNETT_TRACE_SET_TRACELOCAL(GASNETT_TRACE_GET_TRACELOCAL());
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "ping"},
                            {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong"}};
  uint64_t word = 7, back = 0;
  uint32_t block[5] = {1, 2, 3, 4, 5};
  gex_AM_SrcDesc_t room;
  gex_AD_t ad = GEX_AD_INVALID;
  char *theirs;
  int on;
  check_start(&argc, &argv, "traced");
  on = argc > 1 && strcmp(argv[1], "traced") == 0;
  CHECK_EQ(GASNETT_TRACE_ENABLED != 0, on);
  check_register(table, CHECK_COUNT(table));
  check_attach(4096);
  theirs = check_base(check_next());
  source_lines(on);
  masks(on);
  GASNETT_STATS_INIT(add_lines);
  /* Expressions, which may stand in others. */
  evaluated = (GASNETT_TRACE_PRINTF("hello %d from %s", evaluate(5), "C"), GASNETT_STATS_PRINTF("counted %d", 6), 0);
  check_barrier();
  /* Operations that a header does itself where nothing is traced. */
  CHECK_EQ(gex_RMA_PutBlocking(team, check_next(), theirs, &word, 8, 0), 0);
  CHECK_EQ(gex_RMA_PutBlockingVal(team, check_next(), theirs + 8, 9, 4, 0), 0);
  gex_Event_Wait(gex_RMA_PutNB(team, check_next(), theirs + 16, block, sizeof block, GEX_EVENT_NOW, 0));
  CHECK_EQ(gex_RMA_PutNBI(team, check_next(), theirs + 40, block, 16, GEX_EVENT_NOW, 0), 0);
  gex_NBI_Wait(GEX_EC_ALL, 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, &back, check_next(), theirs, 8, 0), 0);
  CHECK_EQ(back, 7);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, check_next(), theirs + 8, 4, 0), 9);
  gex_Event_Wait(gex_RMA_GetNB(team, block, check_next(), theirs + 16, sizeof block, 0));
  CHECK_EQ(gex_RMA_GetNBI(team, block, check_next(), theirs + 40, 16, 0), 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_EQ(block[3], 4);
  gex_AD_Create(&ad, team, GEX_DT_U64, GEX_OP_FADD | GEX_OP_XOR, 0);
  gex_Event_Wait(gex_AD_OpNB_U64(ad, &back, check_next(), theirs + 64, GEX_OP_FADD, 5, 0, 0));
  CHECK_EQ(gex_AD_OpNBI_U64(ad, NULL, check_next(), theirs + 72, GEX_OP_XOR, 5, 0, 0), 0);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  check_barrier();
  gex_AD_Destroy(ad);
  CHECK_EQ(gex_AM_RequestMedium1(team, check_next(), PING, "hello world", 12, GEX_EVENT_NOW, 0, 42), 0);
  room = gex_AM_PrepareRequestMedium(team, check_next(), NULL, 12, 12, NULL, 0, 1);
  memcpy(gex_AM_SrcDescAddr(room), "hello again", 12);
  gex_AM_CommitRequestMedium1(room, PING, 12, 42);
  GASNET_BLOCKUNTIL(pongs == 2);
  gasnet_barrier_notify(3, 0);
  CHECK_OK(gasnet_barrier_wait(3, 0));
  GASNETT_STATS_DUMP(1);
  return check_finish();
}
