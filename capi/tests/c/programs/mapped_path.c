/* Calls whose instructions up to the access of the neighbor's memory are counted. */
#include "parts.h"

#ifdef __cplusplus
extern "C" {
#endif
void put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value);
void put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value);
gex_Event_t put_nb(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value);
void put_value(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value);
uint64_t get_value(gex_TM_t tm, gex_Rank_t rank, void *src);
void get_blocking(gex_TM_t tm, uint64_t *dst, gex_Rank_t rank, void *src);
#ifdef __cplusplus
}
#endif

void put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value)
{
  gex_RMA_PutBlocking(tm, rank, dst, &value, 8, 0);
}

void put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value)
{
  gex_RMA_PutNBI(tm, rank, dst, &value, 8, GEX_EVENT_NOW, 0);
}

gex_Event_t put_nb(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value)
{
  return gex_RMA_PutNB(tm, rank, dst, &value, 8, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE);
}

void put_value(gex_TM_t tm, gex_Rank_t rank, void *dst, uint64_t value)
{
  gex_RMA_PutBlockingVal(tm, rank, dst, value, 8, 0);
}

uint64_t get_value(gex_TM_t tm, gex_Rank_t rank, void *src) { return gex_RMA_GetBlockingVal(tm, rank, src, 8, 0); }

void get_blocking(gex_TM_t tm, uint64_t *dst, gex_Rank_t rank, void *src)
{
  gex_RMA_GetBlocking(tm, dst, rank, src, 8, 0);
}
