/* Messages of clients in traces and statistics, which GASNET_TRACEFILE and GASNET_STATSFILE switch
 * on when a job starts: no program is compiled anew for them. Where they are off, or the letter is
 * not among GASNET_TRACEMASK, a message costs one call and its arguments are not evaluated; the
 * compiler checks them against the format either way. All are expressions. Any thread may use them,
 * inside handlers too. */
#ifndef ARGONET_TRACE_H
#define ARGONET_TRACE_H

#include "argonet/trace_calls.h"
#include <stdarg.h>
#include <stdio.h>

/* Bytes of the longest message; what is longer is cut. */
#define ARGONETT_TRACE_BYTES 4096

GASNETT_FORMAT_PRINTF(argonett_trace_say, 3, 4,
                      __attribute__((__unused__, __noinline__, __cold__)) static void argonett_trace_say(
                          int letter, int statistics, const char *format, ...))
{
    char text[ARGONETT_TRACE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    argonett_trace_text(letter, statistics, text);
}

/* What a client's callback gets. */
GASNETT_FORMAT_PRINTF(argonett_stats_line, 1, 2,
                      __attribute__((__unused__, __noinline__, __cold__)) static void argonett_stats_line(
                          const char *format, ...))
{
    char text[ARGONETT_TRACE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    argonett_trace_text('U', 1, text);
}

/* A function of the reference whose address Realm and Legion take, so that compilers count it as
 * used. It does nothing. */
GASNETT_FORMAT_PRINTF(_gasnett_trace_printf_noop, 1, 2,
                      __attribute__((__unused__)) static void _gasnett_trace_printf_noop(const char *format, ...))
{
    (void)format;
}

#define ARGONETT_TRACE_IF(letter, statistics, ...)                                                                     \
    (GASNETT_PREDICT_FALSE(argonett_trace_wants(letter, statistics))                                                   \
         ? argonett_trace_say(letter, statistics, __VA_ARGS__)                                                         \
         : (void)0)

/* Messages: letter H, or U, which no mask leaves out. */
#define GASNETT_TRACE_ENABLED argonett_trace_wants('H', 0)
#define GASNETT_TRACE_PRINTF(...) ARGONETT_TRACE_IF('H', 0, __VA_ARGS__)
#define GASNETT_TRACE_PRINTF_FORCE(...) ARGONETT_TRACE_IF('U', 0, __VA_ARGS__)
#define GASNETT_STATS_PRINTF(...) ARGONETT_TRACE_IF('H', 1, __VA_ARGS__)
#define GASNETT_STATS_PRINTF_FORCE(...) ARGONETT_TRACE_IF('U', 1, __VA_ARGS__)

/* Letters, as GASNET_TRACEMASK has them, for all threads of the process from now on. */
#define GASNETT_TRACE_GETMASK() argonett_trace_mask(0)
#define GASNETT_TRACE_SETMASK(mask) argonett_trace_set_mask(0, mask)
#define GASNETT_STATS_GETMASK() argonett_trace_mask(1)
#define GASNETT_STATS_SETMASK(mask) argonett_trace_set_mask(1, mask)
#define GASNETT_TRACE_GET_TRACELOCAL() argonett_trace_local()
#define GASNETT_TRACE_SET_TRACELOCAL(value) argonett_trace_set_local(value)

/* Where the calling thread is in its source; letter N. file is a string that stays, such as
 * __FILE__. */
#define GASNETT_TRACE_SETSOURCELINE(file, line)                                                                        \
    (GASNETT_PREDICT_FALSE(argonett_trace_wants('N', 0))                                                               \
         ? argonett_trace_set_source((const char *)(file), (uint32_t)(line))                                           \
         : (void)0)
#define GASNETT_TRACE_GETSOURCELINE(file, line) argonett_trace_source(file, line)
#define GASNETT_TRACE_FREEZESOURCELINE() argonett_trace_freeze()
#define GASNETT_TRACE_UNFREEZESOURCELINE() argonett_trace_thaw()

/* function is void function(void (*line)(const char *format, ...)): called whenever statistics are
 * written, but in a process that crashes, and adds lines to them. */
#define GASNETT_STATS_INIT(function) argonett_stats_init(function, &argonett_stats_line)
#define GASNETT_STATS_DUMP(reset) argonett_stats_dump(reset)

#endif
