/* argonet_RMA_PutSignal and argonet_SignalWait: what was put is there when the word has changed, in
 * attached segments and in created ones, by the team and by pairs, without any other call that
 * waits. */
#include "check.h"
#include <gasnet_mk.h>

enum { MOST = 70000, WORDS = 4, SLOT = WORDS * 8 + MOST };
static const size_t sizes[] = {0, 1, 7, 8, 64, 511, 512, 4096, 65000, MOST};
static unsigned char from[MOST];

/* The rank's segment, of which the words come first; its owner's address. */
static uint64_t *words_of(gex_Rank_t rank) {
  char *owner = NULL;
  check_bound(team, rank, &owner, NULL, NULL);
  return (uint64_t *)(((uintptr_t)owner + 7) & ~(uintptr_t)7);
}

/* Each rank puts to the next one, which asks for the next length by a signal without bytes. */
static void lengths(gex_TM_t tm) {
  gex_Rank_t next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  uint64_t *own = words_of(me), *there = words_of(next), *back = words_of(before), start = own[1];
  size_t i;
  for (i = 0; i < CHECK_COUNT(sizes); ++i) {
    uint64_t turn = start + i + 1;
    check_fill(from, sizes[i], (uint32_t)(me * 100 + turn));
    CHECK_OK(argonet_RMA_PutSignal(tm, next, there + WORDS, from, sizes[i], there, GEX_OP_SET, turn, 0));
    memset(from, 0x11, sizes[i]);
    CHECK_EQ(argonet_SignalWait(own, ARGONET_CMP_GE, turn), turn);
    CHECK_FILLED(own + WORDS, sizes[i], (uint32_t)(before * 100 + turn));
    CHECK_OK(argonet_RMA_PutSignal(tm, before, NULL, NULL, 0, back + 1, GEX_OP_ADD, 1, 0));
    CHECK_EQ(argonet_SignalWait(own + 1, ARGONET_CMP_EQ, turn), turn);
  }
}

/* All ranks signal all. */
static void counts(void) {
  uint64_t *own = words_of(me), round, rounds = check_trips(300, 30);
  gex_Rank_t rank;
  for (round = 1; round <= rounds; ++round) {
    for (rank = 0; rank < ranks; ++rank) {
      uint64_t *there = words_of(rank);
      unsigned char byte = (unsigned char)(round + me);
      CHECK_OK(argonet_RMA_PutSignal(team, rank, (char *)(there + WORDS) + me, &byte, 1, there + 2, GEX_OP_ADD, 1, 0));
    }
    CHECK_EQ(argonet_SignalWait(own + 2, ARGONET_CMP_GT, round * ranks - 1), round * ranks);
    for (rank = 0; rank < ranks; ++rank)
      CHECK_EQ(((unsigned char *)(own + WORDS))[rank], (unsigned char)(round + rank));
    check_barrier();
  }
}

/* Comparisons are of unsigned numbers. */
static void comparisons(void) {
  uint64_t *own = words_of(me), big = ~(uint64_t)0;
  CHECK_OK(argonet_RMA_PutSignal(team, me, NULL, NULL, 0, own + 3, GEX_OP_SET, big, 0));
  CHECK(argonet_SignalWait(own + 3, ARGONET_CMP_EQ, big) == big);
  CHECK(argonet_SignalWait(own + 3, ARGONET_CMP_NE, 0) == big);
  CHECK(argonet_SignalWait(own + 3, ARGONET_CMP_GT, 1) == big);
  CHECK(argonet_SignalWait(own + 3, ARGONET_CMP_GE, big) == big);
  CHECK_OK(argonet_RMA_PutSignal(team, me, NULL, NULL, 0, own + 3, GEX_OP_ADD, 2, 0));
  CHECK_EQ(argonet_SignalWait(own + 3, ARGONET_CMP_LT, 2), 1);
  CHECK_EQ(argonet_SignalWait(own + 3, ARGONET_CMP_LE, 1), 1);
}

int main(int argc, char **argv) {
  check_start(&argc, &argv, "signals");
  /* Where the number of ranks is odd the memory is created, badly aligned, and only its owner
   * reaches it. */
  if (ranks % 2) {
    char *heap = (char *)calloc(SLOT + 16, 1);
    CHECK(heap != NULL);
    CHECK_OK(gex_Segment_Create(&segment, client, heap + 3, SLOT + 8, GEX_MK_HOST, 0));
    CHECK_OK(gex_EP_BindSegment(ep, segment, 0));
    CHECK_OK(gex_EP_PublishBoundSegment(team, &ep, 1, 0));
  } else {
    check_attach(SLOT + 8);
    memset(check_base(me), 0, SLOT + 8);
  }
  check_barrier();
  lengths(team);
  check_barrier();
  lengths(gex_TM_Pair(ep, 0));
  check_barrier();
  counts();
  comparisons();
  return check_finish();
}
