/* How long the first conversion of ticks takes, at once or, with an argument, when the process has
 * lived for 2 ms. Then time goes on without going back while the rate is refined. Prints the
 * nanoseconds. */
#define _GNU_SOURCE 1
#include "every.h"
#include <sys/mman.h>
#include <time.h>

static uint64_t clock_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    const uint64_t earliest = clock_ns();
    gasnett_tick_t start = gasnett_ticks_now();
    /* Also if this process is kept off its processor: the ticks began between these two. */
    const uint64_t begun = clock_ns();
    uint64_t before, took, ns, last = 0;
    (void)argv;
    /* The first touch of a page takes 10 us on some virtual machines, and the conversion touches
     * five. Without the right to lock memory they stay in the time. */
    if (argc > 1) (void)mlockall(MCL_CURRENT);
    while (argc > 1 && clock_ns() - begun < 2000000) {}
    before = clock_ns();
    ns = gasnett_ticks_to_ns(gasnett_ticks_now() - start);
    took = clock_ns() - before;
    CHECK(ns <= clock_ns() - earliest + 1000000);
    while (clock_ns() - begun < 5000000) {
        ns = gasnett_ticks_to_ns(gasnett_ticks_now() - start);
        CHECK(ns >= last);
        last = ns;
    }
    /* The rate is refined by now: one in a hundred. */
    ns = gasnett_ticks_to_ns(gasnett_ticks_now() - start);
    CHECK(ns >= last && ns >= 4900000);
    printf("%llu\n", (unsigned long long)took);
    return 0;
}
