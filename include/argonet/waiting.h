/* Polls and waits. */
#ifndef ARGONET_WAITING_H
#define ARGONET_WAITING_H

#include "waiting_calls.h"

/* Polls until the condition is true, which it evaluates again and again, and once at least. What
 * was written before it became true is visible afterwards. */
#define GASNET_BLOCKUNTIL(condition)                                                                                   \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      struct argonet_wait argonet_wait_here;                                                                           \
      argonet_wait_begin(&argonet_wait_here);                                                                          \
      do                                                                                                               \
        argonet_wait_step(&argonet_wait_here);                                                                         \
      while (!(condition));                                                                                            \
      argonet_wait_end(&argonet_wait_here);                                                                            \
    }                                                                                                                  \
    __atomic_thread_fence(__ATOMIC_ACQUIRE);                                                                           \
  } while (0)

/* This library finds the calling thread by itself: all threads have the same information. The first
 * and the last of these are declarations. */
typedef void *gasnet_threadinfo_t;
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t argonet_threadinfo __attribute__((__unused__)) = (info)
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

#endif
