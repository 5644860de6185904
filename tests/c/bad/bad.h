/* For programs that do one wrong thing, named by their only argument. A call that gives a result
 * leads to the line "returned NAME" and an ordinary end; "survived" says that no check noticed. */
#ifndef ARGONET_TESTS_BAD_H
#define ARGONET_TESTS_BAD_H

#include "../check.h"

static const char *bad_case = "";
static int bad_found = 0;

/* The body of a case follows. */
#define CASE(name) if (strcmp(bad_case, name) == 0 && (bad_found = 1))

/* Printed at once: the next call may end the process. */
static inline void bad_returned(int result) {
  printf("returned %s\n", gasnet_ErrorName(result));
  fflush(stdout);
}

/* The end of a case without an error: the driver looks for the word. */
static inline int bad_finish(void) {
  printf(bad_found ? "survived\n" : "no such case\n");
  fflush(stdout);
  gasnet_exit(bad_found ? 0 : 98);
  return 98;
}

#endif
