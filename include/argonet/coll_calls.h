/* Functions of the library behind gasnet_coll.h. A test compares them with the library's: one line
 * each.
 *
 * All are collective over the team; members call them in the same order, with the same root,
 * length, type and operation. Buffers are the library's until the event says that this rank is
 * done. argonet_Coll_* are beyond GASNet-EX: a block has nbytes bytes, or dt_cnt elements; Gather
 * gives the root's dst a block of each rank, GatherAll everybody's; Scatter has a block for each
 * rank at the root's src; Exchange has one for each at every src and gets one from each;
 * ReduceScatter has a block for each, and gets its own combined; Scan combines those of ranks up to
 * this one, ExclusiveScan those before it and leaves rank 0's dst as it is.
 *
 * gasnet_coll_dumpTuningState writes the limits by which algorithms are chosen,
 * gasnet_coll_loadTuningState reads such a file for the team (collective, a barrier),
 * gasnet_coll_dumpProfile writes what the calling rank has called; rank 0 of the team writes, to
 * standard output if filename is null.
 */
#ifndef ARGONET_COLL_CALLS_H
#define ARGONET_COLL_CALLS_H

#include "coll_types.h"

GASNETT_BEGIN_EXTERNC

extern gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
extern gex_Event_t argonet_broadcast(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t bytes, gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *user_cdata, gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *user_cdata, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_GatherNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t nbytes, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_GatherAllNB(gex_TM_t tm, void *dst, const void *src, size_t nbytes, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_ScatterNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t nbytes, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_ExchangeNB(gex_TM_t tm, void *dst, const void *src, size_t nbytes, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_ReduceScatterNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *user_cdata, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_ScanNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *user_cdata, gex_Flags_t flags);
extern gex_Event_t argonet_Coll_ExclusiveScanNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *user_cdata, gex_Flags_t flags);
extern gasnet_team_handle_t argonet_coll_team_all(void);
extern gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, const void *src, size_t nbytes, int flags);
extern void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, const void *src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, const void *src, size_t nbytes, int flags);
extern void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, const void *src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, const void *src, size_t nbytes, int flags);
extern void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, const void *src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, const void *src, size_t nbytes, int flags);
extern void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, const void *src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, const void *src, size_t nbytes, int flags);
extern void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, const void *src, size_t nbytes, int flags);
extern int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
extern int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t count);
extern int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t count);
extern void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
extern void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t count);
extern void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t count);
extern void gasnet_coll_dumpTuningState(const char *filename, gasnet_team_handle_t team);
extern void gasnet_coll_loadTuningState(const char *filename, gasnet_team_handle_t team);
extern void gasnet_coll_dumpProfile(const char *filename, gasnet_team_handle_t team);
extern void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

GASNETT_END_EXTERNC

#endif
