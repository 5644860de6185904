/* Questions before the job has started, codes that calls return, and waits of handlers for nothing.
 * Arguments: the client's name, and what to do. */
#include <gasnet.h>
#include <gasnet_vis.h>

#define CHECK(condition)                                                                                               \
    ((condition) ? (void)0                                                                                             \
                 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))
#define MANY 200

static volatile int waited, requested;

static void wait_here(gex_Token_t token)
{
    gex_Event_t events[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    gasnet_handle_t handle = GASNET_INVALID_HANDLE;
    (void)token;
    gex_Event_Wait(events[0]);
    gex_Event_WaitSome(events, 3, 0);
    gex_Event_WaitAll(events, 3, 0);
    gex_Event_WaitAll(NULL, 0, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK(gex_NBI_Test(GEX_EC_GET | GEX_EC_RMW, 0) == GASNET_OK);
    CHECK(gex_Event_TestAll(events, 3, 0) == GASNET_OK);
    gasnet_wait_syncnb(handle);
    gasnet_wait_syncnb_all(&handle, 1);
    gasnet_wait_syncnb_some(&handle, 1);
    gasnet_wait_syncnbi_gets();
    gasnet_wait_syncnbi_puts();
    gasnet_wait_syncnbi_all();
    waited = 1;
}

static void wait_for_one(gex_Token_t token)
{
    (void)token;
    requested = 1;
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

enum { WAIT = 200, WAIT_FOR_ONE };

int main(int argc, char **argv)
{
    static const char *const names[] = {"GASNET_ERR_NOT_INIT", "GASNET_ERR_RESOURCE", "GASNET_ERR_BAD_ARG",
                                        "GASNET_ERR_NOT_READY", "GASNET_ERR_BARRIER_MISMATCH"};
    static const int codes[] = {GASNET_ERR_NOT_INIT, GASNET_ERR_RESOURCE, GASNET_ERR_BAD_ARG, GASNET_ERR_NOT_READY,
                                GASNET_ERR_BARRIER_MISMATCH};
    gex_AM_Entry_t handlers[2];
    const char *const name = argc > 1 ? argv[1] : "EARLY";
    const char *const what = argc > 2 ? argv[2] : "";
    const size_t medium = gex_AM_LUBRequestMedium(), reply = gex_AM_LUBReplyMedium();
    const size_t longs = gex_AM_LUBRequestLong(), long_reply = gex_AM_LUBReplyLong();
    const uint64_t threads = gex_System_QueryMaxThreads();
    gex_Client_t client;
    gex_EP_t ep, more[2];
    gex_TM_t tm;
    int i;
    CHECK(medium >= 512 && reply >= 512 && longs >= 512 && long_reply >= 512 && threads >= 1);
    CHECK(gasnet_AMMaxMedium() == (medium < reply ? medium : reply));
    CHECK(gasnet_AMMaxLongRequest() == longs && gasnet_AMMaxLongReply() == long_reply);
    for (i = 0; i < 5; ++i) CHECK(strcmp(gasnet_ErrorName(codes[i]), names[i]) == 0);
    CHECK(strcmp(gasnet_ErrorName(GASNET_OK), "GASNET_OK") == 0);
    CHECK(strcmp(gasnet_ErrorName(77), "an unknown code") == 0);
    CHECK(gex_Client_Init(NULL, &ep, &tm, "EARLY", &argc, &argv, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) == GASNET_ERR_NOT_INIT);
    CHECK(gex_Client_Init(&client, &ep, &tm, name, &argc, &argv, GEX_FLAG_USES_GASNET1) == GASNET_OK);
    CHECK(strcmp(gex_Client_QueryName(client), name) == 0);
    CHECK(gex_AM_LUBRequestMedium() >= medium && gex_AM_LUBReplyMedium() >= reply);
    CHECK(gex_AM_LUBRequestLong() >= longs && gex_AM_LUBReplyLong() >= long_reply);
    CHECK(gex_System_QueryMaxThreads() == threads);
    CHECK(gex_Client_Init(&client, &ep, &tm, name, &argc, &argv, 0) == GASNET_ERR_NOT_INIT);
    CHECK(gex_EP_Create(NULL, client, GEX_EP_CAPABILITY_AM, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_Create(&more[0], client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK && gex_EP_QueryIndex(more[0]) == 1);
    for (i = 0; i < MANY; ++i) {
        const int code = gex_EP_Create(&more[1], client, GEX_EP_CAPABILITY_RMA, 0);
        if (code != GASNET_OK) {
            CHECK(code == GASNET_ERR_RESOURCE && i + 2 == GASNET_MAXEPS);
            break;
        }
    }
    CHECK(i < MANY);
    CHECK(gex_TM_Pair(ep, GASNET_MAXEPS - 1) != GEX_TM_INVALID && (gex_TM_Pair)(ep, 0) != GEX_TM_INVALID);
    if (strcmp(what, "index") == 0) (void)gex_TM_Pair(ep, 65536);
    if (strcmp(what, "negative") == 0) (void)gex_TM_Pair(ep, -65535);

    memset(handlers, 0, sizeof handlers);
    for (i = 0; i < 2; ++i) {
        handlers[i].gex_index = (gex_AM_Index_t)(WAIT + i);
        handlers[i].gex_fnptr = (gex_AM_Fn_t)(i ? wait_for_one : wait_here);
        handlers[i].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
    }
    CHECK(gex_EP_RegisterHandlers(ep, handlers, 2) == GASNET_OK);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (strcmp(what, "wait") == 0) {
        gex_AM_RequestShort0(tm, gex_TM_QueryRank(tm), WAIT, 0);
        GASNET_BLOCKUNTIL(waited);
    }
    if (strcmp(what, "region") == 0) {
        /* Something is to be waited for, or was begun at least. */
        gex_NBI_BeginAccessRegion(0);
        gex_AM_RequestShort0(tm, gex_TM_QueryRank(tm), WAIT_FOR_ONE, 0);
        GASNET_BLOCKUNTIL(requested);
    }
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (gex_TM_QueryRank(tm) == 0) printf("early: %d ranks, BAD_ARG is %d\n", (int)gex_TM_QuerySize(tm), GASNET_ERR_BAD_ARG);
    gasnet_exit(0);
}
