/* Active messages with the peer: shorts with all arguments, mediums, longs, each answered by its
 * kind; negotiated payloads. Handlers check what has come, and the answer says to which thread it
 * belongs. */
#include "diagnostics.h"

/* From here on; the indices are fixed, as ranks must agree. */
#define INDEX(at) ((gex_AM_Index_t)(GEX_AM_INDEX_BASE + (at)))
enum { SHORT_REQUEST, SHORT_REPLY, MEDIUM_REQUEST, MEDIUM_REPLY, LONG_REQUEST, LONG_REPLY, PING, PONG, HANDLERS };

/* Answers that threads have got, and the number in the last one. */
static uint64_t answers[GASNETI_MAX_THREADS];
static uint32_t answered[GASNETI_MAX_THREADS];
/* Requests that were handled, counted with a lock and without: these must agree. */
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static volatile uint64_t handled_locked;
static uint64_t handled;

static void count_handled(void)
{
    gex_HSL_Lock(&lock);
    handled_locked = handled_locked + 1;
    gex_HSL_Unlock(&lock);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void answer(gex_AM_Arg_t thread, gex_AM_Arg_t number)
{
    if (thread < 0 || thread >= GASNETI_MAX_THREADS) {
        argonet_diagnose_fault(__FILE__, __LINE__, "an answer is for thread %d", (int)thread);
        return;
    }
    __atomic_store_n(&answered[thread], (uint32_t)number, __ATOMIC_RELAXED);
    __atomic_fetch_add(&answers[thread], 1, __ATOMIC_RELEASE);
}

static void from_peer(gex_Token_t token)
{
    gex_Token_Info_t info;
    if (gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK)
        DIAGNOSE(info.gex_srcrank == argonet_diagnosis.peer, "rank %u answers what was sent to rank %u",
                 (unsigned)info.gex_srcrank, (unsigned)argonet_diagnosis.peer);
}

#define FURTHER(number, at) ((gex_AM_Arg_t)((uint32_t)(number) * 31u + (at)))

static void short_request(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t number, gex_AM_Arg_t a2, gex_AM_Arg_t a3,
                          gex_AM_Arg_t a4, gex_AM_Arg_t a5, gex_AM_Arg_t a6, gex_AM_Arg_t a7, gex_AM_Arg_t a8,
                          gex_AM_Arg_t a9, gex_AM_Arg_t a10, gex_AM_Arg_t a11, gex_AM_Arg_t a12, gex_AM_Arg_t a13,
                          gex_AM_Arg_t a14, gex_AM_Arg_t a15)
{
    const gex_AM_Arg_t is[14] = {a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
    unsigned at;
    for (at = 0; at < 14; ++at)
        DIAGNOSE(is[at] == FURTHER(number, at), "argument %u of a short message is %d, should be %d", at + 2, (int)is[at],
                 (int)FURTHER(number, at));
    count_handled();
    gex_AM_ReplyShort2(token, INDEX(SHORT_REPLY), 0, thread, number);
}

static void short_reply(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t number)
{
    from_peer(token);
    answer(thread, number);
}

static void medium_request(gex_Token_t token, void *payload, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t number)
{
    DIAGNOSE_FILLED("a medium request", payload, bytes, (uint32_t)number);
    count_handled();
    gex_AM_ReplyMedium3(token, INDEX(MEDIUM_REPLY), payload, bytes, GEX_EVENT_NOW, 0, thread, number, (gex_AM_Arg_t)bytes);
}

static void medium_reply(gex_Token_t token, void *payload, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t number,
                         gex_AM_Arg_t sent)
{
    from_peer(token);
    DIAGNOSE(bytes == (size_t)sent, "a medium reply has %zu bytes, should have %d", bytes, (int)sent);
    DIAGNOSE_FILLED("a medium reply", payload, bytes, (uint32_t)number);
    answer(thread, number);
}

#define HALVES(address) (gex_AM_Arg_t)((uint64_t)(uintptr_t)(address) >> 32), (gex_AM_Arg_t)(uint32_t)(uintptr_t)(address)
static void *whole(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (void *)(uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

static void long_request(gex_Token_t token, void *payload, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t number,
                         gex_AM_Arg_t high, gex_AM_Arg_t low, gex_AM_Arg_t back_high, gex_AM_Arg_t back_low)
{
    DIAGNOSE(payload == whole(high, low), "a long request of %zu bytes is at %p, should be at %p", bytes, payload,
             whole(high, low));
    DIAGNOSE_FILLED("a long request", payload, bytes, (uint32_t)number);
    count_handled();
    gex_AM_ReplyLong5(token, INDEX(LONG_REPLY), payload, bytes, whole(back_high, back_low), GEX_EVENT_NOW, 0, thread, number,
                      (gex_AM_Arg_t)bytes, back_high, back_low);
}

static void long_reply(gex_Token_t token, void *payload, size_t bytes, gex_AM_Arg_t thread, gex_AM_Arg_t number,
                       gex_AM_Arg_t sent, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    from_peer(token);
    DIAGNOSE(payload == whole(high, low), "a long reply of %zu bytes is at %p, should be at %p", bytes, payload,
             whole(high, low));
    DIAGNOSE(bytes == (size_t)sent, "a long reply has %zu bytes, should have %d", bytes, (int)sent);
    DIAGNOSE_FILLED("a long reply", payload, bytes, (uint32_t)number);
    answer(thread, number);
}

static void ping(gex_Token_t token, gex_AM_Arg_t number)
{
    gex_AM_ReplyShort1(token, INDEX(PONG), 0, (gex_AM_Arg_t)((uint32_t)number + 1));
}

static uint64_t pongs;
static uint32_t last_pong;
static void pong(gex_Token_t token, gex_AM_Arg_t number)
{
    from_peer(token);
    __atomic_store_n(&last_pong, (uint32_t)number, __ATOMIC_RELAXED);
    __atomic_fetch_add(&pongs, 1, __ATOMIC_RELEASE);
}

void argonet_diagnose_ping(uint32_t number)
{
    const uint64_t before = __atomic_load_n(&pongs, __ATOMIC_RELAXED);
    gex_AM_RequestShort1(argonet_diagnosis.tm, argonet_diagnosis.peer, INDEX(PING), 0, (gex_AM_Arg_t)number);
    GASNET_BLOCKUNTIL(__atomic_load_n(&pongs, __ATOMIC_ACQUIRE) != before);
    DIAGNOSE(last_pong == number + 1, "the answer to %u is %u, should be %u", number, last_pong, number + 1);
}

/* Each index, function, kind and number of arguments once. */
#define REQUEST(index, function, kind, nargs)                                                                          \
    {INDEX(index), (gex_AM_Fn_t)(function), GEX_FLAG_AM_REQUEST | (kind), (nargs), NULL, "diagnostics: " #function}
#define REPLY(index, function, kind, nargs)                                                                            \
    {INDEX(index), (gex_AM_Fn_t)(function), GEX_FLAG_AM_REPLY | (kind), (nargs), NULL, "diagnostics: " #function}

void argonet_diagnose_handlers(gex_AM_Entry_t **table, int *count)
{
    static gex_AM_Entry_t entries[HANDLERS] = {
        REQUEST(SHORT_REQUEST, short_request, GEX_FLAG_AM_SHORT, 16),
        REPLY(SHORT_REPLY, short_reply, GEX_FLAG_AM_SHORT, 2),
        REQUEST(MEDIUM_REQUEST, medium_request, GEX_FLAG_AM_MEDIUM, 2),
        REPLY(MEDIUM_REPLY, medium_reply, GEX_FLAG_AM_MEDIUM, 3),
        REQUEST(LONG_REQUEST, long_request, GEX_FLAG_AM_LONG, 6),
        REPLY(LONG_REPLY, long_reply, GEX_FLAG_AM_LONG, 5),
        REQUEST(PING, ping, GEX_FLAG_AM_SHORT, 1),
        REPLY(PONG, pong, GEX_FLAG_AM_SHORT, 1),
    };
    *table = entries;
    *count = HANDLERS;
}

/* Where a thread's longs go at the peer and come back here, and how long they may be. */
struct places {
    char *there;
    char *back;
    size_t most_long;
    size_t most_medium;
    char *from;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct places places(const struct argonet_diagnoser *me)
{
    const struct argonet_diagnosis *run = me->run;
    struct places all;
    size_t part, own = (run->own_slot_bytes / (size_t)me->threads) & ~(size_t)7;
    all.there = argonet_diagnose_part(me, &part);
    /* The second half, as the first is where longs come if this rank is its own peer. */
    all.back = run->own + run->rank * run->own_slot_bytes + (size_t)me->thread * own + own / 2;
    all.most_long = least(least(part, own) / 2, least(gex_AM_LUBRequestLong(), gex_AM_LUBReplyLong()));
    all.most_medium = least(gex_AM_LUBRequestMedium(), gex_AM_LUBReplyMedium());
    all.from = (char *)argonet_diagnose_memory(all.most_long > all.most_medium ? all.most_long : all.most_medium);
    return all;
}

/* The answer to the message that this thread has sent. */
static void await(const struct argonet_diagnoser *me, uint64_t before, uint32_t number, const char *what)
{
    GASNET_BLOCKUNTIL(__atomic_load_n(&answers[me->thread], __ATOMIC_ACQUIRE) != before);
    DIAGNOSE(answers[me->thread] == before + 1, "%s was answered %" PRIu64 " times", what, answers[me->thread] - before);
    DIAGNOSE(answered[me->thread] == number, "the answer to %s is another's", what);
}

static void send(struct argonet_diagnoser *me, const struct places *at, gex_AM_Arg_t number)
{
    const struct argonet_diagnosis *run = me->run;
    const gex_AM_Arg_t thread = me->thread;
    size_t bytes;
    gex_Event_t local;
    switch (argonet_diagnose_below(me, 3)) {
    case 0:
        gex_AM_RequestShort16(run->tm, run->peer, INDEX(SHORT_REQUEST), 0, thread, number, FURTHER(number, 0),
                              FURTHER(number, 1), FURTHER(number, 2), FURTHER(number, 3), FURTHER(number, 4),
                              FURTHER(number, 5), FURTHER(number, 6), FURTHER(number, 7), FURTHER(number, 8),
                              FURTHER(number, 9), FURTHER(number, 10), FURTHER(number, 11), FURTHER(number, 12),
                              FURTHER(number, 13));
        break;
    case 1:
        bytes = argonet_diagnose_below(me, argonet_diagnose_below(me, 4) ? 64 : at->most_medium + 1);
        argonet_diagnose_fill(at->from, bytes, (uint32_t)number);
        gex_AM_RequestMedium2(run->tm, run->peer, INDEX(MEDIUM_REQUEST), at->from, bytes, &local, 0, thread, number);
        gex_Event_Wait(local);
        memset(at->from, 0, bytes);
        break;
    default:
        bytes = argonet_diagnose_below(me, argonet_diagnose_below(me, 4) ? 64 : at->most_long + 1);
        argonet_diagnose_fill(at->from, bytes, (uint32_t)number);
        gex_AM_RequestLong6(run->tm, run->peer, INDEX(LONG_REQUEST), at->from, bytes, at->there, GEX_EVENT_NOW, 0, thread,
                            number, HALVES(at->there), HALVES(at->back));
        memset(at->from, 0, bytes);
        break;
    }
}

static void negotiate(struct argonet_diagnoser *me, const struct places *at, gex_AM_Arg_t number)
{
    const struct argonet_diagnosis *run = me->run;
    const gex_AM_Arg_t thread = me->thread;
    const int is_long = argonet_diagnose_below(me, 2) != 0;
    const int own = argonet_diagnose_below(me, 2) != 0;
    const size_t most = 1 + argonet_diagnose_below(me, least(512, is_long ? at->most_long : at->most_medium));
    gex_Event_t local = GEX_EVENT_INVALID;
    gex_AM_SrcDesc_t room;
    size_t bytes;
    if (own) argonet_diagnose_fill(at->from, most, (uint32_t)number);
    if (is_long)
        room = gex_AM_PrepareRequestLong(run->tm, run->peer, own ? at->from : NULL, 1, most, at->there,
                                         own ? &local : NULL, 0, 6);
    else
        room = gex_AM_PrepareRequestMedium(run->tm, run->peer, own ? at->from : NULL, 1, most, own ? &local : NULL, 0, 2);
    bytes = gex_AM_SrcDescSize(room);
    DIAGNOSE(bytes >= 1 && bytes <= most, "there is room for %zu bytes, should be for 1 to %zu", bytes, most);
    if (own)
        DIAGNOSE(gex_AM_SrcDescAddr(room) == at->from, "gex_AM_SrcDescAddr is not the client's buffer");
    else
        argonet_diagnose_fill(gex_AM_SrcDescAddr(room), bytes, (uint32_t)number);
    if (is_long)
        gex_AM_CommitRequestLong6(room, INDEX(LONG_REQUEST), bytes, at->there, thread, number, HALVES(at->there),
                                  HALVES(at->back));
    else
        gex_AM_CommitRequestMedium2(room, INDEX(MEDIUM_REQUEST), bytes, thread, number);
    if (own) gex_Event_Wait(local);
}

static void diagnose(struct argonet_diagnoser *me, const char *what,
                     void (*request)(struct argonet_diagnoser *, const struct places *, gex_AM_Arg_t))
{
    struct places at = places(me);
    int round;
    for (round = 0; round < me->run->iterations; ++round) {
        const uint64_t before = answers[me->thread];
        const uint32_t number = (uint32_t)argonet_diagnose_random(me);
        request(me, &at, (gex_AM_Arg_t)number);
        await(me, before, number, what);
    }
    free(at.from);
    argonet_diagnose_meet(me);
    if (me->thread == 0) {
        /* All that was sent anywhere has been answered, so it has been handled. */
        argonet_diagnose_barrier();
        DIAGNOSE(handled_locked == handled, "a lock in handlers: %" PRIu64 " updates are left of %" PRIu64,
                 (uint64_t)handled_locked, handled);
        argonet_diagnose_barrier();
    }
    argonet_diagnose_meet(me);
}

void argonet_diagnose_messages(struct argonet_diagnoser *me)
{
    diagnose(me, "a message", send);
}

void argonet_diagnose_negotiated(struct argonet_diagnoser *me)
{
    diagnose(me, "a message with a negotiated payload", negotiate);
}
