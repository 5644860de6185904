/* Offsets in place of addresses: GEX_FLAG_SELF_SEG_OFFSET for what lies in the own segment,
 * GEX_FLAG_PEER_SEG_OFFSET for what lies in the other's, each alone and both, in put, get, values,
 * medium and long messages and prepared ones. */
#include "check.h"

enum { SLOT = 8192, MEDIUM = 150, LONG, ANSWER, LONG_BACK };
static volatile int answered;
static char *mine;

static gex_Rank_t source_of(gex_Token_t token) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  return info.gex_srcrank;
}
/* The slot of `from` in any segment; the first slot is the owner's. */
static size_t slot(gex_Rank_t from) { return (size_t)(from + 1) * SLOT; }
static void *offset(size_t bytes) { return (void *)(uintptr_t)bytes; }

static void medium(gex_Token_t token, void *data, size_t bytes) {
  CHECK_EQ(bytes, 500);
  CHECK_FILLED(data, bytes, 5);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
/* The handler has the address of the data, as with any long message. Its own answer goes by offsets
 * too. */
static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t at) {
  gex_Rank_t from = source_of(token);
  CHECK_SAME(data, mine + slot(from) + at);
  CHECK_EQ(bytes, 500);
  CHECK_FILLED(data, bytes, 6);
  CHECK_EQ(gex_AM_ReplyLong0(token, LONG_BACK, offset(slot(from) + (size_t)at), bytes, offset(slot(me) + 4000), GEX_EVENT_NOW,
                             GEX_FLAG_SELF_SEG_OFFSET | GEX_FLAG_PEER_SEG_OFFSET), 0);
}
static void long_back(gex_Token_t token, void *data, size_t bytes) {
  CHECK_SAME(data, mine + slot(source_of(token)) + 4000);
  CHECK_EQ(bytes, 500);
  CHECK_FILLED(data, bytes, 6);
  answered = answered + 1;
}
static void answer(gex_Token_t token) {
  (void)token;
  answered = answered + 1;
}

/* Each side by address or by offset. */
static void with(gex_Rank_t rank, int self, int peer, size_t at) {
  gex_Flags_t flags = (self ? GEX_FLAG_SELF_SEG_OFFSET : 0) | (peer ? GEX_FLAG_PEER_SEG_OFFSET : 0);
  gex_Flags_t self_flag = flags & GEX_FLAG_SELF_SEG_OFFSET, peer_flag = flags & GEX_FLAG_PEER_SEG_OFFSET;
  char *base = check_base(rank);
  size_t there = slot(me) + at;
  void *to = peer ? offset(there) : base + there;
  void *from = self ? offset(at) : mine + at;
  void *back = self ? offset(at + 2000) : mine + at + 2000;
  unsigned char by_address[1500];
  gex_AM_SrcDesc_t made;
  int total = answered;

  check_fill(mine + at, 1500, rank);
  CHECK_EQ(gex_RMA_PutBlocking(team, rank, to, from, 1500, flags), 0);
  CHECK_EQ(gex_RMA_GetBlocking(team, by_address, rank, base + there, 1500, 0), 0);
  CHECK_FILLED(by_address, 1500, rank);
  memset(mine + at + 2000, 0, 1500);
  CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, to, 1500, flags), 0);
  CHECK_FILLED(mine + at + 2000, 1500, rank);
  check_fill(mine + at, 1500, rank + 1);
  gex_Event_Wait(gex_RMA_PutNB(team, rank, to, from, 1500, GEX_EVENT_NOW, flags));
  gex_Event_Wait(gex_RMA_GetNB(team, back, rank, to, 1500, flags));
  CHECK_FILLED(mine + at + 2000, 1500, rank + 1);
  check_fill(mine + at, 1500, rank + 2);
  CHECK_EQ(gex_RMA_PutNBI(team, rank, to, from, 1500, GEX_EVENT_DEFER, flags), 0);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK_EQ(gex_RMA_GetNBI(team, back, rank, to, 1500, flags), 0);
  gex_NBI_Wait(GEX_EC_GET, 0);
  CHECK_FILLED(mine + at + 2000, 1500, rank + 2);
  /* Values have no local address. */
  CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, to, 0x123456, 3, peer_flag), 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, to, 3, peer_flag), 0x123456);
  gex_Event_Wait(gex_RMA_PutNBVal(team, rank, to, 0x654321, 3, peer_flag));
  CHECK_EQ(gex_RMA_PutNBIVal(team, rank, to, 0xab, 1, peer_flag), 0);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, base + there, 3, 0), 0x6543ab);

  check_fill(mine + at, 500, 5);
  CHECK_EQ(gex_AM_RequestMedium0(team, rank, MEDIUM, from, 500, GEX_EVENT_NOW, self_flag), 0);
  ++total;
  GASNET_BLOCKUNTIL(answered == total);
  check_fill(mine + at, 500, 6);
  CHECK_EQ(gex_AM_RequestLong1(team, rank, LONG, from, 500, to, GEX_EVENT_NOW, flags, (gex_AM_Arg_t)at), 0);
  ++total;
  GASNET_BLOCKUNTIL(answered == total);
  /* A prepared one may not have its source by offset. */
  check_fill(mine + at, 500, 6);
  made = gex_AM_PrepareRequestLong(team, rank, mine + at, 500, 500, at % 2 ? to : NULL, GEX_EVENT_NOW, peer_flag, 1);
  gex_AM_CommitRequestLong1(made, LONG, 500, to, (gex_AM_Arg_t)at);
  ++total;
  GASNET_BLOCKUNTIL(answered == total);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{MEDIUM, (gex_AM_Fn_t)medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
                            {LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"},
                            {LONG_BACK, (gex_AM_Fn_t)long_back, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, "long_back"}};
  gex_Rank_t rank;
  size_t at;
  int self, peer;
  check_start(&argc, &argv, "seg_offset");
  check_register(table, CHECK_COUNT(table));
  check_attach((ranks + 1) * (uintptr_t)SLOT);
  mine = check_base(me);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank)
    for (self = 0; self < 2; ++self)
      for (peer = 0; peer < 2; ++peer)
        for (at = 0; at < 20; at += 3) with(rank, self, peer, at);
  return check_finish();
}
