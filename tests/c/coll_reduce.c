/* gex_Coll_ReduceToOneNB and gex_Coll_ReduceToAllNB: every type, operation, root, in place or not,
 * one element to many; operations of the client's own, in the order of ranks; on the team of all
 * and on a part of it; several under way at once. */
#include "check.h"
#include <gasnet_coll.h>

enum { MOST = 30000, MANY = 40 };
static const size_t counts[] = {1, 2, 7, 100, 1024, 4097, MOST};

/* Element i of rank r: small, so that sums and products of floats are exact. */
static int given(gex_Rank_t r, size_t i) { return 1 + (int)((r * 7 + i * 3) % 3); }

#define COMBINE(name, type, expression) \
  static type name##_##type(type a, type b) { return (type)(expression); }
#define ARITHMETIC(type) COMBINE(add, type, a + b) COMBINE(mult, type, a * b) COMBINE(min, type, a < b ? a : b) COMBINE(max, type, a > b ? a : b)
#define BITWISE(type) COMBINE(and, type, a & b) COMBINE(or, type, a | b) COMBINE(xor, type, a ^ b)
ARITHMETIC(int32_t) ARITHMETIC(uint32_t) ARITHMETIC(int64_t) ARITHMETIC(uint64_t) ARITHMETIC(float) ARITHMETIC(double)
BITWISE(int32_t) BITWISE(uint32_t) BITWISE(int64_t) BITWISE(uint64_t)

#define RUN(type, dt, op, combine) do { \
  type *src = (type *)malloc(MOST * sizeof(type)), *dst = (type *)malloc(MOST * sizeof(type)); \
  size_t k, i; \
  gex_Rank_t r, root; \
  for (k = 0; k < CHECK_COUNT(counts); ++k) { \
    size_t count = counts[k]; \
    for (root = 0; root <= ranks; ++root) { \
      int in_place = (root + k) % 2, all = root == ranks; \
      if (!all && k > 4 && root > 1) continue; \
      for (i = 0; i < count; ++i) { src[i] = (type)given(me, i); dst[i] = in_place ? src[i] : (type)99; } \
      gex_Event_Wait(all ? gex_Coll_ReduceToAllNB(team, dst, in_place ? dst : src, dt, sizeof(type), count, op, NULL, NULL, 0) \
                         : gex_Coll_ReduceToOneNB(team, root, dst, in_place && me == root ? dst : src, dt, sizeof(type), count, op, NULL, NULL, 0)); \
      for (i = 0; i < count; ++i) { \
        type should = (type)given(0, i); \
        for (r = 1; r < ranks; ++r) should = combine(should, (type)given(r, i)); \
        if (all || me == root) CHECK(dst[i] == should); \
        else CHECK(dst[i] == (in_place ? src[i] : (type)99)); \
        CHECK(src[i] == (type)given(me, i)); \
      } \
    } \
  } \
  free(src); free(dst); \
} while (0)
#define ALL(type, dt) do { \
  RUN(type, dt, GEX_OP_ADD, add_##type); RUN(type, dt, GEX_OP_MULT, mult_##type); \
  RUN(type, dt, GEX_OP_MIN, min_##type); RUN(type, dt, GEX_OP_MAX, max_##type); \
} while (0)
#define BITS(type, dt) do { \
  RUN(type, dt, GEX_OP_AND, and_##type); RUN(type, dt, GEX_OP_OR, or_##type); RUN(type, dt, GEX_OP_XOR, xor_##type); \
} while (0)

/* A run of ranks: the order of operands shows in it. */
typedef struct { uint32_t first, last, broken; char fill[5]; } run_t;
static int calls;
static void join(const void *left, void *right, size_t count, const void *cdata) {
  const run_t *a = (const run_t *)left;
  run_t *b = (run_t *)right;
  size_t i;
  CHECK_SAME(cdata, &calls);
  CHECK(count > 0);
  calls = calls + 1;
  for (i = 0; i < count; ++i) {
    b[i].broken |= a[i].broken | (a[i].last + 1 != b[i].first);
    b[i].first = a[i].first;
  }
}
/* Commutes: 17 bytes of maxima. */
typedef struct { unsigned char bytes[17]; } odd_t;
static void highest(const void *left, void *right, size_t count, const void *cdata) {
  const unsigned char *a = (const unsigned char *)left;
  unsigned char *b = (unsigned char *)right;
  size_t i;
  CHECK_SAME(cdata, &ranks);
  for (i = 0; i < count * sizeof(odd_t); ++i) if (a[i] > b[i]) b[i] = a[i];
}

static void users(gex_TM_t tm) {
  gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), root;
  run_t *runs = (run_t *)malloc(5000 * sizeof(run_t)), *result = (run_t *)malloc(5000 * sizeof(run_t));
  odd_t *odd = (odd_t *)malloc(3000 * sizeof(odd_t));
  size_t i, count;
  for (count = 1; count <= 5000; count *= 50)
    for (root = 0; root <= size; ++root) {
      memset(runs, 0, count * sizeof(run_t));
      for (i = 0; i < count; ++i) runs[i].first = runs[i].last = rank;
      gex_Event_Wait(root == size
        ? gex_Coll_ReduceToAllNB(tm, result, runs, GEX_DT_USER, sizeof(run_t), count, GEX_OP_USER_NC, join, &calls, 0)
        : gex_Coll_ReduceToOneNB(tm, root, result, runs, GEX_DT_USER, sizeof(run_t), count, GEX_OP_USER_NC, join, &calls, 0));
      if (root == size || rank == root)
        for (i = 0; i < count; ++i) {
          CHECK_EQ(result[i].broken, 0);
          CHECK_EQ(result[i].first, 0);
          CHECK_EQ(result[i].last, size - 1);
        }
    }
  for (count = 1; count <= 3000; count += 2999) {
    memset(odd, (int)rank, count * sizeof(odd_t));
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, odd, odd, GEX_DT_USER, sizeof(odd_t), count, GEX_OP_USER, highest, &ranks, 0));
    CHECK_ALL((unsigned char *)odd, count * sizeof(odd_t), (unsigned char)(size - 1));
  }
  free(runs); free(result); free(odd);
}

static void many(gex_TM_t other) {
  static double src[MANY][600], dst[MANY][600];
  gex_Event_t events[MANY];
  int i, j;
  for (i = 0; i < MANY; ++i) {
    gex_TM_t tm = i % 2 ? team : other;
    for (j = 0; j < 600; ++j) src[i][j] = i + j;
    events[i] = gex_Coll_ReduceToAllNB(tm, dst[i], src[i], GEX_DT_DBL, 8, (size_t)(1 + i * 14), GEX_OP_ADD, NULL, NULL, 0);
  }
  for (i = MANY - 1; i >= 0; --i) {
    gex_Rank_t size = gex_TM_QuerySize(i % 2 ? team : other);
    gex_Event_Wait(events[i]);
    for (j = 0; j < 1 + i * 14; ++j) CHECK(dst[i][j] == (double)(size * (gex_Rank_t)(i + j)));
  }
}

int main(int argc, char **argv) {
  gex_TM_t half = GEX_TM_INVALID;
  check_start(&argc, &argv, "coll_reduce");
  ALL(int32_t, GEX_DT_I32); ALL(uint32_t, GEX_DT_U32); ALL(int64_t, GEX_DT_I64); ALL(uint64_t, GEX_DT_U64);
  ALL(float, GEX_DT_FLT); ALL(double, GEX_DT_DBL);
  BITS(int32_t, GEX_DT_I32); BITS(uint32_t, GEX_DT_U32); BITS(int64_t, GEX_DT_I64); BITS(uint64_t, GEX_DT_U64);
  gex_TM_Split(&half, team, (int)(me % 2), -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  users(team);
  users(half);
  /* The neighborhoods determine the ranks that combine. */
  gex_Event_Wait(gex_Coll_ReduceToAllNB(team, &calls, &calls, GEX_DT_I32, sizeof calls, 1, GEX_OP_MAX, NULL, NULL, 0));
  CHECK(ranks == 1 || calls > 0);
  many(half);
  gex_TM_Destroy(half, NULL, 0);
  return check_finish();
}
