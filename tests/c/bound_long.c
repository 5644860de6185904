/* Long messages into segments that are bound and not attached: requests and replies of all sizes,
 * short and beyond what one message carries, with payloads given or negotiated, to addresses and
 * offsets, to every rank and oneself, many at once. */
#include "check.h"
#include <gasnet_mk.h>

enum { ECHO = 170, BACK, MOST = 300000, SLOT = MOST + 100, AT = 3 };
enum { CLIENT = 1, OURS = 2, OFFSET = 4, CLOBBER = 8 };
static volatile int answers;
static char *base;
static unsigned char bytes[MOST];

/* Place of the replies of a rank. */
static char *place(gex_Rank_t from) { return base + (size_t)(ranks + from) * SLOT + AT; }

static gex_Token_Info_t about(gex_Token_t token) {
  gex_Token_Info_t info;
  CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_ALL), GEX_TI_ALL);
  CHECK_EQ(info.gex_is_long, 1);
  return info;
}

static void echo(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t low, gex_AM_Arg_t high, gex_AM_Arg_t how,
                 gex_AM_Arg_t key) {
  void *to = (void *)(uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
  gex_Token_Info_t info = about(token);
  gex_Flags_t flags = how & OFFSET ? GEX_FLAG_PEER_SEG_OFFSET : 0;
  CHECK_EQ(info.gex_is_req, 1);
  CHECK_SAME(data, base + (size_t)info.gex_srcrank * SLOT + AT);
  CHECK_FILLED(data, size, (uint32_t)key);
  CHECK_EQ(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 1), gex_AM_LUBReplyLong());
  if (how & CLIENT) {
    gex_AM_SrcDesc_t made = gex_AM_PrepareReplyLong(token, data, size, size, to, GEX_EVENT_NOW, flags, 1);
    CHECK_SAME(gex_AM_SrcDescAddr(made), data);
    gex_AM_CommitReplyLong1(made, BACK, size, to, key);
  } else if (how & OURS) {
    gex_AM_SrcDesc_t made = gex_AM_PrepareReplyLong(token, NULL, size, size, NULL, NULL, flags, 1);
    memcpy(gex_AM_SrcDescAddr(made), data, size);
    gex_AM_CommitReplyLong1(made, BACK, size, to, key);
  } else {
    CHECK_EQ(gex_AM_ReplyLong1(token, BACK, data, size, to, GEX_EVENT_NOW, flags, key), 0);
  }
  if (how & CLOBBER) memset(data, 0x5a, size);
}

static void back(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t key) {
  gex_Token_Info_t info = about(token);
  CHECK_EQ(info.gex_is_req, 0);
  CHECK_SAME(data, place(info.gex_srcrank));
  CHECK_FILLED(data, size, (uint32_t)key);
  answers = answers + 1;
}

static void request(gex_TM_t by, gex_Rank_t rank, char *there, size_t size, int how, gex_AM_Arg_t key, gex_Flags_t flags) {
  uint64_t reply = (uint64_t)(uintptr_t)place(rank);
  size_t at = (size_t)me * SLOT + AT;
  void *to = there + at;
  gex_AM_Arg_t low, high;
  if (how & OFFSET) {
    reply -= (uint64_t)(uintptr_t)base;
    to = (void *)(uintptr_t)at;
    flags |= GEX_FLAG_PEER_SEG_OFFSET;
  }
  low = (gex_AM_Arg_t)reply;
  high = (gex_AM_Arg_t)(reply >> 32);
  if (how & CLIENT) {
    gex_AM_SrcDesc_t made = gex_AM_PrepareRequestLong(by, rank, bytes, size, size, NULL, GEX_EVENT_NOW, flags, 4);
    gex_AM_CommitRequestLong4(made, ECHO, size, to, low, high, how, key);
  } else if (how & OURS) {
    gex_AM_SrcDesc_t made = gex_AM_PrepareRequestLong(by, rank, NULL, size, size, to, NULL, flags, 4);
    memcpy(gex_AM_SrcDescAddr(made), bytes, size);
    gex_AM_CommitRequestLong4(made, ECHO, size, to, low, high, how, key);
  } else {
    while (gex_AM_RequestLong4(by, rank, ECHO, bytes, size, to, GEX_EVENT_NOW, flags, low, high, how, key)) {
      CHECK(flags & GEX_FLAG_IMMEDIATE);
      gasnet_AMPoll();
    }
  }
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{ECHO, (gex_AM_Fn_t)echo, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 4, NULL, "echo"},
                            {BACK, (gex_AM_Fn_t)back, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "back"}};
  static const size_t sizes[] = {1, 8, 511, 4096, 65000, 65536, 65537, 131072, MOST};
  static const int ways[] = {0, CLIENT, OURS, OFFSET, OFFSET | CLIENT, OFFSET | OURS};
  char **there;
  uintptr_t size;
  gex_Rank_t rank;
  size_t i, way;
  int total = 0, key = 0;
  check_start(&argc, &argv, "bound_long");
  check_register(table, CHECK_COUNT(table));
  size = (uintptr_t)2 * ranks * SLOT;
  /* Odd ranks bring memory of their own, badly aligned. */
  if (me % 2) {
    char *heap = (char *)malloc(size + 5);
    CHECK(heap != NULL);
    CHECK_OK(gex_Segment_Create(&segment, client, heap + 5, size, GEX_MK_HOST, 0));
  } else {
    CHECK_OK(gex_Segment_Create(&segment, client, NULL, size, GEX_MK_HOST, 0));
  }
  base = (char *)gex_Segment_QueryAddr(segment);
  CHECK_OK(gex_EP_BindSegment(ep, segment, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &ep, 1, 0));
  check_barrier();
  there = (char **)malloc(ranks * sizeof *there);
  CHECK(there != NULL);
  for (rank = 0; rank < ranks; ++rank) {
    there[rank] = check_base(rank);
    CHECK(gex_AM_MaxRequestLong(team, rank, GEX_EVENT_NOW, 0, 4) >= MOST);
    CHECK(gex_AM_MaxReplyLong(team, rank, GEX_EVENT_NOW, 0, 1) >= MOST);
    CHECK_EQ(gex_AM_MaxReplyLong(team, rank, GEX_EVENT_NOW, 0, 1), gex_AM_LUBReplyLong());
  }
  for (rank = 0; rank < ranks; ++rank)
    for (way = 0; way < CHECK_COUNT(ways); ++way)
      for (i = 0; i < CHECK_COUNT(sizes); ++i) {
        check_fill(bytes, sizes[i], (uint32_t)++key);
        request(i % 2 ? team : gex_TM_Pair(ep, 0), rank, there[rank], sizes[i], ways[way] | CLOBBER, key, 0);
        /* A request is copied, or there, when the call returns. */
        memset(bytes, 0, sizes[i]);
        ++total;
        GASNET_BLOCKUNTIL(answers == total);
      }
  /* Many at once, of one content. */
  check_barrier();
  check_fill(bytes, MOST, 7777);
  for (i = 0; i < 10; ++i)
    for (rank = 0; rank < ranks; ++rank) {
      request(team, rank, there[rank], i % 2 ? 70000 : 1000, 0, 7777, i % 3 ? 0 : GEX_FLAG_IMMEDIATE);
      ++total;
    }
  GASNET_BLOCKUNTIL(answers == total);
  /* Without a payload nothing needs to be anywhere. */
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    request(team, rank, there[rank], 0, 0, 1, 0);
    ++total;
  }
  GASNET_BLOCKUNTIL(answers == total);
  check_barrier();
  return check_finish();
}
