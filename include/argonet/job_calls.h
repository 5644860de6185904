/* Functions of the library behind argonet/job.h. A test compares them with the library's: one line
 * each. */
#ifndef ARGONET_JOB_CALLS_H
#define ARGONET_JOB_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

struct argonet_variant;

extern int argonet_client_init(const struct argonet_variant *variant, gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, const char *name, int *argc, char ***argv, gex_Flags_t flags);
extern void argonet_linked_with(const struct argonet_variant *variant);
extern gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
extern const char *gex_Client_QueryName(gex_Client_t client);
extern void gex_Client_SetCData(gex_Client_t client, const void *value);
extern void *gex_Client_QueryCData(gex_Client_t client);

/* Beyond GASNet-EX: a job that goes on without ranks that have died, where the user wants that too
 * (ARGONET_ON_RANK_LOST=continue). What each call gives after a loss is in docs/c-api.md.
 *
 * argonet_SetPeerLostHandler, before gex_Client_Init or gasnet_init, on all ranks: polls call the
 * handler with each rank that is lost, once; as any handler it cannot communicate.
 * GASNET_ERR_NOT_INIT once the job has begun, GASNET_ERR_BAD_ARG for null.
 *
 * argonet_QueryLostPeers: how many ranks are lost; writes the first of them, at most room, in the
 * order of their losses, which is the same at all ranks. It may list a rank before the handler is
 * called with it. jobranks may be null if room is 0.
 *
 * argonet_TM_Survivors: the team of the ranks that are not lost, in their order, the same at all of
 * them. Collective over them, polls. flags must be 0. */
extern int argonet_SetPeerLostHandler(argonet_PeerLostFn_t handler, void *context);
extern size_t argonet_QueryLostPeers(gex_Rank_t *jobranks, size_t room);
extern void argonet_TM_Survivors(gex_TM_t *new_tm, gex_Flags_t flags);

extern int gex_EP_Create(gex_EP_t *ep, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
extern gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
extern gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
extern gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
extern gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
extern void gex_EP_SetCData(gex_EP_t ep, const void *value);
extern void *gex_EP_QueryCData(gex_EP_t ep);
extern int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);
extern int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t count, gex_Flags_t flags);
extern gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owner, void **local, uintptr_t *size, gex_Flags_t flags);

extern int gex_Segment_Attach(gex_Segment_t *segment, gex_TM_t tm, uintptr_t size);
extern int gex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t size, gex_MK_t kind, gex_Flags_t flags);
extern void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);
extern gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment);
extern gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment);
extern void *gex_Segment_QueryAddr(gex_Segment_t segment);
extern uintptr_t gex_Segment_QuerySize(gex_Segment_t segment);
extern void gex_Segment_SetCData(gex_Segment_t segment, const void *value);
extern void *gex_Segment_QueryCData(gex_Segment_t segment);
extern int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owner, void **local, uintptr_t *size);
extern uintptr_t gasnet_getMaxLocalSegmentSize(void);
extern uintptr_t gasnet_getMaxGlobalSegmentSize(void);
extern int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int count);

extern gex_TM_t gex_TM_Pair(gex_EP_t ep, gex_EP_Index_t remote);
extern gex_TM_t argonet_tm_pair(gex_EP_t ep, uint64_t remote);
extern size_t gex_TM_Split(gex_TM_t *new_tm, gex_TM_t parent, int color, int key, void *scratch_addr, size_t scratch_size, gex_Flags_t flags);
extern size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new_tms, gex_TM_t parent, gex_EP_Location_t *args, size_t numargs, gex_Addr_t *scratch_addrs, size_t scratch_size, gex_Flags_t flags);
extern int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch, gex_Flags_t flags);
extern gex_Rank_t argonet_tm_rank(gex_TM_t tm);
extern gex_Rank_t argonet_tm_size(gex_TM_t tm);
extern gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
extern gex_EP_t gex_TM_QueryEP(gex_TM_t tm);
extern gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
extern void gex_TM_SetCData(gex_TM_t tm, const void *value);
extern void *gex_TM_QueryCData(gex_TM_t tm);
extern gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
extern gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank);
extern gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);

extern gex_Rank_t gex_System_QueryJobRank(void);
extern gex_Rank_t gex_System_QueryJobSize(void);
extern uint64_t gex_System_QueryMaxThreads(void);
extern void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *index);
extern void gex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *index);
extern void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_size, gex_Rank_t *nbrhd_rank, gex_Rank_t *host_size, gex_Rank_t *host_rank);
extern int gex_System_QueryHiddenAMConcurrencyLevel(void);
extern int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count, const gex_ProgressThreadInfo_t **info, gex_Flags_t flags);
extern int gex_System_GetVerboseErrors(void);
extern void gex_System_SetVerboseErrors(int enable);
extern const char *gasnet_ErrorName(int code);
extern const char *gasnet_ErrorDesc(int code);
extern char *gasnet_getenv(const char *name);
extern void gasnet_exit(int code) __attribute__((__noreturn__));
extern int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int count);

GASNETT_END_EXTERNC

#endif
