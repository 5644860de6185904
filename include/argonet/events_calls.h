/* Functions of the library behind argonet/events.h. A test compares them with the library's: one
 * line each. */
#ifndef ARGONET_EVENTS_CALLS_H
#define ARGONET_EVENTS_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern int argonet_event_test(gex_Event_t event);
extern void argonet_event_wait(gex_Event_t event);
extern gex_Event_t argonet_event_leaf(gex_Event_t root, gex_EC_t category);
extern int gex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
extern int gex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
extern void gex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
extern void gex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
extern int gex_NBI_Test(gex_EC_t mask, gex_Flags_t flags);
extern void gex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags);
extern void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
extern gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
