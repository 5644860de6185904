/* Puts, gets, values and fills of GASNet-1 between this rank and another, for memory of any
 * kind. */
#ifndef ARGONET_TESTS_LEGACY_RMA_H
#define ARGONET_TESTS_LEGACY_RMA_H

#include "legacy.h"

/* Bytes of the longest transfer, at an odd address; one byte on each side stays unchanged. */
enum { LEGACY_MOST = 140000, LEGACY_ROOM = LEGACY_MOST + 64 };

static char *legacy_source, *legacy_back;

/* Ways to put and to get. */
enum { LEGACY_BLOCKING, LEGACY_BULK, LEGACY_NB, LEGACY_NB_BULK, LEGACY_NBI, LEGACY_NBI_BULK, LEGACY_WAYS };

/* Puts what the source has, and spoils the source as soon as that is allowed. */
static inline void legacy_put(int way, gasnet_node_t node, char *to, char *from, size_t bytes) {
  gasnet_handle_t handle = GASNET_INVALID_HANDLE;
  switch (way) {
    case LEGACY_BLOCKING: gasnet_put(node, to, from, bytes); break;
    case LEGACY_BULK: gasnet_put_bulk(node, to, from, bytes); break;
    case LEGACY_NB: handle = gasnet_put_nb(node, to, from, bytes); break;
    case LEGACY_NB_BULK: handle = gasnet_put_nb_bulk(node, to, from, bytes); break;
    case LEGACY_NBI: gasnet_put_nbi(node, to, from, bytes); break;
    default: gasnet_put_nbi_bulk(node, to, from, bytes);
  }
  if (way == LEGACY_NB_BULK) gasnet_wait_syncnb(handle);
  if (way == LEGACY_NBI_BULK) gasnet_wait_syncnbi_puts();
  memset(from, 0x5a, bytes);
  if (way == LEGACY_NB) gasnet_wait_syncnb(handle);
  if (way == LEGACY_NBI) gasnet_wait_syncnbi_puts();
}

static inline void legacy_get(int way, char *to, gasnet_node_t node, char *from, size_t bytes) {
  switch (way) {
    case LEGACY_BLOCKING: gasnet_get(to, node, from, bytes); break;
    case LEGACY_BULK: gasnet_get_bulk(to, node, from, bytes); break;
    case LEGACY_NB: gasnet_wait_syncnb(gasnet_get_nb(to, node, from, bytes)); break;
    case LEGACY_NB_BULK: gasnet_wait_syncnb(gasnet_get_nb_bulk(to, node, from, bytes)); break;
    case LEGACY_NBI:
      gasnet_get_nbi(to, node, from, bytes);
      gasnet_wait_syncnbi_gets();
      break;
    default:
      gasnet_get_nbi_bulk(to, node, from, bytes);
      gasnet_wait_syncnbi_all();
  }
}

/* There and back in all ways; sizes from 0, with addresses that nothing aligns. */
static inline void legacy_transfers(gasnet_node_t node, char *to) {
  static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 1000, 4096, 65537, LEGACY_MOST};
  size_t i;
  int way;
  for (way = 0; way < LEGACY_WAYS; ++way) {
    for (i = 0; i < CHECK_COUNT(sizes); ++i) {
      size_t bytes = sizes[i];
      char *place = to + 1 + i;
      uint32_t key = (uint32_t)(1000 * way + (int)i);
      gasnet_memset(node, place - 1, 0x11, bytes + 2);
      check_fill(legacy_source + 3, bytes, key);
      legacy_put(way, node, place, legacy_source + 3, bytes);
      CHECK_ALL(legacy_source + 3, bytes, 0x5a);
      memset(legacy_back, 0x22, bytes + 4);
      legacy_get(way, legacy_back + 1, node, place - 1, bytes + 2);
      CHECK_ALL(legacy_back, 1, 0x22);
      CHECK_ALL(legacy_back + 1, 1, 0x11);
      CHECK_FILLED(legacy_back + 2, bytes, key);
      CHECK_ALL(legacy_back + 2 + bytes, 1, 0x11);
      CHECK_ALL(legacy_back + 3 + bytes, 1, 0x22);
    }
  }
  /* Of no bytes nothing is looked at but the rank. */
  gasnet_put(node, NULL, NULL, 0);
  gasnet_get(NULL, node, NULL, 0);
  gasnet_wait_syncnb(gasnet_put_nb_bulk(node, NULL, NULL, 0));
}

/* Values of 1 to 8 bytes. */
static inline void legacy_values(gasnet_node_t node, char *to) {
  const gasnet_register_value_t value = UINT64_C(0x8182838485868788);
  gasnet_valget_handle_t handles[8];
  size_t bytes;
  for (bytes = 1; bytes <= 8; ++bytes) {
    const gasnet_register_value_t low = bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
    gasnet_memset(node, to, 0x11, 40);
    gasnet_put_val(node, to + 1, value, bytes);
    gasnet_wait_syncnb(gasnet_put_nb_val(node, to + 11, value, bytes));
    gasnet_put_nbi_val(node, to + 21, value, bytes);
    gasnet_wait_syncnbi_puts();
    CHECK_EQ(gasnet_get_val(node, to + 1, bytes), low);
    CHECK_EQ(gasnet_get_val(node, to + 11, bytes), low);
    CHECK_EQ(gasnet_get_val(node, to + 21, bytes), low);
    CHECK_EQ(gasnet_wait_syncnb_valget(gasnet_get_nb_val(node, to + 21, bytes)), low);
    gasnet_get(legacy_back, node, to, 40);
    CHECK_ALL(legacy_back, 1, 0x11);
    CHECK_ALL(legacy_back + 1 + bytes, 10 - bytes, 0x11);
    CHECK_ALL(legacy_back + 11 + bytes, 10 - bytes, 0x11);
    CHECK_ALL(legacy_back + 21 + bytes, 10 - bytes, 0x11);
  }
  /* Many at once, waited for in another order. */
  gasnet_put_val(node, to, value, 8);
  for (bytes = 1; bytes <= 8; ++bytes) handles[bytes - 1] = gasnet_get_nb_val(node, to, bytes);
  for (bytes = 8; bytes >= 1; --bytes)
    CHECK_EQ(gasnet_wait_syncnb_valget(handles[bytes - 1]),
             bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1));
}

/* Fills of all lengths; the value is the lowest byte of the argument. */
static inline void legacy_fills(gasnet_node_t node, char *to) {
  static const size_t sizes[] = {0, 1, 5, 64, 65536, 65537, LEGACY_MOST};
  size_t i;
  int way;
  for (way = 0; way < 3; ++way) {
    for (i = 0; i < CHECK_COUNT(sizes); ++i) {
      size_t bytes = sizes[i];
      int value = 0x7f00 + 0x80 + way;
      gasnet_memset(node, to, 0, bytes + 2);
      if (way == 0) gasnet_memset(node, to + 1, value, bytes);
      if (way == 1) gasnet_wait_syncnb(gasnet_memset_nb(node, to + 1, value, bytes));
      if (way == 2) {
        gasnet_memset_nbi(node, to + 1, value, bytes);
        gasnet_wait_syncnbi_puts();
      }
      gasnet_get_bulk(legacy_back, node, to, bytes + 2);
      CHECK_ALL(legacy_back, 1, 0);
      CHECK_ALL(legacy_back + 1, bytes, 0x80 + way);
      CHECK_ALL(legacy_back + 1 + bytes, 1, 0);
    }
  }
  gasnet_memset(node, NULL, 1, 0);
  gasnet_memset_nbi(node, NULL, 1, 0);
  gasnet_wait_syncnb(gasnet_memset_nb(node, NULL, 1, 0));
}

/* All of it, by one rank after the other; `bases` are places of LEGACY_ROOM bytes at all ranks. */
static inline void legacy_move_all(char *const *bases) {
  gasnet_node_t turn, node;
  legacy_source = (char *)malloc(LEGACY_ROOM);
  legacy_back = (char *)malloc(LEGACY_ROOM);
  CHECK(legacy_source != NULL && legacy_back != NULL);
  for (turn = 0; turn < ranks; ++turn) {
    if (turn == me) {
      /* Itself and the next one. */
      for (node = 0; node < ranks; ++node) {
        if (node != me && node != check_next()) continue;
        legacy_transfers(node, bases[node]);
        legacy_values(node, bases[node]);
        legacy_fills(node, bases[node]);
      }
    }
    CHECK_OK(gasnet_barrier((int)turn, 0));
  }
  free(legacy_source);
  free(legacy_back);
}

#endif
