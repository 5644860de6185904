/* gex_Client_Init: its results, its effect on argc and argv, queries of its objects. */
#include "check.h"

static void arguments(int argc, char **argv) {
  /* The driver gives these, one with a blank and one empty; a launcher's own are gone. */
  if (argc == 1) return;
  CHECK_EQ(argc, 4);
  CHECK(strcmp(argv[1], "one") == 0);
  CHECK(strcmp(argv[2], "two words") == 0);
  CHECK(strcmp(argv[3], "--three=\"3\"") == 0);
  CHECK(argv[4] == NULL);
}

static void client_data(void) {
  int one = 1, two = 2, three = 3;
  CHECK_SAME(gex_Client_QueryCData(client), NULL);
  CHECK_SAME(gex_EP_QueryCData(ep), NULL);
  CHECK_SAME(gex_TM_QueryCData(team), NULL);
  gex_Client_SetCData(client, &one);
  gex_EP_SetCData(ep, &two);
  gex_TM_SetCData(team, &three);
  CHECK_SAME(gex_Client_QueryCData(client), &one);
  CHECK_SAME(gex_EP_QueryCData(ep), &two);
  CHECK_SAME(gex_TM_QueryCData(team), &three);
  gex_Client_SetCData(client, NULL);
  CHECK_SAME(gex_Client_QueryCData(client), NULL);
  CHECK_SAME(gex_EP_QueryCData(ep), &two);
  gex_EP_SetCData(ep, &one);
  CHECK_SAME(gex_EP_QueryCData(ep), &one);
}

int main(int argc, char **argv) {
  char **before = argv;
  char name[32];
  (void)before;
  check_name = "client";
  strcpy(name, "ARGONET_CLIENT_9");
  CHECK_OK(gex_Client_Init(&client, &ep, &team, name, &argc, &argv, 0));
  me = gex_TM_QueryRank(team);
  ranks = gex_TM_QuerySize(team);

  CHECK(client != GEX_CLIENT_INVALID);
  CHECK(ep != GEX_EP_INVALID);
  CHECK(team != GEX_TM_INVALID);
  CHECK(ranks >= 1 && me < ranks);
  CHECK(ranks < GEX_RANK_INVALID);
  CHECK_EQ(gex_System_QueryJobRank(), me);
  CHECK_EQ(gex_System_QueryJobSize(), ranks);

  CHECK(strcmp(gex_Client_QueryName(client), "ARGONET_CLIENT_9") == 0);
  strcpy(name, "overwritten");
  CHECK(strcmp(gex_Client_QueryName(client), "ARGONET_CLIENT_9") == 0 ||
        gex_Client_QueryName(client) == name);
  CHECK_EQ(gex_Client_QueryFlags(client), 0);
  CHECK_SAME(gex_EP_QueryClient(ep), client);
  CHECK_EQ(gex_EP_QueryFlags(ep), 0);
  CHECK_EQ(gex_EP_QueryIndex(ep), 0);
  CHECK_SAME(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
  CHECK_SAME(gex_TM_QueryClient(team), client);
  CHECK_SAME(gex_TM_QueryEP(team), ep);
  CHECK_EQ(gex_TM_QueryFlags(team), 0);
  client_data();
  arguments(argc, argv);

  {
    gex_Rank_t rank;
    for (rank = 0; rank < ranks; ++rank) {
      gex_EP_Location_t place = gex_TM_TranslateRankToEP(team, rank, 0);
      CHECK_EQ(place.gex_rank, rank);
      CHECK_EQ(place.gex_ep_index, 0);
      CHECK_EQ(gex_TM_TranslateRankToJobrank(team, rank), rank);
      CHECK_EQ(gex_TM_TranslateJobrankToRank(team, rank), rank);
    }
  }

  /* Verbose by default, and both values are given back. */
  CHECK(gex_System_GetVerboseErrors() != 0);
  gex_System_SetVerboseErrors(0);
  CHECK_EQ(gex_System_GetVerboseErrors(), 0);
  gex_System_SetVerboseErrors(1);
  CHECK(gex_System_GetVerboseErrors() != 0);
  return check_finish();
}
