/* Put and get of GASNet-1. What is near is done here and complete at once, as in argonet/rma.h;
 * everything else, and all of a debug build, is a call. Calls that are not named bulk have read
 * their source when they return. No alignment is asked for. */
#ifndef ARGONET_LEGACY_RMA_H
#define ARGONET_LEGACY_RMA_H

#include "legacy_start.h"
#include "rma.h"

/* Declares the way of a rank, for the code that follows. */
#define ARGONET_LEGACY_WAY(node) const ptrdiff_t way = argonet_rma_way(argonet_legacy_team, (node), 0)
#define ARGONET_LEGACY_IS_MAPPED (__builtin_expect(way != ARGONET_MAPPED_NONE, 1))

/* Calls a put, by its value if it is of a machine word: its source need not be in memory then. Not
 * for those that may read their source later. */
#define ARGONET_LEGACY_CALL_PUT(name, give)                                                                            \
  if (ARGONET_RMA_IS_WORD(nbytes)) {                                                                                   \
    give argonet_legacy_##name##_word(node, dest, argonet_rma_word(src, nbytes), nbytes);                              \
  } else {                                                                                                             \
    give argonet_legacy_##name(node, dest, src, nbytes);                                                               \
  }
#define ARGONET_LEGACY_CALL_BULK(name, give) give argonet_legacy_##name(node, dest, src, nbytes);

/* A put or get that gives nothing, and one that gives a handle. */
#define ARGONET_LEGACY_PUT(name, CALL)                                                                                 \
  ARGONET_RMA_INLINE void gasnet_##name(gasnet_node_t node, void *dest, const void *src, size_t nbytes)                \
  {                                                                                                                    \
    ARGONET_LEGACY_WAY(node);                                                                                          \
    if (ARGONET_LEGACY_IS_MAPPED) {                                                                                      \
      argonet_rma_copy(argonet_rma_mapped(dest, way), src, nbytes);                                                      \
      return;                                                                                                          \
    }                                                                                                                  \
    CALL(name, (void))                                                                                                 \
  }
#define ARGONET_LEGACY_PUT_NB(name, CALL)                                                                              \
  ARGONET_RMA_INLINE gasnet_handle_t gasnet_##name(gasnet_node_t node, void *dest, const void *src, size_t nbytes)     \
  {                                                                                                                    \
    ARGONET_LEGACY_WAY(node);                                                                                          \
    if (ARGONET_LEGACY_IS_MAPPED) {                                                                                      \
      argonet_rma_copy(argonet_rma_mapped(dest, way), src, nbytes);                                                      \
      return GASNET_INVALID_HANDLE;                                                                                    \
    }                                                                                                                  \
    CALL(name, return)                                                                                                 \
  }
#define ARGONET_LEGACY_GET(name)                                                                                       \
  ARGONET_RMA_INLINE void gasnet_##name(void *dest, gasnet_node_t node, void *src, size_t nbytes)                      \
  {                                                                                                                    \
    ARGONET_LEGACY_WAY(node);                                                                                          \
    if (ARGONET_LEGACY_IS_MAPPED)                                                                                        \
      argonet_rma_copy(dest, argonet_rma_mapped(src, way), nbytes);                                                      \
    else                                                                                                               \
      argonet_legacy_##name(dest, node, src, nbytes);                                                                  \
  }
#define ARGONET_LEGACY_GET_NB(name)                                                                                    \
  ARGONET_RMA_INLINE gasnet_handle_t gasnet_##name(void *dest, gasnet_node_t node, void *src, size_t nbytes)           \
  {                                                                                                                    \
    ARGONET_LEGACY_WAY(node);                                                                                          \
    if (!ARGONET_LEGACY_IS_MAPPED) return argonet_legacy_##name(dest, node, src, nbytes);                                \
    argonet_rma_copy(dest, argonet_rma_mapped(src, way), nbytes);                                                        \
    return GASNET_INVALID_HANDLE;                                                                                      \
  }

ARGONET_LEGACY_PUT(put, ARGONET_LEGACY_CALL_PUT)
ARGONET_LEGACY_PUT(put_bulk, ARGONET_LEGACY_CALL_PUT)
ARGONET_LEGACY_PUT(put_nbi, ARGONET_LEGACY_CALL_PUT)
ARGONET_LEGACY_PUT(put_nbi_bulk, ARGONET_LEGACY_CALL_BULK)
ARGONET_LEGACY_PUT_NB(put_nb, ARGONET_LEGACY_CALL_PUT)
ARGONET_LEGACY_PUT_NB(put_nb_bulk, ARGONET_LEGACY_CALL_BULK)
ARGONET_LEGACY_GET(get)
ARGONET_LEGACY_GET(get_bulk)
ARGONET_LEGACY_GET(get_nbi)
ARGONET_LEGACY_GET(get_nbi_bulk)
ARGONET_LEGACY_GET_NB(get_nb)
ARGONET_LEGACY_GET_NB(get_nb_bulk)

#undef ARGONET_LEGACY_CALL_PUT
#undef ARGONET_LEGACY_CALL_BULK
#undef ARGONET_LEGACY_PUT
#undef ARGONET_LEGACY_PUT_NB
#undef ARGONET_LEGACY_GET
#undef ARGONET_LEGACY_GET_NB

/* Values: the 1 to 8 low bytes. Sizes of machine words take one load or store; 0 says that it is
 * another size, which the library does or refuses. */
ARGONET_RMA_INLINE int argonet_legacy_store(void *to, gasnet_register_value_t value, size_t nbytes)
{
  switch (nbytes) {
  case 1: memcpy(to, &value, 1); return 1;
  case 2: memcpy(to, &value, 2); return 1;
  case 4: memcpy(to, &value, 4); return 1;
  case 8: memcpy(to, &value, 8); return 1;
  default: return 0;
  }
}

ARGONET_RMA_INLINE int argonet_legacy_load(gasnet_register_value_t *value, const void *from, size_t nbytes)
{
  switch (nbytes) {
  case 1: memcpy(value, from, 1); return 1;
  case 2: memcpy(value, from, 2); return 1;
  case 4: memcpy(value, from, 4); return 1;
  case 8: memcpy(value, from, 8); return 1;
  default: return 0;
  }
}

ARGONET_RMA_INLINE void gasnet_put_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED && argonet_legacy_store(argonet_rma_mapped(dest, way), value, nbytes)) return;
  argonet_legacy_put_val(node, dest, value, nbytes);
}

ARGONET_RMA_INLINE gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void *dest, gasnet_register_value_t value,
                                                     size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED && argonet_legacy_store(argonet_rma_mapped(dest, way), value, nbytes))
    return GASNET_INVALID_HANDLE;
  return argonet_legacy_put_nb_val(node, dest, value, nbytes);
}

ARGONET_RMA_INLINE void gasnet_put_nbi_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED && argonet_legacy_store(argonet_rma_mapped(dest, way), value, nbytes)) return;
  argonet_legacy_put_nbi_val(node, dest, value, nbytes);
}

ARGONET_RMA_INLINE gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *src, size_t nbytes)
{
  gasnet_register_value_t value = 0;
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED && argonet_legacy_load(&value, argonet_rma_mapped(src, way), nbytes)) return value;
  return argonet_legacy_get_val(node, src, nbytes);
}

/* Fills memory of a rank with a byte. No bytes are none. */
ARGONET_RMA_INLINE void argonet_legacy_fill(void *to, int value, size_t nbytes)
{
  if (!ARGONET_DEBUG && nbytes) memset(to, value, nbytes);
}

ARGONET_RMA_INLINE void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED)
    argonet_legacy_fill(argonet_rma_mapped(dest, way), val, nbytes);
  else
    argonet_legacy_memset(node, dest, val, nbytes);
}

ARGONET_RMA_INLINE gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (!ARGONET_LEGACY_IS_MAPPED) return argonet_legacy_memset_nb(node, dest, val, nbytes);
  argonet_legacy_fill(argonet_rma_mapped(dest, way), val, nbytes);
  return GASNET_INVALID_HANDLE;
}

ARGONET_RMA_INLINE void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
  ARGONET_LEGACY_WAY(node);
  if (ARGONET_LEGACY_IS_MAPPED)
    argonet_legacy_fill(argonet_rma_mapped(dest, way), val, nbytes);
  else
    argonet_legacy_memset_nbi(node, dest, val, nbytes);
}

#undef ARGONET_LEGACY_WAY
#undef ARGONET_LEGACY_IS_MAPPED

#endif
