/* Non-contiguous puts between further endpoints are reported to their peers: the handler of the
 * endpoint whose memory was put to runs, where it has none of that index, or cannot have messages,
 * the primordial one's; its token names the endpoint; all bytes are there. */
#include "check.h"

#include <gasnet_mk.h>
#include <gasnet_vis.h>

#if GASNET_MAXEPS > 3
enum { REPORT = 150, SHARED, EPS = 4, MUTE = 2, LINES = 40, LINE = 24, STEP = 64, SLOT = LINES * STEP };
static gex_EP_t eps[EPS];
static gex_Segment_t segments[EPS];
static int marks[EPS];
static volatile int reported[EPS], shared[EPS];

/* Data of a report. */
typedef struct {
  uint32_t key, from, to;
} note;

static char *slot(char *base, gex_Rank_t rank, uint32_t from) { return base + ((size_t)rank * EPS + from) * SLOT; }

/* `mine` is the endpoint that the handler was registered with. */
static void on_note(int mine, gex_AM_Index_t index, gex_Token_t token, void *data, size_t bytes) {
  gex_Token_Info_t info;
  gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
  note it;
  char *base;
  int line;
  CHECK_EQ(bytes, sizeof it);
  memcpy(&it, data, sizeof it);
  CHECK(it.to < EPS && it.from < EPS);
  CHECK_EQ(mine, index == SHARED || it.to == MUTE ? 0 : (int)it.to);
  CHECK_SAME(info.gex_ep, eps[it.to]);
  if (known & GEX_TI_IS_REQ) CHECK_EQ(info.gex_is_req, 0);
  if (known & GEX_TI_IS_LONG) CHECK_EQ(info.gex_is_long, 0);
  if (known & GEX_TI_ENTRY) {
    CHECK_EQ(info.gex_entry->gex_index, index);
    CHECK_SAME(info.gex_entry->gex_cdata, &marks[mine]);
  }
  base = slot((char *)gex_Segment_QueryAddr(segments[it.to]), info.gex_srcrank, it.from);
  for (line = 0; line < LINES; ++line) CHECK_FILLED(base + line * STEP, LINE, it.key + (uint32_t)line);
  if (index == SHARED)
    shared[it.to] = shared[it.to] + 1;
  else
    reported[it.to] = reported[it.to] + 1;
}
static void report_0(gex_Token_t token, void *data, size_t bytes) { on_note(0, REPORT, token, data, bytes); }
static void report_1(gex_Token_t token, void *data, size_t bytes) { on_note(1, REPORT, token, data, bytes); }
static void report_3(gex_Token_t token, void *data, size_t bytes) { on_note(3, REPORT, token, data, bytes); }
static void on_shared(gex_Token_t token, void *data, size_t bytes) { on_note(0, SHARED, token, data, bytes); }

#define ENTRY(INDEX, FN, N) {INDEX, (gex_AM_Fn_t)FN, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, &marks[N], "report"}

static void start(void) {
  gex_AM_Entry_t first[] = {ENTRY(REPORT, report_0, 0), ENTRY(SHARED, on_shared, 0)};
  gex_AM_Entry_t second[] = {ENTRY(REPORT, report_1, 1)}, last[] = {ENTRY(REPORT, report_3, 3)};
  int i;
  eps[0] = ep, segments[0] = segment;
  for (i = 1; i < EPS; ++i) {
    gex_EP_Capabilities_t with = GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_VIS;
    CHECK_OK(gex_EP_Create(&eps[i], client, i == MUTE ? with : with | GEX_EP_CAPABILITY_AM, 0));
    CHECK_OK(gex_Segment_Create(&segments[i], client, NULL, (uintptr_t)ranks * EPS * SLOT, GEX_MK_HOST, 0));
    CHECK_OK(gex_EP_BindSegment(eps[i], segments[i], 0));
  }
  check_register(first, CHECK_COUNT(first));
  CHECK_OK(gex_EP_RegisterHandlers(eps[1], second, 1));
  CHECK_OK(gex_EP_RegisterHandlers(eps[3], last, 1));
  CHECK_OK(gex_EP_PublishBoundSegment(team, eps + 1, EPS - 1, 0));
}

/* Puts lines at distances; the peer learns when they are there. */
static void put(gex_TM_t tm, gex_Rank_t rank, char *base, uint32_t from, uint32_t to, uint32_t key, gex_AM_Index_t handler) {
  static char source[LINES * LINE];
  static const ptrdiff_t there[] = {STEP}, here[] = {LINE};
  static const size_t counts[] = {LINES};
  char *dst = slot(base, me, from);
  note it;
  int line;
  it.key = key, it.from = from, it.to = to;
  for (line = 0; line < LINES; ++line) check_fill(source + line * LINE, LINE, key + (uint32_t)line);
  gex_VIS_SetPeerCompletionHandler(handler, &it, sizeof it, 0);
  switch (key % 3) {
  case 0:
    CHECK_EQ(gex_VIS_StridedPutBlocking(tm, rank, dst, there, source, here, LINE, counts, 1, 0), 0);
    break;
  case 1:
    gex_Event_Wait(gex_VIS_StridedPutNB(tm, rank, dst, there, source, here, LINE, counts, 1, 0));
    break;
  default:
    CHECK_EQ(gex_VIS_StridedPutNBI(tm, rank, dst, there, source, here, LINE, counts, 1, 0), 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
  }
}

/* All ranks put once to each rank's endpoint; no rank goes on before all puts were reported to all
 * ranks. */
static void round_of(uint32_t from, uint32_t to, uint32_t key) {
  gex_TM_t tm = gex_TM_Pair(eps[from], to);
  int before = reported[to], before_shared = shared[to];
  gex_Rank_t rank;
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    char *base = NULL;
    check_bound(tm, rank, &base, NULL, NULL);
    put(tm, rank, base, from, to, key, REPORT);
  }
  GASNET_BLOCKUNTIL(reported[to] == before + (int)ranks);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    char *base = NULL;
    check_bound(tm, rank, &base, NULL, NULL);
    put(tm, rank, base, from, to, key + 100, SHARED);
  }
  GASNET_BLOCKUNTIL(shared[to] == before_shared + (int)ranks);
  check_barrier();
  CHECK_EQ(reported[to], before + (int)ranks);
}

/* By ranks of a team whose members are further endpoints, turned round. */
static void in_a_team(void) {
  gex_EP_Location_t *list = (gex_EP_Location_t *)malloc(ranks * sizeof *list);
  gex_TM_t made;
  gex_Rank_t rank;
  int before = reported[1] + reported[3];
  for (rank = 0; rank < ranks; ++rank) list[rank].gex_rank = ranks - 1 - rank, list[rank].gex_ep_index = rank % 2 ? 3 : 1;
  gex_TM_Create(&made, 1, team, list, ranks, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  check_barrier();
  for (rank = 0; rank < ranks; ++rank) {
    char *base = NULL;
    check_bound(made, rank, &base, NULL, NULL);
    put(made, rank, base, gex_EP_QueryIndex(gex_TM_QueryEP(made)), list[rank].gex_ep_index, 7000 + rank, REPORT);
  }
  GASNET_BLOCKUNTIL(reported[1] + reported[3] == before + (int)ranks);
  check_barrier();
  gex_TM_Destroy(made, NULL, 0);
  free(list);
}
#endif

int main(int argc, char **argv) {
  check_start(&argc, &argv, "vis_endpoints");
#if GASNET_MAXEPS > 3
  {
    uint32_t from, to;
    check_attach((uintptr_t)ranks * EPS * SLOT);
    start();
    check_barrier();
    for (from = 0; from < EPS; ++from)
      for (to = 0; to < EPS; ++to) round_of(from, to, 1000 + from * EPS + to);
    in_a_team();
  }
#endif
  return check_finish();
}
