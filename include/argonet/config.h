/* The configuration that a client is compiled for: thread mode, debugging, conduit, and what
 * follows from them. The first part of gasnetex.h; nothing is declared here. The same for all
 * conduits but for their names. No word that a client may have defined as a macro of its own goes
 * into the names of symbols. */
#ifndef ARGONET_CONFIG_H
#define ARGONET_CONFIG_H

#include "argonet/system.h"
#include "gasnet_config.h"

/* The thread mode. */
#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#error define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before gasnetex.h is included
#endif
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ 1
#define ARGONET_THREADS "SEQ"
#define ARGONET_THREADS_PART _SEQ_
#define ARGONET_THREADS_FACET argonet_link_threads_SEQ
#define ARGONET_THREADS_NUMBER 0
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define ARGONET_THREADS "PARSYNC"
#define ARGONET_THREADS_PART _PARSYNC_
#define ARGONET_THREADS_FACET argonet_link_threads_PARSYNC
#define ARGONET_THREADS_NUMBER 1
#else
#undef GASNET_PAR
#define GASNET_PAR 1
#define ARGONET_THREADS "PAR"
#define ARGONET_THREADS_PART _PAR_
#define ARGONET_THREADS_FACET argonet_link_threads_PAR
#define ARGONET_THREADS_NUMBER 2
#endif

/* Debugging. A client that says neither is not debugged. Defined as nothing means yes: the minus
 * signs make 2 of that. */
#if defined(GASNET_DEBUG) && GASNET_DEBUG + 0 == 0 && 1 - GASNET_DEBUG - 1 != 2
#undef GASNET_DEBUG
#endif
#if defined(GASNET_NDEBUG) && GASNET_NDEBUG + 0 == 0 && 1 - GASNET_NDEBUG - 1 != 2
#undef GASNET_NDEBUG
#endif
#if defined(GASNET_DEBUG) && defined(GASNET_NDEBUG)
#error GASNET_DEBUG and GASNET_NDEBUG exclude each other
#endif
#if defined(GASNET_DEBUG)
#if (defined(__OPTIMIZE__) || defined(NDEBUG)) && !defined(GASNET_ALLOW_OPTIMIZED_DEBUG)
#error optimized or NDEBUG code for a debug library; define GASNET_ALLOW_OPTIMIZED_DEBUG if that is meant
#endif
#undef GASNET_DEBUG
#define GASNET_DEBUG 1
#undef GASNET_DEBUGMALLOC
#define GASNET_DEBUGMALLOC 1
#define ARGONET_DEBUGMALLOC_WORD "debugmalloc"
#define ARGONET_DEBUGMALLOC_FACET argonet_link_debugmalloc
#define ARGONET_DEBUG 1
#define ARGONET_DEBUG_WORD "debug"
#define ARGONET_DEBUG_PART debug_layout_
#define ARGONET_DEBUG_FACET argonet_link_debug_debug
#else
#undef GASNET_NDEBUG
#define GASNET_NDEBUG 1
#ifdef GASNET_DEBUGMALLOC
#error GASNET_DEBUGMALLOC is what GASNET_DEBUG brings, and cannot be had without that
#endif
#define ARGONET_DEBUGMALLOC_WORD "nodebugmalloc"
#define ARGONET_DEBUGMALLOC_FACET argonet_link_nodebugmalloc
#define ARGONET_DEBUG 0
#define ARGONET_DEBUG_WORD "nodebug"
#define ARGONET_DEBUG_PART ndebug_layout_
#define ARGONET_DEBUG_FACET argonet_link_debug_nodebug
#endif

/* What memory of a process others reach: the segment that it attaches (FAST, LARGE), or all of it.
 * The installation says which it has in gasnet_config.h; a client that says nothing gets that. */
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) + defined(GASNET_SEGMENT_EVERYTHING) > 1
#error define at most one of GASNET_SEGMENT_FAST, GASNET_SEGMENT_LARGE and GASNET_SEGMENT_EVERYTHING
#endif
#if defined(GASNET_SEGMENT_LARGE) ||                                                                                   \
    (GASNETI_SEGMENT_DEFAULT == 1 && !defined(GASNET_SEGMENT_FAST) && !defined(GASNET_SEGMENT_EVERYTHING))
#undef GASNET_SEGMENT_LARGE
#define GASNET_SEGMENT_LARGE 1
#define ARGONET_SEGMENT "LARGE"
#define ARGONET_SEGMENT_PART LARGE_
#define ARGONET_SEGMENT_FACET argonet_link_segment_LARGE
#define ARGONET_SEGMENT_NUMBER 1
#elif defined(GASNET_SEGMENT_EVERYTHING) || (GASNETI_SEGMENT_DEFAULT == 2 && !defined(GASNET_SEGMENT_FAST))
#undef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 1
#define ARGONET_SEGMENT "EVERYTHING"
#define ARGONET_SEGMENT_PART EVERYTHING_
#define ARGONET_SEGMENT_FACET argonet_link_segment_EVERYTHING
#define ARGONET_SEGMENT_NUMBER 2
#else
#undef GASNET_SEGMENT_FAST
#define GASNET_SEGMENT_FAST 1
#define ARGONET_SEGMENT "FAST"
#define ARGONET_SEGMENT_PART FAST_
#define ARGONET_SEGMENT_FACET argonet_link_segment_FAST
#define ARGONET_SEGMENT_NUMBER 0
#endif
#define GASNET_ALIGNED_SEGMENTS 0

/* Build systems of clients may lose options of the compiler, but not the directory of a conduit
 * among those of headers. */
#if !defined(ARGONET_CONDUIT_OFI) && !defined(ARGONET_CONDUIT_GNI) && !defined(ARGONET_CONDUIT_USNIC) &&              \
    !defined(ARGONET_CONDUIT_PORTALS) && !defined(ARGONET_CONDUIT_TCP) && !defined(ARGONET_CONDUIT_UDP) &&             \
    !defined(ARGONET_CONDUIT_SMP)
#ifdef __has_include
#if __has_include(<argonet_conduit.h>)
#include <argonet_conduit.h>
#endif
#endif
#endif

/* The conduit: smp where nothing else is said. udp is tcp by the name that clients of GASNet know.
 * The extended part is the same for all. */
#if defined(ARGONET_CONDUIT_OFI)
#if ARGONET_CONDUIT_OFI != 1 || defined(ARGONET_CONDUIT_GNI) || defined(ARGONET_CONDUIT_USNIC) ||                       \
    defined(ARGONET_CONDUIT_PORTALS) || defined(ARGONET_CONDUIT_TCP) || defined(ARGONET_CONDUIT_UDP) ||                \
    defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_OFI must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_OFI 1
#define GASNET_CONDUIT_NAME OFI
#define GASNET_CORE_NAME OFI
#define GASNET_CONDUIT_NAME_STR "OFI"
#define GASNET_CORE_NAME_STR "OFI"
#define ARGONET_CONDUIT_PART _OFI
#define ARGONET_CORE_FACET argonet_link_core_OFI
#elif defined(ARGONET_CONDUIT_GNI)
#if ARGONET_CONDUIT_GNI != 1 || defined(ARGONET_CONDUIT_USNIC) || defined(ARGONET_CONDUIT_PORTALS) ||                   \
    defined(ARGONET_CONDUIT_TCP) || defined(ARGONET_CONDUIT_UDP) || defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_GNI must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_GNI 1
#define GASNET_CONDUIT_NAME GNI
#define GASNET_CORE_NAME GNI
#define GASNET_CONDUIT_NAME_STR "GNI"
#define GASNET_CORE_NAME_STR "GNI"
#define ARGONET_CONDUIT_PART _GNI
#define ARGONET_CORE_FACET argonet_link_core_GNI
#elif defined(ARGONET_CONDUIT_USNIC)
#if ARGONET_CONDUIT_USNIC != 1 || defined(ARGONET_CONDUIT_PORTALS) || defined(ARGONET_CONDUIT_TCP) ||                 \
    defined(ARGONET_CONDUIT_UDP) || defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_USNIC must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_USNIC 1
#define GASNET_CONDUIT_NAME USNIC
#define GASNET_CORE_NAME USNIC
#define GASNET_CONDUIT_NAME_STR "USNIC"
#define GASNET_CORE_NAME_STR "USNIC"
#define ARGONET_CONDUIT_PART _USNIC
#define ARGONET_CORE_FACET argonet_link_core_USNIC
#elif defined(ARGONET_CONDUIT_PORTALS)
#if ARGONET_CONDUIT_PORTALS != 1 || defined(ARGONET_CONDUIT_TCP) || defined(ARGONET_CONDUIT_UDP) || defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_PORTALS must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_PORTALS 1
#define GASNET_CONDUIT_NAME PORTALS
#define GASNET_CORE_NAME PORTALS
#define GASNET_CONDUIT_NAME_STR "PORTALS"
#define GASNET_CORE_NAME_STR "PORTALS"
#define ARGONET_CONDUIT_PART _PORTALS
#define ARGONET_CORE_FACET argonet_link_core_PORTALS
#elif defined(ARGONET_CONDUIT_TCP)
#if ARGONET_CONDUIT_TCP != 1 || defined(ARGONET_CONDUIT_UDP) || defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_TCP must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_TCP 1
#define GASNET_CONDUIT_NAME TCP
#define GASNET_CORE_NAME TCP
#define GASNET_CONDUIT_NAME_STR "TCP"
#define GASNET_CORE_NAME_STR "TCP"
#define ARGONET_CONDUIT_PART _TCP
#define ARGONET_CORE_FACET argonet_link_core_TCP
#elif defined(ARGONET_CONDUIT_UDP)
#if ARGONET_CONDUIT_UDP != 1 || defined(ARGONET_CONDUIT_SMP)
#error ARGONET_CONDUIT_UDP must be 1 where it is defined, and no other conduit
#endif
#define GASNET_CONDUIT_UDP 1
#define GASNET_CONDUIT_NAME UDP
#define GASNET_CORE_NAME UDP
#define GASNET_CONDUIT_NAME_STR "UDP"
#define GASNET_CORE_NAME_STR "UDP"
#define ARGONET_CONDUIT_PART _UDP
#define ARGONET_CORE_FACET argonet_link_core_UDP
#else
#ifndef ARGONET_CONDUIT_SMP
#define ARGONET_CONDUIT_SMP 1
#endif
#if ARGONET_CONDUIT_SMP != 1
#error ARGONET_CONDUIT_SMP must be 1 where it is defined
#endif
#define GASNET_CONDUIT_SMP 1
#define GASNET_CONDUIT_NAME SMP
#define GASNET_CORE_NAME SMP
#define GASNET_CONDUIT_NAME_STR "SMP"
#define GASNET_CORE_NAME_STR "SMP"
#define ARGONET_CONDUIT_PART _SMP
#define ARGONET_CORE_FACET argonet_link_core_SMP
#endif
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_NAME ARGONET
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_NAME_STR "ARGONET"
#define GASNET_EXTENDED_VERSION_STR "1.0"
/* Memory that is in no segment is not mapped by neighbors. */
#if !GASNET_SEGMENT_EVERYTHING
#define GASNET_PSHM 1
#define GASNETI_PSHM_ENABLED 1
#define ARGONET_PSHM_WORD "pshm"
#define ARGONET_PSHM_FACET argonet_link_pshm
#else
#define ARGONET_PSHM_WORD "nopshm"
#define ARGONET_PSHM_FACET argonet_link_nopshm
#endif

/* Limits and features. Others are in numbers.h. */
#include "argonet/numbers.h"
#define GASNET_PAGESIZE GASNETT_PAGESIZE
#if GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS 256
#endif

/* The version of GASNet-1 that programs of that interface find, and how large segments may be where
 * no setting says. */
#define ARGONET_GASNET1_VERSION "1"
#define ARGONET_SEGMENT_LIMIT "0.85/H"

#define GEX_SPEC_VERSION_MAJOR GASNETI_EX_SPEC_VERSION_MAJOR
#define GEX_SPEC_VERSION_MINOR GASNETI_EX_SPEC_VERSION_MINOR

/* Atomic operations of the tools, which are plain where there is one thread: the words of
 * argonet/atomics.h. */
#if GASNET_PAR
#define ARGONET_ATOMICS "builtin"
#define ARGONET_ATOMICS_FACET(width) argonet_link_##width##_builtin
#else
#define ARGONET_ATOMICS "plain"
#define ARGONET_ATOMICS_FACET(width) argonet_link_##width##_plain
#endif

/* Scripts take this apart: keys and order stay. */
#define GASNET_CONFIG_STRING                                                                                           \
    "RELEASE=" GASNETI_RELEASE_VERSION ",SPEC=" _STRINGIFY(GEX_SPEC_VERSION_MAJOR) "." _STRINGIFY(                     \
        GEX_SPEC_VERSION_MINOR) ",CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_NAME_STR                           \
        "-" GASNET_CORE_VERSION_STR "/" GASNET_EXTENDED_NAME_STR "-" GASNET_EXTENDED_VERSION_STR                       \
        "),THREADMODEL=" ARGONET_THREADS ",SEGMENT=" ARGONET_SEGMENT                                                   \
        ",PTR=64bit,CACHE_LINE_BYTES=" _STRINGIFY(GASNETT_CACHE_LINE_BYTES) ",noalign," ARGONET_PSHM_WORD              \
        "," ARGONET_DEBUG_WORD "," ARGONETT_TRACE_WORDS "," ARGONET_DEBUGMALLOC_WORD "," ARGONETT_SRCLINES_WORD        \
        "," GASNETT_TIMER_CONFIG ",membars_builtin,atomics_" ARGONET_ATOMICS                                           \
        ",atomic32_" ARGONET_ATOMICS ",atomic64_" ARGONET_ATOMICS

#endif
