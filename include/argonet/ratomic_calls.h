/* Functions of the library behind argonet/ratomic.h. A test compares them with the library's: one
 * line each. */
#ifndef ARGONET_RATOMIC_CALLS_H
#define ARGONET_RATOMIC_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

/* Collective. The data type, the operations and the flags are the same on all ranks. */
extern void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
/* Collective; no barrier. All operations are complete on all ranks. */
extern void gex_AD_Destroy(gex_AD_t ad);
extern gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
extern gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
extern gex_OP_t gex_AD_QueryOps(gex_AD_t ad);
extern gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad);
extern void gex_AD_SetCData(gex_AD_t ad, const void *val);
extern void *gex_AD_QueryCData(gex_AD_t ad);

extern gex_Event_t argonet_ad_nb_I32(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, int32_t op1, int32_t op2, gex_Flags_t flags);
extern gex_Event_t argonet_ad_nb_U32(gex_AD_t ad, uint32_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, uint32_t op1, uint32_t op2, gex_Flags_t flags);
extern gex_Event_t argonet_ad_nb_I64(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, int64_t op1, int64_t op2, gex_Flags_t flags);
extern gex_Event_t argonet_ad_nb_U64(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, uint64_t op1, uint64_t op2, gex_Flags_t flags);
extern gex_Event_t argonet_ad_nb_FLT(gex_AD_t ad, float *result, gex_Rank_t rank, void *addr, gex_OP_t op, float op1, float op2, gex_Flags_t flags);
extern gex_Event_t argonet_ad_nb_DBL(gex_AD_t ad, double *result, gex_Rank_t rank, void *addr, gex_OP_t op, double op1, double op2, gex_Flags_t flags);
extern int argonet_ad_nbi_I32(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, int32_t op1, int32_t op2, gex_Flags_t flags);
extern int argonet_ad_nbi_U32(gex_AD_t ad, uint32_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, uint32_t op1, uint32_t op2, gex_Flags_t flags);
extern int argonet_ad_nbi_I64(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, int64_t op1, int64_t op2, gex_Flags_t flags);
extern int argonet_ad_nbi_U64(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *addr, gex_OP_t op, uint64_t op1, uint64_t op2, gex_Flags_t flags);
extern int argonet_ad_nbi_FLT(gex_AD_t ad, float *result, gex_Rank_t rank, void *addr, gex_OP_t op, float op1, float op2, gex_Flags_t flags);
extern int argonet_ad_nbi_DBL(gex_AD_t ad, double *result, gex_Rank_t rank, void *addr, gex_OP_t op, double op1, double op2, gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
