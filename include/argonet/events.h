/* Events, and implicit operations. What is over already costs no call, except in debug builds,
 * which check where they are called. */
#ifndef ARGONET_EVENTS_H
#define ARGONET_EVENTS_H

#include "events_calls.h"

static inline int gex_Event_Test(gex_Event_t event)
{
  return !ARGONET_DEBUG && event == GEX_EVENT_INVALID ? GASNET_OK : argonet_event_test(event);
}

static inline void gex_Event_Wait(gex_Event_t event)
{
  if (ARGONET_DEBUG || event != GEX_EVENT_INVALID) argonet_event_wait(event);
}

static inline gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category)
{
  return !ARGONET_DEBUG && root == GEX_EVENT_INVALID ? GEX_EVENT_INVALID : argonet_event_leaf(root, category);
}

#endif
