/* Messages that may not wait: each call sends or sends nothing, and says which; nothing is lost,
 * nothing comes twice, and with polls between every one is sent in the end. All ranks flood one,
 * and that one floods back. */
#include "check.h"

enum { COUNT = 2000, SHORT = 155, MEDIUM, LONG, ANSWER, SLOT = 4096 };
static volatile int received[3], answers;
static volatile uint64_t sums[3];
static char *mine;

static void a_short(gex_Token_t token, gex_AM_Arg_t number) {
  received[0] = received[0] + 1;
  sums[0] = sums[0] + (uint64_t)number;
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void medium(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t number) {
  CHECK_FILLED(data, bytes, (uint32_t)number);
  received[1] = received[1] + 1;
  sums[1] = sums[1] + (uint64_t)number;
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t number) {
  CHECK((char *)data >= mine && (char *)data + bytes <= mine + 64 * SLOT);
  received[2] = received[2] + 1;
  sums[2] = sums[2] + (uint64_t)number;
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

/* The number of messages that did not go at the first attempt. */
static int flood(gex_Rank_t to) {
  static unsigned char bytes[2048];
  char *there = check_base(to) + me * SLOT;
  int i, refused = 0;
  for (i = 0; i < COUNT; ++i) {
    size_t size = check_below(500) + 1;
    int result;
    do {
      check_fill(bytes, size, (uint32_t)i);
      switch (i % 3) {
        case 0: result = gex_AM_RequestShort1(team, to, SHORT, GEX_FLAG_IMMEDIATE, i); break;
        case 1: result = gex_AM_RequestMedium1(team, to, MEDIUM, bytes, size, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, i); break;
        default: result = gex_AM_RequestLong1(team, to, LONG, bytes, size, there, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, i); break;
      }
      memset(bytes, 0, size);
      if (result) {
        ++refused;
        gasnet_AMPoll();
      }
    } while (result);
  }
  return refused;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{SHORT, (gex_AM_Fn_t)a_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "short"},
                            {MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  gex_Rank_t rank;
  int kind, total = 0, senders;
  check_start(&argc, &argv, "am_pressure");
  check_seed(me);
  check_register(table, CHECK_COUNT(table));
  check_attach(64 * SLOT);
  CHECK(ranks <= 64);
  mine = check_base(me);
  check_barrier();
  if (me == 0) {
    for (rank = 0; rank < ranks; ++rank) {
      flood(rank);
      total += COUNT;
    }
  } else {
    flood(0);
    total = COUNT;
  }
  GASNET_BLOCKUNTIL(answers == total);
  check_barrier();
  senders = me == 0 ? (int)ranks : 1;
  for (kind = 0; kind < 3; ++kind) {
    int per = 0, i;
    uint64_t sum = 0;
    for (i = kind; i < COUNT; i += 3) {
      ++per;
      sum += (uint64_t)i;
    }
    CHECK_EQ(received[kind], per * senders);
    CHECK_EQ(sums[kind], sum * (uint64_t)senders);
  }
  return check_finish();
}
