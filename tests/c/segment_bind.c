/* A created segment bound to the first endpoint, in place of an attached one, and published: put,
 * get, values and long messages reach it, in the library's memory and in the client's; messages
 * without it work before and after. */
#include "check.h"
#include <gasnet_mk.h>

enum { SLOT = 20000, LONG = 133, ANSWER, MOST = 64 };
static volatile int answers;
static char *base;

static void a_long(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t key) {
  CHECK((char *)data >= base && (char *)data + bytes <= base + ranks * SLOT);
  CHECK_FILLED(data, bytes, (uint32_t)key);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  answers = answers + 1;
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {{LONG, (gex_AM_Fn_t)a_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, "long"},
                            {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"}};
  gex_Rank_t rank;
  char *heap = NULL;
  uintptr_t size;
  int total = 0;
  check_start(&argc, &argv, "segment_bind");
  check_register(table, CHECK_COUNT(table));
  size = (uintptr_t)ranks * SLOT;
  /* Odd ranks bring memory of their own, badly aligned. */
  if (me % 2) {
    heap = (char *)malloc(size + 3);
    CHECK(heap != NULL);
    CHECK_OK(gex_Segment_Create(&segment, client, heap + 3, size, GEX_MK_HOST, 0));
  } else {
    CHECK_OK(gex_Segment_Create(&segment, client, NULL, size, GEX_MK_HOST, 0));
  }
  CHECK_OK(gex_EP_BindSegment(ep, segment, 0));
  CHECK_SAME(gex_EP_QuerySegment(ep), segment);
  CHECK_OK(gex_EP_PublishBoundSegment(team, &ep, 1, 0));
  base = (char *)gex_Segment_QueryAddr(segment);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    char *owner;
    uintptr_t theirs;
    static unsigned char bytes[SLOT], back[SLOT];
    check_bound(team, rank, &owner, NULL, &theirs);
    CHECK(owner != NULL && theirs >= size);
    if (rank == me) CHECK_SAME(owner, base);
    owner += me * SLOT;
    check_fill(bytes, SLOT, rank + 1);
    CHECK_EQ(gex_RMA_PutBlocking(team, rank, owner, bytes, SLOT, 0), 0);
    CHECK_EQ(gex_RMA_GetBlocking(team, back, rank, owner, SLOT, 0), 0);
    CHECK_FILLED(back, SLOT, rank + 1);
    memset(back, 0, SLOT);
    gex_Event_Wait(gex_RMA_PutNB(team, rank, owner + 1, bytes, SLOT - 1, GEX_EVENT_NOW, 0));
    CHECK_EQ(gex_RMA_GetNBI(team, back, rank, owner + 1, SLOT - 1, 0), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK_FILLED(back, SLOT - 1, rank + 1);
    CHECK_EQ(gex_RMA_PutBlockingVal(team, rank, owner + 11, 0x1234567, 4, 0), 0);
    CHECK_EQ(gex_RMA_GetBlockingVal(team, rank, owner + 11, 4, 0), 0x1234567);
    check_fill(bytes, 600, 9);
    CHECK_EQ(gex_AM_RequestLong1(team, rank, LONG, bytes, 512, owner + 5, GEX_EVENT_NOW, 0, 9), 0);
    ++total;
    GASNET_BLOCKUNTIL(answers == total);
  }
  check_barrier();
  return check_finish();
}
