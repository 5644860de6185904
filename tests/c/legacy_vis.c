/* Non-contiguous puts and gets of GASNet-1, of random shapes in all forms, compared byte by byte
 * with a model. */
#include "legacy.h"

#include "vis.h"

enum { TURNS = 300 };
static vis_shape shape;
static vis_lists to_lists, from_lists;
/* The first count is the length of an element. */
static size_t counts[VIS_LEVELS + 1], to_strides[VIS_LEVELS], from_strides[VIS_LEVELS];

#define TO (const gasnet_memvec_t *)to_lists.vector
#define FROM (const gasnet_memvec_t *)from_lists.vector
#define LEN(side) shape.side.len[VIS_PIECES - 1]
#define PUT(form, how)                                                                                              \
  if (shape.kind == VIS_VECTOR) how(gasnet_putv##form(node, shape.dst.count, TO, shape.src.count, FROM));            \
  else if (shape.kind == VIS_INDEXED)                                                                                \
    how(gasnet_puti##form(node, shape.dst.count, to_lists.places, LEN(dst), shape.src.count, from_lists.places,      \
                          LEN(src)));                                                                               \
  else how(gasnet_puts##form(node, dst, to_strides, src, from_strides, counts, shape.levels))
#define GET(form, how)                                                                                              \
  if (shape.kind == VIS_VECTOR) how(gasnet_getv##form(shape.dst.count, TO, node, shape.src.count, FROM));            \
  else if (shape.kind == VIS_INDEXED)                                                                                \
    how(gasnet_geti##form(shape.dst.count, to_lists.places, LEN(dst), node, shape.src.count, from_lists.places,      \
                          LEN(src)));                                                                               \
  else how(gasnet_gets##form(dst, to_strides, node, src, from_strides, counts, shape.levels))
#define NOW(call) (call)

static void move(int is_put, gasnet_node_t node, char *dst, char *src) {
  switch (check_below(3)) {
  case 0:
    if (is_put) PUT(_bulk, NOW);
    else GET(_bulk, NOW);
    break;
  case 1:
    if (is_put) PUT(_nb_bulk, gasnet_wait_syncnb);
    else GET(_nb_bulk, gasnet_wait_syncnb);
    break;
  default:
    if (is_put) PUT(_nbi_bulk, NOW);
    else GET(_nbi_bulk, NOW);
    gasnet_wait_syncnbi_all();
  }
}

/* Strides are not signed: only forward ones. */
static void forward(vis_side *side, size_t *strides) {
  size_t i;
  side->first = 0;
  for (i = 0; i < shape.levels; ++i) {
    if (side->strides[i] < 0) side->strides[i] = -side->strides[i];
    strides[i] = (size_t)side->strides[i];
  }
}

int main(int argc, char **argv) {
  static char mine[VIS_ROOM], there[VIS_ROOM], expected[VIS_ROOM];
  gasnet_node_t next;
  char *base;
  int turn;
  size_t i;
  legacy_init(&argc, &argv, "legacy_vis");
  legacy_attach(NULL, 0, (uintptr_t)ranks * VIS_ROOM);
  next = check_next();
  base = legacy_segment(next) + (size_t)me * VIS_ROOM;
  check_seed(me + 100);
  for (turn = 0; turn < TURNS; ++turn) {
    int is_put = (int)check_below(2);
    char *dst = is_put ? base : mine, *src = is_put ? mine : base;
    vis_random(&shape);
    if (shape.kind == VIS_STRIDED) {
      forward(&shape.dst, to_strides);
      forward(&shape.src, from_strides);
      counts[0] = shape.elemsz;
      for (i = 0; i < shape.levels; ++i) counts[i + 1] = shape.counts[i];
    } else {
      vis_list(&to_lists, &shape.dst, dst);
      vis_list(&from_lists, &shape.src, src);
    }
    check_fill(mine, VIS_ROOM, (uint32_t)turn);
    check_fill(there, VIS_ROOM, (uint32_t)turn + 7777);
    gasnet_put_bulk(next, base, there, VIS_ROOM);
    memcpy(expected, is_put ? there : mine, VIS_ROOM);
    vis_model(&shape, expected, is_put ? mine : there);
    move(is_put, next, dst, src);
    if (is_put) gasnet_get_bulk(there, next, base, VIS_ROOM);
    CHECK(memcmp(is_put ? there : mine, expected, VIS_ROOM) == 0);
  }
  return check_finish();
}
