/* Remote atomic operations: domains, and operations on words in bound segments. */
#ifndef _GASNET_RATOMIC_H
#define _GASNET_RATOMIC_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "argonet/ratomic.h"

#ifdef __cplusplus
}
#endif

#endif
