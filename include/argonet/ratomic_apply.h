/* Atomic operations of the processor on a word that is mapped here.
 *
 * argonet_ad_apply_DT does one, and writes the value before to `result` if the operation is one
 * that fetches; 0 if there is no such operation. Without GEX_FLAG_AD_ACQ and GEX_FLAG_AD_REL it
 * orders nothing else. argonet_ad_any_DT is the same out of line, for operations that are not known
 * before. */
#ifndef ARGONET_RATOMIC_APPLY_H
#define ARGONET_RATOMIC_APPLY_H

#include "types.h"
#include <string.h>

#define ARGONET_AD_INLINE __attribute__((__always_inline__, __unused__)) static inline
#define ARGONET_AD_OUTLINE __attribute__((__noinline__, __unused__)) static

/* Memory of any type: what a client has there is no matter of this header. */
typedef uint32_t __attribute__((__may_alias__)) argonet_ad_word32;
typedef uint64_t __attribute__((__may_alias__)) argonet_ad_word64;

#define ARGONET_AD_ORDERED(flags) ((flags) & (GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL))
/* The value before. `how` is one of __atomic_fetch_*. */
#define ARGONET_AD_RMW(how, word, value, flags)                                                                        \
  (ARGONET_AD_ORDERED(flags) ? how((word), (value), __ATOMIC_ACQ_REL) : how((word), (value), __ATOMIC_RELAXED))

/* Where a flag asks for an order that a load or a store has not by itself, by a fence. */
#define ARGONET_AD_ACCESSES(width)                                                                                     \
  ARGONET_AD_INLINE void argonet_ad_store##width(argonet_ad_word##width *word, uint##width##_t value,                  \
                                                 gex_Flags_t flags)                                                    \
  {                                                                                                                    \
    if (flags & GEX_FLAG_AD_REL)                                                                                       \
      __atomic_store_n(word, value, __ATOMIC_RELEASE);                                                                 \
    else                                                                                                               \
      __atomic_store_n(word, value, __ATOMIC_RELAXED);                                                                 \
    if (flags & GEX_FLAG_AD_ACQ) __atomic_thread_fence(__ATOMIC_SEQ_CST);                                              \
  }                                                                                                                    \
  ARGONET_AD_INLINE uint##width##_t argonet_ad_load##width(argonet_ad_word##width *word, gex_Flags_t flags)            \
  {                                                                                                                    \
    if (flags & GEX_FLAG_AD_REL) __atomic_thread_fence(__ATOMIC_SEQ_CST);                                              \
    return flags & GEX_FLAG_AD_ACQ ? __atomic_load_n(word, __ATOMIC_ACQUIRE)                                           \
                                   : __atomic_load_n(word, __ATOMIC_RELAXED);                                          \
  }                                                                                                                    \
  ARGONET_AD_INLINE uint##width##_t argonet_ad_cas##width(argonet_ad_word##width *word, uint##width##_t current,       \
                                                          uint##width##_t value, gex_Flags_t flags)                    \
  {                                                                                                                    \
    uint##width##_t before = current;                                                                                  \
    if (ARGONET_AD_ORDERED(flags))                                                                                     \
      __atomic_compare_exchange_n(word, &before, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                        \
    else                                                                                                               \
      __atomic_compare_exchange_n(word, &before, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                        \
    return before;                                                                                                     \
  }
ARGONET_AD_ACCESSES(32)
ARGONET_AD_ACCESSES(64)

/* `after` is the value that takes the place of `before`. */
#define ARGONET_AD_LOOP(width, after)                                                                                  \
  {                                                                                                                    \
    uint##width##_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);                                                    \
    do {                                                                                                               \
      before = seen;                                                                                                   \
      seen = argonet_ad_cas##width(word, before, (after), flags);                                                      \
    } while (seen != before);                                                                                          \
  }

/* The operations that fetch. */
#define ARGONET_AD_FETCHING ((_GEX_OP_PLAIN * _GEX_OP_STEP) | GEX_OP_GET)

#define ARGONET_AD_ENDS(type, value)                                                                                   \
  default:                                                                                                             \
    return 0;                                                                                                          \
  }                                                                                                                    \
  if (op & ARGONET_AD_FETCHING) *result = (value);                                                                     \
  return 1;
#define ARGONET_AD_OUT_OF_LINE(DT, type)                                                                               \
  ARGONET_AD_OUTLINE int argonet_ad_any_##DT(void *at, type *result, gex_OP_t op, type op1, type op2,                  \
                                             gex_Flags_t flags)                                                        \
  {                                                                                                                    \
    return argonet_ad_apply_##DT(at, result, op, op1, op2, flags);                                                     \
  }

/* Those that do not fetch are apart: processors have shorter instructions for them. Unsigned
 * numbers wrap around. */
#define ARGONET_AD_INTEGER(DT, type, width)                                                                            \
  ARGONET_AD_INLINE int argonet_ad_apply_##DT(void *at, type *result, gex_OP_t op, type op1, type op2,                 \
                                              gex_Flags_t flags)                                                       \
  {                                                                                                                    \
    argonet_ad_word##width *const word = (argonet_ad_word##width *)at;                                                 \
    const uint##width##_t first = (uint##width##_t)op1;                                                                \
    uint##width##_t before = 0;                                                                                        \
    switch (op) {                                                                                                      \
    case GEX_OP_ADD: (void)ARGONET_AD_RMW(__atomic_fetch_add, word, first, flags); return 1;                           \
    case GEX_OP_SUB: (void)ARGONET_AD_RMW(__atomic_fetch_sub, word, first, flags); return 1;                           \
    case GEX_OP_INC: (void)ARGONET_AD_RMW(__atomic_fetch_add, word, 1, flags); return 1;                               \
    case GEX_OP_DEC: (void)ARGONET_AD_RMW(__atomic_fetch_sub, word, 1, flags); return 1;                               \
    case GEX_OP_AND: (void)ARGONET_AD_RMW(__atomic_fetch_and, word, first, flags); return 1;                           \
    case GEX_OP_OR: (void)ARGONET_AD_RMW(__atomic_fetch_or, word, first, flags); return 1;                             \
    case GEX_OP_XOR: (void)ARGONET_AD_RMW(__atomic_fetch_xor, word, first, flags); return 1;                           \
    case GEX_OP_SET: argonet_ad_store##width(word, first, flags); return 1;                                            \
    case GEX_OP_FADD: before = ARGONET_AD_RMW(__atomic_fetch_add, word, first, flags); break;                          \
    case GEX_OP_FSUB: before = ARGONET_AD_RMW(__atomic_fetch_sub, word, first, flags); break;                          \
    case GEX_OP_FINC: before = ARGONET_AD_RMW(__atomic_fetch_add, word, 1, flags); break;                              \
    case GEX_OP_FDEC: before = ARGONET_AD_RMW(__atomic_fetch_sub, word, 1, flags); break;                              \
    case GEX_OP_FAND: before = ARGONET_AD_RMW(__atomic_fetch_and, word, first, flags); break;                          \
    case GEX_OP_FOR: before = ARGONET_AD_RMW(__atomic_fetch_or, word, first, flags); break;                            \
    case GEX_OP_FXOR: before = ARGONET_AD_RMW(__atomic_fetch_xor, word, first, flags); break;                          \
    case GEX_OP_SWAP: before = ARGONET_AD_RMW(__atomic_exchange_n, word, first, flags); break;                         \
    case GEX_OP_GET: before = argonet_ad_load##width(word, flags); break;                                              \
    case GEX_OP_CAS:                                                                                                   \
    case GEX_OP_FCAS: before = argonet_ad_cas##width(word, first, (uint##width##_t)op2, flags); break;                 \
    case GEX_OP_MULT:                                                                                                  \
    case GEX_OP_FMULT: ARGONET_AD_LOOP(width, before * first) break;                                                   \
    case GEX_OP_MIN:                                                                                                   \
    case GEX_OP_FMIN: ARGONET_AD_LOOP(width, (type)before < op1 ? before : first) break;                               \
    case GEX_OP_MAX:                                                                                                   \
    case GEX_OP_FMAX: ARGONET_AD_LOOP(width, (type)before > op1 ? before : first) break;                               \
    ARGONET_AD_ENDS(type, (type)before)                                                                                \
  }                                                                                                                    \
  ARGONET_AD_OUT_OF_LINE(DT, type)
ARGONET_AD_INTEGER(I32, int32_t, 32)
ARGONET_AD_INTEGER(U32, uint32_t, 32)
ARGONET_AD_INTEGER(I64, int64_t, 64)
ARGONET_AD_INTEGER(U64, uint64_t, 64)

/* By their bits, which are also what a compare-and-swap compares. A minimum and a maximum are what
 * the comparison gives, so that of a NaN, or of two zeros, the operand is taken. */
#define ARGONET_AD_FLOAT(DT, type, width)                                                                              \
  ARGONET_AD_INLINE uint##width##_t argonet_ad_bits_##DT(type value)                                                   \
  {                                                                                                                    \
    uint##width##_t bits;                                                                                              \
    memcpy(&bits, &value, sizeof bits);                                                                                \
    return bits;                                                                                                       \
  }                                                                                                                    \
  ARGONET_AD_INLINE type argonet_ad_of_bits_##DT(uint##width##_t bits)                                                 \
  {                                                                                                                    \
    type value;                                                                                                        \
    memcpy(&value, &bits, sizeof value);                                                                               \
    return value;                                                                                                      \
  }                                                                                                                    \
  ARGONET_AD_INLINE int argonet_ad_apply_##DT(void *at, type *result, gex_OP_t op, type op1, type op2,                 \
                                              gex_Flags_t flags)                                                       \
  {                                                                                                                    \
    argonet_ad_word##width *const word = (argonet_ad_word##width *)at;                                                 \
    uint##width##_t before = 0;                                                                                        \
    switch (op) {                                                                                                      \
    case GEX_OP_SET: argonet_ad_store##width(word, argonet_ad_bits_##DT(op1), flags); return 1;                        \
    case GEX_OP_SWAP: before = ARGONET_AD_RMW(__atomic_exchange_n, word, argonet_ad_bits_##DT(op1), flags); break;     \
    case GEX_OP_GET: before = argonet_ad_load##width(word, flags); break;                                              \
    case GEX_OP_CAS:                                                                                                   \
    case GEX_OP_FCAS:                                                                                                  \
      before = argonet_ad_cas##width(word, argonet_ad_bits_##DT(op1), argonet_ad_bits_##DT(op2), flags);               \
      break;                                                                                                           \
    case GEX_OP_ADD:                                                                                                   \
    case GEX_OP_FADD: ARGONET_AD_LOOP(width, argonet_ad_bits_##DT(argonet_ad_of_bits_##DT(before) + op1)) break;       \
    case GEX_OP_SUB:                                                                                                   \
    case GEX_OP_FSUB: ARGONET_AD_LOOP(width, argonet_ad_bits_##DT(argonet_ad_of_bits_##DT(before) - op1)) break;       \
    case GEX_OP_INC:                                                                                                   \
    case GEX_OP_FINC: ARGONET_AD_LOOP(width, argonet_ad_bits_##DT(argonet_ad_of_bits_##DT(before) + (type)1)) break;   \
    case GEX_OP_DEC:                                                                                                   \
    case GEX_OP_FDEC: ARGONET_AD_LOOP(width, argonet_ad_bits_##DT(argonet_ad_of_bits_##DT(before) - (type)1)) break;   \
    case GEX_OP_MULT:                                                                                                  \
    case GEX_OP_FMULT: ARGONET_AD_LOOP(width, argonet_ad_bits_##DT(argonet_ad_of_bits_##DT(before) * op1)) break;      \
    case GEX_OP_MIN:                                                                                                   \
    case GEX_OP_FMIN:                                                                                                  \
      ARGONET_AD_LOOP(width, argonet_ad_of_bits_##DT(before) < op1 ? before : argonet_ad_bits_##DT(op1)) break;        \
    case GEX_OP_MAX:                                                                                                   \
    case GEX_OP_FMAX:                                                                                                  \
      ARGONET_AD_LOOP(width, argonet_ad_of_bits_##DT(before) > op1 ? before : argonet_ad_bits_##DT(op1)) break;        \
    ARGONET_AD_ENDS(type, argonet_ad_of_bits_##DT(before))                                                             \
  }                                                                                                                    \
  ARGONET_AD_OUT_OF_LINE(DT, type)
ARGONET_AD_FLOAT(FLT, float, 32)
ARGONET_AD_FLOAT(DBL, double, 64)

#endif
