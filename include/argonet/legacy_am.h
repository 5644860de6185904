/* Active messages of GASNet-1: requests and replies, each for 0 to 16 arguments, by numbered names
 * and by names whose callers say how many follow. Calls give GASNET_OK; payloads have been read
 * when they return, those of LongAsync too. */
#ifndef ARGONET_LEGACY_AM_H
#define ARGONET_LEGACY_AM_H

#include "am.h"
#include "legacy_calls.h"

/* Shorts of 0 to 3 arguments, in two words. */
static inline int gasnet_AMRequestShort0(gasnet_node_t node, gasnet_handler_t handler)
{
  return argonet_legacy_request_short(node, ARGONET_SHORT_HEAD(handler, 0, 0), 0);
}
static inline int gasnet_AMReplyShort0(gasnet_token_t token, gasnet_handler_t handler)
{
  return argonet_legacy_reply_short(token, ARGONET_SHORT_HEAD(handler, 0, 0), 0);
}
static inline int gasnet_AMRequestShort1(gasnet_node_t node, gasnet_handler_t handler, gasnet_handlerarg_t a0)
{
  return argonet_legacy_request_short(node, ARGONET_SHORT_HEAD(handler, 1, a0), 0);
}
static inline int gasnet_AMReplyShort1(gasnet_token_t token, gasnet_handler_t handler, gasnet_handlerarg_t a0)
{
  return argonet_legacy_reply_short(token, ARGONET_SHORT_HEAD(handler, 1, a0), 0);
}
static inline int gasnet_AMRequestShort2(gasnet_node_t node, gasnet_handler_t handler,
    gasnet_handlerarg_t a0, gasnet_handlerarg_t a1)
{
  return argonet_legacy_request_short(node, ARGONET_SHORT_HEAD(handler, 2, a0), ARGONET_SHORT_REST(a1, 0));
}
static inline int gasnet_AMReplyShort2(gasnet_token_t token, gasnet_handler_t handler,
    gasnet_handlerarg_t a0, gasnet_handlerarg_t a1)
{
  return argonet_legacy_reply_short(token, ARGONET_SHORT_HEAD(handler, 2, a0), ARGONET_SHORT_REST(a1, 0));
}
static inline int gasnet_AMRequestShort3(gasnet_node_t node, gasnet_handler_t handler,
    gasnet_handlerarg_t a0, gasnet_handlerarg_t a1, gasnet_handlerarg_t a2)
{
  return argonet_legacy_request_short(node, ARGONET_SHORT_HEAD(handler, 3, a0), ARGONET_SHORT_REST(a1, a2));
}
static inline int gasnet_AMReplyShort3(gasnet_token_t token, gasnet_handler_t handler,
    gasnet_handlerarg_t a0, gasnet_handlerarg_t a1, gasnet_handlerarg_t a2)
{
  return argonet_legacy_reply_short(token, ARGONET_SHORT_HEAD(handler, 3, a0), ARGONET_SHORT_REST(a1, a2));
}

/* Ends the job if a caller says another number of arguments than there are. */
static inline void argonet_legacy_count(const char *function, int64_t said, int given)
{
  if (said != given) argonet_legacy_wrong_count(function, said, given);
}

/* All that a number of arguments has. */
#define ARGONET_LEGACY_AM_SHORT(n)                                                                                     \
  static inline int gasnet_AMRequestShort##n(gasnet_node_t node, gasnet_handler_t handler                              \
      ARGONET_AM_PARAMETERS##n)                                                                                        \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_request_short_args(node, ARGONET_AM_WHAT(handler, n), args);                                 \
  }                                                                                                                    \
  static inline int gasnet_AMReplyShort##n(gasnet_token_t token, gasnet_handler_t handler                              \
      ARGONET_AM_PARAMETERS##n)                                                                                        \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_reply_short_args(token, ARGONET_AM_WHAT(handler, n), args);                                  \
  }
#define ARGONET_LEGACY_AM(n)                                                                                           \
  static inline int gasnet_AMRequestMedium##n(gasnet_node_t node, gasnet_handler_t handler,                            \
      const void *src, size_t nbytes ARGONET_AM_PARAMETERS##n)                                                         \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_request_medium(node, ARGONET_AM_WHAT(handler, n), src, nbytes, args);                        \
  }                                                                                                                    \
  static inline int gasnet_AMRequestLong##n(gasnet_node_t node, gasnet_handler_t handler,                              \
      const void *src, size_t nbytes, void *dest ARGONET_AM_PARAMETERS##n)                                             \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_request_long(node, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);                    \
  }                                                                                                                    \
  static inline int gasnet_AMRequestLongAsync##n(gasnet_node_t node, gasnet_handler_t handler,                         \
      const void *src, size_t nbytes, void *dest ARGONET_AM_PARAMETERS##n)                                             \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_request_long_async(node, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);              \
  }                                                                                                                    \
  static inline int gasnet_AMReplyMedium##n(gasnet_token_t token, gasnet_handler_t handler,                            \
      const void *src, size_t nbytes ARGONET_AM_PARAMETERS##n)                                                         \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_reply_medium(token, ARGONET_AM_WHAT(handler, n), src, nbytes, args);                         \
  }                                                                                                                    \
  static inline int gasnet_AMReplyLong##n(gasnet_token_t token, gasnet_handler_t handler,                              \
      const void *src, size_t nbytes, void *dest ARGONET_AM_PARAMETERS##n)                                             \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_legacy_reply_long(token, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);                     \
  }
#define ARGONET_LEGACY_AM_COUNTED(n)                                                                                   \
  static inline int argonet_counted_AMRequestShort##n(gasnet_node_t node, gasnet_handler_t handler,                    \
      int64_t count ARGONET_AM_PARAMETERS##n)                                                                          \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMRequestShort", count, n);                                                           \
    return argonet_legacy_request_short_args(node, ARGONET_AM_WHAT(handler, n), args);                                 \
  }                                                                                                                    \
  static inline int argonet_counted_AMRequestMedium##n(gasnet_node_t node, gasnet_handler_t handler,                   \
      const void *src, size_t nbytes, int64_t count ARGONET_AM_PARAMETERS##n)                                          \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMRequestMedium", count, n);                                                          \
    return argonet_legacy_request_medium(node, ARGONET_AM_WHAT(handler, n), src, nbytes, args);                        \
  }                                                                                                                    \
  static inline int argonet_counted_AMRequestLong##n(gasnet_node_t node, gasnet_handler_t handler,                     \
      const void *src, size_t nbytes, void *dest, int64_t count ARGONET_AM_PARAMETERS##n)                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMRequestLong", count, n);                                                            \
    return argonet_legacy_request_long(node, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);                    \
  }                                                                                                                    \
  static inline int argonet_counted_AMRequestLongAsync##n(gasnet_node_t node, gasnet_handler_t handler,                \
      const void *src, size_t nbytes, void *dest, int64_t count ARGONET_AM_PARAMETERS##n)                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMRequestLongAsync", count, n);                                                       \
    return argonet_legacy_request_long_async(node, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);              \
  }                                                                                                                    \
  static inline int argonet_counted_AMReplyShort##n(gasnet_token_t token, gasnet_handler_t handler,                    \
      int64_t count ARGONET_AM_PARAMETERS##n)                                                                          \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMReplyShort", count, n);                                                             \
    return argonet_legacy_reply_short_args(token, ARGONET_AM_WHAT(handler, n), args);                                  \
  }                                                                                                                    \
  static inline int argonet_counted_AMReplyMedium##n(gasnet_token_t token, gasnet_handler_t handler,                   \
      const void *src, size_t nbytes, int64_t count ARGONET_AM_PARAMETERS##n)                                          \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMReplyMedium", count, n);                                                            \
    return argonet_legacy_reply_medium(token, ARGONET_AM_WHAT(handler, n), src, nbytes, args);                         \
  }                                                                                                                    \
  static inline int argonet_counted_AMReplyLong##n(gasnet_token_t token, gasnet_handler_t handler,                     \
      const void *src, size_t nbytes, void *dest, int64_t count ARGONET_AM_PARAMETERS##n)                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    argonet_legacy_count("gasnet_AMReplyLong", count, n);                                                              \
    return argonet_legacy_reply_long(token, ARGONET_AM_WHAT(handler, n), src, nbytes, dest, args);                     \
  }

ARGONET_LEGACY_AM(0)
ARGONET_LEGACY_AM_COUNTED(0)
ARGONET_LEGACY_AM(1)
ARGONET_LEGACY_AM_COUNTED(1)
ARGONET_LEGACY_AM(2)
ARGONET_LEGACY_AM_COUNTED(2)
ARGONET_LEGACY_AM(3)
ARGONET_LEGACY_AM_COUNTED(3)
ARGONET_LEGACY_AM_SHORT(4)
ARGONET_LEGACY_AM(4)
ARGONET_LEGACY_AM_COUNTED(4)
ARGONET_LEGACY_AM_SHORT(5)
ARGONET_LEGACY_AM(5)
ARGONET_LEGACY_AM_COUNTED(5)
ARGONET_LEGACY_AM_SHORT(6)
ARGONET_LEGACY_AM(6)
ARGONET_LEGACY_AM_COUNTED(6)
ARGONET_LEGACY_AM_SHORT(7)
ARGONET_LEGACY_AM(7)
ARGONET_LEGACY_AM_COUNTED(7)
ARGONET_LEGACY_AM_SHORT(8)
ARGONET_LEGACY_AM(8)
ARGONET_LEGACY_AM_COUNTED(8)
ARGONET_LEGACY_AM_SHORT(9)
ARGONET_LEGACY_AM(9)
ARGONET_LEGACY_AM_COUNTED(9)
ARGONET_LEGACY_AM_SHORT(10)
ARGONET_LEGACY_AM(10)
ARGONET_LEGACY_AM_COUNTED(10)
ARGONET_LEGACY_AM_SHORT(11)
ARGONET_LEGACY_AM(11)
ARGONET_LEGACY_AM_COUNTED(11)
ARGONET_LEGACY_AM_SHORT(12)
ARGONET_LEGACY_AM(12)
ARGONET_LEGACY_AM_COUNTED(12)
ARGONET_LEGACY_AM_SHORT(13)
ARGONET_LEGACY_AM(13)
ARGONET_LEGACY_AM_COUNTED(13)
ARGONET_LEGACY_AM_SHORT(14)
ARGONET_LEGACY_AM(14)
ARGONET_LEGACY_AM_COUNTED(14)
ARGONET_LEGACY_AM_SHORT(15)
ARGONET_LEGACY_AM(15)
ARGONET_LEGACY_AM_COUNTED(15)
ARGONET_LEGACY_AM_SHORT(16)
ARGONET_LEGACY_AM(16)
ARGONET_LEGACY_AM_COUNTED(16)

#undef ARGONET_LEGACY_AM_SHORT
#undef ARGONET_LEGACY_AM
#undef ARGONET_LEGACY_AM_COUNTED

/* The count is an argument, after those of the numbered call and before those of the handler. */
#define gasnet_AMRequestShort(...)                                                                                     \
  ARGONET_AM_NAME(argonet_counted_AMRequestShort, ARGONET_AM_AFTER3(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestMedium(...)                                                                                    \
  ARGONET_AM_NAME(argonet_counted_AMRequestMedium, ARGONET_AM_AFTER5(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestLong(...)                                                                                      \
  ARGONET_AM_NAME(argonet_counted_AMRequestLong, ARGONET_AM_AFTER6(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestLongAsync(...)                                                                                 \
  ARGONET_AM_NAME(argonet_counted_AMRequestLongAsync, ARGONET_AM_AFTER6(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyShort(...)                                                                                       \
  ARGONET_AM_NAME(argonet_counted_AMReplyShort, ARGONET_AM_AFTER3(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyMedium(...)                                                                                      \
  ARGONET_AM_NAME(argonet_counted_AMReplyMedium, ARGONET_AM_AFTER5(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyLong(...)                                                                                        \
  ARGONET_AM_NAME(argonet_counted_AMReplyLong, ARGONET_AM_AFTER6(__VA_ARGS__))(__VA_ARGS__)

#endif
