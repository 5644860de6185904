/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */
#ifndef _GEX_ARGONET_NUMBERS_FWD_H
#define _GEX_ARGONET_NUMBERS_FWD_H

/* Ranks and endpoints. */
#define GEX_RANK_INVALID 0xffffffffU
#define GEX_EP_INDEX_INVALID ((gex_EP_Index_t)(uintptr_t)65535)

/* Events: values, then what stands for the address of one. */
#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)(uintptr_t)1)
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)(uintptr_t)3)

/* Flags of communication. */
#define GEX_FLAG_IMMEDIATE 1U
#define GEX_FLAG_SELF_SEG_UNKNOWN 8U
#define GEX_FLAG_SELF_SEG_SOME 0x10U
#define GEX_FLAG_SELF_SEG_BOUND 0x20U
#define GEX_FLAG_SELF_SEG_OFFSET 0x40U
#define GEX_FLAG_PEER_SEG_UNKNOWN 0x80U
#define GEX_FLAG_PEER_SEG_SOME 0x100U
#define GEX_FLAG_PEER_SEG_BOUND 0x200U
#define GEX_FLAG_PEER_SEG_OFFSET 0x400U
#define GEX_FLAG_PEER_NEVER_SELF 0x8000U
#define GEX_FLAG_PEER_NEVER_NBRHD 0x4000U
#define GEX_FLAG_LC_COPY_YES 0x10000U
#define GEX_FLAG_LC_COPY_NO 0x20000U

/* Flags of questions for limits of active messages. */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT 0x800U
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC 0x1000U

/* Flags of non-contiguous puts. */
#define GEX_FLAG_ENABLE_LEAF_LC 0x800U

/* Flags of remote atomic operations. */
#define GEX_FLAG_AD_MY_RANK 0x800U
#define GEX_FLAG_AD_MY_NBRHD 0x1000U
#define GEX_FLAG_AD_ACQ 4U
#define GEX_FLAG_AD_REL 2U
#define GEX_FLAG_RANK_IS_JOBRANK 0x2000U

/* Flags of registered handlers. */
#define GEX_FLAG_AM_SHORT 1U
#define GEX_FLAG_AM_MEDIUM 2U
#define GEX_FLAG_AM_LONG 4U
#define GEX_FLAG_AM_MEDLONG 6U
#define GEX_FLAG_AM_REQUEST 8U
#define GEX_FLAG_AM_REPLY 0x10U
#define GEX_FLAG_AM_REQREP 0x18U

/* Flags of domains of remote atomic operations. */
#define GEX_FLAG_AD_FAVOR_MY_RANK 1U
#define GEX_FLAG_AD_FAVOR_MY_NBRHD 2U
#define GEX_FLAG_AD_FAVOR_REMOTE 4U

/* Flags of teams. */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN 1U
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED 2U
#define GEX_FLAG_TM_GLOBAL_SCRATCH 4U
#define GEX_FLAG_TM_LOCAL_SCRATCH 8U
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH 0x10U
#define GEX_FLAG_TM_NO_SCRATCH 0x20U
#define GEX_FLAG_SCRATCH_SEG_OFFSET 0x40U
#define GEX_FLAG_GLOBALLY_QUIESCED 0x2000U

/* Flags of clients. */
#define GEX_FLAG_USES_GASNET1 1U
#define GEX_FLAG_DEFER_THREADS 2U

/* Flags of endpoints. */
#define GEX_FLAG_HINT_ACCEL_AD 1U
#define GEX_FLAG_HINT_ACCEL_COLL 2U
#define GEX_FLAG_HINT_ACCEL_ALL 3U

/* What an endpoint can do. */
#define GEX_EP_CAPABILITY_RMA 1U
#define GEX_EP_CAPABILITY_AM 2U
#define GEX_EP_CAPABILITY_VIS 4U
#define GEX_EP_CAPABILITY_COLL 8U
#define GEX_EP_CAPABILITY_AD 0x10U
#define GEX_EP_CAPABILITY_ALL 0x1fU

/* Types of data, one bit each. */
#define GEX_DT_I32 1
#define GEX_DT_U32 2
#define GEX_DT_I64 4
#define GEX_DT_U64 8
#define GEX_DT_FLT 0x10
#define GEX_DT_DBL 0x20
#define GEX_DT_USER 0x40

/* Operations, one bit each. */
#define GEX_OP_AND 1
#define GEX_OP_OR 2
#define GEX_OP_XOR 4
#define GEX_OP_ADD 8
#define GEX_OP_SUB 0x10
#define GEX_OP_MULT 0x20
#define GEX_OP_MIN 0x40
#define GEX_OP_MAX 0x80
#define GEX_OP_INC 0x100
#define GEX_OP_DEC 0x200
#define GEX_OP_SET 0x400
#define GEX_OP_CAS 0x800

/* The same twelve, with the value before as result. */
#define GEX_OP_FAND 0x8000
#define GEX_OP_FOR 0x10000
#define GEX_OP_FXOR 0x20000
#define GEX_OP_FADD 0x40000
#define GEX_OP_FSUB 0x80000
#define GEX_OP_FMULT 0x100000
#define GEX_OP_FMIN 0x200000
#define GEX_OP_FMAX 0x400000
#define GEX_OP_FINC 0x800000
#define GEX_OP_FDEC 0x1000000
#define GEX_OP_SWAP 0x2000000
#define GEX_OP_FCAS 0x4000000
#define GEX_OP_CSWAP 0x4000000
#define GEX_OP_GET 0x8000000

/* The client's own. */
#define GEX_OP_USER 0x40000000
#define GEX_OP_USER_NC 0x80000000U

#endif
