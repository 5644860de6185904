/* What the compiler's target is like, and helpers for macros. Part of gasnet_tools.h and of gasnetex.h. */
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
