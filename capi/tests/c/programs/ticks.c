/* Ticks rise, are as long as the clock says, and sleep is never short. The one bound on the
 * machine's speed is loose. */
#define _GNU_SOURCE 1
#include "every.h"
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static uint64_t clock_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Ticks between two readings of the clock, in nanoseconds, as bounds from inside and outside. */
static void compare(void)
{
    gasnett_tick_t outer0 = gasnett_ticks_now(), inner0, inner1, outer1;
    uint64_t clock0 = clock_ns(), elapsed, inside, outside;
    inner0 = gasnett_ticks_now();
    while (clock_ns() - clock0 < 100000000) {}
    inner1 = gasnett_ticks_now();
    elapsed = clock_ns() - clock0;
    outer1 = gasnett_ticks_now();
    inside = gasnett_ticks_to_ns(inner1 - inner0);
    outside = gasnett_ticks_to_ns(outer1 - outer0);
    /* One in a hundred. */
    CHECK(inside <= elapsed + elapsed / 100);
    CHECK(outside >= elapsed - elapsed / 100);
}

static void nothing(int signal) { (void)signal; }

static void interrupted(void)
{
    struct itimerval timer;
    gasnett_sighandlerfn_t before = gasnett_reghandler(SIGALRM, nothing);
    CHECK(before == SIG_DFL);
    CHECK(gasnett_reghandler(SIGALRM, nothing) == nothing);
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_usec = 1000;
    timer.it_interval.tv_usec = 1000;
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    errno = 0;
    CHECK(gasnett_nsleep(UINT64_C(60000000000)) != 0 && errno == EINTR);
    memset(&timer, 0, sizeof timer);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

int main(void)
{
    gasnett_tick_t last = gasnett_ticks_now(), now;
    uint64_t ns, before, us;
    int i;
    for (i = 0; i < 100000; i++) {
        now = gasnett_ticks_now();
        CHECK(now >= last);
        last = now;
    }
    compare();
    ns = gasnett_ticks_to_ns(UINT64_C(1) << 40);
    CHECK(gasnett_ticks_to_ns(UINT64_C(1) << 41) - 2 * ns <= 2);
    CHECK(gasnett_ticks_to_us(UINT64_C(1) << 40) == ns / 1000);
    CHECK(gasnett_ticks_to_ns(GASNETT_TICK_MIN) == 0 && GASNETT_TICK_MAX > GASNETT_TICK_MIN);
    CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_granularityus() < 1);
    CHECK(gasnett_tick_overheadus() > 0 && gasnett_tick_overheadus() < 1000);
    us = gasnett_gettimeofday_us();
    CHECK(us / 1000000 - (uint64_t)time(NULL) + 2 <= 4);
    CHECK(gasnett_nsleep(0) == 0);
    before = clock_ns();
    last = gasnett_ticks_now();
    CHECK(gasnett_nsleep(2000000) == 0);
    CHECK(clock_ns() - before >= 2000000);
    CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - last) >= 1980000);
    interrupted();
    printf("%s\n", GASNETT_TIMER_CONFIG);
    return 0;
}
