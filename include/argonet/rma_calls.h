/* Functions of the library behind argonet/rma.h. A test compares them with the library's: one line
 * each. */
#ifndef ARGONET_RMA_CALLS_H
#define ARGONET_RMA_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern int argonet_rma_put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes, gex_Event_t *lc_opt, gex_Flags_t flags);
extern gex_Event_t argonet_rma_put_nb(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes, gex_Event_t *lc_opt, gex_Flags_t flags);
extern int argonet_rma_get_blocking(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_get_nbi(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes, gex_Flags_t flags);
extern gex_Event_t argonet_rma_get_nb(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes, gex_Flags_t flags);
extern gex_RMA_Value_t argonet_rma_get_val(gex_TM_t tm, gex_Rank_t rank, void *src, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_put_word(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t word, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_put_nbi_word(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t word, size_t bytes, gex_Flags_t flags);
extern gex_Event_t argonet_rma_put_nb_word(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t word, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_put_val(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value, size_t bytes, gex_Flags_t flags);
extern int argonet_rma_put_nbi_val(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value, size_t bytes, gex_Flags_t flags);
extern gex_Event_t argonet_rma_put_nb_val(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value, size_t bytes, gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
