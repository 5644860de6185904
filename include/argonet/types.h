/* Objects, arguments and constants of gasnetex.h that gasnet_fwd.h leaves out. */
#ifndef ARGONET_TYPES_H
#define ARGONET_TYPES_H

#include "../gasnet_fwd.h"
#include "annotations.h"
#include "config.h"
#include "numbers.h"
#include <stddef.h>
#include <stdint.h>

/* Objects. Zero is none. */
typedef struct argonet_client_s *gex_Client_t;
typedef struct argonet_endpoint_s *gex_EP_t;
typedef struct argonet_segment_s *gex_Segment_t;
typedef struct argonet_mapped_team *gex_TM_t;
typedef struct argonet_kind_s *gex_MK_t;
typedef struct argonet_domain_s *gex_AD_t;
typedef struct argonet_token_s *gex_Token_t;
typedef struct argonet_source_descriptor_s *gex_AM_SrcDesc_t;
/* Active messages. */
typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
/* Clients cast to it. */
typedef void (*gex_AM_Fn_t)(void);
#else
/* No prototype: every handler can be assigned. Compilers that warn of that are not to do so
 * here. */
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
typedef struct {
  gex_Rank_t gex_srcrank;
  gex_EP_t gex_ep;
  const gex_AM_Entry_t *gex_entry;
  int gex_is_req;
  int gex_is_long;
} gex_Token_Info_t;

/* Values and pieces of memory. */
typedef uint64_t gex_RMA_Value_t;
typedef struct {
  void *gex_addr;
  size_t gex_len;
} gex_Memvec_t;

/* What distinguishes implicit operations and leaves. */
typedef unsigned int gex_EC_t;

/* A rank of a neighborhood or host. The name of a const type is none for C++'s linker, so that the
 * struct has its own. */
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

/* The segment of a rank, as gasnet_getSegmentInfo reports it. */
typedef struct {
  void *addr;
  uintptr_t size;
} gasnet_seginfo_t;

/* What is called with each rank that is lost, and with the pointer that was given. */
typedef void (*argonet_PeerLostFn_t)(gex_Rank_t jobrank, void *context);

/* Where a rank runs. */
typedef struct {
  gex_Rank_t host;
  gex_Rank_t supernode;
  uintptr_t offset;
  uintptr_t argonet_reserved; /* 0 */
} gasnet_nodeinfo_t;

#endif
