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

/* Beyond GASNet-EX: puts that signal, as OpenSHMEM's shmem_put_signal and shmem_signal_wait_until.
 *
 * argonet_RMA_PutSignal: puts, and changes the word signal of the same rank when the bytes lie at
 * dest: op is GEX_OP_SET or GEX_OP_ADD. src may be written again on return. No other call waits for
 * the bytes: the rank finds them once it has seen the word changed, by argonet_SignalWait, a remote
 * atomic operation or an atomic load. The change is atomic for gex_AD_Op* on GEX_DT_U64; nothing
 * orders the signals of several puts. Without bytes, dest and src mean nothing, and the word alone
 * changes. dest and signal are in segments of the rank, signal at a multiple of 8; flags must be 0.
 * GASNET_OK, or ARGONET_ERR_PEER_LOST.
 *
 * argonet_SignalWait: polls until the word of this process compares so with value, unsigned;
 * returns the value that did. It may sleep, and a signal wakes it. */
#define ARGONET_CMP_EQ 1
#define ARGONET_CMP_NE 2
#define ARGONET_CMP_GT 3
#define ARGONET_CMP_GE 4
#define ARGONET_CMP_LT 5
#define ARGONET_CMP_LE 6
extern int argonet_RMA_PutSignal(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes, uint64_t *signal, gex_OP_t op, uint64_t value, gex_Flags_t flags);
extern uint64_t argonet_SignalWait(const uint64_t *signal, int compare, uint64_t value);

GASNETT_END_EXTERNC

#endif
