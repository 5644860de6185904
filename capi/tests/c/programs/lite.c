/* Timers and barriers alone. */
#include "every.h"

#ifdef GASNETT_ATOMIC_MAX
#error atomics are not part of this mode
#endif

int main(void)
{
    gasnett_tick_t before = gasnett_ticks_now();
    gasnett_local_mb();
    gasnett_local_rmb();
    gasnett_local_wmb();
    gasnett_weak_mb();
    gasnett_compiler_fence();
    gasnett_spinloop_hint();
    CHECK(gasnett_ticks_now() >= before);
    CHECK(gasnett_ticks_to_ns(0) == 0);
    return 0;
}
