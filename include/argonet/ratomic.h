/* Remote atomic operations. On words of ranks that share memory they are the processor's own, done
 * here and complete at once; everything else, and all of a debug build, is a call. The library does
 * them by the same instructions (engine/src/ratomic/word.rs), so that calls and code of this header
 * are atomic for each other. */
#ifndef ARGONET_RATOMIC_H
#define ARGONET_RATOMIC_H

#include "ratomic_apply.h"
#include "ratomic_calls.h"
#include "rma.h"

/* The beginning of a domain. The library fills it before it hands the domain out. */
struct argonet_domain_s {
  gex_TM_t team;
  uint64_t is_world; /* 1 if ranks of the team are those of the job */
};

/* The way to the memory of a rank, or ARGONET_MAPPED_NONE if a call is needed. */
ARGONET_RMA_INLINE ptrdiff_t argonet_ad_way(gex_AD_t ad, gex_Rank_t rank, gex_Flags_t flags)
{
  if (ARGONET_DEBUG || (flags & ARGONET_RMA_CALLED)) return ARGONET_MAPPED_NONE;
  /* Compilers would warn of what lies behind it; the call reports it at run time. */
  if (__builtin_constant_p(ad == GEX_AD_INVALID) && ad == GEX_AD_INVALID) return ARGONET_MAPPED_NONE;
  if ((flags & GEX_FLAG_RANK_IS_JOBRANK) && !ad->is_world) return ARGONET_MAPPED_NONE;
  return argonet_mapped_entry(ad->team, rank);
}

/* An operation that the compiler knows comes to its instruction; of any other the code is there
 * once in a unit. */
#define ARGONET_AD_OPERATIONS(DT, type)                                                                                \
  ARGONET_RMA_INLINE int argonet_ad_mapped_##DT(gex_AD_t ad, type *result, gex_Rank_t rank, void *addr, gex_OP_t op,     \
                                              type op1, type op2, gex_Flags_t flags)                                   \
  {                                                                                                                    \
    const ptrdiff_t way = argonet_ad_way(ad, rank, flags);                                                             \
    if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0)) return 0;                                                       \
    if (__builtin_constant_p(op))                                                                                      \
      return argonet_ad_apply_##DT(argonet_rma_mapped(addr, way), result, op, op1, op2,                                  \
                                   __builtin_constant_p(flags) ? flags : flags | GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL);   \
    return argonet_ad_any_##DT(argonet_rma_mapped(addr, way), result, op, op1, op2, flags);                              \
  }                                                                                                                    \
  ARGONET_RMA_INLINE gex_Event_t gex_AD_OpNB_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr,    \
                                                  gex_OP_t opcode, type operand1, type operand2, gex_Flags_t flags)    \
  {                                                                                                                    \
    if (__builtin_expect(                                                                                              \
            argonet_ad_mapped_##DT(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags), 1))             \
      return GEX_EVENT_INVALID;                                                                                        \
    return argonet_ad_nb_##DT(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags);                    \
  }                                                                                                                    \
  ARGONET_RMA_INLINE int gex_AD_OpNBI_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr,           \
                                           gex_OP_t opcode, type operand1, type operand2, gex_Flags_t flags)           \
  {                                                                                                                    \
    if (__builtin_expect(                                                                                              \
            argonet_ad_mapped_##DT(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags), 1))             \
      return 0;                                                                                                        \
    return argonet_ad_nbi_##DT(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags);                   \
  }

ARGONET_AD_OPERATIONS(I32, int32_t)
ARGONET_AD_OPERATIONS(U32, uint32_t)
ARGONET_AD_OPERATIONS(I64, int64_t)
ARGONET_AD_OPERATIONS(U64, uint64_t)
ARGONET_AD_OPERATIONS(FLT, float)
ARGONET_AD_OPERATIONS(DBL, double)

#endif
