/* GASNet-Tools, version 1.20 of its interface: what programs need that has nothing to do with
 * communication.
 *
 * Works in a program that never starts a job. A program that uses gasnetex.h too includes that
 * first. Threads: a client may define one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE and
 * GASNETT_LITE_MODE (timers and barriers only) to 1; GASNET_PAR implies the first, GASNET_SEQ and
 * GASNET_PARSYNC the second; otherwise -pthread or an included pthread.h decides. GASNET_DEBUG has
 * locks checked. */
#ifndef _INCLUDED_GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H

#include "gasnet_config.h"
#include "gasnet_portable_platform.h"

/* Some of these are here because clients have always had them from here. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#if defined(GASNETT_THREAD_SAFE) && !GASNETT_THREAD_SAFE
#undef GASNETT_THREAD_SAFE
#endif
#if defined(GASNETT_THREAD_SINGLE) && !GASNETT_THREAD_SINGLE
#undef GASNETT_THREAD_SINGLE
#endif
#if defined(GASNETT_LITE_MODE) && !GASNETT_LITE_MODE
#undef GASNETT_LITE_MODE
#endif
#if (defined(GASNETT_THREAD_SAFE) && defined(GASNETT_THREAD_SINGLE)) ||                                                \
    (defined(GASNETT_THREAD_SAFE) && defined(GASNETT_LITE_MODE)) ||                                                    \
    (defined(GASNETT_THREAD_SINGLE) && defined(GASNETT_LITE_MODE))
#error at most one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE and GASNETT_LITE_MODE may be defined
#endif
#if defined(GASNETT_LITE_MODE)
#ifdef _GASNETEX_H
#error GASNETT_LITE_MODE cannot be used with gasnetex.h
#endif
#undef GASNETT_LITE_MODE
#define GASNETT_LITE_MODE 1
#elif defined(GASNETT_THREAD_SAFE) || defined(GASNETT_THREAD_SINGLE)
/* As the client says. */
#elif defined(GASNET_PAR)
#define GASNETT_THREAD_SAFE 1
#elif defined(GASNET_SEQ) || defined(GASNET_PARSYNC)
#define GASNETT_THREAD_SINGLE 1
#elif defined(_REENTRANT) || defined(PTHREAD_MUTEX_INITIALIZER)
#define GASNETT_THREAD_SAFE 1
#else
#define GASNETT_THREAD_SINGLE 1
#endif
#if defined(GASNETT_THREAD_SAFE)
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#define ARGONETT_THREAD_MODEL "THREAD_SAFE"
#elif defined(GASNETT_THREAD_SINGLE)
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#define ARGONETT_THREAD_MODEL "THREAD_SINGLE"
#else
#define ARGONETT_THREAD_MODEL "LITE_MODE"
#endif
#if defined(GASNET_DEBUG) && defined(GASNET_NDEBUG)
#error GASNET_DEBUG and GASNET_NDEBUG exclude each other
#endif
#if defined(GASNET_DEBUG) && GASNET_DEBUG + 0
#define ARGONETT_DEBUG 1
#define ARGONETT_DEBUG_WORD "debug"
#else
#define ARGONETT_DEBUG 0
#define ARGONETT_DEBUG_WORD "nodebug"
#endif

#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH

#include "argonet/annotations.h"
#include "argonet/numbers_tools.h"

#include "argonet/atomics.h"
#include "argonet/system.h"
#include "argonet/tools_calls.h"

#ifndef PRIuSZ
#define PRIuSZ "zu"
#endif

/* Time. A tick is one of the processor's counter, which all threads of a host share. */
typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX ((gasnett_tick_t)UINT64_MAX)

GASNETT_INLINE(gasnett_ticks_now)
gasnett_tick_t gasnett_ticks_now(void)
{
#if PLATFORM_ARCH_X86_64
    uint32_t low, high;
    __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#else
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
#endif
}

#define gasnett_ticks_to_ns(ticks) argonett_ticks_to_ns(ticks)
#define gasnett_ticks_to_us(ticks) (argonett_ticks_to_ns(ticks) / 1000)
#define gasnett_tick_granularityus() argonett_tick_granularity_us()
#define gasnett_tick_overheadus() argonett_tick_overhead_us()
#define gasnett_gettimeofday_us() argonett_gettimeofday_us()
#define gasnett_nsleep(ns) argonett_nsleep(ns)

/* System. */
#define GASNETT_CONFIGURE_ARGS GASNETI_CONFIGURE_ARGS
#define GASNETT_PLATFORM_COMPILER_FAMILYID PLATFORM_COMPILER_FAMILYID
#define GASNETT_PLATFORM_COMPILER_ID PLATFORM_COMPILER_ID
#define GASNETT_PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION
#define GASNETT_PLATFORM_COMPILER_IDSTR PLATFORM_COMPILER_IDSTR

#if !GASNETT_LITE_MODE
#include "argonet/locks.h"
#include "argonet/tools_rest.h"
#ifdef _GASNETEX_H
#include "argonet/job_tools.h"
#endif
#endif

#endif
