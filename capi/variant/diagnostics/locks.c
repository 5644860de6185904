/* Mutexes, condition variables, read-write locks, handler-safe locks. Data that a lock protects is
 * read, held for a while and written, so that two holders at a time lose an update. */
#include "diagnostics.h"

/* An update that takes long enough to be disturbed. */
static void update(struct argonet_diagnoser *me, volatile uint64_t *counter)
{
    uint64_t value = *counter;
    if (me->threads > 1 && argonet_diagnose_below(me, 64) == 0) gasnett_sched_yield();
    *counter = value + 1;
}

/* Thread 0 checks what a counter has come to, and makes it 0 for the next run. */
static void expect(struct argonet_diagnoser *me, const char *what, volatile uint64_t *counter, uint64_t should)
{
    argonet_diagnose_meet(me);
    if (me->thread == 0) {
        DIAGNOSE(*counter == should, "%s: %" PRIu64 " updates are left of %" PRIu64, what, (uint64_t)*counter, should);
        *counter = 0;
    }
    argonet_diagnose_meet(me);
}

/* Thread 0 holds a lock; what the others' trials give. */
#define DIAGNOSE_HELD(me, what, lock, unlock, refused)                                                                 \
    do {                                                                                                               \
        if ((me)->thread == 0) lock;                                                                                   \
        argonet_diagnose_meet_quietly(me);                                                                             \
        if ((me)->thread != 0) DIAGNOSE(refused, "%s: another thread's lock does not keep this one out", (what));      \
        argonet_diagnose_meet_quietly(me);                                                                             \
        if ((me)->thread == 0) unlock;                                                                                 \
        argonet_diagnose_meet_quietly(me);                                                                             \
    } while (0)

void argonet_diagnose_mutexes(struct argonet_diagnoser *me)
{
    static gasnett_mutex_t fixed = GASNETT_MUTEX_INITIALIZER;
    static gasnett_mutex_t made;
    static volatile uint64_t of_fixed, of_made;
    const int rounds = 10 * me->run->iterations;
    int round;
    if (me->thread == 0) {
        gasnett_mutex_init(&made);
        gasnett_mutex_destroy(&made);
        gasnett_mutex_init(&made);
        DIAGNOSE(gasnett_mutex_trylock(&made) == 0, "a new mutex is locked");
        gasnett_mutex_assertlocked(&made);
        gasnett_mutex_unlock(&made);
    }
    argonet_diagnose_meet(me);
    DIAGNOSE_HELD(me, "gasnett_mutex_trylock", gasnett_mutex_lock(&fixed), gasnett_mutex_unlock(&fixed),
                  gasnett_mutex_trylock(&fixed) == EBUSY);
    for (round = 0; round < rounds; ++round) {
        gasnett_mutex_assertunlocked(&fixed);
        gasnett_mutex_lock(&fixed);
        gasnett_mutex_assertlocked(&fixed);
        update(me, &of_fixed);
        gasnett_mutex_unlock(&fixed);
        if (argonet_diagnose_below(me, 2)) {
            gasnett_mutex_lock(&made);
        } else {
            while (gasnett_mutex_trylock(&made) != 0) gasnett_sched_yield();
        }
        update(me, &of_made);
        gasnett_mutex_unlock(&made);
    }
    expect(me, "a mutex with an initializer", &of_fixed, (uint64_t)rounds * (uint64_t)me->threads);
    expect(me, "a mutex made by gasnett_mutex_init", &of_made, (uint64_t)rounds * (uint64_t)me->threads);
    if (me->thread == 0) gasnett_mutex_destroy(&made);
}

/* The threads take turns: each waits for its own and wakes the others. A wake-up that is lost is a
 * hang. */
void argonet_diagnose_conditions(struct argonet_diagnoser *me)
{
    static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
    static gasnett_cond_t fixed = GASNETT_COND_INITIALIZER;
    static gasnett_cond_t made;
    static volatile uint64_t turn;
    const uint64_t end = (uint64_t)me->run->iterations * (uint64_t)me->threads;
    if (me->thread == 0) {
        gasnett_cond_init(&made);
        gasnett_cond_destroy(&made);
        gasnett_cond_init(&made);
        turn = 0;
        gasnett_mutex_lock(&mutex);
        gasnett_cond_signal(&made);
        gasnett_cond_broadcast(&made);
        gasnett_mutex_unlock(&mutex);
    }
    argonet_diagnose_meet(me);
    gasnett_mutex_lock(&mutex);
    while (turn < end) {
        const uint64_t before = turn;
        if (before % (uint64_t)me->threads == (uint64_t)me->thread) {
            turn = before + 1;
            /* The signal is for the one thread that waits at `made`; everybody else waits at
             * `fixed`. */
            if (me->threads == 2) gasnett_cond_signal(&made);
            gasnett_cond_broadcast(&fixed);
        } else {
            gasnett_cond_wait(me->threads == 2 ? &made : &fixed, &mutex);
            gasnett_mutex_assertlocked(&mutex);
            DIAGNOSE(turn >= before, "gasnett_cond_wait: turn %" PRIu64 " came after turn %" PRIu64, (uint64_t)turn, before);
        }
    }
    gasnett_mutex_unlock(&mutex);
    argonet_diagnose_meet(me);
    if (me->thread == 0) {
        DIAGNOSE(turn == end, "%" PRIu64 " turns were taken, should be %" PRIu64, (uint64_t)turn, end);
        gasnett_cond_destroy(&made);
    }
}

void argonet_diagnose_rwlocks(struct argonet_diagnoser *me)
{
    static gasnett_rwlock_t fixed = GASNETT_RWLOCK_INITIALIZER;
    static gasnett_rwlock_t made;
    static volatile uint64_t value, twin, writes;
    const int rounds = 5 * me->run->iterations;
    int round;
    if (me->thread == 0) {
        gasnett_rwlock_init(&made);
        DIAGNOSE(gasnett_rwlock_trywrlock(&made) == 0, "a new lock is held");
        gasnett_rwlock_assertwrlocked(&made);
        gasnett_rwlock_unlock(&made);
        DIAGNOSE(gasnett_rwlock_tryrdlock(&made) == 0, "a new lock is held for writing");
        gasnett_rwlock_assertrdlocked(&made);
        gasnett_rwlock_unlock(&made);
        gasnett_rwlock_destroy(&made);
        value = twin = 0;
    }
    argonet_diagnose_meet(me);
    DIAGNOSE_HELD(me, "gasnett_rwlock_wrlock, for reading", gasnett_rwlock_wrlock(&fixed), gasnett_rwlock_unlock(&fixed),
                  gasnett_rwlock_tryrdlock(&fixed) != 0);
    DIAGNOSE_HELD(me, "gasnett_rwlock_wrlock, for writing", gasnett_rwlock_wrlock(&fixed), gasnett_rwlock_unlock(&fixed),
                  gasnett_rwlock_trywrlock(&fixed) == EBUSY);
    DIAGNOSE_HELD(me, "gasnett_rwlock_rdlock, for writing", gasnett_rwlock_rdlock(&fixed), gasnett_rwlock_unlock(&fixed),
                  gasnett_rwlock_trywrlock(&fixed) == EBUSY);
    for (round = 0; round < rounds; ++round) {
        if (round % 4 == 0) {
            gasnett_rwlock_wrlock(&fixed);
            gasnett_rwlock_assertlocked(&fixed);
            update(me, &value);
            update(me, &twin);
            update(me, &writes);
        } else {
            gasnett_rwlock_rdlock(&fixed);
            gasnett_rwlock_assertrdlocked(&fixed);
            DIAGNOSE(value == twin, "a reader sees half of a write");
        }
        gasnett_rwlock_unlock(&fixed);
        gasnett_rwlock_assertunlocked(&fixed);
    }
    expect(me, "a lock for reading and writing", &writes, (uint64_t)((rounds + 3) / 4) * (uint64_t)me->threads);
}

void argonet_diagnose_hsls(struct argonet_diagnoser *me)
{
    static gex_HSL_t fixed = GEX_HSL_INITIALIZER;
    static gex_HSL_t made;
    static volatile uint64_t of_fixed, of_made;
    const int rounds = 10 * me->run->iterations;
    int round;
    if (me->thread == 0) {
        gex_HSL_Init(&made);
        DIAGNOSE(gex_HSL_Trylock(&made) == GASNET_OK, "a new handler-safe lock is held");
        gex_HSL_Unlock(&made);
    }
    argonet_diagnose_meet(me);
    DIAGNOSE_HELD(me, "gex_HSL_Trylock", gex_HSL_Lock(&fixed), gex_HSL_Unlock(&fixed),
                  gex_HSL_Trylock(&fixed) == GASNET_ERR_NOT_READY);
    for (round = 0; round < rounds; ++round) {
        gex_HSL_Lock(&fixed);
        update(me, &of_fixed);
        gex_HSL_Unlock(&fixed);
        while (gex_HSL_Trylock(&made) != GASNET_OK) gasnett_sched_yield();
        update(me, &of_made);
        gex_HSL_Unlock(&made);
    }
    expect(me, "a handler-safe lock with an initializer", &of_fixed, (uint64_t)rounds * (uint64_t)me->threads);
    expect(me, "a handler-safe lock made by gex_HSL_Init", &of_made, (uint64_t)rounds * (uint64_t)me->threads);
    if (me->thread == 0) gex_HSL_Destroy(&made);
}
