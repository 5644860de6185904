/* How a program of GASNet-1 begins, and what it asks about its job. */
#ifndef ARGONET_LEGACY_START_H
#define ARGONET_LEGACY_START_H

#include "am.h"
#include "facets.h"
#include "job.h"
#include "legacy_calls.h"

/* Named by the whole configuration, as the entry point of gasnetex.h is. */
#define ARGONET_LEGACY_INIT _CONCAT(argonet_legacy_, ARGONET_INIT)

GASNETT_BEGIN_EXTERNC
extern int ARGONET_LEGACY_INIT(int *argc, char ***argv);

/* The team of all ranks; before there is one, a team that reaches no rank's memory. */
extern gex_TM_t argonet_legacy_team;
GASNETT_END_EXTERNC

static inline int gasnet_init(int *argc, char ***argv) { return ARGONET_LEGACY_INIT(argc, argv); }

/* Variables, so that asking costs nothing. A job has one rank at least. */
static inline gasnet_node_t gasnet_mynode(void)
{
  if (__builtin_expect(gasneti_nodes == 0, 0)) argonet_legacy_no_job("gasnet_mynode");
  return gasneti_mynode;
}
static inline gasnet_node_t gasnet_nodes(void)
{
  if (__builtin_expect(gasneti_nodes == 0, 0)) argonet_legacy_no_job("gasnet_nodes");
  return gasneti_nodes;
}

static inline size_t gasnet_AMMaxArgs(void) { return ARGONET_AM_MOST_ARGS; }
/* For requests and replies. */
static inline size_t gasnet_AMMaxMedium(void)
{
  const size_t request = gex_AM_LUBRequestMedium();
  const size_t reply = gex_AM_LUBReplyMedium();
  return request < reply ? request : reply;
}
static inline size_t gasnet_AMMaxLongRequest(void) { return gex_AM_LUBRequestLong(); }
static inline size_t gasnet_AMMaxLongReply(void) { return gex_AM_LUBReplyLong(); }

#endif
