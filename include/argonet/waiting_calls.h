/* Functions of the library behind argonet/waiting.h. A test compares them with the library's: one
 * line each. */
#ifndef ARGONET_WAITING_CALLS_H
#define ARGONET_WAITING_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

/* A wait that is under way; what stands in it is the library's. */
struct argonet_wait {
  uint64_t argonet_words[24];
};

extern int gasnet_AMPoll(void);
extern int gasnet_set_waitmode(int mode);
extern void argonet_wait_begin(struct argonet_wait *wait);
extern void argonet_wait_step(struct argonet_wait *wait);
extern void argonet_wait_end(struct argonet_wait *wait);

GASNETT_END_EXTERNC

#endif
