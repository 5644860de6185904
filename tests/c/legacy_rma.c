/* Put, get, values and fills of GASNet-1 in segments that gasnet_attach made, and when their target
 * sees them. */
#include "legacy_rma.h"

enum { SEEN = 200 };
static volatile int seen;
static char *base;

/* Bytes that were put before a message are there when its handler runs. */
static void look(gasnet_token_t token, gasnet_handlerarg_t value) {
  (void)token;
  CHECK_EQ(*(volatile int *)(void *)base, value);
  seen = seen + 1;
}

static const char fixed[] = "memory that is read-only";

int main(int argc, char **argv) {
  gasnet_handlerentry_t table[] = {{SEEN, (gex_AM_Fn_t)look}};
  char *bases[64];
  char back[sizeof fixed];
  gasnet_node_t node, next;
  int value = 0;
  legacy_init(&argc, &argv, "legacy_rma");
  CHECK(ranks <= CHECK_COUNT(bases));
  legacy_attach(table, 1, LEGACY_ROOM);
  base = legacy_segment(me);
  next = check_next();
  for (node = 0; node < ranks; ++node) bases[node] = legacy_segment(node);
  legacy_move_all(bases);
  gasnet_put(next, bases[next], fixed, sizeof fixed);
  gasnet_get(back, next, bases[next], sizeof fixed);
  CHECK(memcmp(back, fixed, sizeof fixed) == 0);
  CHECK_OK(gasnet_barrier(1000, 0));
  for (value = 1; value <= 100; ++value) {
    gasnet_put(next, bases[next], &value, sizeof value);
    CHECK_OK(gasnet_AMRequestShort1(next, SEEN, value));
    GASNET_BLOCKUNTIL(seen == value);
    CHECK_OK(gasnet_barrier(value, 0));
  }
  return check_finish();
}
