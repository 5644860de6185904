/* Active messages: requests, replies, and negotiated payloads, each for 0 to 16 arguments, by
 * numbered names and by names that count them. */
#ifndef ARGONET_AM_H
#define ARGONET_AM_H

#include "am_args.h"
#include "am_calls.h"

#define ARGONET_AM_MOST_ARGS 0x10
static inline unsigned int gex_AM_MaxArgs(void) { return ARGONET_AM_MOST_ARGS; }

/* A short message with at most three arguments, in two words. */
#define ARGONET_SHORT_HEAD(handler, nargs, a0)                                                                         \
  (UINT64_C(0x10001) | (uint64_t)(nargs) << 3 | (uint64_t)(gex_AM_Index_t)(handler) << 8 |                             \
   (uint64_t)(uint32_t)(a0) << 32)
#define ARGONET_SHORT_REST(a1, a2) ((uint64_t)(uint32_t)(a1) | (uint64_t)(uint32_t)(a2) << 32)

/* A handler's index and a number of arguments, which stand in an array. */
#define ARGONET_AM_WHAT(handler, nargs) ((uint32_t)(gex_AM_Index_t)(handler) | (uint32_t)(nargs) << 8)

/* Shorts of 0 to 3 arguments. */
static inline int gex_AM_RequestShort0(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags)
{
  return argonet_request_short(tm, rank, ARGONET_SHORT_HEAD(handler, 0, 0), 0, flags);
}
static inline int gex_AM_ReplyShort0(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags)
{
  return argonet_reply_short(token, ARGONET_SHORT_HEAD(handler, 0, 0), 0, flags);
}
static inline int gex_AM_RequestShort1(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
    gex_AM_Arg_t a0)
{
  return argonet_request_short(tm, rank, ARGONET_SHORT_HEAD(handler, 1, a0), 0, flags);
}
static inline int gex_AM_ReplyShort1(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags, gex_AM_Arg_t a0)
{
  return argonet_reply_short(token, ARGONET_SHORT_HEAD(handler, 1, a0), 0, flags);
}
static inline int gex_AM_RequestShort2(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
    gex_AM_Arg_t a0, gex_AM_Arg_t a1)
{
  return argonet_request_short(tm, rank, ARGONET_SHORT_HEAD(handler, 2, a0), ARGONET_SHORT_REST(a1, 0), flags);
}
static inline int gex_AM_ReplyShort2(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
    gex_AM_Arg_t a0, gex_AM_Arg_t a1)
{
  return argonet_reply_short(token, ARGONET_SHORT_HEAD(handler, 2, a0), ARGONET_SHORT_REST(a1, 0), flags);
}
static inline int gex_AM_RequestShort3(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
    gex_AM_Arg_t a0, gex_AM_Arg_t a1, gex_AM_Arg_t a2)
{
  return argonet_request_short(tm, rank, ARGONET_SHORT_HEAD(handler, 3, a0), ARGONET_SHORT_REST(a1, a2), flags);
}
static inline int gex_AM_ReplyShort3(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
    gex_AM_Arg_t a0, gex_AM_Arg_t a1, gex_AM_Arg_t a2)
{
  return argonet_reply_short(token, ARGONET_SHORT_HEAD(handler, 3, a0), ARGONET_SHORT_REST(a1, a2), flags);
}

/* All that a number of arguments has. */
#define ARGONET_AM_SHORT(n)                                                                                            \
  static inline int gex_AM_RequestShort##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t           \
      flags ARGONET_AM_PARAMETERS##n)                                                                                  \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_request_short_args(tm, rank, ARGONET_AM_WHAT(handler, n), flags, args);                             \
  }                                                                                                                    \
  static inline int gex_AM_ReplyShort##n(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags                  \
      ARGONET_AM_PARAMETERS##n)                                                                                        \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_reply_short_args(token, ARGONET_AM_WHAT(handler, n), flags, args);                                  \
  }
#define ARGONET_AM_FIXED(n)                                                                                            \
  static inline int gex_AM_RequestMedium##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void           \
      *src, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                            \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_request_medium(tm, rank, ARGONET_AM_WHAT(handler, n), src, nbytes, lc_opt, flags, args);            \
  }                                                                                                                    \
  static inline int gex_AM_RequestLong##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void             \
      *src, size_t nbytes, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                 \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_request_long(tm, rank, ARGONET_AM_WHAT(handler, n), src, nbytes, dst, lc_opt, flags, args);         \
  }                                                                                                                    \
  static inline int gex_AM_ReplyMedium##n(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t           \
      nbytes, gex_Event_t *lc_opt, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                                         \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_reply_medium(token, ARGONET_AM_WHAT(handler, n), src, nbytes, lc_opt, flags, args);                 \
  }                                                                                                                    \
  static inline int gex_AM_ReplyLong##n(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t             \
      nbytes, void *dst, gex_Event_t *lc_opt, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_reply_long(token, ARGONET_AM_WHAT(handler, n), src, nbytes, dst, lc_opt, flags, args);              \
  }
#define ARGONET_AM_COMMIT(n)                                                                                           \
  static inline void gex_AM_CommitRequestMedium##n(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes          \
      ARGONET_AM_PARAMETERS##n)                                                                                        \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    (void)argonet_commit_request_medium(sd, ARGONET_AM_WHAT(handler, n), nbytes, 0, args);                             \
  }                                                                                                                    \
  static inline int gex_AM_CommitRequestMedium##n##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t             \
      nbytes, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                                                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_commit_request_medium(sd, ARGONET_AM_WHAT(handler, n), nbytes, flags, args);                        \
  }                                                                                                                    \
  static inline void gex_AM_CommitRequestLong##n(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,           \
      void *dst ARGONET_AM_PARAMETERS##n)                                                                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    (void)argonet_commit_request_long(sd, ARGONET_AM_WHAT(handler, n), nbytes, dst, 0, args);                          \
  }                                                                                                                    \
  static inline int gex_AM_CommitRequestLong##n##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t               \
      nbytes, void *dst, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                                                   \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_commit_request_long(sd, ARGONET_AM_WHAT(handler, n), nbytes, dst, flags, args);                     \
  }                                                                                                                    \
  static inline void gex_AM_CommitReplyMedium##n(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes            \
      ARGONET_AM_PARAMETERS##n)                                                                                        \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    (void)argonet_commit_reply_medium(sd, ARGONET_AM_WHAT(handler, n), nbytes, 0, args);                               \
  }                                                                                                                    \
  static inline int gex_AM_CommitReplyMedium##n##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t               \
      nbytes, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                                                              \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_commit_reply_medium(sd, ARGONET_AM_WHAT(handler, n), nbytes, flags, args);                          \
  }                                                                                                                    \
  static inline void gex_AM_CommitReplyLong##n(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void        \
      *dst ARGONET_AM_PARAMETERS##n)                                                                                   \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    (void)argonet_commit_reply_long(sd, ARGONET_AM_WHAT(handler, n), nbytes, dst, 0, args);                            \
  }                                                                                                                    \
  static inline int gex_AM_CommitReplyLong##n##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,         \
      void *dst, gex_Flags_t flags ARGONET_AM_PARAMETERS##n)                                                           \
  {                                                                                                                    \
    ARGONET_AM_ARRAY##n                                                                                                \
    return argonet_commit_reply_long(sd, ARGONET_AM_WHAT(handler, n), nbytes, dst, flags, args);                       \
  }

ARGONET_AM_FIXED(0)
ARGONET_AM_COMMIT(0)
ARGONET_AM_FIXED(1)
ARGONET_AM_COMMIT(1)
ARGONET_AM_FIXED(2)
ARGONET_AM_COMMIT(2)
ARGONET_AM_FIXED(3)
ARGONET_AM_COMMIT(3)
ARGONET_AM_SHORT(4)
ARGONET_AM_FIXED(4)
ARGONET_AM_COMMIT(4)
ARGONET_AM_SHORT(5)
ARGONET_AM_FIXED(5)
ARGONET_AM_COMMIT(5)
ARGONET_AM_SHORT(6)
ARGONET_AM_FIXED(6)
ARGONET_AM_COMMIT(6)
ARGONET_AM_SHORT(7)
ARGONET_AM_FIXED(7)
ARGONET_AM_COMMIT(7)
ARGONET_AM_SHORT(8)
ARGONET_AM_FIXED(8)
ARGONET_AM_COMMIT(8)
ARGONET_AM_SHORT(9)
ARGONET_AM_FIXED(9)
ARGONET_AM_COMMIT(9)
ARGONET_AM_SHORT(10)
ARGONET_AM_FIXED(10)
ARGONET_AM_COMMIT(10)
ARGONET_AM_SHORT(11)
ARGONET_AM_FIXED(11)
ARGONET_AM_COMMIT(11)
ARGONET_AM_SHORT(12)
ARGONET_AM_FIXED(12)
ARGONET_AM_COMMIT(12)
ARGONET_AM_SHORT(13)
ARGONET_AM_FIXED(13)
ARGONET_AM_COMMIT(13)
ARGONET_AM_SHORT(14)
ARGONET_AM_FIXED(14)
ARGONET_AM_COMMIT(14)
ARGONET_AM_SHORT(15)
ARGONET_AM_FIXED(15)
ARGONET_AM_COMMIT(15)
ARGONET_AM_SHORT(16)
ARGONET_AM_FIXED(16)
ARGONET_AM_COMMIT(16)

#undef ARGONET_AM_SHORT
#undef ARGONET_AM_FIXED
#undef ARGONET_AM_COMMIT

/* The number of arguments after the first 3 to 8. */
#define ARGONET_AM_25TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, ...) y
#define ARGONET_AM_AFTER3(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, none, none, none, none, none, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, \
                  none)
#define ARGONET_AM_AFTER4(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, none, none, none, none, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, none)
#define ARGONET_AM_AFTER5(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, none, none, none, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, none)
#define ARGONET_AM_AFTER6(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, none, none, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, none)
#define ARGONET_AM_AFTER7(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, none, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, none)
#define ARGONET_AM_AFTER8(...)                                                                                         \
  ARGONET_AM_25TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, none)

/* The function whose name ends with the number of arguments. */
#define ARGONET_AM_NAME(name, count) ARGONET_AM_JOIN(name, count)
#define ARGONET_AM_JOIN(name, count) name##count
#define ARGONET_AM_NAME_V2(name, count) ARGONET_AM_JOIN_V2(name, count)
#define ARGONET_AM_JOIN_V2(name, count) name##count##_v2

#define gex_AM_RequestShort(...) ARGONET_AM_NAME(gex_AM_RequestShort, ARGONET_AM_AFTER4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestMedium(...) ARGONET_AM_NAME(gex_AM_RequestMedium, ARGONET_AM_AFTER7(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestLong(...) ARGONET_AM_NAME(gex_AM_RequestLong, ARGONET_AM_AFTER8(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyShort(...) ARGONET_AM_NAME(gex_AM_ReplyShort, ARGONET_AM_AFTER3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyMedium(...) ARGONET_AM_NAME(gex_AM_ReplyMedium, ARGONET_AM_AFTER6(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyLong(...) ARGONET_AM_NAME(gex_AM_ReplyLong, ARGONET_AM_AFTER7(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestMedium(...)                                                                                \
  ARGONET_AM_NAME(gex_AM_CommitRequestMedium, ARGONET_AM_AFTER3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestMedium_v2(...)                                                                             \
  ARGONET_AM_NAME_V2(gex_AM_CommitRequestMedium, ARGONET_AM_AFTER4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong(...)                                                                                  \
  ARGONET_AM_NAME(gex_AM_CommitRequestLong, ARGONET_AM_AFTER4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...)                                                                               \
  ARGONET_AM_NAME_V2(gex_AM_CommitRequestLong, ARGONET_AM_AFTER5(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium(...)                                                                                  \
  ARGONET_AM_NAME(gex_AM_CommitReplyMedium, ARGONET_AM_AFTER3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...)                                                                               \
  ARGONET_AM_NAME_V2(gex_AM_CommitReplyMedium, ARGONET_AM_AFTER4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong(...) ARGONET_AM_NAME(gex_AM_CommitReplyLong, ARGONET_AM_AFTER4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...)                                                                                 \
  ARGONET_AM_NAME_V2(gex_AM_CommitReplyLong, ARGONET_AM_AFTER5(__VA_ARGS__))(__VA_ARGS__)

#endif
