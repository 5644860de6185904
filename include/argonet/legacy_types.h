/* Types and constants of GASNet-1. Most are those of gasnetex.h under other names. */
#ifndef ARGONET_LEGACY_TYPES_H
#define ARGONET_LEGACY_TYPES_H

#include "hsl_calls.h"
#include "numbers_legacy.h"
#include "types.h"

typedef gex_Rank_t gasnet_node_t;
typedef gex_Token_t gasnet_token_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
typedef gex_HSL_t gasnet_hsl_t;

/* An operation that goes on, for any thread to wait for. */
typedef gex_Event_t gasnet_handle_t;
#define GASNET_INVALID_HANDLE GEX_EVENT_INVALID
/* A get of a value that goes on. The wait for it ends its life. */
typedef struct argonet_value_get_s *gasnet_valget_handle_t;

/* A handler. An index of 0 stands for any; gasnet_attach writes which one it was. */
typedef struct {
  gasnet_handler_t index;
  gex_AM_Fn_t fnptr;
} gasnet_handlerentry_t;

/* A piece of memory: gex_Memvec_t with other names. */
typedef struct {
  void *addr;
  size_t len;
} gasnet_memvec_t;

#endif
