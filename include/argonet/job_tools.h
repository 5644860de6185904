/* What gasnet_tools.h has only where gasnetex.h comes first. */
#ifndef ARGONET_JOB_TOOLS_H
#define ARGONET_JOB_TOOLS_H

#include "argonet/job_tools_calls.h"

#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS

/* Memory of its own, all zeros, from the start of a page on. */
#define gasnett_mmap(bytes) argonet_map_memory(bytes)

/* Diagnoses the library as it is linked: locks, atomic operations, memory, put and get, events,
 * messages and progress, first by one thread and then, in GASNET_PAR, by so many threads in each
 * rank. All ranks of tm call it, one thread each, with the same numbers; `segment` and
 * `peer_segment` are in the bound segments of this rank and of the peer, whose memory from there on
 * is used. `sections` are letters, A to Y; NULL or nothing for all of them. Rank 0 prints what is
 * done on standard output; faults are reported on standard error, and their number is returned, 0
 * for none. Wrong arguments end the job. Messages are diagnosed where the handlers of
 * gasnett_diagnostic_gethandlers, whose indices are 128 and on, were asked for and registered
 * before. */
#define gasnett_run_diagnostics argonet_run_diagnostics
#define gasnett_diagnostic_gethandlers argonet_diagnostic_gethandlers

GASNETT_BEGIN_EXTERNC
/* Parts of the library of each thread mode. */
extern int argonet_run_diagnostics(int iterations, int threads, const char *sections, gex_TM_t tm, void *segment,
                                   gex_Rank_t peer, void *peer_segment, unsigned int seed);
extern void argonet_diagnostic_gethandlers(gex_AM_Entry_t **table, int *count);
GASNETT_END_EXTERNC

#if GASNET_DEBUGMALLOC
/* Memory that is checked, in debug builds. An error ends the job and is reported with the places
 * where the block was allocated and freed: writes beside a block, a block freed twice or never
 * allocated, and, by GASNET_MALLOC_SCANFREED, writes after it was freed. Without memory the job
 * ends too, so that no result is NULL; a block of no bytes is a block. memcheck looks at one block
 * of the caller's, memcheck_one at one of all, memcheck_all at each. All threads may call these.
 * gasnett_getheapstats returns 0. gasnett_heapinfo_dump writes to a file as GASNET_MALLOCFILE names
 * it. */
#include "argonet/heap_calls.h"
#define ARGONET_HERE __FILE__ ":" _STRINGIFY(__LINE__)
#define gasnett_debug_malloc(bytes) argonet_debug_malloc((bytes), ARGONET_HERE)
#define gasnett_debug_calloc(count, bytes) argonet_debug_calloc((count), (bytes), ARGONET_HERE)
#define gasnett_debug_realloc(ptr, bytes) argonet_debug_realloc((ptr), (bytes), ARGONET_HERE)
#define gasnett_debug_free(ptr) argonet_debug_free((ptr), ARGONET_HERE)
#define gasnett_debug_strdup(s) argonet_debug_strdup((s), ARGONET_HERE)
#define gasnett_debug_strndup(s, most) argonet_debug_strndup((s), (most), ARGONET_HERE)
#define gasnett_debug_memcheck(ptr) argonet_debug_memcheck((ptr), ARGONET_HERE)
#define gasnett_debug_memcheck_one() argonet_debug_memcheck_one(ARGONET_HERE)
#define gasnett_debug_memcheck_all() argonet_debug_memcheck_all(ARGONET_HERE)
#define gasnett_getheapstats(to) argonet_getheapstats(to)
#define gasnett_heapinfo_dump(file, lists) argonet_heapinfo_dump((file), (lists))
#endif

/* A set of types, operations or facts about a token, written out. The bytes that are written, or
 * for NULL needed, with the 0 at their end. */
#define gasnett_format_dt(to, set) argonet_format_dt(to, set)
#define gasnett_format_op(to, set) argonet_format_op(to, set)
#define gasnett_format_ti(to, set) argonet_format_ti(to, set)

/* Lists of memory, strides, and transfers of them, written out with a 0 at the end. The caller's
 * buffer has at least the bytes that the name with _bufsz returns for as many entries. Transfers
 * return their bytes; lists of memory return what the pieces are together. The second argument of
 * gasnett_format_putsgets means nothing: pass NULL. */
#define gasnett_format_memveclist_bufsz argonet_format_memveclist_bufsz
#define gasnett_format_memveclist argonet_format_memveclist
#define gasnett_format_addrlist_bufsz argonet_format_addrlist_bufsz
#define gasnett_format_addrlist argonet_format_addrlist
#define gasnett_format_strides_bufsz argonet_format_strides_bufsz
#define gasnett_format_strides argonet_format_strides
#define gasnett_format_putvgetv_bufsz argonet_format_putvgetv_bufsz
#define gasnett_format_putvgetv argonet_format_putvgetv
#define gasnett_format_putigeti_bufsz argonet_format_putigeti_bufsz
#define gasnett_format_putigeti argonet_format_putigeti
#define gasnett_format_putsgets_bufsz argonet_format_putsgets_bufsz
#define gasnett_format_putsgets argonet_format_putsgets

#endif
