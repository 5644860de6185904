/* The parts of gasnetex.h that say what a client is compiled for, in their order there. */
#include "argonet/config.h"
#include <stdint.h>
typedef struct argonet_client_s *gex_Client_t;
typedef struct argonet_ep_s *gex_EP_t;
typedef struct argonet_tm_s *gex_TM_t;
typedef uint32_t gex_Flags_t;
#include "argonet/link.h"
