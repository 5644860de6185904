/* Functions of the library behind argonet/barrier.h and gasnet_coll.h. A test compares them with the library's: one line each. */
#ifndef ARGONET_BARRIER_CALLS_H
#define ARGONET_BARRIER_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
extern void gasnet_barrier_notify(int id, int flags);
extern int gasnet_barrier_wait(int id, int flags);
extern int gasnet_barrier_try(int id, int flags);
extern int gasnet_barrier(int id, int flags);
extern int gasnet_barrier_result(int *id);
extern gex_Event_t argonet_broadcast(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t bytes, gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
