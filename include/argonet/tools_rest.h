/* Environment, errors, debugging, system: what gasnet_tools.h has beyond GASNETT_LITE_MODE. */
#ifndef ARGONET_TOOLS_REST_H
#define ARGONET_TOOLS_REST_H

#include "argonet/locks.h"
#include "argonet/trace.h"
#include <string.h>

#define GASNETT_CONFIG_STRING                                                                                          \
    "RELEASE=" GASNETI_RELEASE_VERSION ",SPEC=" _STRINGIFY(GASNETT_SPEC_VERSION_MAJOR) "." _STRINGIFY(                 \
        GASNETT_SPEC_VERSION_MINOR) ",PTR=64bit,CACHE_LINE_BYTES=" _STRINGIFY(GASNETT_CACHE_LINE_BYTES) ","            \
        ARGONETT_DEBUG_WORD "," ARGONETT_TRACE_WORDS ",nodebugmalloc," ARGONETT_SRCLINES_WORD "," GASNETT_TIMER_CONFIG \
        ",membars_" GASNETT_MEMBAR_CONFIG ",atomics_" GASNETT_ATOMIC_CONFIG ",atomic32_" GASNETT_ATOMIC32_CONFIG       \
        ",atomic64_" GASNETT_ATOMIC64_CONFIG

GASNETT_IDENT(argonett_ident_threads, "$GASNetToolsThreadModel: " ARGONETT_THREAD_MODEL " $");
GASNETT_IDENT(argonett_ident_config, "$GASNetToolsConfig: " GASNETT_CONFIG_STRING " $");
/* A library of another version does not link. */
ARGONETT_KEPT static const char *const argonett_link_check = &argonett_version_1;

/* Environment. */
#define gasnett_getenv(key) argonett_getenv(key)
#define gasnett_getenv_withdefault(key, otherwise) argonett_getenv_or(key, otherwise)
#define gasnett_getenv_yesno_withdefault(key, otherwise) argonett_getenv_yesno(key, otherwise)
#define gasnett_getenv_int_withdefault(key, otherwise, unit) argonett_getenv_int(key, otherwise, unit)
#define gasnett_getenv_dbl_withdefault(key, otherwise) argonett_getenv_dbl(key, otherwise)
#define gasnett_setenv(key, value) argonett_setenv(key, value)
#define gasnett_unsetenv(key) argonett_unsetenv(key)
#define gasnett_verboseenv() argonett_verboseenv()
#define gasnett_envint_display(key, value, is_default, is_size)                                                        \
    argonett_envint_display(key, value, is_default, is_size)
#define gasnett_envdbl_display(key, value, is_default) argonett_envdbl_display(key, value, is_default)
#define gasnett_envstr_display(key, value, is_default) argonett_envstr_display(key, value, is_default)
#define gasnett_format_number(value, to, bytes, is_size) argonett_format_number(value, to, bytes, is_size)
#define gasnett_parse_int(text, unit) argonett_parse_int(text, unit)

/* Fatal errors. The library takes the text; the C compiler checks the arguments against the
 * format. */
#define ARGONETT_MESSAGE_BYTES 4096

GASNETT_FORMAT_PRINTF(argonett_fatal_at, 4, 5,
                      __attribute__((__unused__, __noinline__, __cold__)) GASNETT_NORETURN static void argonett_fatal_at(
                          const char *function, const char *file, int line, const char *format, ...))
{
    char text[ARGONETT_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    argonett_fatal(function, file, line, text);
}

#define gasnett_fatalerror(...) argonett_fatal_at(__func__, __FILE__, __LINE__, __VA_ARGS__)
/* The name that older programs use. */
#define gasneti_fatalerror(...) gasnett_fatalerror(__VA_ARGS__)
#define gasnett_fatalerror_nopos(...) argonett_fatal_at("", "", 0, __VA_ARGS__)
#define gasnett_current_loc argonett_location(__func__, __FILE__, __LINE__)

#if ARGONETT_DEBUG
#define gasnett_assume(cond)                                                                                           \
    (GASNETT_PREDICT_TRUE(cond) ? (void)0 : argonett_fatal(__func__, __FILE__, __LINE__, "assumed, but not so: " #cond))
#else
#define gasnett_assume(cond) (GASNETT_PREDICT_TRUE(cond) ? (void)0 : gasnett_unreachable())
#endif

/* Debugging. A client may define gasnett_backtrace_user, which the library then finds. */
typedef struct {
    const char *name;
    int (*fnp)(int fd);
    int threadsupport;
} gasnett_backtrace_type_t;
GASNETT_BEGIN_EXTERNC
extern gasnett_backtrace_type_t gasnett_backtrace_user;
GASNETT_END_EXTERNC
#define gasnett_freezeForDebuggerNow(flag, symbol) argonett_freeze(flag, symbol)
#define gasnett_freezeForDebuggerErr() argonett_freeze_on_error()
#define gasnett_backtrace_init(program) argonett_backtrace_init(program)
#define gasnett_print_backtrace(fd) argonett_print_backtrace(fd)

/* System. */
#define gasnett_gethostname() argonett_hostname()
/* The name that older programs use. */
#define gasneti_gethostname() argonett_hostname()
#define gasnett_exe_name() argonett_exe_name()
#define gasnett_cpu_count() argonett_cpu_count()
#define gasnett_getPhysMemSz(fatal) argonett_physical_memory(fatal)
#define gasnett_isLittleEndian() 1
#define GASNETT_SET_AFFINITY_SUPPORT 1
#define gasnett_set_affinity(rank) argonett_set_affinity(rank)
#define gasnett_sched_yield() argonett_sched_yield()
#define gasnett_flush_streams() argonett_flush_streams()
#define gasnett_killmyprocess(code) argonett_exit_now(code)
#define gasnett_reghandler(signal, handler) argonett_reghandler(signal, handler)
#define gasnett_maximize_rlimit(resource, description) argonett_maximize_rlimit(resource, description)
#define gasnett_maximize_rlimits() argonett_maximize_rlimits()

GASNETT_INLINE(gasnett_close_streams)
void gasnett_close_streams(void)
{
    argonett_flush_streams();
    fclose(stdin);
    fclose(stdout);
    fclose(stderr);
}

GASNETT_INLINE(gasnett_performance_warning_str)
const char *gasnett_performance_warning_str(void)
{
    return ARGONETT_DEBUG ? "        debugging and error checking\n" : "";
}

GASNETT_INLINE(gasnett_release_version_str)
const char *gasnett_release_version_str(void)
{
    return GASNETI_RELEASE_VERSION;
}

GASNETT_INLINE(gasnett_release_version)
uint64_t gasnett_release_version(void)
{
    return (uint64_t)GASNET_RELEASE_VERSION_MAJOR * 1000000 + GASNET_RELEASE_VERSION_MINOR * 10000 +
           GASNET_RELEASE_VERSION_PATCH;
}

/* Bytes. */
#define gasnett_checksum(from, bytes) argonett_checksum(from, bytes)
#define gasnett_count0s(from, bytes) argonett_count0s(from, bytes)
#define gasnett_count0s_copy(to, from, bytes) argonett_count0s_copy(to, from, bytes)

GASNETT_INLINE(gasnett_count0s_uint64_t)
int gasnett_count0s_uint64_t(uint64_t word)
{
    /* Per byte: its low bits carry into the highest unless they are zero. */
    uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F);
    return 8 - __builtin_popcountll((((word & low) + low) | word) & ~low);
}

GASNETT_INLINE(gasnett_count0s_uint32_t)
int gasnett_count0s_uint32_t(uint32_t word)
{
    return gasnett_count0s_uint64_t(word) - 4;
}

GASNETT_INLINE(gasnett_count0s_uintptr_t)
int gasnett_count0s_uintptr_t(uintptr_t word)
{
    return gasnett_count0s_uint64_t(word);
}

#endif
