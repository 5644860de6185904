/* Put and get to the peer: sizes and places, values, what the peer has then; events and implicit
 * operations. */
#include "diagnostics.h"

/* A byte that stands around what is put. */
#define AROUND 0xA5

/* Puts in one of the ways. The source may be used again when this returns; what was put is
 * there. */
static void put(const struct argonet_diagnosis *run, int way, void *to, void *from, size_t bytes)
{
    gex_Event_t local, done;
    switch (way) {
    case 0:
        gex_RMA_PutBlocking(run->tm, run->peer, to, from, bytes, 0);
        break;
    case 1:
        gex_Event_Wait(gex_RMA_PutNB(run->tm, run->peer, to, from, bytes, GEX_EVENT_DEFER, 0));
        break;
    case 2:
        done = gex_RMA_PutNB(run->tm, run->peer, to, from, bytes, &local, 0);
        gex_Event_Wait(local);
        memset(from, 0, bytes);
        gex_Event_Wait(done);
        break;
    case 3:
        gex_RMA_PutNBI(run->tm, run->peer, to, from, bytes, GEX_EVENT_NOW, 0);
        memset(from, 0, bytes);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        break;
    default:
        gex_RMA_PutNBI(run->tm, run->peer, to, from, bytes, GEX_EVENT_GROUP, 0);
        gex_NBI_Wait(GEX_EC_LC, 0);
        memset(from, 0, bytes);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        break;
    }
}
#define PUTS 5

static void get(const struct argonet_diagnosis *run, int way, void *to, void *from, size_t bytes)
{
    switch (way) {
    case 0:
        gex_RMA_GetBlocking(run->tm, to, run->peer, from, bytes, 0);
        break;
    case 1:
        gex_Event_Wait(gex_RMA_GetNB(run->tm, to, run->peer, from, bytes, 0));
        break;
    default:
        gex_RMA_GetNBI(run->tm, to, run->peer, from, bytes, 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
        break;
    }
}
#define GETS 3

static void diagnose_bytes(struct argonet_diagnoser *me, char *there, char *here, char *back, size_t room, uint32_t key)
{
    static const char *const names[PUTS] = {"gex_RMA_PutBlocking", "gex_RMA_PutNB", "gex_RMA_PutNB with an event",
                                            "gex_RMA_PutNBI with GEX_EVENT_NOW", "gex_RMA_PutNBI with GEX_EVENT_GROUP"};
    const struct argonet_diagnosis *run = me->run;
    const size_t most = argonet_diagnose_below(me, 4) ? 64 : room;
    const size_t bytes = 1 + argonet_diagnose_below(me, most);
    const size_t at = argonet_diagnose_below(me, room - bytes + 1);
    const int way = (int)argonet_diagnose_below(me, PUTS);
    const size_t before = at < 8 ? at : 8, after = room - at - bytes < 8 ? room - at - bytes : 8;
    size_t each;
    memset(here, AROUND, before + bytes + after);
    gex_RMA_PutBlocking(run->tm, run->peer, there + at - before, here, before + bytes + after, 0);
    argonet_diagnose_fill(here, bytes, key);
    put(run, way, there + at, here, bytes);
    memset(back, 0, before + bytes + after);
    get(run, (int)argonet_diagnose_below(me, GETS), back, there + at - before, before + bytes + after);
    DIAGNOSE_FILLED(names[way], back + before, bytes, key);
    for (each = 0; each < before + after; ++each) {
        const size_t place = each < before ? each : bytes + each;
        DIAGNOSE((unsigned char)back[place] == AROUND, "%s: a byte beside the %zu that were put is changed", names[way],
                 bytes);
    }
}

static void diagnose_value(struct argonet_diagnoser *me, char *there)
{
    const struct argonet_diagnosis *run = me->run;
    const size_t bytes = 1 + argonet_diagnose_below(me, 8);
    const gex_RMA_Value_t value = argonet_diagnose_random(me);
    const gex_RMA_Value_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
    char *to = there + argonet_diagnose_below(me, 8);
    gex_RMA_Value_t is;
    gex_RMA_PutBlockingVal(run->tm, run->peer, to + bytes, 0x5A, 1, 0);
    switch (argonet_diagnose_below(me, 3)) {
    case 0:
        gex_RMA_PutBlockingVal(run->tm, run->peer, to, value, bytes, 0);
        break;
    case 1:
        gex_Event_Wait(gex_RMA_PutNBVal(run->tm, run->peer, to, value, bytes, 0));
        break;
    default:
        gex_RMA_PutNBIVal(run->tm, run->peer, to, value, bytes, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        break;
    }
    is = gex_RMA_GetBlockingVal(run->tm, run->peer, to, bytes, 0);
    DIAGNOSE(is == (value & mask), "a value of %zu bytes is 0x%" PRIx64 ", should be 0x%" PRIx64, bytes, is, value & mask);
    is = gex_RMA_GetBlockingVal(run->tm, run->peer, to + bytes, 1, 0);
    DIAGNOSE(is == 0x5A, "the byte beside a value of %zu bytes is changed", bytes);
}

/* The beginning of a slot that has been filled: how much, with which key. */
struct head {
    uint64_t mark;
    uint32_t key;
    uint32_t bytes;
};
#define HEAD_MARK UINT64_C(0x746e656e6f677261)

/* All ranks fill their slots; then each looks by itself at those in its own memory. Thread 0
 * alone. */
static void diagnose_visible(struct argonet_diagnoser *me, char *here)
{
    const struct argonet_diagnosis *run = me->run;
    struct head head = {HEAD_MARK, run->seed ^ run->rank, (uint32_t)(run->slot_bytes - sizeof head)};
    gex_Rank_t rank, seen = 0;
    /* Others may still be trying their slots. */
    argonet_diagnose_barrier();
    for (rank = 0; rank < run->size; ++rank) memset(run->own + rank * run->own_slot_bytes, 0, sizeof head);
    argonet_diagnose_barrier();
    argonet_diagnose_fill(here, head.bytes, head.key);
    gex_RMA_PutBlocking(run->tm, run->peer, run->slot + sizeof head, here, head.bytes, 0);
    gex_RMA_PutBlocking(run->tm, run->peer, run->slot, &head, sizeof head, 0);
    argonet_diagnose_barrier();
    for (rank = 0; rank < run->size; ++rank) {
        const char *slot = run->own + rank * run->own_slot_bytes;
        struct head is;
        memcpy(&is, slot, sizeof is);
        if (is.mark == 0) continue;
        ++seen;
        DIAGNOSE(is.mark == HEAD_MARK && is.key == (run->seed ^ rank) && is.bytes == run->own_slot_bytes - sizeof is,
                 "what rank %u has put here begins with something else", (unsigned)rank);
        if (is.bytes == run->own_slot_bytes - sizeof is)
            DIAGNOSE_FILLED("what another rank has put here", slot + sizeof is, is.bytes, run->seed ^ rank);
    }
    gex_RMA_GetBlocking(run->tm, &head, run->peer, run->slot, sizeof head, 0);
    DIAGNOSE(head.mark == HEAD_MARK, "what was put to rank %u is not there", (unsigned)run->peer);
    DIAGNOSE(run->size > 1 || seen == 1, "%u slots of 1 are filled", (unsigned)seen);
    argonet_diagnose_barrier();
}

void argonet_diagnose_transfers(struct argonet_diagnoser *me)
{
    size_t room;
    char *there = argonet_diagnose_part(me, &room);
    char *here = (char *)argonet_diagnose_memory(me->run->slot_bytes);
    char *back = (char *)argonet_diagnose_memory(me->run->slot_bytes);
    int round;
    for (round = 0; round < me->run->iterations; ++round) {
        diagnose_bytes(me, there, here, back, room, (uint32_t)argonet_diagnose_random(me));
        diagnose_value(me, there);
    }
    argonet_diagnose_meet(me);
    if (me->thread == 0) diagnose_visible(me, here);
    free(here);
    free(back);
}

/* Operations of one test. */
#define MANY 32

/* Waits for events in one of the ways; all are GEX_EVENT_INVALID then. */
static void wait_for(struct argonet_diagnoser *me, gex_Event_t *events)
{
    int code = GASNET_ERR_NOT_READY, at;
    switch (argonet_diagnose_below(me, 5)) {
    case 0:
        gex_Event_WaitAll(events, MANY, 0);
        break;
    case 1:
        while ((code = gex_Event_TestAll(events, MANY, 0)) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
        DIAGNOSE(code == GASNET_OK, "gex_Event_TestAll returns %d", code);
        break;
    case 2:
        gex_Event_WaitSome(events, MANY, 0);
        gex_Event_WaitAll(events, MANY, 0);
        break;
    case 3:
        while ((code = gex_Event_TestSome(events, MANY, 0)) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
        DIAGNOSE(code == GASNET_OK, "gex_Event_TestSome returns %d", code);
        gex_Event_WaitAll(events, MANY, 0);
        break;
    default:
        for (at = MANY - 1; at >= 0; --at) {
            while (gex_Event_Test(events[at]) != GASNET_OK) gasnet_AMPoll();
            events[at] = GEX_EVENT_INVALID;
        }
        break;
    }
    for (at = 0; at < MANY; ++at)
        DIAGNOSE(events[at] == GEX_EVENT_INVALID, "event %d of an array is left when all are complete", at);
}

void argonet_diagnose_events(struct argonet_diagnoser *me)
{
    const struct argonet_diagnosis *run = me->run;
    size_t room;
    char *there = argonet_diagnose_part(me, &room);
    const size_t each = room / MANY;
    char *here = (char *)argonet_diagnose_memory(room);
    char *back = (char *)argonet_diagnose_memory(room);
    gex_Event_t events[MANY];
    int round, at;
    for (round = 0; each && round < (run->iterations + 3) / 4; ++round) {
        const uint32_t key = (uint32_t)argonet_diagnose_random(me);
        argonet_diagnose_fill(here, each * MANY, key);
        /* All at a time, by events; back by implicit operations. */
        for (at = 0; at < MANY; ++at)
            events[at] = gex_RMA_PutNB(run->tm, run->peer, there + at * each, here + at * each, each, GEX_EVENT_DEFER, 0);
        wait_for(me, events);
        memset(back, 0, room);
        for (at = 0; at < MANY; ++at)
            gex_RMA_GetNBI(run->tm, back + at * each, run->peer, there + at * each, each, 0);
        while (gex_NBI_Test(GEX_EC_GET, 0) != GASNET_OK) gasnet_AMPoll();
        DIAGNOSE_FILLED("puts with events, gets without", back, each * MANY, key);
        /* The other way round, the puts in a region that has one event. */
        argonet_diagnose_fill(here, each * MANY, ~key);
        gex_NBI_BeginAccessRegion(0);
        for (at = 0; at < MANY; ++at)
            gex_RMA_PutNBI(run->tm, run->peer, there + at * each, here + at * each, each, GEX_EVENT_DEFER, 0);
        gex_Event_Wait(gex_NBI_EndAccessRegion(0));
        memset(back, 0, room);
        for (at = 0; at < MANY; ++at)
            events[at] = gex_RMA_GetNB(run->tm, back + at * each, run->peer, there + at * each, each, 0);
        wait_for(me, events);
        DIAGNOSE_FILLED("puts in an access region, gets with events", back, each * MANY, ~key);
    }
    free(here);
    free(back);
}
