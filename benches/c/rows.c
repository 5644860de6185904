/* Speed of GASNet-EX between two ranks, with public calls alone, so that it can be compiled against
 * any implementation and any conduit. Rank 0 prints a line for each row, with tabs between its
 * fields: the name, bytes, and the best and the median of many chunks in microseconds an operation.
 * Names are GASNet's: Blocking, NB and NBI calls as they are, "flood" for messages one way, "echo"
 * for a round trip. The first row measures the machine and no operation: a cache line goes to the
 * other processor and back, which distinguishes runs in which the machine was slower. It is printed
 * where ranks share memory.
 *
 *   rows [CHUNKS [ROW]]      (21 chunks of all rows; or of the first one, and those whose names
 *                             begin with ROW)
 */
#include <gasnetex.h>

#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PING = 200, PONG, COUNT, MEDIUM_PING, MEDIUM_PONG, MEDIUM_COUNT, LONG_COUNT };
enum { MOST_CHUNKS = 1000, MOST_BYTES = 4 << 20, MOST_NB = 1000 };

static gex_TM_t team;
static gex_AD_t atomics;
static gex_Rank_t me, peer;
static volatile unsigned pongs, counted;
static volatile uint64_t kept;
static char *here, *there, *mapped;
static char buffer[MOST_BYTES], other[MOST_BYTES];

static void ping(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b) { gex_AM_ReplyShort2(token, PONG, 0, a, b); }
static void pong(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b)
{
    (void)token, (void)a, (void)b;
    ++pongs;
}
static void count(gex_Token_t token)
{
    (void)token;
    ++counted;
}
static void medium_ping(gex_Token_t token, void *data, size_t bytes)
{
    gex_AM_ReplyMedium0(token, MEDIUM_PONG, data, bytes, GEX_EVENT_NOW, 0);
}
static void medium_pong(gex_Token_t token, void *data, size_t bytes)
{
    (void)token, (void)data, (void)bytes;
    ++pongs;
}
static void payload_count(gex_Token_t token, void *data, size_t bytes)
{
    (void)token, (void)data, (void)bytes;
    ++counted;
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

typedef void row_fn(unsigned turns, size_t bytes);

/* Rank 0 writes odd numbers into a word of rank 1's segment, zero at first. Rank 1 answers with
 * even ones. */
static void line_round_trip(unsigned turns, size_t bytes)
{
    volatile uint64_t *word = (volatile uint64_t *)(me == 0 ? mapped : here) + bytes / 8;
    const uint64_t start = me == 0 ? *word : 0;
    uint64_t i;
    static uint64_t seen;
    if (me == 0) {
        for (i = start; i < start + 2 * (uint64_t)turns; i += 2) {
            *word = i + 1;
            while (*word != i + 2) continue;
        }
        return;
    }
    for (i = 0; i < turns; ++i, seen += 2) {
        while (*word != seen + 1) continue;
        *word = seen + 2;
    }
}

static void short_round_trip(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) {
        const unsigned want = pongs + 1;
        gex_AM_RequestShort2(team, peer, PING, 0, 1, 2);
        while (pongs != want) gasnet_AMPoll();
    }
}
static void medium_round_trip(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) {
        const unsigned want = pongs + 1;
        gex_AM_RequestMedium0(team, peer, MEDIUM_PING, buffer, bytes, GEX_EVENT_NOW, 0);
        while (pongs != want) gasnet_AMPoll();
    }
}
static void short_flood(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) gex_AM_RequestShort0(team, peer, COUNT, 0);
}
static void medium_flood(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_AM_RequestMedium0(team, peer, MEDIUM_COUNT, buffer, bytes, GEX_EVENT_NOW, 0);
}
static void long_flood(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_AM_RequestLong0(team, peer, LONG_COUNT, buffer, bytes, there, GEX_EVENT_NOW, 0);
}
static void put_blocking(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) {
        uint64_t value = i;
        gex_RMA_PutBlocking(team, peer, there + (i & 511) * 8, &value, 8, 0);
    }
}
static void get_blocking(unsigned turns, size_t bytes)
{
    unsigned i;
    uint64_t sum = 0;
    (void)bytes;
    for (i = 0; i < turns; ++i) {
        uint64_t value;
        gex_RMA_GetBlocking(team, &value, peer, there + (i & 511) * 8, 8, 0);
        sum += value;
    }
    kept = sum;
}
static void put_value(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) gex_RMA_PutNBIVal(team, peer, there + (i & 511) * 8, i, 8, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}
static void get_value(unsigned turns, size_t bytes)
{
    unsigned i;
    uint64_t sum = 0;
    (void)bytes;
    for (i = 0; i < turns; ++i) sum += gex_RMA_GetBlockingVal(team, peer, there + (i & 511) * 8, 8, 0);
    kept = sum;
}
static void put_word(unsigned turns, size_t bytes)
{
    unsigned i;
    uint64_t value = 7;
    (void)bytes;
    for (i = 0; i < turns; ++i) gex_RMA_PutNBI(team, peer, there + (i & 511) * 8, &value, 8, GEX_EVENT_NOW, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}
static void put_deferred(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) {
        gex_RMA_PutNBI(team, peer, there + (i & 511) * bytes, buffer, bytes, GEX_EVENT_DEFER, 0);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
}
static void put_handles(unsigned turns, size_t bytes)
{
    static gex_Event_t events[MOST_NB];
    unsigned done, i;
    for (done = 0; done < turns; done += MOST_NB) {
        for (i = 0; i < MOST_NB; ++i) {
            events[i] = gex_RMA_PutNB(team, peer, there + (i & 511) * bytes, buffer, bytes, GEX_EVENT_DEFER, 0);
        }
        gex_Event_WaitAll(events, MOST_NB, 0);
    }
}
static void get_started(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_RMA_GetNBI(team, other + (i & 511) * bytes, peer, there + (i & 511) * bytes, bytes, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}
static void put_flood(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_RMA_PutNBI(team, peer, there, buffer, bytes, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}
static void get_flood(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_RMA_GetNBI(team, other, peer, there, bytes, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}
static void copy_any(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) {
        memcpy(other, buffer, bytes);
        gasnett_compiler_fence();
    }
}
static void fetch_and_add(unsigned turns, size_t bytes)
{
    unsigned i;
    uint64_t sum = 0;
    (void)bytes;
    for (i = 0; i < turns; ++i) {
        uint64_t old;
        gex_Event_Wait(gex_AD_OpNB_U64(atomics, &old, peer, there, GEX_OP_FADD, 1, 0, 0));
        sum += old;
    }
    kept = sum;
}
static void barriers(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) barrier();
}
static void broadcasts(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_Event_Wait(gex_Coll_BroadcastNB(team, i & 1, other, buffer, bytes, 0));
}
static void reductions(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) {
        gex_Event_Wait(gex_Coll_ReduceToAllNB(team, other, buffer, GEX_DT_U64, 8, bytes / 8, GEX_OP_ADD, NULL, NULL, 0));
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* How names of rows begin that are to be measured. */
static const char *wanted = "";

/* The ranks that work in a row: rank 0 alone; rank 0, until rank 1 has handled as many messages;
 * all ranks. */
enum who { ONE, ARRIVALS, ALL };

/* All ranks call it. Those that do not work wait in the barrier, and so take part in the next
 * row. */
static void row(const char *name, row_fn *run, unsigned turns, size_t bytes, unsigned chunks, enum who who)
{
    static double each[MOST_CHUNKS];
    unsigned chunk;
    if (strncmp(name, wanted, strlen(wanted)) != 0 && run != line_round_trip) return;
    for (chunk = 0; chunk < chunks; ++chunk) {
        const unsigned want = counted + (who == ARRIVALS ? turns : 0);
        gasnett_tick_t start;
        barrier();
        start = gasnett_ticks_now();
        if (me == 0 || who == ALL) run(turns, bytes);
        if (me == 1 && who == ARRIVALS) {
            while (counted != want) gasnet_AMPoll();
        }
        if (me != 0 || who != ONE) barrier();
        each[chunk] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / turns / 1000;
        if (me == 0 && who == ONE) barrier();
    }
    if (me == 0) {
        qsort(each, chunks, sizeof each[0], by_value);
        printf("%s\t%lu\t%.5f\t%.5f\n", name, (unsigned long)bytes, each[0], each[chunks / 2]);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_Segment_t segment;
    gex_AM_Entry_t table[] = {
        {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "ping"},
        {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL, "pong"},
        {COUNT, (gex_AM_Fn_t)count, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "count"},
        {MEDIUM_PING, (gex_AM_Fn_t)medium_ping, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium_ping"},
        {MEDIUM_PONG, (gex_AM_Fn_t)medium_pong, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "medium_pong"},
        {MEDIUM_COUNT, (gex_AM_Fn_t)payload_count, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium_count"},
        {LONG_COUNT, (gex_AM_Fn_t)payload_count, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "long_count"}};
    void *base = NULL, *near = NULL;
    unsigned chunks, n;
    size_t most_medium, most_long;
    if (gex_Client_Init(&client, &endpoint, &team, "ROWS", &argc, &argv, 0) != GASNET_OK) return 1;
    me = gex_TM_QueryRank(team);
    peer = me ^ 1;
    if (gex_TM_QuerySize(team) < 2) {
        fprintf(stderr, "rows: needs two ranks or more\n");
        gasnet_exit(2);
    }
    chunks = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
    if (argc > 2) wanted = argv[2];
    if (chunks < 1 || chunks > MOST_CHUNKS) gasnet_exit(2);
    if (gex_EP_RegisterHandlers(endpoint, table, sizeof table / sizeof table[0]) != GASNET_OK) gasnet_exit(1);
    if (gex_Segment_Attach(&segment, team, MOST_BYTES) != GASNET_OK) gasnet_exit(1);
    gex_AD_Create(&atomics, team, GEX_DT_U64, GEX_OP_FADD, 0);
    here = (char *)gex_Segment_QueryAddr(segment);
    n = gex_TM_QuerySize(team);
    memset(buffer, 2, sizeof buffer);
    memset(other, 3, sizeof other);
    if (n == 2) {
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, &base, &near, NULL, 0));
        there = (char *)base;
        mapped = (char *)near;
        most_medium = gex_AM_MaxRequestMedium(team, peer, GEX_EVENT_NOW, 0, 0);
        if (most_medium > gex_AM_MaxReplyMedium(team, peer, GEX_EVENT_NOW, 0, 0)) {
            most_medium = gex_AM_MaxReplyMedium(team, peer, GEX_EVENT_NOW, 0, 0);
        }
        if (most_medium > 65000) most_medium = 65000;
        most_long = gex_AM_MaxRequestLong(team, peer, GEX_EVENT_NOW, 0, 0);
        if (most_long > 65000) most_long = 65000;
        /* Loads and stores between neighbors take another number of turns than messages. */
        const unsigned few = mapped ? 20000 : 2000, many = mapped ? 1000000 : 100000;
        if (mapped) row("line both ways", line_round_trip, 20000, MOST_BYTES - 64, chunks, ALL);
        barrier();
        memset(here, 1, MOST_BYTES);
        row("AM short echo", short_round_trip, few, 0, chunks, ONE);
        row("AM medium echo", medium_round_trip, few, 8, chunks, ONE);
        row("AM medium echo", medium_round_trip, few, 512, chunks, ONE);
        row("AM medium echo", medium_round_trip, few / 10, most_medium, chunks, ONE);
        row("AM short flood", short_flood, 100000, 0, chunks, ARRIVALS);
        row("AM medium flood", medium_flood, 50000, 8, chunks, ARRIVALS);
        row("AM medium flood", medium_flood, 50000, 512, chunks, ARRIVALS);
        row("AM medium flood", medium_flood, 10000, 4032, chunks, ARRIVALS);
        row("AM medium flood", medium_flood, 1000, most_medium, chunks, ARRIVALS);
        row("AM long flood", long_flood, 10000, 4096, chunks, ARRIVALS);
        row("AM long flood", long_flood, 1000, most_long, chunks, ARRIVALS);
        row("PutBlocking", put_blocking, mapped ? many : few, 8, chunks, ONE);
        row("GetBlocking", get_blocking, mapped ? many : few, 8, chunks, ONE);
        row("GetBlockingVal", get_value, mapped ? many : few, 8, chunks, ONE);
        row("PutNBIVal", put_value, many, 8, chunks, ONE);
        row("PutNBI NOW", put_word, many, 8, chunks, ONE);
        row("PutNBI DEFER", put_deferred, many, 8, chunks, ONE);
        row("PutNBI DEFER", put_deferred, many, 64, chunks, ONE);
        row("PutNBI DEFER", put_deferred, many / 10, 512, chunks, ONE);
        row("PutNB DEFER", put_handles, many / 10, 8, chunks, ONE);
        row("GetNBI", get_started, many / 10, 8, chunks, ONE);
        row("fetch-and-add", fetch_and_add, mapped ? many : few, 8, chunks, ONE);
        row("PutNBI flood", put_flood, 10000, 4096, chunks, ONE);
        row("PutNBI flood", put_flood, 1000, 65536, chunks, ONE);
        row("PutNBI flood", put_flood, 100, 1 << 20, chunks, ONE);
        row("GetNBI flood", get_flood, 1000, 65536, chunks, ONE);
        row("GetNBI flood", get_flood, 100, 1 << 20, chunks, ONE);
        row("memcpy", copy_any, 20000, 4096, chunks, ONE);
        row("memcpy", copy_any, 1000, 65536, chunks, ONE);
        row("memcpy", copy_any, 100, 1 << 20, chunks, ONE);
    }
    row("barrier", barriers, n == 2 ? 5000 : 1000, 0, chunks, ALL);
    row("broadcast", broadcasts, n == 2 ? 5000 : 1000, 8, chunks, ALL);
    row("reduce-to-all", reductions, n == 2 ? 5000 : 1000, 8, chunks, ALL);
    barrier();
    gasnet_exit(0);
    return 0;
}
