/* Uses of everything in the parts, for compilers: as statements and expressions, with constants
 * that no client may mean. */
#include "parts.h"

#ifdef __cplusplus
extern "C" {
#endif
int forms(gex_TM_t tm, void *theirs, void *mine, size_t bytes, gex_Event_t *events, volatile int *flag);
#ifdef __cplusplus
}
#endif

static gex_HSL_t lock = GEX_HSL_INITIALIZER;

int forms(gex_TM_t tm, void *theirs, void *mine, size_t bytes, gex_Event_t *events, volatile int *flag)
{
  GASNET_BEGIN_FUNCTION();
  int sum = gex_RMA_PutBlocking(tm, 0, theirs, mine, bytes, 0) + gex_RMA_PutNBI(tm, 1, theirs, mine, 8, GEX_EVENT_GROUP, 0);
  gex_Event_t leaf = GEX_EVENT_INVALID;
  gex_HSL_t automatic = GEX_HSL_INITIALIZER;
  {
    GASNET_POST_THREADINFO(GASNET_GET_THREADINFO());
    events[0] = gex_RMA_PutNB(tm, 0, theirs, mine, 3, &leaf, GEX_FLAG_SELF_SEG_SOME);
    events[1] = gex_RMA_PutNB(tm, 0, theirs, mine, bytes, GEX_EVENT_NOW, GEX_FLAG_PEER_SEG_OFFSET);
  }
  gex_RMA_PutBlocking(tm, 0, NULL, NULL, 0, 0);
  sum += gex_RMA_PutNBI(tm, 0, NULL, NULL, 0, GEX_EVENT_NOW, 0);
  sum += gex_RMA_GetBlocking(tm, NULL, 0, NULL, 0, 0);
  sum += gex_RMA_GetNBI(tm, mine, 0, theirs, bytes, 0) ? 1 : 0;
  events[2] = gex_RMA_GetNB(tm, mine, 0, theirs, 4, GEX_FLAG_IMMEDIATE);
  sum += (int)gex_RMA_GetBlockingVal(tm, 0, theirs, bytes, 0) + gex_RMA_PutBlockingVal(tm, 0, theirs, 7, 1, 0);
  sum += gex_RMA_PutNBIVal(tm, 0, theirs, 7, 3, 0);
  events[3] = gex_RMA_PutNBVal(tm, 0, theirs, 7, 5, 0);
  if (gex_Event_Test(leaf) == GASNET_ERR_NOT_READY) gex_Event_Wait(leaf);
  leaf = gex_Event_QueryLeaf(events[0], GEX_EC_LC);
  sum += gex_Event_TestSome(events, 4, 0) + gex_Event_TestAll(events, 4, 0);
  gex_Event_WaitSome(events, 4, 0);
  gex_Event_WaitAll(events, 4, 0);
  gex_NBI_BeginAccessRegion(0);
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  if (gex_NBI_Test(GEX_EC_ALL, 0))
    gex_NBI_Wait(GEX_EC_PUT | GEX_EC_GET, 0);
  else
    gex_HSL_Lock(&lock);
  gex_HSL_Unlock(&lock);
  gex_HSL_Init(&automatic);
  sum += gex_HSL_Trylock(&automatic) == GASNET_OK;
  gex_HSL_Destroy(&automatic);
  if (gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK)
    GASNET_BLOCKUNTIL(*flag);
  else
    sum += gasnet_AMPoll();
  return sum;
}
