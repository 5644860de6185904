/* Types and constants of collective operations. */
#ifndef ARGONET_COLL_TYPES_H
#define ARGONET_COLL_TYPES_H

#include "numbers_coll.h"
#include "types.h"

/* A reduction of the client's own: each of the count values at arg2_and_out becomes arg1[i] OP
 * arg2_and_out[i]. Arguments do not overlap; it may run in several threads at once, and where
 * handlers may run, under the same rules. */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);

/* Of the gasnet_coll_* functions. A team is a gex_TM_t; an image is a rank in it. */
typedef gex_TM_t gasnet_team_handle_t;
typedef gex_Rank_t gasnet_image_t;
typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID
/* The team of all ranks. */
#define GASNET_TEAM_ALL (argonet_coll_team_all())

#endif
