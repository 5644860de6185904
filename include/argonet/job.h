/* Clients, endpoints, segments, teams, and what a process asks about its job. */
#ifndef ARGONET_JOB_H
#define ARGONET_JOB_H

#include "job_calls.h"
#include "mapped.h"

/* A call needs a rank that is lost; see argonet_SetPeerLostHandler in job_calls.h. */
#define ARGONET_ERR_PEER_LOST 10100

GASNETT_BEGIN_EXTERNC
/* What a program may define: what a segment may become where the user does not say (the second is
 * deprecated). */
extern const char *gasnet_max_segsize_str;
extern uint64_t gasnet_max_segsize;
/* What a program may set: called when a segment has been attached. */
extern void (*gasnet_client_attach_hook)(void *base, uintptr_t size);
/* What programs of GASNet-1 read: this process's rank and the number of ranks, or 0 of them before
 * there is a job. */
extern gex_Rank_t gasneti_mynode;
extern gex_Rank_t gasneti_nodes;
GASNETT_END_EXTERNC

/* An index that gex_EP_Index_t cannot hold is refused, and not cut to another. */
#define gex_TM_Pair(ep, remote) argonet_tm_pair((ep), (uint64_t)(remote))

static inline gex_Rank_t gex_TM_QueryRank(gex_TM_t tm) { return ARGONET_DEBUG ? argonet_tm_rank(tm) : tm->rank; }
static inline gex_Rank_t gex_TM_QuerySize(gex_TM_t tm) { return ARGONET_DEBUG ? argonet_tm_size(tm) : tm->size; }

#endif
