/* Wants the argument "given" before it joins the job and afterwards, as programs do that read their
 * options first. */
#include <gasnetex.h>
#include <stdio.h>
#include <string.h>

static int is_wrong(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "given") == 0) return 0;
    fprintf(stderr, "%d arguments, the first is %s\n", argc - 1, argc > 1 ? argv[1] : "missing");
    return 1;
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    if (is_wrong(argc, argv)) return 2;
    if (gex_Client_Init(&client, &endpoint, &team, "GIVEN", &argc, &argv, 0) != GASNET_OK) return 1;
    if (is_wrong(argc, argv)) gasnet_exit(3);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    printf("given, over %s\n", GASNET_CONDUIT_NAME_STR);
    gasnet_exit(0);
    return 0;
}
