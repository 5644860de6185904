/* Types and constants of gasnetex.h that need no configuration: for code that names them in
 * interfaces of its own. Defines only names that begin with gex_, GEX_ or _GEX_, and declares no
 * function. */
#ifndef _GEX_FWD_H
#define _GEX_FWD_H

#include <stdint.h>

/* Ranks and endpoints. */
typedef uint32_t gex_Rank_t;
typedef uint16_t gex_EP_Index_t;
typedef struct {
  gex_Rank_t gex_rank;
  gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

/* An address in the process or device that an endpoint is bound to. */
typedef void *gex_Addr_t;

/* Events. */
struct _gex_event_s;
typedef struct _gex_event_s *gex_Event_t;

/* Flags, what an endpoint can do, types of data, operations. */
typedef uint32_t gex_Flags_t;
typedef uint32_t gex_EP_Capabilities_t;
typedef uint32_t gex_DT_t;
typedef uint32_t gex_OP_t;

#include "argonet/numbers_fwd.h"

/* Between an operation and its partner. Fetching ones are their own. */
#define _GEX_OP_PLAIN (GEX_OP_CAS * 2 - GEX_OP_AND)
#define _GEX_OP_STEP (GEX_OP_FAND / GEX_OP_AND)
#define GEX_OP_TO_FETCHING(op) ((gex_OP_t)(((op) & _GEX_OP_PLAIN) ? (gex_OP_t)(op) * _GEX_OP_STEP : (op)))
#define GEX_OP_TO_NONFETCHING(op) ((gex_OP_t)(((op) & (_GEX_OP_PLAIN * _GEX_OP_STEP)) ? (gex_OP_t)(op) / _GEX_OP_STEP : (op)))

#endif
