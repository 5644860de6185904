/* Handler-safe locks. Debug builds have the library check each call. Where one thread at a time is
 * in the library, and none of its own runs handlers, no thread can hold a lock that another
 * wants. */
#ifndef ARGONET_HSL_H
#define ARGONET_HSL_H

#include "hsl_calls.h"

#if GASNET_HIDDEN_AM_CONCURRENCY_LEVEL > 0
#error locks would have to lock in every thread mode
#endif

#define GEX_HSL_INITIALIZER {0, ARGONET_HSL_LIVE}

static inline void gex_HSL_Init(gex_HSL_t *hsl)
{
#if ARGONET_DEBUG
  argonet_hsl_init(hsl);
#else
  hsl->argonet_word = 0;
  hsl->argonet_life = ARGONET_HSL_LIVE;
#endif
}

static inline void gex_HSL_Destroy(gex_HSL_t *hsl)
{
#if ARGONET_DEBUG
  argonet_hsl_destroy(hsl);
#else
  hsl->argonet_life = ARGONET_HSL_DEAD;
#endif
}

static inline int gex_HSL_Trylock(gex_HSL_t *hsl)
{
#if ARGONET_DEBUG
  return argonet_hsl_trylock(hsl);
#elif GASNET_PAR
  uint32_t is_free = 0;
  return __atomic_compare_exchange_n(&hsl->argonet_word, &is_free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
             ? GASNET_OK
             : GASNET_ERR_NOT_READY;
#else
  (void)hsl;
  return GASNET_OK;
#endif
}

static inline void gex_HSL_Lock(gex_HSL_t *hsl)
{
#if ARGONET_DEBUG
  argonet_hsl_lock(hsl);
#else
  if (__builtin_expect(gex_HSL_Trylock(hsl) != GASNET_OK, 0)) argonet_hsl_wait(hsl);
#endif
}

static inline void gex_HSL_Unlock(gex_HSL_t *hsl)
{
#if ARGONET_DEBUG
  argonet_hsl_unlock(hsl);
#elif GASNET_PAR
  if (__builtin_expect(__atomic_exchange_n(&hsl->argonet_word, 0, __ATOMIC_RELEASE) != 1, 0)) argonet_hsl_wake(hsl);
#else
  (void)hsl;
#endif
}

#endif
