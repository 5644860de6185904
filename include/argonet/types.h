/* Objects, arguments and constants of gasnetex.h that gasnet_fwd.h leaves out. */
#ifndef ARGONET_TYPES_H
#define ARGONET_TYPES_H

#include "../gasnet_fwd.h"
#include "annotations.h"
#include "config.h"
#include <stddef.h>
#include <stdint.h>

/* Objects. Zero is none. */
typedef struct argonet_client_s *gex_Client_t;
typedef struct argonet_endpoint_s *gex_EP_t;
typedef struct argonet_segment_s *gex_Segment_t;
typedef const struct argonet_near_team *gex_TM_t;
typedef struct argonet_kind_s *gex_MK_t;
typedef struct argonet_domain_s *gex_AD_t;
typedef struct argonet_token_s *gex_Token_t;
typedef struct argonet_room_s *gex_AM_SrcDesc_t;
#define GEX_CLIENT_INVALID ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID ((gex_EP_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)(uintptr_t)0)
#define GEX_TM_INVALID ((gex_TM_t)(uintptr_t)0)
#define GEX_MK_INVALID ((gex_MK_t)(uintptr_t)0)
#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)
/* Memory of the host. */
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)

/* Active messages. */
typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
#define GEX_AM_INDEX_BASE 128
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
/* Clients cast to it. */
typedef void (*gex_AM_Fn_t)(void);
#else
/* No prototype: every handler can be assigned. Compilers that warn of that are not to do so here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef void (*gex_AM_Fn_t)();
#pragma GCC diagnostic pop
#endif
typedef struct {
  gex_AM_Index_t gex_index;
  gex_AM_Fn_t gex_fnptr;
  gex_Flags_t gex_flags;
  unsigned int gex_nargs;
  const void *gex_cdata;
  const char *gex_name;
} gex_AM_Entry_t;

typedef unsigned int gex_TI_t;
#define GEX_TI_SRCRANK 1
#define GEX_TI_EP 2
#define GEX_TI_ENTRY 4
#define GEX_TI_IS_REQ 8
#define GEX_TI_IS_LONG 16
#define GEX_TI_ALL 31
typedef struct {
  gex_Rank_t gex_srcrank;
  gex_EP_t gex_ep;
  const gex_AM_Entry_t *gex_entry;
  int gex_is_req;
  int gex_is_long;
} gex_Token_Info_t;

/* Values and pieces of memory. */
typedef uint64_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8
typedef struct {
  void *gex_addr;
  size_t gex_len;
} gex_Memvec_t;

/* What implicit operations and leaves are told apart by. */
typedef unsigned int gex_EC_t;
#define GEX_EC_GET 1
#define GEX_EC_PUT 2
#define GEX_EC_AM 4
#define GEX_EC_LC 8
#define GEX_EC_RMW 16
#define GEX_EC_ALL 31

/* A rank of a neighbourhood or host. The name of a const type is none for C++'s linker, so that the struct has its own. */
typedef const struct argonet_rank_info {
  gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

/* A thread that the client starts for the library. */
typedef struct {
  const char *gex_device_list;
  unsigned int gex_thread_roles;
  void *(*gex_progress_fn)(void *);
  void *gex_progress_arg;
} gex_ProgressThreadInfo_t;
#define GEX_THREAD_ROLE_RCV 1
#define GEX_THREAD_ROLE_SND 2

/* The segment of a rank, as gasnet_getSegmentInfo tells it. */
typedef struct {
  void *addr;
  uintptr_t size;
} gasnet_seginfo_t;

/* Where a rank runs. */
typedef struct {
  gex_Rank_t host;
  gex_Rank_t supernode;
  uintptr_t offset;
} gasnet_nodeinfo_t;

/* What calls return. */
#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

#endif
