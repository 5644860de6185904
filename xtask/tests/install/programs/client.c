/* Starts a job, as the library in stand_in.c does it. */
#include "client.h"
#include <stddef.h>

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    return gex_Client_Init(&client, &endpoint, &team, "client", &argc, &argv, 7);
}
