/* The parts of gasnetex.h that put and get, events, locks and waits are in, in its order. */
#include "gasnet_config.h"
#include "gasnet_portable_platform.h"

#include "argonet/config.h"

#include "gasnet_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "argonet/job.h"

#include "argonet/events.h"

#include "argonet/rma.h"

#include "argonet/hsl.h"

#include "argonet/waiting.h"

#include "argonet/barrier.h"
#ifdef __cplusplus
}
#endif
