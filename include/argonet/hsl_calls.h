/* Functions of the library behind argonet/hsl.h. A test compares them with the library's: one line
 * each. */
#ifndef ARGONET_HSL_CALLS_H
#define ARGONET_HSL_CALLS_H

#include "types.h"

GASNETT_BEGIN_EXTERNC

/* A lock that handlers may take. The same in all thread modes, with debugging and without. */
typedef struct argonet_hsl {
  uint32_t argonet_word; /* 0 free, 1 held, 2 held while others sleep */
  uint32_t argonet_life; /* ARGONET_HSL_LIVE between initialization and destruction */
} gex_HSL_t;

/* "hslL" in ASCII, little-endian. */
#define ARGONET_HSL_LIVE 0x4c6c7368U
#define ARGONET_HSL_DEAD 0x446c7368U

extern void argonet_hsl_wait(gex_HSL_t *hsl);
extern void argonet_hsl_wake(gex_HSL_t *hsl);
extern void argonet_hsl_init(gex_HSL_t *hsl);
extern void argonet_hsl_destroy(gex_HSL_t *hsl);
extern void argonet_hsl_lock(gex_HSL_t *hsl);
extern void argonet_hsl_unlock(gex_HSL_t *hsl);
extern int argonet_hsl_trylock(gex_HSL_t *hsl);

GASNETT_END_EXTERNC

#endif
