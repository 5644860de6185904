/* Memory barriers, spin locks, data of threads, memory of the process. */
#include "diagnostics.h"

/* A lock of one atomic variable. */
static void diagnose_spinning(struct argonet_diagnoser *me)
{
    static gasnett_atomic_t lock = gasnett_atomic_init(0);
    static volatile uint64_t updates;
    const int rounds = 10 * me->run->iterations;
    int round;
    if (me->thread == 0) updates = 0;
    argonet_diagnose_meet(me);
    for (round = 0; round < rounds; ++round) {
        uint64_t before;
        while (!gasnett_atomic_compare_and_swap(&lock, 0, 1, GASNETT_ATOMIC_ACQ_IF_TRUE)) {
            gasnett_spinloop_hint();
            gasnett_sched_yield();
        }
        before = updates;
        if (me->threads > 1 && argonet_diagnose_below(me, 16) == 0) gasnett_sched_yield();
        updates = before + 1;
        gasnett_atomic_set(&lock, 0, GASNETT_ATOMIC_REL);
    }
    argonet_diagnose_meet(me);
    DIAGNOSE(updates == (uint64_t)rounds * (uint64_t)me->threads, "a spin lock: %" PRIu64 " updates are left of %" PRIu64,
             (uint64_t)updates, (uint64_t)rounds * (uint64_t)me->threads);
}

/* A reader that sees a write from behind a write barrier, and then has a read barrier, sees the
 * writes before it. */
static void diagnose_publishing(struct argonet_diagnoser *me)
{
    static volatile uint64_t data[8], last;
    const uint64_t end = 20 * (uint64_t)me->run->iterations;
    uint64_t round, seen = 0;
    unsigned at;
    if (me->thread == 0) {
        memset((void *)data, 0, sizeof data);
        last = 0;
    }
    argonet_diagnose_meet(me);
    for (round = 1; me->thread == 0 && round <= end; ++round) {
        for (at = 0; at < 8; ++at) data[at] = round;
        gasnett_local_wmb();
        last = round;
        if (round % 64 == 0) gasnett_sched_yield();
    }
    while (me->thread != 0 && seen < end) {
        seen = last;
        gasnett_local_rmb();
        for (at = 0; at < 8; ++at)
            DIAGNOSE(data[at] >= seen, "gasnett_local_wmb and _rmb: word %u is %" PRIu64 " after %" PRIu64, at,
                     (uint64_t)data[at], seen);
        if (seen < end) gasnett_sched_yield();
    }
    argonet_diagnose_meet(me);
}

/* Two threads each write their own word and read the other's, with a full barrier between: one of
 * them sees the other. */
static void diagnose_crossing(struct argonet_diagnoser *me)
{
    static volatile int wrote[2], saw[2];
    const int rounds = me->run->iterations;
    int round;
    for (round = 0; round < rounds && me->threads > 1; ++round) {
        if (me->thread < 2) wrote[me->thread] = 0;
        argonet_diagnose_meet_quietly(me);
        if (me->thread < 2) {
            wrote[me->thread] = 1;
            gasnett_local_mb();
            saw[me->thread] = wrote[1 - me->thread];
        }
        argonet_diagnose_meet_quietly(me);
        if (me->thread == 0)
            DIAGNOSE(saw[0] || saw[1], "gasnett_local_mb: two threads have not seen each other's store");
    }
}

void argonet_diagnose_fences(struct argonet_diagnoser *me)
{
    diagnose_spinning(me);
    diagnose_publishing(me);
    diagnose_crossing(me);
}

GASNETT_THREADKEY_DECLARE(argonet_diagnosed);
GASNETT_THREADKEY_DEFINE(argonet_diagnosed);

void argonet_diagnose_thread_data(struct argonet_diagnoser *me)
{
    int round;
    gasnett_threadkey_init(argonet_diagnosed);
    DIAGNOSE(gasnett_threadkey_get(argonet_diagnosed) == NULL, "data of thread %d is there before it is set", me->thread);
    argonet_diagnose_meet(me);
    for (round = 0; round < me->run->iterations; ++round) {
        char *value = (char *)me + round % 8;
        gasnett_threadkey_set(argonet_diagnosed, value);
        gasnett_threadkey_init(argonet_diagnosed);
        if (round % 16 == 0) gasnett_sched_yield();
        DIAGNOSE(gasnett_threadkey_get_noinit(argonet_diagnosed) == value, "thread %d has another's data", me->thread);
    }
    gasnett_threadkey_set_noinit(argonet_diagnosed, NULL);
    argonet_diagnose_meet(me);
}
