/* Non-contiguous puts and gets of random shapes by all threads at once, in all forms, some under
 * way together, compared byte by byte with a model, with the bytes between the pieces; reports
 * to peers when the data are there. In attached segments and by pairs whose memory is not;
 * with GASNET_SEGMENT_EVERYTHING in static memory, and with the further argument "messages" without
 * copies by the kernel. */
#include "check_threads.h"
#include "vis.h"

#include <gasnet_coll.h>

enum { TURNS = 60, SLOTS = 3, REPORTS = 4, ROOMS = SLOTS + REPORTS, REPORT = 201, COUNTED = 202, MOST_RANKS = 4, MOST_USERS = 8 };

/* Report to a peer: the origin of the transfer, and the sum of all bytes of its room. */
typedef struct {
  uint32_t giver, thread, room, sum;
} report;

/* A transfer that is under way. */
typedef struct {
  int puts;
  gex_Rank_t rank;
  gex_Event_t event;
  char mine[VIS_ROOM], expected[VIS_ROOM], there[VIS_ROOM];
} transfer;

static char *bases[MOST_RANKS];
static gex_TM_t pair;
static gasnett_atomic_t reported = gasnett_atomic_init(0), asked[MOST_RANKS], announced = gasnett_atomic_init(0),
                        expected_reports = gasnett_atomic_init(0);
/* Shapes are drawn, and the model works, one after another. */
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;

static size_t room_at(gex_Rank_t giver, int thread, int room) {
  return (((size_t)giver * MOST_USERS + (size_t)thread) * ROOMS + (size_t)room) * VIS_ROOM;
}
static uint32_t sum_of(const char *from) {
  uint32_t sum = 0;
  size_t at;
  for (at = 0; at < VIS_ROOM; ++at) sum = sum * 31 + (unsigned char)from[at];
  return sum;
}

static void on_report(gex_Token_t token, void *data, size_t bytes) {
  report what;
  (void)token;
  CHECK_EQ(bytes, sizeof what);
  memcpy(&what, data, sizeof what);
  CHECK(what.giver < ranks && what.thread < MOST_USERS && what.room >= SLOTS && what.room < ROOMS);
  CHECK_EQ(sum_of(bases[me] + room_at(what.giver, (int)what.thread, (int)what.room)), what.sum);
  check_more(&reported);
}
static void counted(gex_Token_t token, gex_AM_Arg_t number) {
  (void)token;
  gasnett_atomic_add(&expected_reports, (gasnett_atomic_val_t)number, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ);
  check_more(&announced);
}

/* As the macros of vis.h call them. */
#define to_lists lists[slot][0]
#define from_lists lists[slot][1]
#define shape shapes[slot]

/* Draws a transfer, and the bytes of both sides before it and after it. */
static void draw(transfer *one, vis_shape *drawn, vis_lists *to, vis_lists *from, char *room, uint32_t key) {
  CHECK_EQ(pthread_mutex_lock(&drawing), 0);
  vis_random(drawn);
  check_fill(one->mine, VIS_ROOM, key);
  check_fill(one->there, VIS_ROOM, key + 7777);
  memcpy(one->expected, one->puts ? one->there : one->mine, VIS_ROOM);
  vis_model(drawn, one->expected, one->puts ? one->mine : one->there);
  vis_list(to, &drawn->dst, one->puts ? room : one->mine);
  vis_list(from, &drawn->src, one->puts ? one->mine : room);
  CHECK_EQ(pthread_mutex_unlock(&drawing), 0);
  CHECK_EQ(gex_RMA_PutBlocking(team, one->rank, room, one->there, VIS_ROOM, 0), 0);
}

static void check_over(transfer *one, char *room) {
  if (one->puts) {
    CHECK_EQ(gex_RMA_GetBlocking(team, one->there, one->rank, room, VIS_ROOM, 0), 0);
    CHECK(memcmp(one->there, one->expected, VIS_ROOM) == 0);
  } else {
    CHECK(memcmp(one->mine, one->expected, VIS_ROOM) == 0);
  }
}

static void *work(void *argument) {
  struct check_thread *thread = (struct check_thread *)argument;
  transfer *slots = (transfer *)calloc(SLOTS + 1, sizeof *slots);
  vis_shape shapes[SLOTS + 1];
  vis_lists lists[SLOTS + 1][2];
  int turn, slot, reports = 0, region;
  CHECK(slots != NULL);
  for (turn = 0; turn < TURNS; ++turn) {
    gex_Event_t all = GEX_EVENT_INVALID;
    region = check_draw(thread) % 3 == 0;
    for (slot = 0; slot < SLOTS; ++slot) {
      transfer *one = &slots[slot];
      gex_TM_t by = check_draw(thread) % 2 ? team : pair;
      char *room;
      one->puts = check_draw(thread) % 2;
      one->rank = (gex_Rank_t)(check_draw(thread) % ranks);
      room = bases[one->rank] + room_at(me, thread->index, slot);
      draw(one, &shape, &lists[slot][0], &lists[slot][1], room, (uint32_t)check_draw(thread));
      one->event = GEX_EVENT_INVALID;
      if (region && slot == 0) gex_NBI_BeginAccessRegion(0);
      switch (region ? 2 : check_draw(thread) % 3) {
      case 0:
        if (one->puts) CHECK_EQ(LISTS(PutBlocking, by, one->rank, 0, room, one->mine), 0);
        else CHECK_EQ(LISTS(GetBlocking, by, one->rank, 0, one->mine, room), 0);
        break;
      case 1:
        one->event = one->puts ? LISTS(PutNB, by, one->rank, 0, room, one->mine)
                               : LISTS(GetNB, by, one->rank, 0, one->mine, room);
        CHECK(one->event != GEX_EVENT_NO_OP);
        break;
      default:
        if (one->puts) CHECK_EQ(LISTS(PutNBI, by, one->rank, 0, room, one->mine), 0);
        else CHECK_EQ(LISTS(GetNBI, by, one->rank, 0, one->mine, room), 0);
      }
    }
    if (region) all = gex_NBI_EndAccessRegion(0);
    for (slot = SLOTS; slot > 0; --slot) gex_Event_Wait(slots[slot - 1].event);
    gex_Event_Wait(all);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    for (slot = 0; slot < SLOTS; ++slot)
      check_over(&slots[slot], bases[slots[slot].rank] + room_at(me, thread->index, slot));
    if (reports < REPORTS && check_draw(thread) % 4 == 0) {
      /* A room of its own each time: its owner looks at it when the put is reported. */
      transfer *one = &slots[SLOTS];
      report what;
      char *room;
      slot = SLOTS;
      one->puts = 1;
      one->rank = (gex_Rank_t)(check_draw(thread) % ranks);
      what.giver = me;
      what.thread = (uint32_t)thread->index;
      what.room = (uint32_t)(SLOTS + reports++);
      room = bases[one->rank] + room_at(me, thread->index, (int)what.room);
      draw(one, &shape, &lists[slot][0], &lists[slot][1], room, (uint32_t)check_draw(thread));
      what.sum = sum_of(one->expected);
      gex_VIS_SetPeerCompletionHandler(REPORT, &what, sizeof what, 0);
      gex_Event_Wait(LISTS(PutNB, check_draw(thread) % 2 ? team : pair, one->rank, 0, room, one->mine));
      check_more(&asked[one->rank]);
      check_over(one, room);
    }
  }
  free(slots);
  return NULL;
}

int main(int argc, char **argv) {
  const size_t bytes = (size_t)MOST_RANKS * MOST_USERS * ROOMS * VIS_ROOM;
  gex_AM_Entry_t table[] = {
      {REPORT, (gex_AM_Fn_t)on_report, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "report"},
      {COUNTED, (gex_AM_Fn_t)counted, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "counted"}};
  gex_Rank_t rank;
  char *mine;
#if GASNET_SEGMENT_EVERYTHING
  static char memory[(size_t)MOST_RANKS * MOST_USERS * ROOMS * VIS_ROOM];
  if (argc > 2 && strcmp(argv[2], "messages") == 0) setenv("ARGONET_CROSS_MEMORY", "0", 1);
#else
  gex_EP_t other;
#endif
  check_start(&argc, &argv, "threads_vis");
  check_threads_of(argc, argv);
  CHECK(ranks <= MOST_RANKS && threads <= MOST_USERS);
  check_register(table, CHECK_COUNT(table));
#if GASNET_SEGMENT_EVERYTHING
  CHECK(sizeof memory == bytes);
  mine = memory;
  pair = team;
#else
  check_attach(bytes);
  mine = check_base(me);
  CHECK_OK(gex_EP_Create(&other, client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_VIS, 0));
  CHECK_OK(gex_EP_BindSegment(other, segment, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &other, 1, 0));
  pair = gex_TM_Pair(ep, gex_EP_QueryIndex(other));
#endif
  for (rank = 0; rank < ranks; ++rank) {
    gex_Event_Wait(gex_Coll_BroadcastNB(team, rank, &bases[rank], &mine, sizeof mine, 0));
    gasnett_atomic_set(&asked[rank], 0, 0);
  }
  check_seed(me + 1);
  check_barrier();
  check_run(work);
  for (rank = 0; rank < ranks; ++rank)
    CHECK_EQ(gex_AM_RequestShort1(team, rank, COUNTED, 0, check_count(&asked[rank])), 0);
  GASNET_BLOCKUNTIL(check_count(&announced) == (int)ranks);
  GASNET_BLOCKUNTIL(check_count(&reported) == check_count(&expected_reports));
  check_barrier();
  CHECK_EQ(check_count(&reported), check_count(&expected_reports));
  return check_finish();
}
