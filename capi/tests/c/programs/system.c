/* Facts about the host and the process; bytes; tracing that is not there. */
#define _GNU_SOURCE 1
#include "every.h"
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

static int evaluated;
static const char *evaluate(void)
{
    evaluated++;
    return "";
}
static void collect(void (*line)(const char *format, ...))
{
    line("%s", evaluate());
}

static void bytes(void)
{
    unsigned char from[80], to[80];
    size_t at, count, i, expected;
    for (i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i % 3 ? i : 0);
    for (at = 0; at < 9; at++) {
        for (count = 0; at + count <= sizeof from; count++) {
            expected = 0;
            for (i = 0; i < count; i++) expected += from[at + i] == 0;
            memset(to, 0xFF, sizeof to);
            CHECK(gasnett_count0s(from + at, count) == expected);
            CHECK(gasnett_count0s_copy(to + at, from + at, count) == expected);
            CHECK(memcmp(to + at, from + at, count) == 0);
            CHECK(at + count == sizeof to || to[at + count] == 0xFF);
        }
    }
    CHECK(gasnett_checksum(from, 80) == gasnett_checksum(from, 80));
    CHECK(gasnett_checksum(from, 80) != gasnett_checksum(from, 79));
    CHECK(gasnett_checksum(from, 0) == gasnett_checksum(to, 0));
    CHECK(gasnett_count0s_uint32_t(0) == 4 && gasnett_count0s_uint64_t(0) == 8 && gasnett_count0s_uintptr_t(0) == 8);
    CHECK(gasnett_count0s_uint32_t(0x80008001U) == 1 && gasnett_count0s_uint32_t(UINT32_MAX) == 0);
    CHECK(gasnett_count0s_uint64_t(UINT64_C(0x0100000000000080)) == 6);
}

static void tracing(void)
{
    const char *file = "x";
    unsigned line = 1;
    CHECK(!GASNETT_TRACE_ENABLED && !GASNETT_TRACE_GET_TRACELOCAL());
    GASNETT_TRACE_PRINTF("%s", evaluate());
    GASNETT_TRACE_PRINTF_FORCE("%d%s", 1, evaluate());
    GASNETT_STATS_PRINTF("plain");
    GASNETT_STATS_PRINTF_FORCE("%s", evaluate());
    CHECK(evaluated == 0);
    GASNETT_TRACE_SETMASK(GASNETT_TRACE_GETMASK());
    GASNETT_STATS_SETMASK(GASNETT_STATS_GETMASK());
    GASNETT_TRACE_SET_TRACELOCAL(1);
    (GASNETT_TRACE_SETSOURCELINE(__FILE__, __LINE__), (void)0);
    GASNETT_TRACE_GETSOURCELINE(&file, &line);
    CHECK(!file && !line);
    GASNETT_TRACE_FREEZESOURCELINE();
    GASNETT_TRACE_UNFREEZESOURCELINE();
    GASNETT_STATS_INIT(collect);
    GASNETT_STATS_DUMP(1);
}

int main(void)
{
    char host[256];
    struct rlimit limit;
    char *location = gasnett_current_loc;
    uint64_t version = gasnett_release_version();
    CHECK(gethostname(host, sizeof host) == 0 && strcmp(gasnett_gethostname(), host) == 0);
    CHECK(gasnett_exe_name()[0] == '/' && access(gasnett_exe_name(), X_OK) == 0);
    CHECK(gasnett_cpu_count() >= 1);
    CHECK(gasnett_getPhysMemSz(1) > 1000000 && gasnett_getPhysMemSz(0) == gasnett_getPhysMemSz(1));
    CHECK(gasnett_isLittleEndian());
    CHECK(version == (uint64_t)GASNETT_RELEASE_VERSION_MAJOR * 1000000 + GASNETT_RELEASE_VERSION_MINOR * 10000 +
                         GASNETT_RELEASE_VERSION_PATCH);
    CHECK(strcmp(gasnett_release_version_str(), GASNETI_RELEASE_VERSION) == 0);
#ifdef GASNET_DEBUG
    CHECK(*gasnett_performance_warning_str());
#else
    CHECK(!*gasnett_performance_warning_str());
#endif
    CHECK(strstr(location, "main") && strstr(location, "system.c"));
    free(location);
    CHECK(gasnett_maximize_rlimit(RLIMIT_STACK, "RLIMIT_STACK"));
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == limit.rlim_max);
    CHECK(!gasnett_maximize_rlimit(-1, "RLIMIT_NONE"));
    gasnett_setenv("GASNET_MAXIMIZE_RLIMIT_NONE", "0");
    CHECK(gasnett_maximize_rlimit(-1, "RLIMIT_NONE"));
    CHECK(gasnett_maximize_rlimits());
    CHECK(GASNETT_SET_AFFINITY_SUPPORT && gasnett_set_affinity(0) == 0);
    CHECK(sched_getcpu() == 0);
    CHECK(gasnett_set_affinity(gasnett_cpu_count()) == 0);
    CHECK(sched_getcpu() == 0);
    gasnett_sched_yield();
    bytes();
    tracing();
    printf("%s\n%s\n%s\n", GASNETT_SYSTEM_TUPLE, GASNETT_CONFIG_STRING, GASNETT_CONFIGURE_ARGS);
    gasnett_flush_streams();
    gasnett_close_streams();
    gasnett_killmyprocess(7);
}
