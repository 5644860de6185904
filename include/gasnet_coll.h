/* Collective operations beyond the barrier: broadcast. Reductions are not there yet. */
#ifndef _GASNET_COLL_H
#define _GASNET_COLL_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives every rank's dst the bytes that src has at the root. Collective; the event tells that this rank is done. */
static inline gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t nbytes,
                                               gex_Flags_t flags)
{
    return argonet_broadcast(tm, root, dst, src, nbytes, flags);
}

#ifdef __cplusplus
}
#endif

#endif
