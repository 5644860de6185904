/* Types and constants of collective operations. */
#ifndef ARGONET_COLL_TYPES_H
#define ARGONET_COLL_TYPES_H

#include "types.h"

/* A reduction of the client's own: each of the count values at arg2_and_out becomes arg1[i] OP arg2_and_out[i]. Arguments do not
 * overlap; it may run in several threads at once, and where handlers may run, under the same rules. */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);

/* Of the gasnet_coll_* functions. A team is a gex_TM_t; an image is a rank in it. */
typedef gex_TM_t gasnet_team_handle_t;
typedef gex_Rank_t gasnet_image_t;
typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID
/* The team of all ranks. */
#define GASNET_TEAM_ALL (argonet_coll_team_all())

/* When data may move: at once; when the rank that it belongs to has called; when all have. One of them is needed. */
#define GASNET_COLL_IN_NOSYNC 1
#define GASNET_COLL_IN_MYSYNC 2
#define GASNET_COLL_IN_ALLSYNC 4
/* When an operation is complete: when this rank's own part is; the same for its data; when all are. One of them is needed. */
#define GASNET_COLL_OUT_NOSYNC 8
#define GASNET_COLL_OUT_MYSYNC 16
#define GASNET_COLL_OUT_ALLSYNC 32
/* Each rank gives addresses of its own. Needed. */
#define GASNET_COLL_LOCAL 64
/* Hints, which change nothing here. */
#define GASNET_COLL_SRC_IN_SEGMENT 128
#define GASNET_COLL_DST_IN_SEGMENT 256
#define GASNET_COLL_NO_IMAGES 512
#define GASNET_COLL_DISABLE_AUTOTUNE 1024

#endif
