/* What this library is, as scripts and headers read it. Scripts take the first five lines of definitions apart with
 * awk and grep: one blank before each value, nothing after it. The release is that of GASNet-EX whose interface
 * this is. */
#ifndef ARGONET_GASNET_CONFIG_H
#define ARGONET_GASNET_CONFIG_H

#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0
#define GASNETI_EX_SPEC_VERSION_MAJOR 0
#define GASNETI_EX_SPEC_VERSION_MINOR 19
#define GASNETI_RELEASE_VERSION "2025.8.0"

/* What programs that include our headers look for. */
#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#ifndef HAVE_MMAP
#define HAVE_MMAP 1
#endif

#endif
