/* Two translation units that both include everything, in other orders, twice: nothing is defined
 * twice, and what one of them takes from the headers the other takes too. */
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_fwd.h>
#include <gasnetex.h>
#include <gasnet_tools.h>
#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif
extern gex_Rank_t second_rank(gex_TM_t of);
extern void second_put_and_get(gex_TM_t of, gex_Rank_t to, void *at, gex_Segment_t known);
extern gex_AM_Entry_t *second_table(size_t *count);
extern gex_HSL_t second_lock;
extern int second_answers(void);
extern void *second_address(int which);
#ifdef __cplusplus
}
#endif

int main(int argc, char **argv) {
  size_t count = 0;
  gex_AM_Entry_t *table = second_table(&count);
  gex_Rank_t rank;
  check_start(&argc, &argv, "several_units");
  check_register(table, count);
  check_attach(GASNET_PAGESIZE);
  check_barrier();
  CHECK_EQ(second_rank(team), me);
  for (rank = 0; rank < ranks; ++rank) second_put_and_get(team, rank, check_base(rank) + 64 * me, segment);
  (void)&second_lock;
  gex_HSL_Lock(&second_lock);
  gex_HSL_Unlock(&second_lock);
  for (rank = 0; rank < ranks; ++rank) CHECK_EQ(gex_AM_RequestShort0(team, rank, 180, 0), 0);
  GASNET_BLOCKUNTIL(second_answers() == (int)ranks);
  /* Events named by both are the same. */
  CHECK_SAME(second_address(0), GEX_EVENT_NOW);
  CHECK_SAME(second_address(1), GEX_EVENT_DEFER);
  CHECK_SAME(second_address(2), GEX_EVENT_GROUP);
  return check_finish();
}
