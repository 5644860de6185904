/* Types and constants of gasnetex.h that need no configuration: for code that names them in interfaces of its own. Defines
 * only names that begin with gex_, GEX_ or _GEX_, and declares no function. */
#ifndef _GEX_FWD_H
#define _GEX_FWD_H

#include <stdint.h>

/* Ranks and endpoints. */
typedef uint32_t gex_Rank_t;
#define GEX_RANK_INVALID ((gex_Rank_t)UINT32_MAX)
typedef uint32_t gex_EP_Index_t;
#define GEX_EP_INDEX_INVALID ((gex_EP_Index_t)UINT32_MAX)
typedef struct {
  gex_Rank_t gex_rank;
  gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

/* An address in the process or device that an endpoint is bound to. */
typedef void *gex_Addr_t;

/* Events. The three below GEX_EVENT_NO_OP are for arguments, the other two are values of events. */
struct _gex_event_s;
typedef struct _gex_event_s *gex_Event_t;
#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)(uintptr_t)(1 << 24))
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)(uintptr_t)3)

typedef uint32_t gex_Flags_t;
/* Of communication. */
#define GEX_FLAG_IMMEDIATE 1
#define GEX_FLAG_PEER_NEVER_SELF 2
#define GEX_FLAG_PEER_NEVER_NBRHD 4
#define GEX_FLAG_SELF_SEG_UNKNOWN 0x10
#define GEX_FLAG_SELF_SEG_SOME 0x20
#define GEX_FLAG_SELF_SEG_BOUND 0x40
#define GEX_FLAG_SELF_SEG_OFFSET 0x80
#define GEX_FLAG_PEER_SEG_UNKNOWN 0x100
#define GEX_FLAG_PEER_SEG_SOME 0x200
#define GEX_FLAG_PEER_SEG_BOUND 0x400
#define GEX_FLAG_PEER_SEG_OFFSET 0x800
#define GEX_FLAG_LC_COPY_YES 0x1000
#define GEX_FLAG_LC_COPY_NO 0x2000
/* Of questions for limits of active messages. */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT 0x10000
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC 0x20000
/* Of puts of vectors and their kin. */
#define GEX_FLAG_ENABLE_LEAF_LC 0x40000
/* Of remote atomic operations. */
#define GEX_FLAG_AD_MY_RANK 0x100000
#define GEX_FLAG_AD_MY_NBRHD 0x200000
#define GEX_FLAG_AD_ACQ 0x400000
#define GEX_FLAG_AD_REL 0x800000
#define GEX_FLAG_RANK_IS_JOBRANK 0x1000000
/* Of registered handlers. */
#define GEX_FLAG_AM_SHORT 1
#define GEX_FLAG_AM_MEDIUM 2
#define GEX_FLAG_AM_LONG 4
#define GEX_FLAG_AM_MEDLONG 6
#define GEX_FLAG_AM_REQUEST 8
#define GEX_FLAG_AM_REPLY 16
#define GEX_FLAG_AM_REQREP 24
/* Of domains of remote atomic operations. */
#define GEX_FLAG_AD_FAVOR_MY_RANK 1
#define GEX_FLAG_AD_FAVOR_MY_NBRHD 2
#define GEX_FLAG_AD_FAVOR_REMOTE 4
/* Of teams. */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN 1
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED 2
#define GEX_FLAG_TM_GLOBAL_SCRATCH 4
#define GEX_FLAG_TM_LOCAL_SCRATCH 8
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH 16
#define GEX_FLAG_TM_NO_SCRATCH 32
#define GEX_FLAG_SCRATCH_SEG_OFFSET 64
#define GEX_FLAG_GLOBALLY_QUIESCED 128
/* Of clients. */
#define GEX_FLAG_USES_GASNET1 1
#define GEX_FLAG_DEFER_THREADS 2
/* Of endpoints. */
#define GEX_FLAG_HINT_ACCEL_AD 1
#define GEX_FLAG_HINT_ACCEL_COLL 2
#define GEX_FLAG_HINT_ACCEL_ALL 3

/* What an endpoint can do. */
typedef uint32_t gex_EP_Capabilities_t;
#define GEX_EP_CAPABILITY_RMA 1
#define GEX_EP_CAPABILITY_AM 2
#define GEX_EP_CAPABILITY_VIS 4
#define GEX_EP_CAPABILITY_COLL 8
#define GEX_EP_CAPABILITY_AD 16
#define GEX_EP_CAPABILITY_ALL 31

/* Types of data, one bit each. */
typedef uint32_t gex_DT_t;
#define GEX_DT_I32 1
#define GEX_DT_U32 2
#define GEX_DT_I64 4
#define GEX_DT_U64 8
#define GEX_DT_FLT 16
#define GEX_DT_DBL 32
#define GEX_DT_USER 64

/* Operations, one bit each. */
typedef uint32_t gex_OP_t;
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
#define GEX_OP_FAND 0x1000
#define GEX_OP_FOR 0x2000
#define GEX_OP_FXOR 0x4000
#define GEX_OP_FADD 0x8000
#define GEX_OP_FSUB 0x10000
#define GEX_OP_FMULT 0x20000
#define GEX_OP_FMIN 0x40000
#define GEX_OP_FMAX 0x80000
#define GEX_OP_FINC 0x100000
#define GEX_OP_FDEC 0x200000
#define GEX_OP_SWAP 0x400000
#define GEX_OP_FCAS 0x800000
#define GEX_OP_CSWAP GEX_OP_FCAS
#define GEX_OP_GET 0x1000000
/* The client's own. */
#define GEX_OP_USER 0x2000000
#define GEX_OP_USER_NC 0x4000000
/* Between an operation and its partner. Fetching ones are their own. */
#define _GEX_OP_PLAIN 0xfff
#define GEX_OP_TO_FETCHING(op) ((gex_OP_t)(((op) & _GEX_OP_PLAIN) ? (op) << 12 : (op)))
#define GEX_OP_TO_NONFETCHING(op) ((gex_OP_t)(((op) & (_GEX_OP_PLAIN << 12)) ? (op) >> 12 : (op)))

#endif
