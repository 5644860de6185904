/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */
#ifndef ARGONET_NUMBERS_H
#define ARGONET_NUMBERS_H

/* Changes with any number or type of the interface. */
#define ARGONET_NUMBERS_DIGEST af67144282ad99e3

/* What calls return. */
#define GASNET_OK 0
#if GASNET_CONDUIT_UDP
#define GASNET_ERR_NOT_INIT 1
#else
#define GASNET_ERR_NOT_INIT 10001
#endif
#if GASNET_CONDUIT_UDP
#define GASNET_ERR_RESOURCE 3
#else
#define GASNET_ERR_RESOURCE 10002
#endif
#if GASNET_CONDUIT_UDP
#define GASNET_ERR_BAD_ARG 2
#else
#define GASNET_ERR_BAD_ARG 10003
#endif
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

/* Objects: none, and memory of the host. */
#define GEX_CLIENT_INVALID ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID ((gex_EP_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)(uintptr_t)0)
#define GEX_TM_INVALID ((gex_TM_t)(uintptr_t)0)
#define GEX_MK_INVALID ((gex_MK_t)(uintptr_t)0)
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)
#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)

/* Active messages: the first index of a client, facts about a token. */
#define GEX_AM_INDEX_BASE 0x80
#define GEX_TI_SRCRANK 1U
#define GEX_TI_ENTRY 2U
#define GEX_TI_IS_REQ 4U
#define GEX_TI_IS_LONG 8U
#define GEX_TI_EP 0x10U
#define GEX_TI_ALL 0x1fU

/* Categories of implicit operations and of leaves. Puts complete locally, too; messages only so. */
#define GEX_EC_GET 4U
#define GEX_EC_PUT 3U
#define GEX_EC_AM 2U
#define GEX_EC_LC 2U
#define GEX_EC_RMW 8U
#define GEX_EC_ALL 0xffffffffU

/* What a thread that the client starts is for. */
#define GEX_THREAD_ROLE_RCV 1U
#define GEX_THREAD_ROLE_SND 2U

/* Barriers of GASNet-1: the id counts for nothing; the barrier is a mismatch; no id is given. */
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_UNNAMED 9

/* How calls wait. */
#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2

/* Limits and features. */
#define GASNET_MAXEPS 0x20
#define GASNET_MAXNODES 0x7fffffffU
#define SIZEOF_GEX_RMA_VALUE_T 8
#define GASNET_NULL_ARGV_OK 1
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0
#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L
#define GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM 1
#define GASNET_HAVE_MK_CLASS_HOST 1

#endif
