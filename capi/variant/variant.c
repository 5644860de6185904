/* The code that differs between libraries of conduits and thread modes: compiled once for each into
 * libgasnet-CONDUIT-MODE.a. Wants the options of a client of that mode, and ARGONET_CONDUIT_WORD,
 * the conduit as the library's settings name it; the build may say ARGONET_GIT_HASH and
 * ARGONET_SYSTEM_NAME. All in one object: a caller of init gets the idents, too. */
#include "argonet/annotations.h"
#include "argonet/facets.h"
#include "argonet/job.h"
#include "argonet/legacy_start.h"
#include "argonet/variant.h"

#define ARGONET_DEFINE_FACET(symbol)                                                                                   \
    extern const char symbol;                                                                                          \
    const char symbol = 1;
ARGONET_FACETS(ARGONET_DEFINE_FACET)
/* For clients with and without these: traces and statistics are chosen when a job starts. */
ARGONET_DEFINE_FACET(argonet_link_trace)
ARGONET_DEFINE_FACET(argonet_link_stats)
ARGONET_DEFINE_FACET(argonet_link_srclines)

extern int ARGONET_INIT(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team,
                        const char *name, int *argc, char ***argv, gex_Flags_t flags);

/* Headers of GASNet-1 reach a job by these. The first team has no rank whose memory is near. */
static struct argonet_mapped_team argonet_nowhere = {ARGONET_MAPPED_MAGIC, ARGONET_MAPPED_VERSION, 0, 0, 0, 0, {0}};
gex_TM_t argonet_legacy_team = &argonet_nowhere;
gex_Rank_t gasneti_mynode = GEX_RANK_INVALID;
gex_Rank_t gasneti_nodes = 0;

static const struct argonet_variant argonet_this_variant = {ARGONET_VARIANT_VERSION, ARGONET_THREADS_NUMBER, ARGONET_DEBUG,
                                                            ARGONET_SEGMENT_NUMBER, ARGONET_CONDUIT_WORD,
                                                            ARGONET_VARIANT_ERRORS};

/* Before main: what is asked before a job starts depends on it. */
__attribute__((__constructor__)) static void argonet_say_what_is_linked(void)
{
    argonet_linked_with(&argonet_this_variant);
}

static int argonet_began(int result, gex_TM_t team)
{
    if (result != GASNET_OK) return result;
    argonet_legacy_team = team;
    gasneti_mynode = gex_System_QueryJobRank();
    gasneti_nodes = gex_System_QueryJobSize();
    return result;
}

int ARGONET_INIT(gex_Client_t *client, gex_EP_t *endpoint, gex_TM_t *team,
                 const char *name, int *argc, char ***argv, gex_Flags_t flags)
{
    const int result =
        argonet_client_init(&argonet_this_variant, client, endpoint, team, name, argc, argv, flags);
    return argonet_began(result, result == GASNET_OK ? *team : GEX_TM_INVALID);
}

int ARGONET_LEGACY_INIT(int *argc, char ***argv)
{
    gex_TM_t team = GEX_TM_INVALID;
    const int result = argonet_legacy_init(&argonet_this_variant, &team, argc, argv);
    return argonet_began(result, team);
}

/* Variables that a program sets, or defines itself; its own take the place of these. */
__attribute__((__weak__)) const char *gasnet_max_segsize_str = 0;
__attribute__((__weak__)) uint64_t gasnet_max_segsize = 0;
__attribute__((__weak__)) void (*gasnet_client_attach_hook)(void *base, uintptr_t size) = 0;

#define ARGONET_IDENT(key, text) GASNETT_IDENT(argonet_ident_##key, "$GASNet" #key ": " text " $")
ARGONET_IDENT(EXAPIVersion, _STRINGIFY(GEX_SPEC_VERSION_MAJOR) "." _STRINGIFY(GEX_SPEC_VERSION_MINOR));
ARGONET_IDENT(APIVersion, ARGONET_GASNET1_VERSION);
ARGONET_IDENT(ThreadModel, "GASNET_" ARGONET_THREADS);
ARGONET_IDENT(Segment, "GASNET_SEGMENT_" ARGONET_SEGMENT);
ARGONET_IDENT(Config, "(libgasnet.a) " GASNET_CONFIG_STRING);
ARGONET_IDENT(ConduitName, GASNET_CONDUIT_NAME_STR);
ARGONET_IDENT(CoreLibraryName, GASNET_CORE_NAME_STR);
ARGONET_IDENT(CoreLibraryVersion, GASNET_CORE_VERSION_STR);
ARGONET_IDENT(ExtendedLibraryName, GASNET_EXTENDED_NAME_STR);
ARGONET_IDENT(ExtendedLibraryVersion, GASNET_EXTENDED_VERSION_STR);
#if GASNET_PSHM
ARGONET_IDENT(PSHM, "1");
#endif
ARGONET_IDENT(TracingEnabled, "1");
ARGONET_IDENT(StatisticsEnabled, "1");
ARGONET_IDENT(DefaultMaxSegsizeStr, ARGONET_SEGMENT_LIMIT);
/* The ranks of a host are forked by the first of them. */
ARGONET_IDENT(FORKSpawner, "1");
ARGONET_IDENT(BuildTimestamp, __DATE__ " " __TIME__);
ARGONET_IDENT(BuildId, GASNETI_BUILD_ID);
ARGONET_IDENT(ConfigureArgs, GASNETI_CONFIGURE_ARGS);
ARGONET_IDENT(SystemTuple, GASNETT_SYSTEM_TUPLE);
ARGONET_IDENT(CompilerID, PLATFORM_COMPILER_IDSTR);
#ifdef ARGONET_SYSTEM_NAME
ARGONET_IDENT(SystemName, ARGONET_SYSTEM_NAME);
#endif
#ifdef ARGONET_GIT_HASH
ARGONET_IDENT(GitHash, ARGONET_GIT_HASH);
#endif
