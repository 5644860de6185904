/* Another translation unit of the same program. */
#include "every.h"
#if !GASNETT_LITE_MODE
GASNETT_THREADKEY_DECLARE(key);
#endif
int second(void);
int second(void)
{
    return (int)gasnett_ticks_to_ns(0) + GASNETT_SPEC_VERSION_MAJOR;
}
