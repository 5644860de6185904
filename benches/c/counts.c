/* Does one operation of GASNet-EX so many times from rank 0 to rank 1: `counts NAME TIMES FIFO`.
 * `cargo xtask counts` runs it under callgrind, which collects the instructions of `counted`: those
 * of the operations in the headers and in the library. Each is done half as often before, so that
 * memory is there and nothing is done for the first time.
 *
 * Rank 1 takes nothing meanwhile, so that rank 0 always does the same: it waits until rank 0 opens
 * the FIFO.
 */
#include <gasnetex.h>

#include <gasnet_tools.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTE = 200, MEDIUM_NOTE, BYTES = 64, ROOM = 1 << 16, WORDS = 512 };

static gex_TM_t team;
static gex_Rank_t peer;
static char *there;
static char payload[BYTES];
static volatile uint64_t kept;

static void note(gex_Token_t token) { (void)token; }
static void medium_note(gex_Token_t token, void *data, size_t bytes) { (void)token, (void)data, (void)bytes; }

static char *at(unsigned i) { return there + i % WORDS * BYTES; }

static void put_val(unsigned i) { gex_RMA_PutNBIVal(team, peer, at(i), i, 8, 0); }
static void put_64(unsigned i) { gex_RMA_PutNBI(team, peer, at(i), payload, BYTES, GEX_EVENT_DEFER, 0); }
static void get_val(unsigned i) { kept = gex_RMA_GetBlockingVal(team, peer, at(i), 8, 0); }
static void short_0(unsigned i) { (void)i, gex_AM_RequestShort0(team, peer, NOTE, 0); }
static void medium_64(unsigned i)
{
    (void)i, gex_AM_RequestMedium0(team, peer, MEDIUM_NOTE, payload, BYTES, GEX_EVENT_NOW, 0);
}

static const struct {
    const char *name;
    void (*operation)(unsigned);
} rows[] = {{"put-val", put_val}, {"put-64", put_64}, {"get-val", get_val}, {"am-short", short_0}, {"am-medium-64", medium_64}};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Callgrind knows it by its name. */
__attribute__((__noinline__)) void counted(void (*operation)(unsigned), unsigned i);
void counted(void (*operation)(unsigned), unsigned i)
{
    operation(i);
}

/* Gathered messages leave, and then so much time passes that the next one leaves by itself. */
static void pause_between(void)
{
    gasnett_tick_t start;
    gasnet_AMPoll();
    start = gasnett_ticks_now();
    while (gasnett_ticks_to_ns(gasnett_ticks_now() - start) < 100000) continue;
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

static void *nothing(void *argument) { return argument; }

/* The C library's calls take more instructions in a process that has had threads. The library
 * starts one of its own when a message waits for too long, which in some jobs none does: this makes
 * all jobs alike.
 */
static int have_had_threads(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

/* Rank 1 opens it for reading and rank 0 for writing; each waits for the other. */
static void meet(const char *fifo, int how)
{
    const int file = open(fifo, how);
    if (file >= 0) {
        close(file);
        return;
    }
    fprintf(stderr, "counts: %s: %s\n", fifo, strerror(errno));
    gasnet_exit(1);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_Segment_t segment;
    gex_AM_Entry_t table[] = {
        {NOTE, (gex_AM_Fn_t)note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "note"},
        {MEDIUM_NOTE, (gex_AM_Fn_t)medium_note, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium_note"}};
    void *base = NULL, *near = NULL;
    unsigned at_row, polls;
    if (gex_Client_Init(&client, &endpoint, &team, "COUNTS", &argc, &argv, 0) != GASNET_OK) return 1;
    for (at_row = 0; argc == 4 && at_row < ROWS && strcmp(argv[1], rows[at_row].name) != 0; ++at_row) continue;
    if (argc != 4 || at_row == ROWS || gex_TM_QuerySize(team) != 2) {
        fprintf(stderr, "usage: counts NAME TIMES FIFO, on two ranks\n");
        gasnet_exit(2);
    }
    if (!have_had_threads()) gasnet_exit(1);
    if (gex_EP_RegisterHandlers(endpoint, table, sizeof table / sizeof table[0]) != GASNET_OK) gasnet_exit(1);
    if (gex_Segment_Attach(&segment, team, ROOM) != GASNET_OK) gasnet_exit(1);
    peer = gex_TM_QueryRank(team) ^ 1;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, &base, &near, NULL, 0));
    there = (char *)base;
    barrier();
    if (peer == 0) {
        meet(argv[3], O_RDONLY);
    } else {
        const unsigned times = (unsigned)atoi(argv[2]);
        unsigned i;
        /* Messages that rank 1 sent before are taken first. */
        for (polls = 0; polls < 1000; ++polls) gasnet_AMPoll();
        for (i = 0; i < times / 2; ++i) rows[at_row].operation(i);
        for (i = 0; i < times; ++i) {
            pause_between();
            counted(rows[at_row].operation, i);
        }
        meet(argv[3], O_WRONLY);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    barrier();
    gasnet_exit(0);
    return 0;
}
