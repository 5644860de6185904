/* Put and get. What this process reaches by loads and stores is done here, and complete at once;
 * everything else, and all of a debug build, is a call. */
#ifndef ARGONET_RMA_H
#define ARGONET_RMA_H

#include "mapped.h"
#include "rma_calls.h"
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error values are taken for the first bytes of their memory, which needs a little-endian processor
#endif

/* Flags with which an address is none. The others of put and get say nothing about memory that is
 * near. */
#define ARGONET_RMA_CALLED (GEX_FLAG_SELF_SEG_OFFSET | GEX_FLAG_PEER_SEG_OFFSET)

#define ARGONET_RMA_INLINE __attribute__((__always_inline__, __unused__)) static inline

/* The way to the memory of a rank, or ARGONET_MAPPED_NONE if a call is needed. */
ARGONET_RMA_INLINE ptrdiff_t argonet_rma_way(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags)
{
  if (ARGONET_DEBUG || (flags & ARGONET_RMA_CALLED)) return ARGONET_MAPPED_NONE;
  /* Compilers would warn of what lies behind it; the call reports it at run time. */
  if (__builtin_constant_p(tm == GEX_TM_INVALID) && tm == GEX_TM_INVALID) return ARGONET_MAPPED_NONE;
  return argonet_mapped_entry(tm, rank);
}

/* Where this process has what another has at p. Compilers must not take p for an object of this
 * process, whose bounds the sum would be compared with: they are made to forget where it came from,
 * which takes no instruction. The one too many is part of the address of a load or store, and takes
 * none either. */
ARGONET_RMA_INLINE void *argonet_rma_mapped(const void *p, ptrdiff_t way)
{
  uintptr_t there = (uintptr_t)p;
  __asm__("" : "+r"(there));
  return (void *)(there + (uintptr_t)way - 1);
}

/* Copies; a size that the compiler knows to be that of a machine word takes one load and one store.
 * A debug build never comes here, and is not warned of what it would do. */
ARGONET_RMA_INLINE void argonet_rma_copy(void *dst, const void *src, size_t bytes)
{
  if (!ARGONET_DEBUG && bytes) memcpy(dst, src, bytes);
}

/* Whether a put goes by value where it needs a call: if so, its source need not be in memory. */
#define ARGONET_RMA_IS_WORD(bytes)                                                                                     \
  (!ARGONET_DEBUG && __builtin_constant_p(bytes) && ((bytes) == 1 || (bytes) == 2 || (bytes) == 4 || (bytes) == 8))

ARGONET_RMA_INLINE gex_RMA_Value_t argonet_rma_word(const void *src, size_t bytes)
{
  gex_RMA_Value_t value = 0;
  memcpy(&value, src, bytes);
  return value;
}

/* Whether lc_opt is the address of an event, no constant. */
ARGONET_RMA_INLINE int argonet_rma_is_event(const gex_Event_t *lc_opt)
{
  return (uintptr_t)lc_opt > (uintptr_t)GEX_EVENT_GROUP;
}

ARGONET_RMA_INLINE int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes,
                                           gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way != ARGONET_MAPPED_NONE, 1)) {
    argonet_rma_copy(argonet_rma_mapped(dst, way), src, bytes);
    return 0;
  }
  if (ARGONET_RMA_IS_WORD(bytes) && !(flags & GEX_FLAG_SELF_SEG_OFFSET))
    return argonet_rma_put_word(tm, rank, dst, argonet_rma_word(src, bytes), bytes, flags);
  return argonet_rma_put_blocking(tm, rank, dst, src, bytes, flags);
}

ARGONET_RMA_INLINE int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes,
                                      gex_Event_t *lc_opt, gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way != ARGONET_MAPPED_NONE, 1)) {
    argonet_rma_copy(argonet_rma_mapped(dst, way), src, bytes);
    return 0;
  }
  if (ARGONET_RMA_IS_WORD(bytes) && !(flags & GEX_FLAG_SELF_SEG_OFFSET))
    return argonet_rma_put_nbi_word(tm, rank, dst, argonet_rma_word(src, bytes), bytes, flags);
  return argonet_rma_put_nbi(tm, rank, dst, src, bytes, lc_opt, flags);
}

ARGONET_RMA_INLINE gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dst, const void *src, size_t bytes,
                                             gex_Event_t *lc_opt, gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  gex_Event_t root = GEX_EVENT_INVALID;
  if (__builtin_expect(way != ARGONET_MAPPED_NONE, 1))
    argonet_rma_copy(argonet_rma_mapped(dst, way), src, bytes);
  else if (ARGONET_RMA_IS_WORD(bytes) && !(flags & GEX_FLAG_SELF_SEG_OFFSET))
    root = argonet_rma_put_nb_word(tm, rank, dst, argonet_rma_word(src, bytes), bytes, flags);
  else
    return argonet_rma_put_nb(tm, rank, dst, src, bytes, lc_opt, flags);
  if (argonet_rma_is_event(lc_opt)) *lc_opt = GEX_EVENT_INVALID;
  return root;
}

ARGONET_RMA_INLINE int gex_RMA_GetBlocking(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes,
                                           gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0))
    return argonet_rma_get_blocking(tm, dst, rank, src, bytes, flags);
  argonet_rma_copy(dst, argonet_rma_mapped(src, way), bytes);
  return 0;
}

ARGONET_RMA_INLINE int gex_RMA_GetNBI(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes,
                                      gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0)) return argonet_rma_get_nbi(tm, dst, rank, src, bytes, flags);
  argonet_rma_copy(dst, argonet_rma_mapped(src, way), bytes);
  return 0;
}

ARGONET_RMA_INLINE gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dst, gex_Rank_t rank, void *src, size_t bytes,
                                             gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0)) return argonet_rma_get_nb(tm, dst, rank, src, bytes, flags);
  argonet_rma_copy(dst, argonet_rma_mapped(src, way), bytes);
  return GEX_EVENT_INVALID;
}

/* Values: 1 to 8 low bytes. A size that is none of a machine word's takes a call: it is rare, and
 * checked there. */
#define ARGONET_RMA_CASE(size, action)                                                                                 \
  case size:                                                                                                           \
    action;                                                                                                            \
    break;
#define ARGONET_RMA_BY_SIZE(bytes, at, copy, called)                                                                   \
  switch (bytes) {                                                                                                     \
    ARGONET_RMA_CASE(1, copy(at, 1))                                                                                   \
    ARGONET_RMA_CASE(2, copy(at, 2))                                                                                   \
    ARGONET_RMA_CASE(4, copy(at, 4))                                                                                   \
    ARGONET_RMA_CASE(8, copy(at, 8))                                                                                   \
  default:                                                                                                             \
    return called;                                                                                                     \
  }
#define ARGONET_RMA_STORE(at, size) memcpy((at), &value, size)
#define ARGONET_RMA_LOAD(at, size) memcpy(&value, (at), size)

ARGONET_RMA_INLINE int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value,
                                              size_t bytes, gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0)) return argonet_rma_put_val(tm, rank, dst, value, bytes, flags);
  ARGONET_RMA_BY_SIZE(bytes, argonet_rma_mapped(dst, way), ARGONET_RMA_STORE,
                      argonet_rma_put_val(tm, rank, dst, value, bytes, flags))
  return 0;
}

ARGONET_RMA_INLINE int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value, size_t bytes,
                                         gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0))
    return argonet_rma_put_nbi_val(tm, rank, dst, value, bytes, flags);
  ARGONET_RMA_BY_SIZE(bytes, argonet_rma_mapped(dst, way), ARGONET_RMA_STORE,
                      argonet_rma_put_nbi_val(tm, rank, dst, value, bytes, flags))
  return 0;
}

ARGONET_RMA_INLINE gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dst, gex_RMA_Value_t value,
                                                size_t bytes, gex_Flags_t flags)
{
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0))
    return argonet_rma_put_nb_val(tm, rank, dst, value, bytes, flags);
  ARGONET_RMA_BY_SIZE(bytes, argonet_rma_mapped(dst, way), ARGONET_RMA_STORE,
                      argonet_rma_put_nb_val(tm, rank, dst, value, bytes, flags))
  return GEX_EVENT_INVALID;
}

ARGONET_RMA_INLINE gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src, size_t bytes,
                                                          gex_Flags_t flags)
{
  gex_RMA_Value_t value = 0;
  const ptrdiff_t way = argonet_rma_way(tm, rank, flags);
  if (__builtin_expect(way == ARGONET_MAPPED_NONE, 0)) return argonet_rma_get_val(tm, rank, src, bytes, flags);
  ARGONET_RMA_BY_SIZE(bytes, argonet_rma_mapped(src, way), ARGONET_RMA_LOAD, argonet_rma_get_val(tm, rank, src, bytes, flags))
  return value;
}

#endif
