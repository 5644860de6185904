/* Remote atomic operations whose instructions up to the access of the neighbor's memory are
 * counted. */
#include "parts.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "argonet/ratomic.h"

gex_Event_t fetch_add(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *addr, int64_t value);
int add(gex_AD_t ad, gex_Rank_t rank, void *addr, uint32_t value);
int take(gex_AD_t ad, gex_Rank_t rank, void *addr, uint64_t value);
int swap(gex_AD_t ad, double *result, gex_Rank_t rank, void *addr, double value);
gex_Event_t compare_and_swap(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *addr, uint64_t current, uint64_t value);
gex_Event_t set(gex_AD_t ad, gex_Rank_t rank, void *addr, float value);
int get(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *addr);
#ifdef __cplusplus
}
#endif

gex_Event_t fetch_add(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *addr, int64_t value)
{
  return gex_AD_OpNB_I64(ad, result, rank, addr, GEX_OP_FADD, value, 0, 0);
}

int add(gex_AD_t ad, gex_Rank_t rank, void *addr, uint32_t value)
{
  return gex_AD_OpNBI_U32(ad, 0, rank, addr, GEX_OP_ADD, value, 0, GEX_FLAG_AD_REL);
}

int take(gex_AD_t ad, gex_Rank_t rank, void *addr, uint64_t value)
{
  return gex_AD_OpNBI_U64(ad, 0, rank, addr, GEX_OP_AND, value, 0, GEX_FLAG_IMMEDIATE);
}

int swap(gex_AD_t ad, double *result, gex_Rank_t rank, void *addr, double value)
{
  return gex_AD_OpNBI_DBL(ad, result, rank, addr, GEX_OP_SWAP, value, 0, GEX_FLAG_AD_ACQ);
}

gex_Event_t compare_and_swap(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *addr, uint64_t current, uint64_t value)
{
  return gex_AD_OpNB_U64(ad, result, rank, addr, GEX_OP_FCAS, current, value, GEX_FLAG_AD_MY_NBRHD);
}

gex_Event_t set(gex_AD_t ad, gex_Rank_t rank, void *addr, float value)
{
  return gex_AD_OpNB_FLT(ad, 0, rank, addr, GEX_OP_SET, value, 0, GEX_FLAG_AD_REL);
}

int get(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *addr)
{
  return gex_AD_OpNBI_I32(ad, result, rank, addr, GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ);
}
