/* Barriers: of teams, and the one of GASNet-1 whose callers may name it. */
#ifndef ARGONET_BARRIER_H
#define ARGONET_BARRIER_H

#include "barrier_calls.h"
#include "coll_calls.h"
#include "events.h"

/* Of gasnet_barrier_*: the id counts for nothing; the barrier is a mismatch; nobody gives an id. */
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_UNNAMED 5

static inline void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, flags));
}

#endif
