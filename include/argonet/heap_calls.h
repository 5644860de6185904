/* Functions of the library behind gasnett_debug_malloc and its kin. A test compares them with the
 * library's: one line each. */
#ifndef ARGONET_HEAP_CALLS_H
#define ARGONET_HEAP_CALLS_H

#include "annotations.h"
#include <stddef.h>
#include <stdint.h>

GASNETT_BEGIN_EXTERNC

/* Of all blocks ever: what was allocated, what was freed, what is live and has been at most; and
 * what the checks take. */
typedef struct {
  uint64_t allocated_bytes;
  uint64_t freed_bytes;
  uint64_t live_bytes;
  uint64_t live_bytes_max;
  uint64_t allocated_objects;
  uint64_t freed_objects;
  uint64_t live_objects;
  uint64_t live_objects_max;
  uint64_t overhead_bytes;
} gasnett_heapstats_t;

extern void *argonet_debug_malloc(size_t bytes, const char *place);
extern void *argonet_debug_calloc(size_t count, size_t bytes, const char *place);
extern void *argonet_debug_realloc(void *ptr, size_t bytes, const char *place);
extern void argonet_debug_free(void *ptr, const char *place);
extern char *argonet_debug_strdup(const char *s, const char *place);
extern char *argonet_debug_strndup(const char *s, size_t most, const char *place);
extern void argonet_debug_memcheck(void *ptr, const char *place);
extern void argonet_debug_memcheck_one(const char *place);
extern void argonet_debug_memcheck_all(const char *place);
extern int argonet_getheapstats(gasnett_heapstats_t *to);
extern void argonet_heapinfo_dump(const char *file, int lists);

GASNETT_END_EXTERNC

#endif
