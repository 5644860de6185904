/* Collective operations: those of GASNet-EX, those beyond it, and the gasnet_coll_* of GASNet-1's
 * days. */
#ifndef _GASNET_COLL_H
#define _GASNET_COLL_H

#include "gasnetex.h"

#include "argonet/coll_types.h"
#include "argonet/coll_calls.h"

GASNETT_BEGIN_EXTERNC

/* Gives every rank's dst the bytes that src has at the root. Collective; the event completes when
 * this rank is done. */
static inline gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t nbytes,
                                               gex_Flags_t flags)
{
    return argonet_broadcast(tm, root, dst, src, nbytes, flags);
}

GASNETT_END_EXTERNC

#endif
