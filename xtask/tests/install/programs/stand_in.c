/* Stands in for the library: tells what the variant says of itself. The library's own function goes before this one. */
#include "argonet/variant.h"
#include <stdio.h>

__attribute__((__weak__)) int argonet_client_init(const struct argonet_variant *variant,
                                                  struct argonet_client_s **client, struct argonet_ep_s **endpoint,
                                                  struct argonet_tm_s **team, const char *name, int *argc, char ***argv,
                                                  uint32_t flags)
{
    int all = client && endpoint && team && argc && argv && flags == 7;
    printf("%s %u %u version %u for %s\n", variant->conduit, (unsigned)variant->threads, (unsigned)variant->debug,
           (unsigned)variant->version, name);
    return all ? 0 : 1;
}
