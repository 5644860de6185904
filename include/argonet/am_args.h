/* What functions that exist once for each number of arguments have in common: parameters, and the
 * array that they become. */
#ifndef ARGONET_AM_ARGS_H
#define ARGONET_AM_ARGS_H

#include "types.h"

#define ARGONET_AM_PARAMETERS0
#define ARGONET_AM_PARAMETERS1 ARGONET_AM_PARAMETERS0, gex_AM_Arg_t a0
#define ARGONET_AM_PARAMETERS2 ARGONET_AM_PARAMETERS1, gex_AM_Arg_t a1
#define ARGONET_AM_PARAMETERS3 ARGONET_AM_PARAMETERS2, gex_AM_Arg_t a2
#define ARGONET_AM_PARAMETERS4 ARGONET_AM_PARAMETERS3, gex_AM_Arg_t a3
#define ARGONET_AM_PARAMETERS5 ARGONET_AM_PARAMETERS4, gex_AM_Arg_t a4
#define ARGONET_AM_PARAMETERS6 ARGONET_AM_PARAMETERS5, gex_AM_Arg_t a5
#define ARGONET_AM_PARAMETERS7 ARGONET_AM_PARAMETERS6, gex_AM_Arg_t a6
#define ARGONET_AM_PARAMETERS8 ARGONET_AM_PARAMETERS7, gex_AM_Arg_t a7
#define ARGONET_AM_PARAMETERS9 ARGONET_AM_PARAMETERS8, gex_AM_Arg_t a8
#define ARGONET_AM_PARAMETERS10 ARGONET_AM_PARAMETERS9, gex_AM_Arg_t a9
#define ARGONET_AM_PARAMETERS11 ARGONET_AM_PARAMETERS10, gex_AM_Arg_t a10
#define ARGONET_AM_PARAMETERS12 ARGONET_AM_PARAMETERS11, gex_AM_Arg_t a11
#define ARGONET_AM_PARAMETERS13 ARGONET_AM_PARAMETERS12, gex_AM_Arg_t a12
#define ARGONET_AM_PARAMETERS14 ARGONET_AM_PARAMETERS13, gex_AM_Arg_t a13
#define ARGONET_AM_PARAMETERS15 ARGONET_AM_PARAMETERS14, gex_AM_Arg_t a14
#define ARGONET_AM_PARAMETERS16 ARGONET_AM_PARAMETERS15, gex_AM_Arg_t a15
#define ARGONET_AM_ARRAY0 const gex_AM_Arg_t *const args = 0;
#define ARGONET_AM_ARRAY1 const gex_AM_Arg_t args[] = {a0};
#define ARGONET_AM_ARRAY2 const gex_AM_Arg_t args[] = {a0, a1};
#define ARGONET_AM_ARRAY3 const gex_AM_Arg_t args[] = {a0, a1, a2};
#define ARGONET_AM_ARRAY4 const gex_AM_Arg_t args[] = {a0, a1, a2, a3};
#define ARGONET_AM_ARRAY5 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4};
#define ARGONET_AM_ARRAY6 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5};
#define ARGONET_AM_ARRAY7 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6};
#define ARGONET_AM_ARRAY8 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7};
#define ARGONET_AM_ARRAY9 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8};
#define ARGONET_AM_ARRAY10 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9};
#define ARGONET_AM_ARRAY11 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10};
#define ARGONET_AM_ARRAY12 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
#define ARGONET_AM_ARRAY13 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12};
#define ARGONET_AM_ARRAY14 const gex_AM_Arg_t args[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13};
#define ARGONET_AM_ARRAY15 const gex_AM_Arg_t args[] =                                                                 \
  {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14};
#define ARGONET_AM_ARRAY16 const gex_AM_Arg_t args[] =                                                                 \
  {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};

#endif
