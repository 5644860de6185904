/* Atomics, fences, locks and data of threads, by several threads. */
#include "every.h"
#include <errno.h>
#include <pthread.h>

#define THREADS 4
#define ROUNDS 5000
#define HANDED 1000

static struct {
    gasnett_mutex_t mutex;
    gasnett_cond_t cond;
    gasnett_rwlock_t rwlock;
} shared = {GASNETT_MUTEX_INITIALIZER, GASNETT_COND_INITIALIZER, GASNETT_RWLOCK_INITIALIZER};

static gasnett_atomic_t sum = gasnett_atomic_init(0);
static gasnett_atomic64_t wide = gasnett_atomic64_init(0);
static gasnett_strongatomic_t by_cas = gasnett_strongatomic_init(0);
static gasnett_atomic_t zeros = gasnett_atomic_init(0), left;
static uint64_t under_mutex, under_rwlock;
static int turn;
static uint64_t message;
static gasnett_atomic_t flag = gasnett_atomic_init(0);

GASNETT_THREADKEY_DECLARE(key);
GASNETT_THREADKEY_DEFINE(key);

/* Waits for a value of the flag, and lets a thread that shares the processor run. */
static void wait_for(uint32_t value)
{
    while (gasnett_atomic_read(&flag, GASNETT_ATOMIC_ACQ) != value) {
        gasnett_spinloop_hint();
        gasnett_sched_yield();
    }
}

/* Writer and reader of a message behind a flag. */
static void hand_over(int me)
{
    uint32_t round;
    for (round = 1; round <= HANDED; round++) {
        if (me == 0) {
            message = round;
            gasnett_atomic_set(&flag, 2 * round - 1, GASNETT_ATOMIC_REL);
            wait_for(2 * round);
        } else {
            wait_for(2 * round - 1);
            CHECK(message == round);
            gasnett_atomic_set(&flag, 2 * round, GASNETT_ATOMIC_REL);
        }
    }
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument, i;
    CHECK(gasnett_threadkey_get(key) == NULL);
    gasnett_threadkey_set(key, &me);
    gasnett_threadkey_init(key);
    for (i = 0; i < ROUNDS; i++) {
        uint32_t seen;
        uint64_t both;
        gasnett_atomic_increment(&sum, 0);
        gasnett_atomic_add(&sum, 2, 0);
        gasnett_atomic_subtract(&sum, 1, 0);
        do {
            seen = gasnett_strongatomic_read(&by_cas, 0);
        } while (!gasnett_strongatomic_compare_and_swap(&by_cas, seen, seen + 1, 0));
        /* Both halves are always the same. */
        both = (uint64_t)(uint32_t)(me * ROUNDS + i);
        gasnett_atomic64_set(&wide, both << 32 | both, 0);
        both = gasnett_atomic64_read(&wide, 0);
        CHECK((uint32_t)both == (uint32_t)(both >> 32));
        gasnett_mutex_lock(&shared.mutex);
        gasnett_mutex_assertlocked(&shared.mutex);
        under_mutex++;
        gasnett_mutex_unlock(&shared.mutex);
        gasnett_mutex_assertunlocked(&shared.mutex);
        if (i % 8 == 0) {
            gasnett_rwlock_wrlock(&shared.rwlock);
            gasnett_rwlock_assertwrlocked(&shared.rwlock);
            under_rwlock++;
        } else {
            gasnett_rwlock_rdlock(&shared.rwlock);
            gasnett_rwlock_assertrdlocked(&shared.rwlock);
            CHECK(under_rwlock <= (uint64_t)THREADS * ROUNDS);
        }
        gasnett_rwlock_assertlocked(&shared.rwlock);
        gasnett_rwlock_unlock(&shared.rwlock);
        gasnett_rwlock_assertunlocked(&shared.rwlock);
    }
    if (gasnett_atomic_decrement_and_test(&left, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ_IF_TRUE)) {
        gasnett_atomic_increment(&zeros, 0);
    }
    if (me < 2) hand_over(me);
    /* In order, by the condition. */
    gasnett_mutex_lock(&shared.mutex);
    while (turn != me) gasnett_cond_wait(&shared.cond, &shared.mutex);
    turn++;
    gasnett_cond_broadcast(&shared.cond);
    gasnett_mutex_unlock(&shared.mutex);
    CHECK(gasnett_threadkey_get_noinit(key) == &me);
    gasnett_threadkey_set_noinit(key, NULL);
    CHECK(gasnett_threadkey_get(key) == NULL);
    return NULL;
}

/* Tests of locks that another thread holds. */
static void *other(void *argument)
{
    int writing = argument != NULL;
    CHECK(gasnett_mutex_trylock(&shared.mutex) == EBUSY);
    gasnett_mutex_assertunlocked(&shared.mutex);
    CHECK(gasnett_rwlock_trywrlock(&shared.rwlock) == EBUSY);
    gasnett_rwlock_assertunlocked(&shared.rwlock);
    if (writing) {
        CHECK(gasnett_rwlock_tryrdlock(&shared.rwlock) == EBUSY);
    } else {
        CHECK(gasnett_rwlock_tryrdlock(&shared.rwlock) == 0);
        gasnett_rwlock_unlock(&shared.rwlock);
    }
    return NULL;
}

static void run(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    pthread_t threads[THREADS];
    gasnett_mutex_t mutex;
    gasnett_cond_t cond;
    gasnett_rwlock_t rwlock;
    intptr_t i;
    gasnett_atomic_set(&left, THREADS, 0);
    for (i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(gasnett_atomic_read(&sum, 0) == 2 * THREADS * ROUNDS);
    CHECK(gasnett_strongatomic_read(&by_cas, 0) == THREADS * ROUNDS);
    CHECK(under_mutex == THREADS * ROUNDS && under_rwlock == THREADS * ROUNDS / 8);
    CHECK(turn == THREADS && gasnett_atomic_read(&zeros, 0) == 1);
    gasnett_mutex_lock(&shared.mutex);
    gasnett_rwlock_rdlock(&shared.rwlock);
    run(other, NULL);
    gasnett_rwlock_unlock(&shared.rwlock);
    CHECK(gasnett_rwlock_trywrlock(&shared.rwlock) == 0);
    run(other, &mutex);
    gasnett_rwlock_unlock(&shared.rwlock);
    gasnett_mutex_unlock(&shared.mutex);
    gasnett_mutex_init(&mutex);
    CHECK(gasnett_mutex_trylock(&mutex) == 0);
    gasnett_mutex_unlock(&mutex);
    gasnett_mutex_destroy(&mutex);
    gasnett_mutex_init(&mutex);
    CHECK(gasnett_mutex_destroy_ignoreerr(&mutex) == 0);
    gasnett_cond_init(&cond);
    gasnett_cond_signal(&cond);
    gasnett_cond_destroy(&cond);
    gasnett_rwlock_init(&rwlock);
    CHECK(gasnett_rwlock_tryrdlock(&rwlock) == 0);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_destroy(&rwlock);
    return 0;
}
