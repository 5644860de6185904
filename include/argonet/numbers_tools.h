/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */
#ifndef ARGONET_NUMBERS_TOOLS_H
#define ARGONET_NUMBERS_TOOLS_H

/* The version of GASNet-Tools. */
#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20

/* What atomic operations order. MB is both RMB and WMB. */
#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_RMB_PRE 1
#define GASNETT_ATOMIC_WMB_PRE 2
#define GASNETT_ATOMIC_MB_PRE 3
#define GASNETT_ATOMIC_RMB_POST 4
#define GASNETT_ATOMIC_WMB_POST 8
#define GASNETT_ATOMIC_MB_POST 12
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE 0x10
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 0x20
#define GASNETT_ATOMIC_REL 2
#define GASNETT_ATOMIC_ACQ 4
#define GASNETT_ATOMIC_ACQ_IF_TRUE 0x10
#define GASNETT_ATOMIC_ACQ_IF_FALSE 0x20

#endif
