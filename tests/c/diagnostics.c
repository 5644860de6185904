/* gasnett_run_diagnostics: all sections, with and without threads, and some of them; arguments are
 * iterations, threads and sections. */
#include "check.h"

#include <gasnet_tools.h>

int main(int argc, char **argv) {
  const int iterations = argc > 1 ? atoi(argv[1]) : 100;
  const int threads = argc > 2 ? atoi(argv[2]) : 4;
  const char *sections = argc > 3 ? argv[3] : NULL;
  gex_AM_Entry_t *table = NULL;
  int count = 0;
  size_t at;
  gasnett_diagnostic_gethandlers(&table, &count);
  CHECK(table != NULL && count > 0);
  for (at = 0; at < (size_t)count; ++at) CHECK(table[at].gex_index >= GEX_AM_INDEX_BASE && table[at].gex_fnptr);
  check_start(&argc, &argv, "diagnostics");
  check_attach(1 << 18);
  check_register(table, (size_t)count);
  check_barrier();
  CHECK_EQ(gasnett_run_diagnostics(iterations, threads, sections, team, check_base(me), check_next(),
                                   check_base(check_next()), 17),
           0);
  check_barrier();
  /* Again, with another peer and part of the segment. */
  CHECK_EQ(gasnett_run_diagnostics(1, 1, "abklM", team, check_base(me) + (1 << 17), check_previous(),
                                   check_base(check_previous()) + (1 << 17), 0),
           0);
  return check_finish();
}
