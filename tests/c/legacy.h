/* Common part of programs of GASNet-1, beside check.h: a start by gasnet_init and gasnet_attach. */
#ifndef ARGONET_TESTS_LEGACY_H
#define ARGONET_TESTS_LEGACY_H

#include <gasnet.h>

#include "check.h"

/* Begins the job without attaching. */
static inline void legacy_init(int *argc, char ***argv, const char *name) {
  check_name = name;
  CHECK_OK(gasnet_init(argc, argv));
  me = gasnet_mynode();
  ranks = gasnet_nodes();
}

/* The segments of all ranks, by the addresses of their owners. Handlers may look here, though not
 * ask. */
static gasnet_seginfo_t *legacy_segments = NULL;
static inline char *legacy_segment(gasnet_node_t node) { return (char *)legacy_segments[node].addr; }

static inline void legacy_ask_segments(void) {
  legacy_segments = (gasnet_seginfo_t *)malloc(ranks * sizeof *legacy_segments);
  CHECK(legacy_segments != NULL);
  CHECK_OK(gasnet_getSegmentInfo(legacy_segments, (int)ranks));
}

/* Handlers, and a segment of at least `bytes`; the objects of check.h are set afterwards. No
 * message comes before the barrier at its end. */
static inline void legacy_attach(gasnet_handlerentry_t *table, size_t count, uintptr_t bytes) {
  uintptr_t page = GASNET_PAGESIZE;
  CHECK_OK(gasnet_attach(table, (int)count, (bytes + page - 1) / page * page, 0));
  gasnet_QueryGexObjects(&client, &ep, &team, &segment);
  legacy_ask_segments();
  CHECK_OK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED));
}

#endif
