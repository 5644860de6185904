/* Random non-contiguous transfers, and a model of each byte of them. */
#ifndef ARGONET_TESTS_VIS_H
#define ARGONET_TESTS_VIS_H

#include "check.h"

#include <gasnet_vis.h>

enum { VIS_ROOM = 16384, VIS_PIECES = 40, VIS_LEVELS = 5 };

/* One side: offsets in its VIS_ROOM bytes. */
typedef struct {
  size_t count, at[VIS_PIECES], len[VIS_PIECES];
  ptrdiff_t strides[VIS_LEVELS];
  size_t first;
} vis_side;

typedef enum { VIS_VECTOR, VIS_INDEXED, VIS_STRIDED, VIS_KINDS } vis_kind;

typedef struct {
  vis_kind kind;
  vis_side dst, src;
  size_t elemsz, levels, counts[VIS_LEVELS];
} vis_shape;

/* Pieces of given lengths that do not overlap, in a random order. */
static inline void vis_spread(vis_side *side) {
  size_t order[VIS_PIECES], i, at = 0;
  for (i = 0; i < side->count; ++i) order[i] = i;
  for (i = side->count; i > 1; --i) {
    size_t other = check_below(i), kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
  for (i = 0; i < side->count; ++i) {
    at += check_below(4);
    side->at[order[i]] = at;
    at += side->len[order[i]];
  }
  CHECK(at <= VIS_ROOM);
}

/* Lengths that add up to a total; some are 0. */
static inline void vis_cut(vis_side *side, size_t total) {
  size_t left = total;
  side->count = 1 + check_below(VIS_PIECES);
  if (total == 0 && check_below(2)) side->count = 0;
  for (size_t i = 0; i < side->count; ++i) {
    size_t len = i + 1 == side->count ? left : check_below(1 + left / (1 + check_below(8)));
    side->len[i] = len;
    left -= len;
  }
}

/* Elements that do not overlap: dimensions lie in each other in a random order, with gaps; some run
 * backwards. */
static inline void vis_lay(vis_side *side, const vis_shape *shape) {
  size_t order[VIS_LEVELS], i, room = shape->elemsz;
  side->first = 0;
  for (i = 0; i < shape->levels; ++i) order[i] = i;
  for (i = shape->levels; i > 1; --i) {
    size_t other = check_below(i), kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
  for (i = 0; i < shape->levels; ++i) {
    size_t stride = room + (check_below(3) ? 0 : check_below(7));
    size_t steps = shape->counts[order[i]] ? shape->counts[order[i]] - 1 : 0;
    side->strides[order[i]] = (ptrdiff_t)stride;
    if (check_below(3) == 0) {
      side->strides[order[i]] = -(ptrdiff_t)stride;
      side->first += stride * steps;
    }
    room += stride * steps;
  }
  CHECK(room <= VIS_ROOM);
}

static inline void vis_random(vis_shape *shape) {
  static const size_t sizes[] = {1, 2, 4, 8, 16, 3, 31, 0};
  size_t i;
  shape->kind = (vis_kind)check_below(VIS_KINDS);
  shape->elemsz = sizes[check_below(CHECK_COUNT(sizes))];
  shape->levels = 0;
  if (shape->kind == VIS_STRIDED) {
    /* No pieces, which callers make lists of whatever the kind is. */
    shape->dst.count = shape->src.count = 0;
    shape->levels = check_below(VIS_LEVELS + 1);
    for (i = 0; i < shape->levels; ++i) shape->counts[i] = check_below(20) ? 1 + check_below(3) : 0;
    vis_lay(&shape->dst, shape);
    vis_lay(&shape->src, shape);
  } else if (shape->kind == VIS_VECTOR) {
    size_t total = check_below(8) ? check_below(4000) : 0;
    vis_cut(&shape->dst, total);
    vis_cut(&shape->src, total);
    vis_spread(&shape->dst);
    vis_spread(&shape->src);
  } else {
    size_t a = 1 + check_below(4), b = 1 + check_below(4), many = check_below(VIS_PIECES / 4 + 1);
    shape->dst.count = b * many;
    shape->src.count = a * many;
    for (i = 0; i < shape->dst.count; ++i) shape->dst.len[i] = a * shape->elemsz;
    for (i = 0; i < shape->src.count; ++i) shape->src.len[i] = b * shape->elemsz;
    shape->dst.len[VIS_PIECES - 1] = a * shape->elemsz;
    shape->src.len[VIS_PIECES - 1] = b * shape->elemsz;
    vis_spread(&shape->dst);
    vis_spread(&shape->src);
  }
}

/* Bytes of the pieces of a side, one after another: their offsets. */
static inline size_t vis_bytes(const vis_side *side, size_t *offsets) {
  size_t bytes = 0, i, at;
  for (i = 0; i < side->count; ++i)
    for (at = 0; at < side->len[i]; ++at) offsets[bytes++] = side->at[i] + at;
  return bytes;
}

/* Does it byte by byte. */
static inline void vis_model(const vis_shape *shape, char *dst, const char *src) {
  static size_t to[VIS_ROOM], from[VIS_ROOM];
  size_t bytes, i, number, all = 1;
  if (shape->kind != VIS_STRIDED) {
    bytes = vis_bytes(&shape->dst, to);
    CHECK_EQ(bytes, vis_bytes(&shape->src, from));
    for (i = 0; i < bytes; ++i) dst[to[i]] = src[from[i]];
    return;
  }
  for (i = 0; i < shape->levels; ++i) all *= shape->counts[i];
  for (number = 0; number < all; ++number) {
    size_t rest = number, d = shape->dst.first, s = shape->src.first;
    for (i = 0; i < shape->levels; ++i) {
      size_t index = rest % shape->counts[i];
      rest /= shape->counts[i];
      d += index * (size_t)shape->dst.strides[i];
      s += index * (size_t)shape->src.strides[i];
    }
    memcpy(dst + d, src + s, shape->elemsz);
  }
}

/* A side with its addresses, as one kind of call or another takes it. */
typedef struct {
  gex_Memvec_t vector[VIS_PIECES];
  void *places[VIS_PIECES];
} vis_lists;

static inline void vis_list(vis_lists *lists, const vis_side *side, char *base) {
  for (size_t i = 0; i < side->count; ++i) {
    char *at = side->len[i] || check_below(2) ? base + side->at[i] : NULL;
    lists->vector[i].gex_addr = at;
    lists->vector[i].gex_len = side->len[i];
    lists->places[i] = at;
  }
}

/* Puts and gets of the three kinds, which differ in the order of arguments alone, of what the
 * variables shape, to_lists and from_lists hold. */
#define LISTS(FORM, by, rank, flags, dst, src)                                                                       \
  (shape.kind == VIS_VECTOR ? gex_VIS_Vector##FORM(by, LISTED(FORM, rank, V), flags)                                  \
   : shape.kind == VIS_INDEXED ? gex_VIS_Indexed##FORM(by, LISTED(FORM, rank, I), flags)                              \
   : gex_VIS_Strided##FORM(by, SIDES(FORM, rank, dst, src), shape.elemsz, shape.counts, shape.levels, flags))
#define V(side, lists) shape.side.count, lists.vector
#define I(side, lists) shape.side.count, lists.places, shape.side.len[VIS_PIECES - 1]
#define S(side, base) base + shape.side.first, shape.side.strides
#define PUTS(rank, X) rank, X(dst, to_lists), X(src, from_lists)
#define GETS(rank, X) X(dst, to_lists), rank, X(src, from_lists)
#define LISTED(FORM, rank, X) LISTED_##FORM(rank, X)
#define LISTED_PutNB PUTS
#define LISTED_PutNBI PUTS
#define LISTED_PutBlocking PUTS
#define LISTED_GetNB GETS
#define LISTED_GetNBI GETS
#define LISTED_GetBlocking GETS
#define SIDES(FORM, rank, dst, src) SIDES_##FORM(rank, dst, src)
#define SIDES_PUT(rank, to, from) rank, S(dst, to), S(src, from)
#define SIDES_GET(rank, to, from) S(dst, to), rank, S(src, from)
#define SIDES_PutNB SIDES_PUT
#define SIDES_PutNBI SIDES_PUT
#define SIDES_PutBlocking SIDES_PUT
#define SIDES_GetNB SIDES_GET
#define SIDES_GetNBI SIDES_GET
#define SIDES_GetBlocking SIDES_GET

#endif
