/* Speed of GASNet-EX between two ranks that share memory, with public calls alone, so that it can be compiled against any
 * implementation: nanoseconds of an operation, the best and the median of many chunks. Rank 0 prints a line for each row.
 * The first row is no operation but the machine: a cache line to the other processor and back, which tells runs apart in which
 * it was slower.
 *
 *   neighbours [CHUNKS [ROW]]      (21 chunks of all rows; or of those whose names begin with ROW)
 */
#include <gasnetex.h>

#include <gasnet_tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PING = 200, PONG, COUNT, MEDIUM_PING, MEDIUM_PONG, MEDIUM_COUNT, MOST_CHUNKS = 1000, MOST_BYTES = 4 << 20 };

static gex_TM_t team;
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
static void medium_count(gex_Token_t token, void *data, size_t bytes)
{
    (void)token, (void)data, (void)bytes;
    ++counted;
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

typedef void row_fn(unsigned turns, size_t bytes);

/* Rank 0 writes odd numbers into a word of rank 1's segment, which is zero at first, which answers with even ones. */
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
static void put_8(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) {
        uint64_t value = i;
        gex_RMA_PutBlocking(team, peer, there + (i & 511) * 8, &value, 8, 0);
    }
}
static void get_8(unsigned turns, size_t bytes)
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
static void put_any(unsigned turns, size_t bytes)
{
    unsigned i;
    for (i = 0; i < turns; ++i) gex_RMA_PutNBI(team, peer, there, buffer, bytes, GEX_EVENT_NOW, 0);
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
static void barriers(unsigned turns, size_t bytes)
{
    unsigned i;
    (void)bytes;
    for (i = 0; i < turns; ++i) barrier();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* How names of rows begin that are to be measured. */
static const char *wanted = "";

/* Both ranks call it; rank 0 does the work unless `both` is 1, and the other polls until `arrivals` messages have come. */
static void row(const char *name, row_fn *run, unsigned turns, size_t bytes, unsigned chunks, int both, int arrivals)
{
    static double each[MOST_CHUNKS];
    unsigned chunk;
    if (strncmp(name, wanted, strlen(wanted)) != 0) return;
    for (chunk = 0; chunk < chunks; ++chunk) {
        const unsigned want = counted + (arrivals ? turns : 0);
        gasnett_tick_t start;
        barrier();
        start = gasnett_ticks_now();
        if (me == 0 || both) run(turns, bytes);
        if (me == 1 && arrivals) {
            while (counted != want) gasnet_AMPoll();
        }
        if (me != 0 || both || arrivals) barrier();
        each[chunk] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / turns;
        if (me == 0 && !both && !arrivals) barrier();
    }
    if (me == 0) {
        qsort(each, chunks, sizeof each[0], by_value);
        printf("%-24s %8lu B  best %9.2f  median %9.2f ns\n", name, (unsigned long)bytes, each[0], each[chunks / 2]);
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
        {MEDIUM_COUNT, (gex_AM_Fn_t)medium_count, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium_count"}};
    void *base = NULL, *near = NULL;
    unsigned chunks;
    if (gex_Client_Init(&client, &endpoint, &team, "NEIGHBOURS", &argc, &argv, 0) != GASNET_OK) return 1;
    me = gex_TM_QueryRank(team);
    peer = 1 - me;
    if (gex_TM_QuerySize(team) != 2) {
        if (me == 0) fprintf(stderr, "neighbours: needs two ranks\n");
        gasnet_exit(2);
    }
    chunks = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
    if (argc > 2) wanted = argv[2];
    if (chunks < 1 || chunks > MOST_CHUNKS) gasnet_exit(2);
    if (gex_EP_RegisterHandlers(endpoint, table, sizeof table / sizeof table[0]) != GASNET_OK) gasnet_exit(1);
    if (gex_Segment_Attach(&segment, team, MOST_BYTES) != GASNET_OK) gasnet_exit(1);
    here = (char *)gex_Segment_QueryAddr(segment);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, &base, &near, NULL, 0));
    there = (char *)base;
    mapped = (char *)near;
    if (!mapped) gasnet_exit(3);
    row("line both ways", line_round_trip, 20000, MOST_BYTES - 64, chunks, 1, 0);
    memset(here, 1, MOST_BYTES);
    memset(buffer, 2, sizeof buffer);
    memset(other, 3, sizeof other);
    row("short round trip", short_round_trip, 20000, 0, chunks, 0, 0);
    row("medium round trip", medium_round_trip, 20000, 8, chunks, 0, 0);
    row("medium round trip", medium_round_trip, 20000, 512, chunks, 0, 0);
    row("medium round trip", medium_round_trip, 2000, 65000, chunks, 0, 0);
    row("short flood", short_flood, 200000, 0, chunks, 0, 1);
    row("medium flood", medium_flood, 100000, 64, chunks, 0, 1);
    row("medium flood", medium_flood, 100000, 512, chunks, 0, 1);
    row("medium flood", medium_flood, 20000, 4096, chunks, 0, 1);
    row("put 8 B", put_8, 1000000, 8, chunks, 0, 0);
    row("get 8 B", get_8, 1000000, 8, chunks, 0, 0);
    row("put", put_any, 1000000, 8, chunks, 0, 0);
    row("put", put_any, 20000, 4096, chunks, 0, 0);
    row("memcpy", copy_any, 20000, 4096, chunks, 0, 0);
    row("put", put_any, 2000, 65536, chunks, 0, 0);
    row("memcpy", copy_any, 2000, 65536, chunks, 0, 0);
    row("put", put_any, 200, 1 << 20, chunks, 0, 0);
    row("memcpy", copy_any, 200, 1 << 20, chunks, 0, 0);
    row("barrier", barriers, 20000, 0, chunks, 1, 0);
    gasnet_exit(0);
    return 0;
}
