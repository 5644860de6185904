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

/* Beyond GASNet-EX: puts that signal, like OpenSHMEM's shmem_put_signal. From any thread that may
 * communicate; mistakes end the job with a message.
 *
 * argonet_RMA_PutSignal: puts, and changes the word signal of the same rank when the bytes lie at
 * dest: op is GEX_OP_SET or GEX_OP_ADD. dest and signal are addresses of that rank's process, in
 * its segments, signal at a multiple of 8; with nbytes 0 dest and src are ignored. src may be
 * written again on return. The call waits, polling, while there is no room; above the longest
 * long, and for dest in a created segment, until the target has served it. Unlike after
 * shmem_quiet or shmem_barrier_all, no event, wait or barrier completes it: the word alone shows
 * that the bytes have arrived. It shows that of its own put; nothing orders several. The change is
 * atomic for gex_AD_Op* on GEX_DT_U64. Segments have to last until the word has changed. flags
 * must be 0. Returns GASNET_OK, or ARGONET_ERR_PEER_LOST if the rank is lost.
 *
 * argonet_SignalWait: polls until *signal COMPARE value, both unsigned; compare is one of
 * ARGONET_CMP_*. Returns the value that did. signal is any word of this process, at a multiple of
 * 8, which stays valid until the call returns and is changed by signals and atomic operations
 * alone. It may sleep, and a signal wakes it; it does not end because a rank is lost. */
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
