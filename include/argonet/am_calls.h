/* Functions of the library behind argonet/am.h. A test compares them with the library's: one line
 * each. */
#ifndef ARGONET_AM_CALLS_H
#define ARGONET_AM_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t count);

extern gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);
extern size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);

extern size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern size_t gex_AM_LUBRequestMedium(void);
extern size_t gex_AM_LUBReplyMedium(void);
extern size_t gex_AM_LUBRequestLong(void);
extern size_t gex_AM_LUBReplyLong(void);

extern int argonet_request_short(gex_TM_t tm, gex_Rank_t rank, uint64_t head, uint64_t rest, gex_Flags_t flags);
extern int argonet_request_short_args(gex_TM_t tm, gex_Rank_t rank, uint32_t what, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_request_medium(gex_TM_t tm, gex_Rank_t rank, uint32_t what, const void *src, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_request_long(gex_TM_t tm, gex_Rank_t rank, uint32_t what, const void *src, size_t nbytes, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_reply_short(gex_Token_t token, uint64_t head, uint64_t rest, gex_Flags_t flags);
extern int argonet_reply_short_args(gex_Token_t token, uint32_t what, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_reply_medium(gex_Token_t token, uint32_t what, const void *src, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_reply_long(gex_Token_t token, uint32_t what, const void *src, size_t nbytes, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args);

extern gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *client_buf, size_t least_payload, size_t most_payload, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *client_buf, size_t least_payload, size_t most_payload, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf, size_t least_payload, size_t most_payload, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf, size_t least_payload, size_t most_payload, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd);
extern size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd);
extern int argonet_commit_request_medium(gex_AM_SrcDesc_t sd, uint32_t what, size_t nbytes, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_commit_request_long(gex_AM_SrcDesc_t sd, uint32_t what, size_t nbytes, void *dst, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_commit_reply_medium(gex_AM_SrcDesc_t sd, uint32_t what, size_t nbytes, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int argonet_commit_reply_long(gex_AM_SrcDesc_t sd, uint32_t what, size_t nbytes, void *dst, gex_Flags_t flags, const gex_AM_Arg_t *args);
extern int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
