/* Functions of the library behind gasnet_mk.h. A test compares them with the library's: one line
 * each. */
#ifndef ARGONET_KIND_CALLS_H
#define ARGONET_KIND_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern int argonet_kind_create(gex_MK_t *kind, gex_Client_t client, int kind_class, gex_Flags_t flags);
extern void argonet_kind_destroy(gex_MK_t kind, gex_Flags_t flags);

GASNETT_END_EXTERNC

#endif
