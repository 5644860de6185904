/* argonet_Coll_*: gather, gather-all, scatter, exchange, reduce-scatter and scans, on the team of
 * all and on rows of it. */
#include "check.h"
#include <gasnet_coll.h>

enum { MOST = 33000 };
static const size_t sizes[] = {0, 1, 64, 1023, 1024, 1025, 8193, MOST};
static unsigned char *from, *to;

static uint32_t key(gex_Rank_t giver, gex_Rank_t taker) { return giver * 64 + taker + 1; }

static void blocks(gex_TM_t tm, size_t bytes) {
  gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), root, r;
  for (r = 0; r < size; ++r) check_fill(from + r * bytes, bytes, key(rank, r));
  for (root = 0; root < size; ++root) {
    memset(to, 0x5a, bytes * size);
    gex_Event_Wait(argonet_Coll_GatherNB(tm, root, rank == root ? to : NULL, from, bytes, 0));
    for (r = 0; r < size; ++r)
      if (rank == root) CHECK_FILLED(to + r * bytes, bytes, key(r, 0));
    gex_Event_Wait(argonet_Coll_ScatterNB(tm, root, to, rank == root ? from : NULL, bytes, 0));
    CHECK_FILLED(to, bytes, key(root, rank));
  }
  gex_Event_Wait(argonet_Coll_ExchangeNB(tm, to, from, bytes, 0));
  for (r = 0; r < size; ++r) CHECK_FILLED(to + r * bytes, bytes, key(r, rank));
  gex_Event_Wait(argonet_Coll_GatherAllNB(tm, to, from + rank * bytes, bytes, 0));
  for (r = 0; r < size; ++r) CHECK_FILLED(to + r * bytes, bytes, key(r, r));
}

static void sums(gex_TM_t tm, size_t count) {
  int64_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), r;
  int64_t *src = (int64_t *)from, *dst = (int64_t *)to;
  size_t i;
  for (r = 0; r < size; ++r)
    for (i = 0; i < count; ++i) src[(size_t)r * count + i] = rank * 1000 + r * 10 + (int64_t)i;
  gex_Event_Wait(argonet_Coll_ReduceScatterNB(tm, dst, src, GEX_DT_I64, 8, count, GEX_OP_ADD, NULL, NULL, 0));
  for (i = 0; i < count; ++i) CHECK_EQ(dst[i], size * (size - 1) / 2 * 1000 + size * (rank * 10 + (int64_t)i));
  gex_Event_Wait(argonet_Coll_ScanNB(tm, dst, src, GEX_DT_I64, 8, count, GEX_OP_ADD, NULL, NULL, 0));
  for (i = 0; i < count; ++i) CHECK_EQ(dst[i], rank * (rank + 1) / 2 * 1000 + (rank + 1) * (int64_t)i);
  for (i = 0; i < count; ++i) dst[i] = -5;
  gex_Event_Wait(argonet_Coll_ExclusiveScanNB(tm, dst, src, GEX_DT_I64, 8, count, GEX_OP_ADD, NULL, NULL, 0));
  for (i = 0; i < count; ++i) CHECK_EQ(dst[i], rank == 0 ? -5 : rank * (rank - 1) / 2 * 1000 + rank * (int64_t)i);
}

int main(int argc, char **argv) {
  gex_TM_t row = GEX_TM_INVALID;
  size_t i;
  check_start(&argc, &argv, "coll_beyond");
  from = (unsigned char *)malloc((size_t)MOST * ranks * 8);
  to = (unsigned char *)malloc((size_t)MOST * ranks * 8);
  CHECK(from && to);
  gex_TM_Split(&row, team, (int)(me / 3), (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  for (i = 0; i < CHECK_COUNT(sizes); ++i) {
    blocks(team, sizes[i]);
    blocks(row, sizes[i]);
    if (sizes[i] > 0) sums(team, sizes[i]);
    if (sizes[i] > 0) sums(row, sizes[i]);
  }
  gex_TM_Destroy(row, NULL, 0);
  free(from);
  free(to);
  return check_finish();
}
