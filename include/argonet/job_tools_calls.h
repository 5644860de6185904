/* Functions of the library behind those tools that only a job has. A test compares them with the
 * library's: one line each. */
#ifndef ARGONET_JOB_TOOLS_CALLS_H
#define ARGONET_JOB_TOOLS_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

/* Of pieces that are not empty: the least and the most bytes, all bytes, first and last byte. */
typedef struct {
  size_t _minsz;
  size_t _maxsz;
  uintptr_t _totalsz;
  void *_minaddr;
  void *_maxaddr;
} argonet_memveclist_stats_t;
typedef struct {
  void *_minaddr;
  void *_maxaddr;
} argonet_addrlist_stats_t;

extern void *argonet_map_memory(size_t bytes);
extern size_t argonet_format_dt(char *to, gex_DT_t set);
extern size_t argonet_format_op(char *to, gex_OP_t set);
extern size_t argonet_format_ti(char *to, gex_TI_t set);
extern size_t argonet_format_memveclist_bufsz(size_t count);
extern argonet_memveclist_stats_t argonet_format_memveclist(char *to, size_t count, const gex_Memvec_t *list);
extern size_t argonet_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
extern size_t argonet_format_putvgetv(char *to, gex_TM_t tm, gex_Rank_t rank, size_t dstcount, const gex_Memvec_t *dstlist, size_t srccount, const gex_Memvec_t *srclist);
extern size_t argonet_format_addrlist_bufsz(size_t count);
extern argonet_addrlist_stats_t argonet_format_addrlist(char *to, size_t count, void *const *list, size_t bytes);
extern size_t argonet_format_putigeti_bufsz(size_t dstcount, size_t srccount);
extern size_t argonet_format_putigeti(char *to, gex_TM_t tm, gex_Rank_t rank, size_t dstcount, void *const *dstlist, size_t dstlen, size_t srccount, void *const *srclist, size_t srclen);
extern size_t argonet_format_strides_bufsz(size_t count);
extern void argonet_format_strides(char *to, size_t count, const ptrdiff_t *list);
extern size_t argonet_format_putsgets_bufsz(size_t stridelevels);
extern size_t argonet_format_putsgets(char *to, void *unused, gex_TM_t tm, gex_Rank_t rank, void *dst, const ptrdiff_t *dststrides, void *src, const ptrdiff_t *srcstrides, size_t elemsz, const size_t *count, size_t stridelevels);

GASNETT_END_EXTERNC

#endif
