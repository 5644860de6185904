/* Memory that is bound and not attached, reached in every way: the attached segment through a
 * second endpoint, created ones through pairs in all directions; hundreds of transfers at once, as
 * events, implicit and in regions; a segment that is destroyed while it is bound, and another in
 * its place. */
#include "check.h"
#include <gasnet_mk.h>

enum { PIECE = 3000, MANY = 60, SLOT = PIECE * MANY, WAYS = 3, TURNS = 5 };
static unsigned char out[SLOT], in[SLOT];
static gex_EP_t eps[WAYS];

/* Pairs of endpoints: the first has the attached segment, the second too, the third another one. */
static gex_TM_t pair(int from, int to) { return gex_TM_Pair(eps[from], gex_EP_QueryIndex(eps[to])); }

static void transfers(gex_TM_t by, gex_Rank_t rank, char *to, uint32_t key) {
  static gex_Event_t events[2 * MANY];
  int i, form;
  for (form = 0; form < 3; ++form) {
    check_fill(out, SLOT, key + (uint32_t)form);
    memset(in, 0, SLOT);
    if (form == 1) gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < MANY; ++i) {
      size_t at = (size_t)i * PIECE;
      if (form == 0) events[i] = gex_RMA_PutNB(by, rank, to + at, out + at, PIECE, GEX_EVENT_DEFER, 0);
      else CHECK_EQ(gex_RMA_PutNBI(by, rank, to + at, out + at, PIECE, form == 1 ? GEX_EVENT_DEFER : GEX_EVENT_GROUP, 0), 0);
    }
    if (form == 0) gex_Event_WaitAll(events, MANY, 0);
    else if (form == 1) gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    else {
      gex_NBI_Wait(GEX_EC_LC, 0);
      memset(out, 0, SLOT);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      CHECK_EQ(gex_NBI_Test(GEX_EC_PUT, 0), 0);
    }
    if (form == 1) gex_NBI_BeginAccessRegion(0);
    for (i = MANY - 1; i >= 0; --i) {
      size_t at = (size_t)i * PIECE;
      if (form == 0) events[i] = gex_RMA_GetNB(by, in + at, rank, to + at, PIECE, 0);
      else CHECK_EQ(gex_RMA_GetNBI(by, in + at, rank, to + at, PIECE, 0), 0);
    }
    if (form == 0) gex_Event_WaitAll(events, MANY, 0);
    else if (form == 1) gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    else gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK_FILLED(in, SLOT, key + (uint32_t)form);
  }
}

/* The segment that a pair reaches: asked for as an event, among many; later known at once, and the
 * same. */
static char *found(gex_TM_t by, gex_Rank_t rank, uintptr_t expected) {
  enum { ASKED = 20 };
  gex_Event_t events[ASKED];
  void *owners[ASKED], *locals[ASKED], *again;
  uintptr_t sizes[ASKED], size;
  int i;
  for (i = 0; i < ASKED; ++i) {
    owners[i] = locals[i] = (void *)owners;
    sizes[i] = 1;
    events[i] = gex_EP_QueryBoundSegmentNB(by, rank, &owners[i], &locals[i], i % 2 ? &sizes[i] : NULL, 0);
    CHECK(events[i] != GEX_EVENT_NO_OP);
  }
  gex_Event_WaitAll(events, ASKED, 0);
  for (i = 0; i < ASKED; ++i) {
    CHECK_SAME(owners[i], owners[0]);
    CHECK_SAME(locals[i], locals[0]);
    /* An address where it is mapped, else null; in any case something. */
    CHECK(locals[i] != (void *)owners);
    CHECK_EQ(sizes[i], i % 2 ? expected : 1);
  }
  CHECK_SAME(gex_EP_QueryBoundSegmentNB(by, rank, &again, NULL, &size, GEX_FLAG_IMMEDIATE), GEX_EVENT_INVALID);
  CHECK_SAME(again, owners[0]);
  CHECK_EQ(size, expected);
  return (char *)owners[0];
}

static void nothing_there(gex_TM_t by, gex_Rank_t rank) {
  void *owner = (void *)out;
  uintptr_t size = 3;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(by, rank, NULL, NULL, &size, 0));
  CHECK_EQ(size, 0);
  size = 3;
  gex_System_SetVerboseErrors(0);
  CHECK(gex_Segment_QueryBound(by, rank, &owner, NULL, &size) != GASNET_OK);
  gex_System_SetVerboseErrors(1);
  CHECK_SAME(owner, out);
  CHECK_EQ(size, 3);
}

int main(int argc, char **argv) {
  gex_Segment_t made = GEX_SEGMENT_INVALID;
  gex_Rank_t rank;
  int from, to, turn;
  char *heap[TURNS];
  check_start(&argc, &argv, "bound_many");
  check_attach((uintptr_t)ranks * SLOT);
  eps[0] = ep;
  for (to = 1; to < WAYS; ++to) CHECK_OK(gex_EP_Create(&eps[to], client, GEX_EP_CAPABILITY_RMA, 0));
  check_barrier();
  for (rank = 0; rank < ranks; ++rank)
    for (to = 1; to < WAYS; ++to) nothing_there(pair(0, to), rank);
  check_barrier();
  CHECK_OK(gex_EP_BindSegment(eps[1], segment, 0));
  for (turn = 0; turn < TURNS; ++turn) {
    /* Longer each time, and somewhere else. */
    uintptr_t size = (uintptr_t)ranks * SLOT + (uintptr_t)turn;
    heap[turn] = (char *)malloc(size);
    CHECK(heap[turn] != NULL);
    CHECK_OK(gex_Segment_Create(&made, client, heap[turn], size, GEX_MK_HOST, 0));
    CHECK_OK(gex_EP_BindSegment(eps[2], made, 0));
    CHECK_OK(gex_EP_PublishBoundSegment(team, eps, WAYS, 0));
    for (rank = 0; rank < ranks; ++rank) {
      gex_Rank_t other = (rank + me) % ranks;
      char *attached = check_base(other), *there = found(pair(0, 2), other, size);
      CHECK_SAME(found(pair(0, 1), other, gex_Segment_QuerySize(segment)), attached);
      if (other == me) CHECK_SAME(there, heap[turn]);
      for (from = 0; from < WAYS; ++from)
        for (to = 0; to < WAYS; ++to) {
          /* Few turns with all pairs, as they take long. */
          if (turn > 0 && (from + to + turn) % 4) continue;
          transfers(pair(from, to), other, (to == 2 ? there : attached) + me * SLOT, (uint32_t)(turn * 100 + from * 10 + to));
        }
      /* Bytes that went through the second endpoint lie in the attached segment. */
      CHECK_EQ(gex_RMA_PutBlockingVal(pair(2, 1), other, attached + me * SLOT + 5, 0xabcdef, 4, 0), 0);
      CHECK_EQ(gex_RMA_GetBlockingVal(team, other, attached + me * SLOT + 5, 4, 0), 0xabcdef);
      CHECK_EQ(gex_RMA_PutBlockingVal(pair(2, 2), other, (void *)(uintptr_t)(me * SLOT + 7), 0x1234 + turn, 4,
                                      GEX_FLAG_PEER_SEG_OFFSET), 0);
      CHECK_EQ(gex_RMA_GetBlockingVal(pair(1, 2), other, there + me * SLOT + 7, 4, 0), 0x1234 + turn);
    }
    check_barrier();
    /* It is bound. */
    gex_Segment_Destroy(made, 0);
    CHECK_SAME(gex_EP_QuerySegment(eps[2]), GEX_SEGMENT_INVALID);
    CHECK_SAME(gex_EP_QuerySegment(eps[1]), segment);
    /* The client's memory stays, with the bytes that were put there. */
    for (rank = 0; rank < ranks; ++rank) {
      uint32_t value;
      memcpy(&value, heap[turn] + rank * SLOT + 7, 4);
      CHECK_EQ(value, 0x1234 + turn);
    }
    check_barrier();
  }
  CHECK_OK(gex_EP_PublishBoundSegment(team, NULL, 0, 0));
  for (rank = 0; rank < ranks; ++rank) nothing_there(pair(0, 2), rank);
  check_barrier();
  for (turn = 0; turn < TURNS; ++turn) free(heap[turn]);
  return check_finish();
}
