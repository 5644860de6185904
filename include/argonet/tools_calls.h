/* The functions and variables of the library that gasnet_tools.h uses. A test compares them with
 * what the library exports. */
#ifndef ARGONET_TOOLS_CALLS_H
#define ARGONET_TOOLS_CALLS_H

#include "argonet/annotations.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ticks to time. */
extern uint64_t argonett_ticks_to_ns(uint64_t ticks);
extern double argonett_tick_granularity_us(void);
extern double argonett_tick_overhead_us(void);
extern uint64_t argonett_gettimeofday_us(void);
extern int argonett_nsleep(uint64_t ns);

/* Locks for reading and writing. All zeros is one that is free. With checked != 0 the thread's own
 * locks are listed. */
typedef struct {
    uint64_t argonett_opaque[8];
} gasnett_rwlock_t;
extern void argonett_rwlock_destroy(gasnett_rwlock_t *lock);
extern int argonett_rwlock_read(gasnett_rwlock_t *lock, int wait, int checked);
extern int argonett_rwlock_write(gasnett_rwlock_t *lock, int wait, int checked);
extern void argonett_rwlock_unlock(gasnett_rwlock_t *lock, int checked);
/* What this thread holds: 0 nothing, 1 for reading, 2 for writing. */
extern int argonett_rwlock_held(gasnett_rwlock_t *lock);

/* Environment. */
extern char *argonett_getenv(const char *name);
extern char *argonett_getenv_or(const char *name, const char *otherwise);
extern int argonett_getenv_yesno(const char *name, int otherwise);
extern int64_t argonett_getenv_int(const char *name, int64_t otherwise, uint64_t unit);
extern double argonett_getenv_dbl(const char *name, double otherwise);
extern void argonett_setenv(const char *name, const char *value);
extern void argonett_unsetenv(const char *name);
extern int argonett_verboseenv(void);
extern void argonett_envint_display(const char *name, int64_t value, int is_default, int is_size);
extern void argonett_envdbl_display(const char *name, double value, int is_default);
extern void argonett_envstr_display(const char *name, const char *value, int is_default);
extern char *argonett_format_number(int64_t value, char *to, size_t bytes, int is_size);
extern int64_t argonett_parse_int(const char *text, uint64_t unit);

/* Errors and debugging. */
extern void argonett_fatal(const char *function, const char *file, int line, const char *text) GASNETT_NORETURN;
extern char *argonett_location(const char *function, const char *file, int line);
extern void argonett_freeze(volatile int *flag, const char *symbol);
extern void argonett_freeze_on_error(void);
extern void argonett_backtrace_init(const char *program);
extern int argonett_print_backtrace(int fd);
extern int (*gasnett_print_backtrace_ifenabled)(int fd);

/* System. */
extern const char *argonett_hostname(void);
extern const char *argonett_exe_name(void);
extern int argonett_cpu_count(void);
extern uint64_t argonett_physical_memory(int fatal);
extern int argonett_set_affinity(int rank);
extern void argonett_sched_yield(void);
extern void argonett_flush_streams(void);
extern void argonett_exit_now(int code) GASNETT_NORETURN;
extern int argonett_maximize_rlimit(int resource, const char *description);
extern int argonett_maximize_rlimits(void);
typedef void (*gasnett_sighandlerfn_t)(int);
extern gasnett_sighandlerfn_t argonett_reghandler(int signal, gasnett_sighandlerfn_t handler);

/* Bytes. */
extern uint64_t argonett_checksum(const void *from, int bytes);
extern size_t argonett_count0s(const void *from, size_t bytes);
extern size_t argonett_count0s_copy(void *to, const void *from, size_t bytes);

/* Code that includes the headers of one version refers to the library of the same. */
extern const char argonett_version_1;

#ifdef __cplusplus
}
#endif
#endif
