/* legacy_mixed, begun by gex_Client_Init with GEX_FLAG_USES_GASNET1. */
#define BEGUN_BY_EX 1
#include "legacy_mixed.c"
