/* Functions of the library behind argonet/legacy_*.h. A test compares them with the library's: one
 * line each. */
#ifndef ARGONET_LEGACY_CALLS_H
#define ARGONET_LEGACY_CALLS_H

#include "legacy_types.h"

GASNETT_BEGIN_EXTERNC

struct argonet_variant;

extern int argonet_legacy_init(const struct argonet_variant *variant, gex_TM_t *tm, int *argc, char ***argv);
extern void argonet_legacy_no_job(const char *function) __attribute__((__noreturn__));
extern int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);
extern void gasnet_QueryGexObjects(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, gex_Segment_t *segment);

extern int argonet_legacy_request_short(gasnet_node_t node, uint64_t head, uint64_t rest);
extern int argonet_legacy_request_short_args(gasnet_node_t node, uint32_t what, const gex_AM_Arg_t *args);
extern int argonet_legacy_request_medium(gasnet_node_t node, uint32_t what, const void *src, size_t nbytes, const gex_AM_Arg_t *args);
extern int argonet_legacy_request_long(gasnet_node_t node, uint32_t what, const void *src, size_t nbytes, void *dst, const gex_AM_Arg_t *args);
extern int argonet_legacy_request_long_async(gasnet_node_t node, uint32_t what, const void *src, size_t nbytes, void *dst, const gex_AM_Arg_t *args);
extern int argonet_legacy_reply_short(gasnet_token_t token, uint64_t head, uint64_t rest);
extern int argonet_legacy_reply_short_args(gasnet_token_t token, uint32_t what, const gex_AM_Arg_t *args);
extern int argonet_legacy_reply_medium(gasnet_token_t token, uint32_t what, const void *src, size_t nbytes, const gex_AM_Arg_t *args);
extern int argonet_legacy_reply_long(gasnet_token_t token, uint32_t what, const void *src, size_t nbytes, void *dst, const gex_AM_Arg_t *args);
extern void argonet_legacy_wrong_count(const char *function, int64_t said, int given) __attribute__((__noreturn__));
extern int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *srcindex);

extern void argonet_legacy_put(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern void argonet_legacy_put_bulk(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern gasnet_handle_t argonet_legacy_put_nb(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern gasnet_handle_t argonet_legacy_put_nb_bulk(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern void argonet_legacy_put_nbi(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern void argonet_legacy_put_nbi_bulk(gasnet_node_t node, void *dst, const void *src, size_t nbytes);
extern void argonet_legacy_get(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern void argonet_legacy_get_bulk(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern gasnet_handle_t argonet_legacy_get_nb(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern gasnet_handle_t argonet_legacy_get_nb_bulk(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern void argonet_legacy_get_nbi(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern void argonet_legacy_get_nbi_bulk(void *dst, gasnet_node_t node, void *src, size_t nbytes);
extern void argonet_legacy_put_word(gasnet_node_t node, void *dst, gasnet_register_value_t word, size_t nbytes);
extern void argonet_legacy_put_bulk_word(gasnet_node_t node, void *dst, gasnet_register_value_t word, size_t nbytes);
extern gasnet_handle_t argonet_legacy_put_nb_word(gasnet_node_t node, void *dst, gasnet_register_value_t word, size_t nbytes);
extern void argonet_legacy_put_nbi_word(gasnet_node_t node, void *dst, gasnet_register_value_t word, size_t nbytes);
extern void argonet_legacy_put_val(gasnet_node_t node, void *dst, gasnet_register_value_t value, size_t nbytes);
extern gasnet_handle_t argonet_legacy_put_nb_val(gasnet_node_t node, void *dst, gasnet_register_value_t value, size_t nbytes);
extern void argonet_legacy_put_nbi_val(gasnet_node_t node, void *dst, gasnet_register_value_t value, size_t nbytes);
extern gasnet_register_value_t argonet_legacy_get_val(gasnet_node_t node, void *src, size_t nbytes);
extern gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes);
extern gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);
extern void argonet_legacy_memset(gasnet_node_t node, void *dst, int value, size_t nbytes);
extern gasnet_handle_t argonet_legacy_memset_nb(gasnet_node_t node, void *dst, int value, size_t nbytes);
extern void argonet_legacy_memset_nbi(gasnet_node_t node, void *dst, int value, size_t nbytes);

extern void gasnet_putv_bulk(gasnet_node_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_puti_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
extern void gasnet_puts_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
extern gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);
extern gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
extern gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
extern void gasnet_putv_nbi_bulk(gasnet_node_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_puti_nbi_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
extern void gasnet_puts_nbi_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
extern void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);
extern void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
extern gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);
extern gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);
extern gasnet_handle_t gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
extern void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);
extern void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);

extern int gasnet_try_syncnb(gasnet_handle_t handle);
extern int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t numhandles);
extern int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t numhandles);
extern int argonet_legacy_try_syncnb_nopoll(gasnet_handle_t handle);
extern int gasnet_try_syncnb_some_nopoll(gasnet_handle_t *handles, size_t numhandles);
extern int gasnet_try_syncnb_all_nopoll(gasnet_handle_t *handles, size_t numhandles);
extern void argonet_legacy_wait_syncnb(gasnet_handle_t handle);
extern void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t numhandles);
extern void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t numhandles);
extern int gasnet_try_syncnbi_gets(void);
extern int gasnet_try_syncnbi_puts(void);
extern int gasnet_try_syncnbi_all(void);
extern void gasnet_wait_syncnbi_gets(void);
extern void gasnet_wait_syncnbi_puts(void);
extern void gasnet_wait_syncnbi_all(void);
extern void gasnet_begin_nbi_accessregion(void);
extern gasnet_handle_t gasnet_end_nbi_accessregion(void);

GASNETT_END_EXTERNC

#endif
