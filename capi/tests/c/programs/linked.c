/* A program that is linked in several ways: it starts a job, learns of its segment, and asks what
 * only jobs have. */
#include <gasnetex.h>
#include <gasnet_tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    ((condition) ? (void)0                                                                                             \
                 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))

#ifdef DEFINES
/* The program's own, instead of the library's. */
const char *gasnet_max_segsize_str = "64MB/P";
#endif

static void *hooked;
static uintptr_t hooked_bytes;
static void attached(void *base, uintptr_t size)
{
    hooked = base;
    hooked_bytes = size;
}

static void check_formats(void)
{
    char text[256];
    size_t bytes;
    CHECK(gasnett_format_dt(NULL, GEX_DT_I32 | GEX_DT_DBL) == sizeof "GEX_DT_I32|GEX_DT_DBL");
    CHECK(gasnett_format_dt(text, GEX_DT_I32 | GEX_DT_DBL) == sizeof "GEX_DT_I32|GEX_DT_DBL");
    CHECK(strcmp(text, "GEX_DT_I32|GEX_DT_DBL") == 0);
    CHECK(gasnett_format_op(text, GEX_OP_AND | GEX_OP_FCAS | GEX_OP_GET) > 0);
    CHECK(strcmp(text, "GEX_OP_AND|GEX_OP_FCAS|GEX_OP_GET") == 0);
    CHECK(gasnett_format_op(text, GEX_OP_USER_NC | GEX_OP_SWAP) > 0);
    CHECK(strcmp(text, "GEX_OP_SWAP|GEX_OP_USER_NC") == 0);
    bytes = gasnett_format_ti(NULL, GEX_TI_ALL);
    CHECK(bytes <= sizeof text && gasnett_format_ti(text, GEX_TI_ALL) == bytes && strlen(text) + 1 == bytes);
    CHECK(strcmp(text, "GEX_TI_SRCRANK|GEX_TI_EP|GEX_TI_ENTRY|GEX_TI_IS_REQ|GEX_TI_IS_LONG") == 0);
    CHECK(gasnett_format_ti(text, 0) == 2 && strcmp(text, "0") == 0);
    CHECK(gasnett_format_dt(text, 0x40000000) > 0 && strcmp(text, "0x40000000") == 0);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    char *memory;
    gasnet_client_attach_hook = attached;
    CHECK(gex_Client_Init(&client, &ep, &tm, "LINKED", &argc, &argv, 0) == GASNET_OK);
#ifdef DEFINES
    CHECK(gasnet_getMaxLocalSegmentSize() == 64 << 20);
#else
    CHECK(gasnet_getMaxLocalSegmentSize() > 64 << 20);
#endif
    CHECK(gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE) == GASNET_OK);
    CHECK(hooked == gex_Segment_QueryAddr(segment) && hooked_bytes == GASNET_PAGESIZE);
    check_formats();
    memory = (char *)gasnett_mmap(3 * GASNETT_PAGESIZE);
    CHECK((uintptr_t)memory % GASNETT_PAGESIZE == 0 && memory[0] == 0);
    memory[3 * GASNETT_PAGESIZE - 1] = 1;
    CHECK(gex_System_QueryMaxThreads() <= GASNETT_MAX_THREADS);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (gex_TM_QueryRank(tm) == 0) printf("linked: %d ranks\n", (int)gex_TM_QuerySize(tm));
    gasnet_exit(0);
}
