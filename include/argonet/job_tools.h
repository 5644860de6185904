/* What gasnet_tools.h has only where gasnetex.h comes first. */
#ifndef ARGONET_JOB_TOOLS_H
#define ARGONET_JOB_TOOLS_H

#include "argonet/job_tools_calls.h"

#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS

/* Memory of its own, all zeros, from the start of a page on. */
#define gasnett_mmap(bytes) argonet_map_memory(bytes)

/* A set of types, operations or facts about a token, written out. The bytes that are written, or for NULL needed, with the
 * 0 at their end. */
#define gasnett_format_dt(to, set) argonet_format_dt(to, set)
#define gasnett_format_op(to, set) argonet_format_op(to, set)
#define gasnett_format_ti(to, set) argonet_format_ti(to, set)

#endif
