/* GASNet-EX, version 0.19 of its interface: clients, endpoints, segments and teams; active
 * messages; put and get; events; locks for handlers; barriers.
 *
 * A client defines exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR to 1 first. A program
 * that uses gasnet_tools.h too includes that after this. GASNET_DEBUG has arguments and contexts
 * checked on every call. */
#ifndef _GASNETEX_H
#define _GASNETEX_H

#ifdef _INCLUDED_GASNET_TOOLS_H
#error gasnetex.h must be included before gasnet_tools.h
#endif

#include "gasnet_config.h"
#include "gasnet_portable_platform.h"

#include "argonet/annotations.h"
#include "argonet/config.h"

/* Some of these are here because clients have always had them from here. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include "gasnet_fwd.h"

GASNETT_BEGIN_EXTERNC

#include "argonet/job.h"

#include "argonet/events.h"

#include "argonet/am.h"

#include "argonet/rma.h"

#include "argonet/hsl.h"

#include "argonet/waiting.h"

#include "argonet/barrier.h"

GASNETT_END_EXTERNC

#include "argonet/link.h"

#endif
