/* Non-contiguous puts and gets of random shapes, in all forms, by the team and by a pair whose
 * memory is not attached, compared byte by byte with a model; reports to their peers. */
#include "vis.h"

enum { TURNS = 300, REPORT = 201, COUNT = 202 };
static volatile int reported, announced;
static gex_Rank_t before;
static gex_TM_t pair;

/* The length of the payload is the key of its bytes. */
static void on_report(gex_Token_t token, void *data, size_t bytes) {
  gex_Token_Info_t info;
  gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK_EQ(info.gex_srcrank, before);
  if (known & GEX_TI_IS_REQ) CHECK_EQ(info.gex_is_req, 0);
  if (known & GEX_TI_IS_LONG) CHECK_EQ(info.gex_is_long, 0);
  if (known & GEX_TI_ENTRY) CHECK_EQ(info.gex_entry->gex_index, REPORT);
  CHECK(bytes <= GEX_VIS_MAX_PEERCOMPLETION);
  CHECK_FILLED(data, bytes, (uint32_t)bytes);
  reported = reported + 1;
}
static void count(gex_Token_t token, gex_AM_Arg_t number) {
  (void)token;
  announced = number;
}

static vis_lists to_lists, from_lists;
static vis_shape shape;

/* A put from `src`, which is overwritten as soon as it may be. */
static void put(gex_TM_t by, gex_Rank_t rank, char *dst, char *src) {
  gex_Flags_t flags = check_below(2) ? GEX_FLAG_ENABLE_LEAF_LC : 0;
  gex_Event_t event;
  switch (check_below(5)) {
  case 0:
    CHECK_EQ(LISTS(PutBlocking, by, rank, 0, dst, src), 0);
    break;
  case 1:
    event = LISTS(PutNB, by, rank, flags, dst, src);
    CHECK(event != GEX_EVENT_NO_OP);
    if (flags) {
      gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
      memset(src, 0x33, VIS_ROOM);
    }
    gex_Event_Wait(event);
    break;
  case 2:
    CHECK_EQ(LISTS(PutNBI, by, rank, flags, dst, src), 0);
    if (flags) {
      gex_NBI_Wait(GEX_EC_LC, 0);
      memset(src, 0x33, VIS_ROOM);
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    break;
  case 3:
    gex_NBI_BeginAccessRegion(0);
    CHECK_EQ(LISTS(PutNBI, by, rank, flags, dst, src), 0);
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    break;
  default:
    /* The call is refused once, or not; it is never half done. A put that may be refused is not
     * reported to its peer. */
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    event = LISTS(PutNB, by, rank, flags | GEX_FLAG_IMMEDIATE, dst, src);
    if (event == GEX_EVENT_NO_OP) event = LISTS(PutNB, by, rank, flags, dst, src);
    gex_Event_Wait(event);
  }
}

static void get(gex_TM_t by, gex_Rank_t rank, char *dst, char *src) {
  gex_Event_t event;
  switch (check_below(3)) {
  case 0:
    CHECK_EQ(LISTS(GetBlocking, by, rank, 0, dst, src), 0);
    break;
  case 1:
    event = LISTS(GetNB, by, rank, GEX_FLAG_IMMEDIATE, dst, src);
    if (event == GEX_EVENT_NO_OP) event = LISTS(GetNB, by, rank, 0, dst, src);
    gex_Event_Wait(event);
    break;
  default:
    CHECK_EQ(LISTS(GetNBI, by, rank, 0, dst, src), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
  }
}

/* Nothing moves, and hardly anything is looked at. */
static void degenerate(gex_Rank_t rank, char *base) {
  static const size_t none[] = {4, 0, 4};
  static const ptrdiff_t steps[] = {8, 8, 8};
  char here[8];
  memset(here, 7, sizeof here);
  CHECK_EQ(gex_VIS_StridedPutBlocking(GEX_TM_INVALID, ranks + 5, NULL, NULL, NULL, NULL, 0, NULL, 3, 0), 0);
  CHECK_SAME(gex_VIS_StridedGetNB(GEX_TM_INVALID, NULL, steps, ranks, NULL, steps, 8, none, 3, 0), GEX_EVENT_INVALID);
  CHECK_EQ(gex_VIS_VectorPutBlocking(team, rank, 0, NULL, 0, NULL, 0), 0);
  CHECK_EQ(gex_VIS_IndexedGetBlocking(team, 0, NULL, 8, rank, 0, NULL, 4, 0), 0);
  CHECK_EQ(gex_VIS_StridedPutBlocking(team, rank, base, NULL, here, NULL, sizeof here, NULL, 0, 0), 0);
  CHECK_EQ(gex_VIS_StridedGetBlocking(team, here, NULL, rank, base, NULL, sizeof here, NULL, 0, 0), 0);
  CHECK_ALL(here, sizeof here, 7);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {REPORT, (gex_AM_Fn_t)on_report, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "report"},
      {COUNT, (gex_AM_Fn_t)count, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "count"}};
  static char mine[VIS_ROOM], there[VIS_ROOM], expected[VIS_ROOM], payload[GEX_VIS_MAX_PEERCOMPLETION];
  gex_EP_t other;
  gex_Rank_t next;
  char *base;
  int turn, asked = 0;
  check_start(&argc, &argv, "vis");
  check_register(table, CHECK_COUNT(table));
  check_attach((uintptr_t)ranks * VIS_ROOM);
  CHECK_OK(gex_EP_Create(&other, client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_VIS, 0));
  CHECK_OK(gex_EP_BindSegment(other, segment, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &other, 1, 0));
  pair = gex_TM_Pair(ep, gex_EP_QueryIndex(other));
  next = check_next();
  before = check_previous();
  base = check_base(next) + (size_t)me * VIS_ROOM;
  check_seed(me + 1);
  check_barrier();
  degenerate(next, base);
  for (turn = 0; turn < TURNS; ++turn) {
    gex_TM_t by = check_below(2) ? team : pair;
    vis_random(&shape);
    check_fill(mine, VIS_ROOM, (uint32_t)turn);
    check_fill(there, VIS_ROOM, (uint32_t)turn + 7777);
    CHECK_EQ(gex_RMA_PutBlocking(team, next, base, there, VIS_ROOM, 0), 0);
    if (check_below(2)) {
      int reports = check_below(3) == 0;
      size_t bytes = check_below(GEX_VIS_MAX_PEERCOMPLETION + 1);
      memcpy(expected, there, VIS_ROOM);
      vis_model(&shape, expected, mine);
      vis_list(&to_lists, &shape.dst, base);
      vis_list(&from_lists, &shape.src, mine);
      if (reports) {
        check_fill(payload, bytes, (uint32_t)bytes);
        gex_VIS_SetPeerCompletionHandler(REPORT, payload, bytes, 0);
        CHECK_EQ(LISTS(PutBlocking, by, next, 0, base, mine), 0);
        ++asked;
      } else
        put(by, next, base, mine);
      CHECK_EQ(gex_RMA_GetBlocking(team, there, next, base, VIS_ROOM, 0), 0);
    } else {
      memcpy(expected, mine, VIS_ROOM);
      vis_model(&shape, expected, there);
      vis_list(&to_lists, &shape.dst, mine);
      vis_list(&from_lists, &shape.src, base);
      get(by, next, mine, base);
      memcpy(there, mine, VIS_ROOM);
    }
    CHECK(memcmp(there, expected, VIS_ROOM) == 0);
  }
  CHECK_EQ(gex_AM_RequestShort1(team, next, COUNT, 0, asked + 1), 0);
  GASNET_BLOCKUNTIL(announced != 0);
  GASNET_BLOCKUNTIL(reported == announced - 1);
  check_barrier();
  CHECK_EQ(reported, announced - 1);
  return check_finish();
}
