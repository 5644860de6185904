/* How the small library of a conduit and thread mode describes itself to the one library. Not for
 * clients. */
#ifndef ARGONET_VARIANT_H
#define ARGONET_VARIANT_H

#include "job_calls.h"

/* The version of what follows. */
#define ARGONET_VARIANT_VERSION 3

/* What clients of a conduit have: its numbers. */
#define ARGONET_VARIANT_ERRORS                                                                                         \
    {GASNET_ERR_NOT_INIT, GASNET_ERR_RESOURCE, GASNET_ERR_BAD_ARG, GASNET_ERR_NOT_READY, GASNET_ERR_BARRIER_MISMATCH}

struct argonet_variant {
    uint32_t version; /* ARGONET_VARIANT_VERSION */
    uint32_t mode;    /* 0 GASNET_SEQ, 1 GASNET_PARSYNC, 2 GASNET_PAR */
    uint32_t debug;   /* 0 or 1 */
    uint32_t segment; /* 0 GASNET_SEGMENT_FAST, 1 LARGE, 2 EVERYTHING */
    const char *conduit; /* as ARGONET_CONDUIT names it: "smp" */
    int errors[5];       /* ARGONET_VARIANT_ERRORS */
};

#endif
