/* Made by `cargo xtask numbers` from base/gasnet.tsv. Not included by clients. */
#ifndef ARGONET_NUMBERS_LEGACY_H
#define ARGONET_NUMBERS_LEGACY_H

/* The version of GASNet-1. */
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION 1
#define SIZEOF_GASNET_REGISTER_VALUE_T 8

#endif
