/* GASNET_SEGMENT_EVERYTHING: addresses at which the target has nothing, or nothing that can be
 * written. A case that begins with "messages-" does without copies by the kernel. */
/* Memory that is mapped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bad.h"
#include <sys/mman.h>

enum { LONG = 150, ASK };

static const char constant[] = "not writable";
static char buffer[200000];
static volatile int never;
static char *volatile nowhere = (char *)64;
static char *edge; /* behind it nothing is mapped */

static void arrived(gex_Token_t token, void *data, size_t size) { (void)token, (void)data, (void)size; }
static void ask(gex_Token_t token) {
  CASE("reply-nowhere") gex_AM_ReplyLong0(token, LONG, buffer, 8, nowhere, GEX_EVENT_NOW, 0);
  CASE("long-reply-nowhere") gex_AM_ReplyLong0(token, LONG, buffer, 100000, nowhere, GEX_EVENT_NOW, 0);
}

static void transfers(gex_Rank_t to) {
  CASE("put-nowhere") gex_RMA_PutBlocking(team, to, nowhere, buffer, 8, 0);
  CASE("put-null") gex_RMA_PutBlocking(team, to, NULL, buffer, 100, 0);
  CASE("put-kernel") gex_RMA_PutBlocking(team, to, (char *)nowhere - 4096, buffer, 8, 0);
  CASE("get-nowhere") gex_Event_Wait(gex_RMA_GetNB(team, buffer, to, nowhere, 100000, 0));
  CASE("put-value-nowhere") gex_RMA_PutBlockingVal(team, to, nowhere, 1, 4, 0);
  CASE("get-value-nowhere") gex_RMA_GetBlockingVal(team, to, nowhere, 3, 0);
  CASE("put-constant") gex_RMA_PutBlocking(team, to, (void *)(uintptr_t)constant, buffer, 5, 0);
  CASE("put-beyond") gex_RMA_PutNBI(team, to, edge - 100, buffer, 200, GEX_EVENT_NOW, 0);
  CASE("get-beyond") gex_RMA_GetBlocking(team, buffer, to, edge - 100, 200, 0);
  CASE("put-from-nowhere") gex_RMA_PutBlocking(team, to, buffer, nowhere, 100, 0);
  CASE("get-to-nowhere") gex_RMA_GetBlocking(team, nowhere, to, buffer, 100, 0);
  CASE("long-nowhere") gex_AM_RequestLong0(team, to, LONG, buffer, 8, nowhere, GEX_EVENT_NOW, 0);
  CASE("long-constant") gex_AM_RequestLong0(team, to, LONG, buffer, 8, (void *)(uintptr_t)constant, GEX_EVENT_NOW, 0);
  CASE("long-long-nowhere") gex_AM_RequestLong0(team, to, LONG, buffer, 100000, nowhere, GEX_EVENT_NOW, 0);
  CASE("reply-nowhere") gex_AM_RequestShort0(team, to, ASK, 0);
  CASE("long-reply-nowhere") gex_AM_RequestShort0(team, to, ASK, 0);
  CASE("put-own-nowhere") gex_RMA_PutBlocking(team, me, nowhere, buffer, 8, 0);
  CASE("put-own-overlap") gex_RMA_PutBlocking(team, me, buffer + 4, buffer, 8, 0);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t table[] = {
      {LONG, (gex_AM_Fn_t)arrived, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQREP, 0, NULL, "long"},
      {ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"}};
  static const char messages[] = "messages-";
  const size_t page = GASNET_PAGESIZE;
  if (argc > 1) bad_case = argv[1];
  if (strncmp(bad_case, messages, sizeof messages - 1) == 0) {
    setenv("ARGONET_CROSS_MEMORY", "0", 1);
    bad_case += sizeof messages - 1;
  }
  edge = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK((void *)edge != MAP_FAILED);
  edge += page;
  CHECK_EQ(mprotect(edge, page, PROT_NONE), 0);
  check_start(&argc, &argv, "bad everything");
  check_register(table, CHECK_COUNT(table));
  CASE("attach-twice") {
    CHECK_OK(gex_Segment_Attach(&segment, team, 0));
    bad_returned(gex_Segment_Attach(&segment, team, 0));
    return bad_finish();
  }
  check_barrier();
  if (me == 0) {
    transfers(check_next());
    /* The target's answer may report the error. */
    if (bad_found) GASNET_BLOCKUNTIL(never);
    return bad_finish();
  }
  GASNET_BLOCKUNTIL(never);
  return 97;
}
