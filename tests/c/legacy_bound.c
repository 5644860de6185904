/* Put, get, values and fills of GASNet-1 in memory that is bound and not attached, as a program has
 * that begins by gex_Client_Init: transfers go on after the call, and messages carry them. */
#include "legacy_rma.h"

int main(int argc, char **argv) {
  char *bases[64];
  gasnet_node_t node;
  gasnet_handle_t handles[3];
  static char a[5000], b[5000];
  check_start_with(&argc, &argv, "legacy_bound", GEX_FLAG_USES_GASNET1);
  CHECK(ranks <= CHECK_COUNT(bases));
  CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_USES_GASNET1);
  CHECK_OK(gex_Segment_Create(&segment, client, NULL, LEGACY_ROOM, GEX_MK_HOST, 0));
  CHECK_OK(gex_EP_BindSegment(ep, segment, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &ep, 1, 0));
  for (node = 0; node < ranks; ++node) bases[node] = check_base(node);
  legacy_move_all(bases);
  /* Several at once, all of which are over after the wait; then by one handle of an access
   * region. */
  for (node = 0; node < ranks; ++node) {
    if (node == me) {
      check_fill(a, sizeof a, 7);
      handles[0] = gasnet_put_nb_bulk(check_next(), bases[check_next()], a, sizeof a);
      handles[1] = GASNET_INVALID_HANDLE;
      handles[2] = gasnet_put_nb_bulk(check_next(), bases[check_next()] + sizeof a, a, sizeof a);
      gasnet_wait_syncnb_all(handles, 3);
      CHECK_SAME(handles[0], GASNET_INVALID_HANDLE);
      CHECK_SAME(handles[2], GASNET_INVALID_HANDLE);
      gasnet_begin_nbi_accessregion();
      gasnet_get_nbi_bulk(b, check_next(), bases[check_next()], sizeof b);
      gasnet_get_nbi(a, check_next(), bases[check_next()] + sizeof a, sizeof a);
      gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
      CHECK_FILLED(a, sizeof a, 7);
      CHECK_FILLED(b, sizeof b, 7);
    }
    CHECK_OK(gasnet_barrier((int)node, 0));
  }
  return check_finish();
}
