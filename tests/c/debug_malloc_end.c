/* `debug_malloc_end exit|return` leaves a block behind; the driver reads the report on it at the
 * end. */
#include "check.h"

#include <gasnet_tools.h>

int main(int argc, char **argv) {
  char *left;
  check_start(&argc, &argv, "debug_malloc_end");
  if (argc != 2) check_fail(__FILE__, __LINE__, "debug_malloc_end exit|return");
  left = (char *)gasnett_debug_malloc(1000 + me);
  left[0] = 1;
  gasnett_debug_free(gasnett_debug_malloc(77));
  check_barrier();
  if (strcmp(argv[1], "exit") == 0) gasnet_exit(0);
  return 0;
}
