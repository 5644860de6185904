/* GASNet-1, version 1.8 of its interface, over the same job and objects as gasnetex.h, with which
 * it may be mixed: gasnet_QueryGexObjects gives the objects of a job that gasnet_init began; in one
 * that gex_Client_Init began with GEX_FLAG_USES_GASNET1 the calls below work as well, all but
 * gasnet_init and gasnet_attach.
 *
 * Includes gasnetex.h, which may have been included before, and then gasnet_tools.h. */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnetex.h"
#include "gasnet_tools.h"

GASNETT_BEGIN_EXTERNC

#include "argonet/legacy_types.h"

#include "argonet/legacy_start.h"

#include "argonet/legacy_am.h"

#include "argonet/legacy_rma.h"

#include "argonet/legacy_sync.h"

GASNETT_END_EXTERNC

#endif
