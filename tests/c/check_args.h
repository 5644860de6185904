/* Lists for the functions that exist once for each number of arguments, 0 to 16.
 *
 * CHECK_LIST_3(f) is `, f(0), f(1), f(2)`; CHECK_COUNTS(x) is x(0) x(1) ... x(16). */
#ifndef ARGONET_TESTS_CHECK_ARGS_H
#define ARGONET_TESTS_CHECK_ARGS_H

#define CHECK_LIST_0(f)
#define CHECK_LIST_1(f) , f(0)
#define CHECK_LIST_2(f) CHECK_LIST_1(f), f(1)
#define CHECK_LIST_3(f) CHECK_LIST_2(f), f(2)
#define CHECK_LIST_4(f) CHECK_LIST_3(f), f(3)
#define CHECK_LIST_5(f) CHECK_LIST_4(f), f(4)
#define CHECK_LIST_6(f) CHECK_LIST_5(f), f(5)
#define CHECK_LIST_7(f) CHECK_LIST_6(f), f(6)
#define CHECK_LIST_8(f) CHECK_LIST_7(f), f(7)
#define CHECK_LIST_9(f) CHECK_LIST_8(f), f(8)
#define CHECK_LIST_10(f) CHECK_LIST_9(f), f(9)
#define CHECK_LIST_11(f) CHECK_LIST_10(f), f(10)
#define CHECK_LIST_12(f) CHECK_LIST_11(f), f(11)
#define CHECK_LIST_13(f) CHECK_LIST_12(f), f(12)
#define CHECK_LIST_14(f) CHECK_LIST_13(f), f(13)
#define CHECK_LIST_15(f) CHECK_LIST_14(f), f(14)
#define CHECK_LIST_16(f) CHECK_LIST_15(f), f(15)

#define CHECK_COUNTS(x) \
  x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)

#define CHECK_MOST_ARGS 16

/* A handler's parameters, their names, and the values that requests and replies carry. */
#define CHECK_PARAMETER(n) gex_AM_Arg_t a##n
#define CHECK_PARAMETER_NAME(n) a##n
#define CHECK_REQUEST_VALUE(n) check_argument(n)
#define CHECK_REPLY_VALUE(n) ~check_argument(n)

/* All bits of all arguments matter, the sign included. */
static inline gex_AM_Arg_t check_argument(int n) {
  static const gex_AM_Arg_t values[CHECK_MOST_ARGS] = {
      -1,         INT32_MIN,  INT32_MAX, 0,           1,          -2,         0x12345678, (gex_AM_Arg_t)-0x12345678,
      0x00ff00ff, 0x7f00ff00, 65536,     -65537,      0x40000000, -0x40000001, 127,       -128};
  return values[n];
}

/* Compares `count` arguments; `received` begins with one element that does not count, so that it is
 * never empty. */
static inline void check_arguments(const gex_AM_Arg_t *received, int count, int is_reply) {
  int n;
  for (n = 0; n < count; ++n) {
    gex_AM_Arg_t should = is_reply ? ~check_argument(n) : check_argument(n);
    CHECK_EQ(received[n + 1], should);
  }
}

#endif
