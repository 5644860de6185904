/* The last part of gasnetex.h: every object file that includes it refers
 * to what it was compiled for. The table is data that no code reads; no code is made. */
#ifndef ARGONET_LINK_H
#define ARGONET_LINK_H

#include "argonet/annotations.h"
#include "argonet/facets.h"
#include "argonet/types.h"

#define gex_Client_Init ARGONET_INIT

#define ARGONET_DECLARE_FACET(symbol) extern const char symbol;
#define ARGONET_FACET_ADDRESS(symbol) &symbol,

GASNETT_BEGIN_EXTERNC
extern int gex_Client_Init(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team, const char *name, int *argc,
                           char ***argv, gex_Flags_t flags);
ARGONET_FACETS(ARGONET_DECLARE_FACET)
GASNETT_END_EXTERNC

ARGONETT_KEPT static const char *const argonet_link_checks[] = {ARGONET_FACETS(ARGONET_FACET_ADDRESS)};

#endif
