/* What the compiler's target is like, and helpers for macros. Part of gasnet_tools.h and of
 * gasnetex.h. */
#ifndef ARGONET_SYSTEM_H
#define ARGONET_SYSTEM_H

#include "gasnet_portable_platform.h"

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x) _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif

/* Every library can trace and count, which is chosen when a job starts. A client that defines these
 * says that code of its own under them is to be compiled; nothing else depends on them. 0 means
 * not. */
#if defined(GASNET_TRACE) && GASNET_TRACE + 0 == 0 && 1 - GASNET_TRACE - 1 != 2
#undef GASNET_TRACE
#endif
#if defined(GASNET_STATS) && GASNET_STATS + 0 == 0 && 1 - GASNET_STATS - 1 != 2
#undef GASNET_STATS
#endif
#if defined(GASNET_SRCLINES) && GASNET_SRCLINES + 0 == 0 && 1 - GASNET_SRCLINES - 1 != 2
#undef GASNET_SRCLINES
#endif
#if defined(GASNET_TRACE)
#undef GASNET_TRACE
#define GASNET_TRACE 1
#define ARGONETT_TRACE_WORD "trace"
#define ARGONET_TRACE_FACET argonet_link_trace
#else
#define ARGONETT_TRACE_WORD "notrace"
#define ARGONET_TRACE_FACET argonet_link_notrace
#endif
#if defined(GASNET_STATS)
#undef GASNET_STATS
#define GASNET_STATS 1
#define ARGONETT_STATS_WORD "stats"
#define ARGONET_STATS_FACET argonet_link_stats
#else
#define ARGONETT_STATS_WORD "nostats"
#define ARGONET_STATS_FACET argonet_link_nostats
#endif
#if defined(GASNET_SRCLINES)
#undef GASNET_SRCLINES
#define GASNET_SRCLINES 1
#define ARGONETT_SRCLINES_WORD "srclines"
#define ARGONET_SRCLINES_FACET argonet_link_srclines
#else
#define ARGONETT_SRCLINES_WORD "nosrclines"
#define ARGONET_SRCLINES_FACET argonet_link_nosrclines
#endif
#define ARGONETT_TRACE_WORDS ARGONETT_TRACE_WORD "," ARGONETT_STATS_WORD

#define GASNETT_TIMER_CONFIG "timers_native"
#if PLATFORM_ARCH_X86_64
#define GASNETT_SYSTEM_TUPLE "x86_64-unknown-linux-gnu"
#define GASNETT_CACHE_LINE_BYTES 64
#define GASNETT_PAGESHIFT 12
#else
#define GASNETT_SYSTEM_TUPLE "aarch64-unknown-linux-gnu"
#define GASNETT_CACHE_LINE_BYTES 128
#define GASNETT_PAGESHIFT 16
#endif
#define GASNETT_PAGESIZE (1 << GASNETT_PAGESHIFT)

#endif
