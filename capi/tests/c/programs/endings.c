/* Ends of a program, and messages about it: the first argument chooses one. */
#define _GNU_SOURCE 1
#include "every.h"
#include <unistd.h>

static int broken(int fd)
{
    return dprintf(fd, "broken mechanism\n") < 0 || 1;
}

#ifdef OWN_BACKTRACE
static int own(int fd)
{
    return dprintf(fd, "own mechanism\n") < 0;
}
gasnett_backtrace_type_t gasnett_backtrace_user = {"OWN", own, 1};
#endif

GASNETT_NEVER_INLINE(recognizable, static int recognizable(int fd))
{
    int result = gasnett_print_backtrace(fd);
    gasnett_compiler_fence();
    return result;
}

static volatile int flag;

#if GASNETT_THREAD_SAFE
#include <pthread.h>
static gasnett_atomic_t released = gasnett_atomic_init(0);

/* As a debugger does. */
static void *release(void *argument)
{
    while (!flag) gasnett_sched_yield();
    gasnett_atomic_set(&released, 1, GASNETT_ATOMIC_REL);
    flag = 0;
    return argument;
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    CHECK(argc > 1);
    gasnett_backtrace_init(argv[0]);
    if (!strcmp(what, "fatal")) gasnett_fatalerror("number %d of %s", 42, "all");
    if (!strcmp(what, "fatal_nopos")) gasnett_fatalerror_nopos("nowhere");
    if (!strcmp(what, "backtrace")) return recognizable(1);
    if (!strcmp(what, "enabled")) return gasnett_print_backtrace_ifenabled(1);
    if (!strcmp(what, "replaced")) {
        gasnett_print_backtrace_ifenabled = broken;
        gasnett_fatalerror("replaced");
    }
    if (!strcmp(what, "late")) {
        gasnett_setenv("GASNET_BACKTRACE_TYPE", "OWN");
        gasnett_backtrace_init(argv[0]);
        return gasnett_print_backtrace(1);
    }
    if (!strcmp(what, "freeze")) {
        gasnett_freezeForDebuggerNow(&flag, "flag");
        return flag;
    }
    if (!strcmp(what, "freeze_err")) gasnett_freezeForDebuggerErr();
    if (!strcmp(what, "number")) gasnett_getenv_int_withdefault("ARGONET_C_BAD", 0, 0);
    if (!strcmp(what, "size")) gasnett_getenv_int_withdefault("ARGONET_C_BAD", 0, 1024);
    if (!strcmp(what, "yesno")) gasnett_getenv_yesno_withdefault("ARGONET_C_BAD", 0);
    if (!strcmp(what, "decimal")) gasnett_getenv_dbl_withdefault("ARGONET_C_BAD", 0);
    if (!strcmp(what, "parse")) gasnett_parse_int("x", 0);
    if (!strcmp(what, "setenv")) gasnett_setenv("A=B", "c");
    if (!strcmp(what, "ticks")) printf("%" PRIu64 "\n", gasnett_ticks_to_ns(UINT64_C(1000000000)));
    if (!strcmp(what, "reghandler")) gasnett_reghandler(9, 0);
#if GASNETT_THREAD_SAFE
    {
        static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
        static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
        static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
        if (!strcmp(what, "freeze_released")) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, release, NULL) == 0);
            gasnett_freezeForDebuggerNow(&flag, "flag");
            CHECK(gasnett_atomic_read(&released, GASNETT_ATOMIC_ACQ));
            return 0;
        }
        if (!strcmp(what, "lock_twice")) {
            gasnett_mutex_lock(&mutex);
            gasnett_mutex_lock(&mutex);
        }
        if (!strcmp(what, "try_twice")) {
            gasnett_mutex_lock(&mutex);
            gasnett_mutex_trylock(&mutex);
        }
        if (!strcmp(what, "unlock")) gasnett_mutex_unlock(&mutex);
        if (!strcmp(what, "assert_locked")) gasnett_mutex_assertlocked(&mutex);
        if (!strcmp(what, "wait_unlocked")) gasnett_cond_wait(&cond, &mutex);
        if (!strcmp(what, "read_twice")) {
            gasnett_rwlock_rdlock(&rwlock);
            gasnett_rwlock_rdlock(&rwlock);
        }
        if (!strcmp(what, "unlock_rw")) gasnett_rwlock_unlock(&rwlock);
        if (!strcmp(what, "assert_writing")) {
            gasnett_rwlock_rdlock(&rwlock);
            gasnett_rwlock_assertwrlocked(&rwlock);
        }
    }
#endif
    return 0;
}
