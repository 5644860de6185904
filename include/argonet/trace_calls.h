/* The functions of the library that argonet/trace.h uses. A test compares them with what the
 * library exports. */
#ifndef ARGONET_TRACE_CALLS_H
#define ARGONET_TRACE_CALLS_H

#include "argonet/annotations.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function of the client's calls for each line of statistics: it formats as printf does. */
typedef void (*argonett_stats_line_t)(const char *format, ...);
typedef void (*argonett_stats_callback_t)(argonett_stats_line_t line);

/* statistics is 0 for the trace, 1 for statistics; letter is 'H', 'N' or 'U'. */
extern int argonett_trace_wants(int letter, int statistics);
extern void argonett_trace_text(int letter, int statistics, const char *message);
/* The letters that are traced or counted, "" where that is off; good until the thread asks
 * again. */
extern const char *argonett_trace_mask(int statistics);
extern void argonett_trace_set_mask(int statistics, const char *mask);
extern int argonett_trace_local(void);
extern void argonett_trace_set_local(int local);
/* file must stay as long as the process lives; null means the same as before. */
extern void argonett_trace_set_source(const char *file, uint32_t line);
extern void argonett_trace_source(const char **file, uint32_t *line);
extern void argonett_trace_freeze(void);
extern void argonett_trace_thaw(void);
extern void argonett_stats_init(argonett_stats_callback_t callback, argonett_stats_line_t line);
extern void argonett_stats_dump(int reset);

#ifdef __cplusplus
}
#endif
#endif
