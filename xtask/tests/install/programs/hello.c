/* Each rank says hello after a barrier. With an argument, a handler of an active message to the own
 * rank crashes instead. */
#include <gasnetex.h>
#include <stdio.h>
#include <stdlib.h>

static gex_TM_t team;

__attribute__((__noinline__)) static void crash_of_client(void)
{
    abort();
}

static void handler(gex_Token_t token)
{
    (void)token;
    crash_of_client();
    /* So that the call above is no jump. */
    fflush(stdout);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_AM_Entry_t entry = {0, (gex_AM_Fn_t)handler, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, 0, "handler"};
    if (gex_Client_Init(&client, &endpoint, &team, "HELLO", &argc, &argv, 0) != GASNET_OK) return 1;
    if (gex_EP_RegisterHandlers(endpoint, &entry, 1) != GASNET_OK) return 1;
    if (argc > 1) {
        gex_AM_RequestShort(team, gex_TM_QueryRank(team), entry.gex_index, 0);
        for (;;) gasnet_AMPoll();
    }
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    printf("hello %u of %u\n", (unsigned)gex_TM_QueryRank(team), (unsigned)gex_TM_QuerySize(team));
    gasnet_exit(0);
    return 0;
}
