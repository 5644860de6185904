/* Barriers: of teams, and the one of GASNet-1 whose callers may name it. */
#ifndef ARGONET_BARRIER_H
#define ARGONET_BARRIER_H

#include "barrier_calls.h"
#include "coll_calls.h"
#include "events.h"

static inline void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, flags));
}

#endif
