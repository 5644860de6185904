/* What clients and library must agree on, as names of symbols. The library defines those of its
 * configuration, clients refer to those of theirs, so that what does not fit does not link, and the
 * linker names what it is. */
#ifndef ARGONET_FACETS_H
#define ARGONET_FACETS_H

#include "argonet/config.h"
#include "argonet/mapped.h"

#define ARGONET_NUMBERED_HELPER(name, number) argonet_link_##name##_##number
#define ARGONET_NUMBERED(name, number) ARGONET_NUMBERED_HELPER(name, number)

/* All numbers and types of the interface, and of mapped.h: objects that were compiled with other
 * headers have other ones. */
#define ARGONET_LAYOUT_HELPER(numbers, mapped_version) numbers##_##mapped_version
#define ARGONET_LAYOUT_OF(numbers, mapped_version) ARGONET_LAYOUT_HELPER(numbers, mapped_version)
#define ARGONET_LAYOUT ARGONET_LAYOUT_OF(ARGONET_NUMBERS_DIGEST, ARGONET_MAPPED_VERSION)
#define ARGONET_LAYOUT_FACET ARGONET_NUMBERED(layout, ARGONET_LAYOUT)

/* EACH(symbol) for all of them. */
#define ARGONET_FACETS(EACH)                                                                                           \
    EACH(ARGONET_NUMBERED(release_major, GASNET_RELEASE_VERSION_MAJOR))                                                \
    EACH(ARGONET_NUMBERED(release_minor, GASNET_RELEASE_VERSION_MINOR))                                                \
    EACH(ARGONET_NUMBERED(release_patch, GASNET_RELEASE_VERSION_PATCH))                                                \
    EACH(ARGONET_THREADS_FACET)                                                                                        \
    EACH(ARGONET_SEGMENT_FACET)                                                                                        \
    EACH(ARGONET_DEBUG_FACET)                                                                                          \
    EACH(ARGONET_TRACE_FACET)                                                                                          \
    EACH(ARGONET_STATS_FACET)                                                                                          \
    EACH(ARGONET_DEBUGMALLOC_FACET)                                                                                    \
    EACH(ARGONET_SRCLINES_FACET)                                                                                       \
    EACH(argonet_link_noalign)                                                                                         \
    EACH(ARGONET_PSHM_FACET)                                                                                           \
    EACH(argonet_link_ptr_64bit)                                                                                       \
    EACH(argonet_link_timers_native)                                                                                   \
    EACH(argonet_link_membars_builtin)                                                                                 \
    EACH(ARGONET_ATOMICS_FACET(atomics))                                                                               \
    EACH(ARGONET_ATOMICS_FACET(atomic32))                                                                              \
    EACH(ARGONET_ATOMICS_FACET(atomic64))                                                                              \
    EACH(argonet_link_devices_none)                                                                                    \
    EACH(ARGONET_NUMBERED(hidden_am_concurrency, GASNET_HIDDEN_AM_CONCURRENCY_LEVEL))                                  \
    EACH(ARGONET_NUMBERED(cache_line, GASNETT_CACHE_LINE_BYTES))                                                       \
    EACH(ARGONET_CORE_FACET)                                                                                           \
    EACH(argonet_link_extended_ARGONET)                                                                                \
    EACH(ARGONET_LAYOUT_FACET)

/* The entry point is called by the whole configuration. */
#define ARGONET_INIT_HELPER(major, minor, patch, conduit, threads, segment, debug, layout)                             \
    argonet_client_init_##major##_##minor##_##patch##conduit##threads##segment##debug##layout
#define ARGONET_INIT_OF(major, minor, patch, conduit, threads, segment, debug, layout)                                 \
    ARGONET_INIT_HELPER(major, minor, patch, conduit, threads, segment, debug, layout)
#define ARGONET_INIT                                                                                                   \
    ARGONET_INIT_OF(GASNET_RELEASE_VERSION_MAJOR, GASNET_RELEASE_VERSION_MINOR, GASNET_RELEASE_VERSION_PATCH,          \
                    ARGONET_CONDUIT_PART, ARGONET_THREADS_PART, ARGONET_SEGMENT_PART, ARGONET_DEBUG_PART,              \
                    ARGONET_LAYOUT)

#endif
