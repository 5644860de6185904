/* Waiting for operations of GASNet-1, its locks, and what became of its interrupts. */
#ifndef ARGONET_LEGACY_SYNC_H
#define ARGONET_LEGACY_SYNC_H

#include "hsl.h"
#include "legacy_calls.h"

/* What is over already costs no call, except in debug builds, which check where they are called. */
static inline int gasnet_try_syncnb_nopoll(gasnet_handle_t handle)
{
  return !ARGONET_DEBUG && handle == GASNET_INVALID_HANDLE ? GASNET_OK : argonet_legacy_try_syncnb_nopoll(handle);
}

static inline void gasnet_wait_syncnb(gasnet_handle_t handle)
{
  if (ARGONET_DEBUG || handle != GASNET_INVALID_HANDLE) argonet_legacy_wait_syncnb(handle);
}

/* Locks are those of gasnetex.h. */
#define GASNET_HSL_INITIALIZER GEX_HSL_INITIALIZER
static inline void gasnet_hsl_init(gasnet_hsl_t *hsl) { gex_HSL_Init(hsl); }
static inline void gasnet_hsl_destroy(gasnet_hsl_t *hsl) { gex_HSL_Destroy(hsl); }
static inline void gasnet_hsl_lock(gasnet_hsl_t *hsl) { gex_HSL_Lock(hsl); }
static inline void gasnet_hsl_unlock(gasnet_hsl_t *hsl) { gex_HSL_Unlock(hsl); }
static inline int gasnet_hsl_trylock(gasnet_hsl_t *hsl) { return gex_HSL_Trylock(hsl); }

/* Handlers run in calls of this library alone and never interrupt anything, so that there is
 * nothing to hold back. */
static inline void gasnet_hold_interrupts(void) {}
static inline void gasnet_resume_interrupts(void) {}

#endif
