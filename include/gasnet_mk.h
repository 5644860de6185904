/* Kinds of memory. The library has memory of the host, GEX_MK_HOST, and no devices. */
#ifndef _GASNET_MK_H
#define _GASNET_MK_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "argonet/kind_calls.h"

typedef enum { GEX_MK_CLASS_HOST, GEX_MK_CLASS_CUDA_UVA, GEX_MK_CLASS_HIP, GEX_MK_CLASS_ZE } gex_MK_Class_t;

typedef struct {
    uint64_t gex_flags; /* 0 */
    gex_MK_Class_t gex_class;
    union {
        struct {
            int gex_CUdevice;
        } gex_class_cuda_uva;
        struct {
            int gex_hipDevice;
        } gex_class_hip;
        struct {
            void *gex_zeDevice;
            void *gex_zeContext;
            uint32_t gex_zeMemoryOrdinal;
        } gex_class_ze;
    } gex_args;
} gex_MK_Create_args_t;

/* GASNET_ERR_BAD_ARG for a class of devices, as the library has none. */
static inline int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const gex_MK_Create_args_t *args, gex_Flags_t flags)
{
    return argonet_kind_create(kind, client, args ? (int)args->gex_class : -1, flags);
}

/* Only for what gex_MK_Create made. */
static inline void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags) { argonet_kind_destroy(kind, flags); }

#ifdef __cplusplus
}
#endif

#endif
