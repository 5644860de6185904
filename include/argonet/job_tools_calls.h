/* Functions of the library behind those tools that only a job has. A test compares them with the library's: one line each. */
#ifndef ARGONET_JOB_TOOLS_CALLS_H
#define ARGONET_JOB_TOOLS_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern void *argonet_map_memory(size_t bytes);
extern size_t argonet_format_dt(char *to, gex_DT_t set);
extern size_t argonet_format_op(char *to, gex_OP_t set);
extern size_t argonet_format_ti(char *to, gex_TI_t set);

GASNETT_END_EXTERNC

#endif
