/* Every rank says hello, in the order of ranks.
 *
 * Each program of GASNet-EX begins with gex_Client_Init, which makes the job, and ends with
 * gasnet_exit, which ends it. */
#include <gasnetex.h>

#include <stdio.h>

/* Calls of GASNet return GASNET_OK or an error, which they have reported on standard error. */
#define CHECK(call)                                                                         \
  do {                                                                                      \
    int result = (call);                                                                    \
    if (result != GASNET_OK) {                                                              \
      fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorDesc(result));                         \
      gasnet_exit(1);                                                                       \
    }                                                                                       \
  } while (0)

int main(int argc, char **argv)
{
  gex_Client_t client; /* this program, as the library knows it */
  gex_EP_t endpoint;   /* where messages to this rank arrive */
  gex_TM_t team;       /* all ranks, and this one's number among them */
  CHECK(gex_Client_Init(&client, &endpoint, &team, "HELLO", &argc, &argv, 0));

  const gex_Rank_t me = gex_TM_QueryRank(team);
  const gex_Rank_t ranks = gex_TM_QuerySize(team);

  for (gex_Rank_t turn = 0; turn < ranks; ++turn) {
    if (turn == me) {
      printf("hello from rank %u of %u\n", (unsigned)me, (unsigned)ranks);
      fflush(stdout); /* it must have left this process before the next one writes */
    }
    /* No rank passes before all have come. The call only starts the barrier: other work may go
     * between it and the wait. */
    gex_Event_t barrier = gex_Coll_BarrierNB(team, 0);
    gex_Event_Wait(barrier);
  }

  gasnet_exit(0); /* never returns; a plain return from main would be an error */
}
