/* A message goes round a ring of ranks, and each rank adds something to it.
 *
 * usage: ring [LAPS]
 *
 * The example shows how active messages are registered, sent, answered and waited for. The message
 * is a medium: its bytes are in a buffer of the library when the handler gets them, and gone when
 * it returns. Its receipt is a short: a few integers, no bytes. */
#include <gasnetex.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    int result = (call);                                                                    \
    if (result != GASNET_OK) {                                                              \
      fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorDesc(result));                         \
      gasnet_exit(1);                                                                       \
    }                                                                                       \
  } while (0)

/* The message that goes round. */
struct message {
  uint64_t hops;
  uint64_t sum;
};

/* Indices of handlers are the same on all ranks: a message names its handler by this number. */
enum { DELIVER = GEX_AM_INDEX_BASE, RECEIPT };

/* State that handlers leave for the main program. Volatile, as it reads them in loops that do not
 * write them. In GASNET_PAR, where another thread may run the handler, this would need atomics or a
 * gex_HSL_t. */
static volatile int delivered;
static volatile uint64_t receipts;
static struct message mailbox;

/* Handlers run while this rank is in the library, on the thread that polls or waits there. They
 * must not block and must not start anything but one reply, so this one takes the message out and
 * leaves the sending to the main program. */
static void deliver(gex_Token_t token, void *bytes, size_t count, gex_AM_Arg_t lap)
{
  if (count != sizeof mailbox) {
    fprintf(stderr, "a message of %zu bytes in lap %d\n", count, (int)lap);
    gasnet_exit(1);
  }
  memcpy(&mailbox, bytes, sizeof mailbox);
  delivered = 1;
  CHECK(gex_AM_ReplyShort1(token, RECEIPT, 0, lap));
}

/* The reply arrives at the rank that had sent the request. */
static void receipt(gex_Token_t token, gex_AM_Arg_t lap)
{
  (void)token;
  (void)lap;
  receipts = receipts + 1;
}

int main(int argc, char **argv)
{
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  CHECK(gex_Client_Init(&client, &endpoint, &team, "RING", &argc, &argv, 0));

  /* The messages that may arrive: request or reply, short, medium or long, and the number of
   * arguments. The library reports others as errors. */
  gex_AM_Entry_t handlers[] = {
      {DELIVER, (gex_AM_Fn_t)deliver, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL, "deliver"},
      {RECEIPT, (gex_AM_Fn_t)receipt, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 1, NULL, "receipt"},
  };
  CHECK(gex_EP_RegisterHandlers(endpoint, handlers, sizeof handlers / sizeof handlers[0]));

  const gex_Rank_t me = gex_TM_QueryRank(team);
  const gex_Rank_t ranks = gex_TM_QuerySize(team);
  const gex_Rank_t next = (me + 1) % ranks; /* in a job of one rank the rank itself */
  const long laps = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
  if (argc > 2 || laps < 1 || laps > 1000000) {
    if (me == 0) fprintf(stderr, "usage: ring [LAPS], 1 to 1000000\n");
    gasnet_exit(2);
  }

  /* Registration is done on all ranks before any rank sends. */
  gex_Event_Wait(gex_Coll_BarrierNB(team, 0));

  struct message message = {0, 0};
  for (long lap = 1; lap <= laps; ++lap) {
    /* Rank 0 begins a lap; all others wait for it to reach them. */
    if (me != 0) {
      GASNET_BLOCKUNTIL(delivered); /* polls, so that handlers run, and sleeps when it lasts */
      delivered = 0;
      message = mailbox;
    }
    message.hops += 1;
    message.sum += me + 1;
    /* GEX_EVENT_NOW: when the call returns, `message` has been read and may change. */
    CHECK(gex_AM_RequestMedium1(team, next, DELIVER, &message, sizeof message, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)lap));
    if (me == 0) {
      GASNET_BLOCKUNTIL(delivered);
      delivered = 0;
      message = mailbox;
    }
  }
  GASNET_BLOCKUNTIL(receipts == (uint64_t)laps);

  int wrong = 0;
  if (me == 0) {
    const uint64_t hops = (uint64_t)laps * ranks, sum = (uint64_t)laps * ranks * (ranks + 1) / 2;
    wrong = message.hops != hops || message.sum != sum;
    printf("%ld laps of %u ranks: %llu hops, sum %llu: %s\n", laps, (unsigned)ranks, (unsigned long long)message.hops,
           (unsigned long long)message.sum, wrong ? "WRONG" : "right");
    fflush(stdout);
  }
  /* No rank leaves while others still need an answer. */
  gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
  gasnet_exit(wrong);
}
