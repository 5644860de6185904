/* What this library is, as scripts and headers read it. Scripts take the first five lines of
 * definitions apart with awk and grep: one blank before each value, nothing after it. The release
 * is that of GASNet-EX whose interface this is. */
#ifndef ARGONET_GASNET_CONFIG_H
#define ARGONET_GASNET_CONFIG_H

#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0
#define GASNETI_EX_SPEC_VERSION_MAJOR 0
#define GASNETI_EX_SPEC_VERSION_MINOR 19
#define GASNETI_RELEASE_VERSION "2025.8.0"
/* The installation puts its own values here. */
#define GASNETI_BUILD_ID "not installed"
#define GASNETI_CONFIGURE_ARGS ""
/* The segment configuration that is installed: 0 FAST, 1 LARGE, 2 EVERYTHING. */
#define GASNETI_SEGMENT_DEFAULT 0

/* What programs that include our headers look for. */
#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#ifndef HAVE_MMAP
#define HAVE_MMAP 1
#endif
#ifndef SIZEOF_INT
#define SIZEOF_INT 4
#endif

#endif
