/* Mutexes, condition variables, locks for reading and writing, data of threads. Part of
 * gasnet_tools.h. */
#ifndef ARGONET_LOCKS_H
#define ARGONET_LOCKS_H

#include "argonet/tools_calls.h"
#include <errno.h>
#include <pthread.h>

/* Types are the same in every mode, so that objects of several modes can share them. */
typedef struct {
    pthread_mutex_t argonett_lock;
    /* The thread that holds it, in debug builds: written by the holder, read by all. */
    const void *argonett_owner;
} gasnett_mutex_t;
typedef struct {
    pthread_cond_t argonett_cond;
} gasnett_cond_t;
#define GASNETT_MUTEX_INITIALIZER {PTHREAD_MUTEX_INITIALIZER, 0}
#define GASNETT_COND_INITIALIZER {PTHREAD_COND_INITIALIZER}
#define GASNETT_RWLOCK_INITIALIZER {{0, 0, 0, 0, 0, 0, 0, 0}}

#if GASNETT_THREAD_SAFE || GASNETT_USE_TRUE_MUTEXES
#define ARGONETT_LOCKS 1
#else
#define ARGONETT_LOCKS 0
#endif

/* An address that only this thread has. */
GASNETT_INLINE(argonett_self)
const void *argonett_self(void)
{
    static __thread char self;
    return &self;
}

GASNETT_INLINE(argonett_must)
void argonett_must(int condition, const char *what, const char *file, int line)
{
    if_pf (!condition) argonett_fatal("", file, line, what);
}

GASNETT_INLINE(argonett_mutex_is_mine)
int argonett_mutex_is_mine(gasnett_mutex_t *m)
{
    return __atomic_load_n(&m->argonett_owner, __ATOMIC_RELAXED) == argonett_self();
}

GASNETT_INLINE(argonett_mutex_owner)
void argonett_mutex_owner(gasnett_mutex_t *m, const void *owner)
{
    if (ARGONETT_DEBUG) __atomic_store_n(&m->argonett_owner, owner, __ATOMIC_RELAXED);
}

GASNETT_INLINE(argonett_mutex_init)
void argonett_mutex_init(gasnett_mutex_t *m, const char *file, int line)
{
    m->argonett_owner = 0;
    argonett_must(pthread_mutex_init(&m->argonett_lock, 0) == 0, "pthread_mutex_init failed", file, line);
}

GASNETT_INLINE(argonett_mutex_destroy)
void argonett_mutex_destroy(gasnett_mutex_t *m, const char *file, int line)
{
    argonett_must(pthread_mutex_destroy(&m->argonett_lock) == 0, "a mutex is destroyed while it is locked", file, line);
}

GASNETT_INLINE(argonett_mutex_lock)
void argonett_mutex_lock(gasnett_mutex_t *m, const char *file, int line)
{
#if ARGONETT_LOCKS
    if (ARGONETT_DEBUG) {
        argonett_must(!argonett_mutex_is_mine(m), "a thread locks a mutex that it has locked already", file, line);
    }
    argonett_must(pthread_mutex_lock(&m->argonett_lock) == 0, "pthread_mutex_lock failed", file, line);
    argonett_mutex_owner(m, argonett_self());
#else
    GASNETT_UNUSED_ARGS3(m, file, line);
#endif
}

GASNETT_INLINE(argonett_mutex_trylock)
int argonett_mutex_trylock(gasnett_mutex_t *m, const char *file, int line)
{
#if ARGONETT_LOCKS
    int result;
    if (ARGONETT_DEBUG) {
        argonett_must(!argonett_mutex_is_mine(m), "a thread locks a mutex that it has locked already", file, line);
    }
    result = pthread_mutex_trylock(&m->argonett_lock);
    argonett_must(result == 0 || result == EBUSY, "pthread_mutex_trylock failed", file, line);
    if (result == 0) argonett_mutex_owner(m, argonett_self());
    return result;
#else
    GASNETT_UNUSED_ARGS3(m, file, line);
    return 0;
#endif
}

GASNETT_INLINE(argonett_mutex_unlock)
void argonett_mutex_unlock(gasnett_mutex_t *m, const char *file, int line)
{
#if ARGONETT_LOCKS
    if (ARGONETT_DEBUG) {
        argonett_must(argonett_mutex_is_mine(m), "a thread unlocks a mutex that it has not locked", file, line);
    }
    argonett_mutex_owner(m, 0);
    argonett_must(pthread_mutex_unlock(&m->argonett_lock) == 0, "pthread_mutex_unlock failed", file, line);
#else
    GASNETT_UNUSED_ARGS3(m, file, line);
#endif
}

GASNETT_INLINE(argonett_mutex_assert)
void argonett_mutex_assert(gasnett_mutex_t *m, int locked, const char *file, int line)
{
#if ARGONETT_LOCKS
    if (ARGONETT_DEBUG) {
        argonett_must(argonett_mutex_is_mine(m) == locked,
                      locked ? "a mutex is not locked by this thread" : "a mutex is locked by this thread", file, line);
    }
#else
    GASNETT_UNUSED_ARGS4(m, locked, file, line);
#endif
}

GASNETT_INLINE(argonett_cond_wait)
void argonett_cond_wait(gasnett_cond_t *c, gasnett_mutex_t *m, const char *file, int line)
{
#if ARGONETT_LOCKS
    argonett_mutex_assert(m, 1, file, line);
    argonett_mutex_owner(m, 0);
    argonett_must(pthread_cond_wait(&c->argonett_cond, &m->argonett_lock) == 0, "pthread_cond_wait failed", file, line);
    argonett_mutex_owner(m, argonett_self());
#else
    GASNETT_UNUSED_ARGS2(c, m);
    argonett_fatal("gasnett_cond_wait", file, line, "there is no other thread that could signal");
#endif
}

GASNETT_INLINE(argonett_cond_must)
void argonett_cond_must(int result, const char *file, int line)
{
    argonett_must(result == 0, "an operation on a condition variable failed", file, line);
}

#define gasnett_mutex_init(m) argonett_mutex_init((m), __FILE__, __LINE__)
#define gasnett_mutex_destroy(m) argonett_mutex_destroy((m), __FILE__, __LINE__)
#define gasnett_mutex_destroy_ignoreerr(m) pthread_mutex_destroy(&(m)->argonett_lock)
#define gasnett_mutex_lock(m) argonett_mutex_lock((m), __FILE__, __LINE__)
#define gasnett_mutex_trylock(m) argonett_mutex_trylock((m), __FILE__, __LINE__)
#define gasnett_mutex_unlock(m) argonett_mutex_unlock((m), __FILE__, __LINE__)
#define gasnett_mutex_assertlocked(m) argonett_mutex_assert((m), 1, __FILE__, __LINE__)
#define gasnett_mutex_assertunlocked(m) argonett_mutex_assert((m), 0, __FILE__, __LINE__)
#define gasnett_cond_init(c) argonett_cond_must(pthread_cond_init(&(c)->argonett_cond, 0), __FILE__, __LINE__)
#define gasnett_cond_destroy(c) argonett_cond_must(pthread_cond_destroy(&(c)->argonett_cond), __FILE__, __LINE__)
#define gasnett_cond_signal(c) argonett_cond_must(pthread_cond_signal(&(c)->argonett_cond), __FILE__, __LINE__)
#define gasnett_cond_broadcast(c) argonett_cond_must(pthread_cond_broadcast(&(c)->argonett_cond), __FILE__, __LINE__)
#define gasnett_cond_wait(c, m) argonett_cond_wait((c), (m), __FILE__, __LINE__)

GASNETT_INLINE(gasnett_rwlock_init)
void gasnett_rwlock_init(gasnett_rwlock_t *lock)
{
    gasnett_rwlock_t unlocked = GASNETT_RWLOCK_INITIALIZER;
    *lock = unlocked;
}

GASNETT_INLINE(argonett_rwlock_assert)
void argonett_rwlock_assert(gasnett_rwlock_t *lock, int held, const char *what, const char *file, int line)
{
    if (ARGONETT_LOCKS && ARGONETT_DEBUG) {
        /* Bit by bit: may be held for nothing, reading, writing. */
        argonett_must((held >> argonett_rwlock_held(lock)) & 1, what, file, line);
    } else {
        GASNETT_UNUSED_ARGS5(lock, held, what, file, line);
    }
}

#define gasnett_rwlock_destroy(l) argonett_rwlock_destroy(l)
#if ARGONETT_LOCKS
#define gasnett_rwlock_rdlock(l) ((void)argonett_rwlock_read((l), 1, ARGONETT_DEBUG))
#define gasnett_rwlock_wrlock(l) ((void)argonett_rwlock_write((l), 1, ARGONETT_DEBUG))
#define gasnett_rwlock_tryrdlock(l) argonett_rwlock_read((l), 0, ARGONETT_DEBUG)
#define gasnett_rwlock_trywrlock(l) argonett_rwlock_write((l), 0, ARGONETT_DEBUG)
#define gasnett_rwlock_unlock(l) argonett_rwlock_unlock((l), ARGONETT_DEBUG)
#else
#define gasnett_rwlock_rdlock(l) GASNETT_UNUSED_ARGS1(l)
#define gasnett_rwlock_wrlock(l) GASNETT_UNUSED_ARGS1(l)
#define gasnett_rwlock_tryrdlock(l) (GASNETT_UNUSED_ARGS1(l), 0)
#define gasnett_rwlock_trywrlock(l) (GASNETT_UNUSED_ARGS1(l), 0)
#define gasnett_rwlock_unlock(l) GASNETT_UNUSED_ARGS1(l)
#endif
#define gasnett_rwlock_assertrdlocked(l)                                                                               \
    argonett_rwlock_assert((l), 2, "a lock is not held for reading by this thread", __FILE__, __LINE__)
#define gasnett_rwlock_assertwrlocked(l)                                                                               \
    argonett_rwlock_assert((l), 4, "a lock is not held for writing by this thread", __FILE__, __LINE__)
#define gasnett_rwlock_assertlocked(l)                                                                                 \
    argonett_rwlock_assert((l), 6, "a lock is not held by this thread", __FILE__, __LINE__)
#define gasnett_rwlock_assertunlocked(l)                                                                               \
    argonett_rwlock_assert((l), 1, "a lock is held by this thread", __FILE__, __LINE__)

/* A pointer that each thread has its own of, NULL at first. There is nothing to initialize. */
#if GASNETT_THREAD_SAFE
#define ARGONETT_OF_THREAD __thread
#else
#define ARGONETT_OF_THREAD
#endif
#define GASNETT_THREADKEY_DEFINE(key) ARGONETT_OF_THREAD void *argonett_key_##key = 0
#define GASNETT_THREADKEY_DECLARE(key) extern ARGONETT_OF_THREAD void *argonett_key_##key
#define gasnett_threadkey_init(key) ((void)argonett_key_##key)
#define gasnett_threadkey_get(key) (argonett_key_##key)
#define gasnett_threadkey_set(key, value) ((void)(argonett_key_##key = (value)))
#define gasnett_threadkey_get_noinit(key) gasnett_threadkey_get(key)
#define gasnett_threadkey_set_noinit(key, value) gasnett_threadkey_set(key, value)

/* A function of the reference whose address Realm and Legion take, so that compilers count it as
 * used. It does nothing. */
__attribute__((__unused__)) static void _gasneti_threadkey_init(void *key)
{
    (void)key;
}

#endif
