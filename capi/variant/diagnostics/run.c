/* gasnett_run_diagnostics: its arguments, and one section after the other. */
#include "diagnostics.h"

#include <ctype.h>
#include <pthread.h>

/* Threads of GASNET_PARSYNC must not be in the library at once. */
#ifdef GASNET_PAR
#define SEVERAL 1
#else
#define SEVERAL 0
#endif

ARGONET_SHARED struct argonet_diagnosis argonet_diagnosis;

/* A section, and whether it works with messages. */
struct section {
    const char *name;
    argonet_diagnose_section *diagnose;
    int threaded;
    int needs_handlers;
};

/* A section's letter is its place, in every thread mode: A for the first. First by one thread, then
 * by several. */
static const struct section sections[] = {
    {"mutexes", argonet_diagnose_mutexes, 0, 0},
    {"condition variables", argonet_diagnose_conditions, 0, 0},
    {"read-write locks", argonet_diagnose_rwlocks, 0, 0},
    {"handler-safe locks", argonet_diagnose_hsls, 0, 0},
    {"atomic operations", argonet_diagnose_atomics, 0, 0},
    {"memory barriers and spin locks", argonet_diagnose_fences, 0, 0},
    {"data of threads", argonet_diagnose_thread_data, 0, 0},
    {"memory", argonet_diagnose_heap, 0, 0},
    {"put and get", argonet_diagnose_transfers, 0, 0},
    {"events and implicit operations", argonet_diagnose_events, 0, 0},
    {"active messages", argonet_diagnose_messages, 0, 1},
    {"negotiated payloads", argonet_diagnose_negotiated, 0, 1},
    {"barriers, broadcasts and progress", argonet_diagnose_progress, 0, 1},
    {"mutexes", argonet_diagnose_mutexes, 1, 0},
    {"condition variables", argonet_diagnose_conditions, 1, 0},
    {"read-write locks", argonet_diagnose_rwlocks, 1, 0},
    {"handler-safe locks", argonet_diagnose_hsls, 1, 0},
    {"atomic operations", argonet_diagnose_atomics, 1, 0},
    {"memory barriers and spin locks", argonet_diagnose_fences, 1, 0},
    {"data of threads", argonet_diagnose_thread_data, 1, 0},
    {"memory", argonet_diagnose_heap, 1, 0},
    {"put and get", argonet_diagnose_transfers, 1, 0},
    {"events and implicit operations", argonet_diagnose_events, 1, 0},
    {"active messages", argonet_diagnose_messages, 1, 1},
    {"negotiated payloads", argonet_diagnose_negotiated, 1, 1},
};
#define SECTIONS (int)(sizeof sections / sizeof sections[0])

/* The section that runs, by its letter, and the faults so far: of the section and of the run. */
static char running;
static int section_faults;
static int faults;
/* Faults of a section that are printed; the others are counted. */
#define MOST_PRINTED 8

void argonet_diagnose_fault(const char *file, int line, const char *format, ...)
{
    const char *name = strrchr(file, '/');
    char text[512];
    va_list arguments;
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    if (__atomic_fetch_add(&section_faults, 1, __ATOMIC_RELAXED) >= MOST_PRINTED) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "argonet: rank %u: gasnett_run_diagnostics: fault in section %c (%s:%d): %s\n",
            (unsigned)argonet_diagnosis.rank, running, name ? name + 1 : file, line, text);
    fflush(stderr);
}

static void say(const char *text)
{
    if (argonet_diagnosis.rank != 0) return;
    printf("%s\n", text);
    fflush(stdout);
}

void argonet_diagnose_barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(argonet_diagnosis.tm, 0));
}

static void *as_thread(void *argument)
{
    struct argonet_diagnoser *me = (struct argonet_diagnoser *)argument;
    sections[running - 'A'].diagnose(me);
    argonet_diagnose_meet(me);
    return NULL;
}

/* Runs a section by its threads, of which the caller is the first. */
static void run_section(int threads)
{
    struct argonet_diagnoser *all =
        (struct argonet_diagnoser *)argonet_diagnose_memory((size_t)threads * sizeof *all);
    pthread_t *started = (pthread_t *)argonet_diagnose_memory((size_t)threads * sizeof *started);
    int thread;
    for (thread = 0; thread < threads; ++thread) {
        struct argonet_diagnoser *each = &all[thread];
        each->run = &argonet_diagnosis;
        each->thread = thread;
        each->threads = threads;
        each->random = ((uint64_t)argonet_diagnosis.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
                       ((uint64_t)argonet_diagnosis.rank << 40 | (uint64_t)thread << 24 | 1);
    }
    for (thread = 1; thread < threads; ++thread) {
        int code = pthread_create(&started[thread], NULL, as_thread, &all[thread]);
        if (code) gasnett_fatalerror("gasnett_run_diagnostics: thread %d of %d cannot be started: %d", thread, threads, code);
    }
    as_thread(&all[0]);
    for (thread = 1; thread < threads; ++thread) pthread_join(started[thread], NULL);
    free(started);
    free(all);
}

/* Whether the user wants a section: all of them where nothing is said. */
static int is_wanted(const char *wanted, char letter)
{
    if (!wanted || !*wanted) return 1;
    for (; *wanted; ++wanted)
        if (toupper((unsigned char)*wanted) == letter) return 1;
    return 0;
}

static void diagnose(int at, const char *wanted, int threads)
{
    const struct section *section = &sections[at];
    const char *skipped = NULL;
    char text[200];
    running = (char)('A' + at);
    section_faults = 0;
    if (!is_wanted(wanted, running)) return;
    if (section->threaded && threads < 2)
        skipped = SEVERAL ? "there is one thread" : "this library is for one thread at a time";
    else if (section->needs_handlers && !argonet_diagnosis.has_handlers)
        skipped = "its handlers are not registered (gasnett_diagnostic_gethandlers)";
    snprintf(text, sizeof text, "%c: %s: %s%s%s", running, section->threaded ? "parallel" : "sequential", section->name,
             skipped ? ": SKIPPED, " : "...", skipped ? skipped : "");
    say(text);
    argonet_diagnose_barrier();
    if (!skipped) run_section(section->threaded ? threads : 1);
    argonet_diagnose_barrier();
    if (section_faults > MOST_PRINTED)
        fprintf(stderr, "argonet: rank %u: gasnett_run_diagnostics: %d faults in section %c in all\n",
                (unsigned)argonet_diagnosis.rank, section_faults, running);
}

/* Ranks may be wrong alone, while the others wait for them: so the job ends. */
#define MUST(condition, ...)                                                                                           \
    ((condition) ? (void)0 : gasnett_fatalerror_nopos("gasnett_run_diagnostics: " __VA_ARGS__))

/* The bytes from `at` on of a rank's segment; 0 if that is not in it. */
static size_t bytes_behind(gex_TM_t tm, gex_Rank_t rank, const char *at)
{
    void *base = NULL;
    uintptr_t bytes = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &base, NULL, &bytes, 0));
    if (at < (char *)base || (uintptr_t)(at - (char *)base) >= bytes) return 0;
    return bytes - (uintptr_t)(at - (char *)base);
}

/* Slots are lines of the cache, and no larger than this: more would only take time. */
#define MOST_SLOT ((size_t)1 << 18)
#define LEAST_SLOT ((size_t)2048)
static size_t slot_bytes(size_t bytes, gex_Rank_t ranks)
{
    size_t each = bytes / ranks;
    each = each > sizeof(uint64_t) ? each - sizeof(uint64_t) : 0;
    each = each < MOST_SLOT ? each : MOST_SLOT;
    return each & ~(size_t)63;
}

int argonet_run_diagnostics(int iterations, int threads, const char *wanted, gex_TM_t tm, void *segment,
                            gex_Rank_t peer, void *peer_segment, unsigned int seed)
{
    struct argonet_diagnosis *run = &argonet_diagnosis;
    int at;
    char text[200];
    MUST(tm != GEX_TM_INVALID, "tm is GEX_TM_INVALID");
    run->tm = tm;
    run->rank = gex_TM_QueryRank(tm);
    run->size = gex_TM_QuerySize(tm);
    MUST(peer < run->size, "peer is %u, but tm has %u ranks", (unsigned)peer, (unsigned)run->size);
    MUST(iterations > 0, "iters is %d, must be 1 at least", iterations);
    MUST(threads > 0, "threads is %d, must be 1 at least", threads);
    for (at = 0; wanted && wanted[at]; ++at)
        MUST(toupper((unsigned char)wanted[at]) >= 'A' && toupper((unsigned char)wanted[at]) < 'A' + SECTIONS,
             "sections has the letter %c; sections are A to %c", wanted[at], 'A' + SECTIONS - 1);
    if (!SEVERAL) threads = 1;
    if ((uint64_t)threads > gex_System_QueryMaxThreads()) threads = (int)gex_System_QueryMaxThreads();
    run->peer = peer;
    run->iterations = iterations;
    run->seed = seed;
    run->own = (char *)segment;
    run->own_slot_bytes = slot_bytes(bytes_behind(tm, run->rank, run->own), run->size);
    run->slot_bytes = slot_bytes(bytes_behind(tm, peer, (char *)peer_segment), run->size);
    MUST(run->own_slot_bytes >= LEAST_SLOT, "seg is %p, which is not in the segment of rank %u or has not %zu bytes for "
         "each rank behind it", segment, (unsigned)run->rank, LEAST_SLOT + sizeof(uint64_t));
    MUST(run->slot_bytes >= LEAST_SLOT, "peerseg is %p, which is not in the segment of rank %u or has not %zu bytes for "
         "each rank behind it", peer_segment, (unsigned)peer, LEAST_SLOT + sizeof(uint64_t));
    run->slot = (char *)peer_segment + run->rank * run->slot_bytes;
    run->word = (uint64_t *)((char *)peer_segment + run->size * run->slot_bytes) + run->rank;
    faults = 0;
    for (at = 0; at < SECTIONS; ++at) diagnose(at, wanted, threads);
    snprintf(text, sizeof text, "Diagnostics complete, with %d faults at rank 0.", faults);
    say(text);
    return faults;
}

void argonet_diagnostic_gethandlers(gex_AM_Entry_t **table, int *count)
{
    argonet_diagnose_handlers(table, count);
    argonet_diagnosis.has_handlers = 1;
}
