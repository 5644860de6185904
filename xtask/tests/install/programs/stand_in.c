/* Stands in for the library, whose own function goes first: prints what the variant says. */
#if !defined(GASNET_SEQ) && !defined(GASNET_PAR) && !defined(GASNET_PARSYNC)
#define GASNET_SEQ
#endif
#include "argonet/variant.h"
#include <stdio.h>

__attribute__((__weak__)) int argonet_client_init(const struct argonet_variant *variant, gex_Client_t *client,
                                                  gex_EP_t *endpoint, gex_TM_t *team, const char *name, int *argc,
                                                  char ***argv, gex_Flags_t flags)
{
    int all = client && endpoint && team && argc && argv && flags == 7;
    printf("%s %u %u version %u for %s\n", variant->conduit, (unsigned)variant->mode, (unsigned)variant->debug,
           (unsigned)variant->version, name);
    return all ? 0 : 1;
}
