/* A client with a library in Rust and functions of its own that are named as those of BLAKE3, all
 * of which must be the ones called. */
#include <gasnetex.h>
#include <stdio.h>

extern int own_rust(int number);
extern int blake3_hasher_init(void);
extern int own_blake3(void);

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    const int before = own_rust(20);
    if (gex_Client_Init(&client, &endpoint, &team, "OWN_RUST", &argc, &argv, 0) != GASNET_OK) return 1;
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    printf("%d %d %d %d\n", before, own_rust(22), blake3_hasher_init(), own_blake3());
    gasnet_exit(0);
    return 0;
}
