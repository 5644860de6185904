/* Functions of the library behind argonet/barrier.h. A test compares them with the library's: one
 * line each. */
#ifndef ARGONET_BARRIER_CALLS_H
#define ARGONET_BARRIER_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

extern void gasnet_barrier_notify(int id, int flags);
extern int gasnet_barrier_wait(int id, int flags);
extern int gasnet_barrier_try(int id, int flags);
extern int gasnet_barrier(int id, int flags);
extern int gasnet_barrier_result(int *id);

GASNETT_END_EXTERNC

#endif
