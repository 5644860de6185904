/* Remote atomic operations on every type against what C computes, for ratomic.c and
 * ratomic_bound.c: the first operand, the second, what is at the target, and what is fetched. */
#ifndef ARGONET_TESTS_RATOMIC_H
#define ARGONET_TESTS_RATOMIC_H

#include "check.h"

#include <gasnet_ratomic.h>

/* All operations, those for integers alone first. */
static const gex_OP_t all_ops[] = {
    GEX_OP_AND,  GEX_OP_OR,   GEX_OP_XOR,   GEX_OP_FAND, GEX_OP_FOR,  GEX_OP_FXOR, GEX_OP_ADD,
    GEX_OP_SUB,  GEX_OP_MULT, GEX_OP_MIN,   GEX_OP_MAX,  GEX_OP_INC,  GEX_OP_DEC,  GEX_OP_SET,
    GEX_OP_CAS,  GEX_OP_FADD, GEX_OP_FSUB,  GEX_OP_FMULT, GEX_OP_FMIN, GEX_OP_FMAX, GEX_OP_FINC,
    GEX_OP_FDEC, GEX_OP_SWAP, GEX_OP_FCAS,  GEX_OP_GET};
enum { OPS = CHECK_COUNT(all_ops), BITWISE = 6 };

static inline gex_OP_t ops_of(int is_integer) {
  gex_OP_t ops = 0;
  size_t i;
  for (i = is_integer ? 0 : BITWISE; i < OPS; ++i) ops |= all_ops[i];
  return ops;
}

static inline int fetches(gex_OP_t op) { return op == GEX_OP_GET || GEX_OP_TO_NONFETCHING(op) != op; }

static inline gex_EC_t category(gex_OP_t op) {
  return op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW;
}

/* Numbers at which something wraps, and others. Products of floats stay exact where they are
 * small. */
static inline uint64_t operand(void) {
  static const uint64_t edges[] = {0,          1,          2,          0x7fffffffu,         0x80000000u,
                                   0xffffffffu, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000u, ~(uint64_t)0};
  return check_below(3) ? check_random() : edges[check_below(CHECK_COUNT(edges))];
}
#define INTEGER(type) ((type)operand())
#define FLOATING(type) ((type)((int)check_below(65) - 32) / 4)

/* Flags that change no result. */
static inline gex_Flags_t some_flags(void) {
  static const gex_Flags_t each[] = {GEX_FLAG_IMMEDIATE, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL, GEX_FLAG_RANK_IS_JOBRANK};
  gex_Flags_t flags = 0;
  size_t i;
  for (i = 0; i < CHECK_COUNT(each); ++i) flags |= check_below(4) ? 0 : each[i];
  return flags;
}

/* The ways to start an operation. A constant operation, known to the compiler, is inlined in
 * another way than one in a variable. */
enum { NB, NBI, NBI_REGION, WAYS };

/* Defines for a type: after_DT, what an operation makes of op0, in a wide type without overflow;
 * do_DT, an operation that is over on return; model_DT, which compares both. A compare-and-swap may
 * compare bits, and here does. */
#define DEFINE(DT, type, wide, is_integer, BITS, NUMBER)                                                               \
  static type after_##DT(gex_OP_t op, type op0, type op1, type op2) {                                                  \
    switch (GEX_OP_TO_NONFETCHING(op)) {                                                                               \
      case GEX_OP_ADD: return (type)((wide)op0 + (wide)op1);                                                           \
      case GEX_OP_SUB: return (type)((wide)op0 - (wide)op1);                                                           \
      case GEX_OP_MULT: return (type)((wide)op0 * (wide)op1);                                                          \
      case GEX_OP_MIN: return op0 < op1 ? op0 : op1;                                                                   \
      case GEX_OP_MAX: return op0 > op1 ? op0 : op1;                                                                   \
      case GEX_OP_INC: return (type)((wide)op0 + (wide)1);                                                             \
      case GEX_OP_DEC: return (type)((wide)op0 - (wide)1);                                                             \
      case GEX_OP_SET: return op1;                                                                                     \
      case GEX_OP_CAS: return memcmp(&op0, &op1, sizeof op0) == 0 ? op2 : op0;                                         \
      case GEX_OP_GET: return op0;                                                                                     \
      default: return BITS(op, type, op0, op1);                                                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  static void do_##DT(gex_AD_t ad, int way, type *result, gex_Rank_t rank, void *at, gex_OP_t op, type op1, type op2,  \
                      gex_Flags_t flags) {                                                                             \
    gex_Event_t event = GEX_EVENT_NO_OP;                                                                               \
    switch (way) {                                                                                                     \
      case NB:                                                                                                         \
        while ((event = gex_AD_OpNB_##DT(ad, result, rank, at, op, op1, op2, flags)) == GEX_EVENT_NO_OP) {             \
          CHECK(flags & GEX_FLAG_IMMEDIATE);                                                                           \
          gasnet_AMPoll();                                                                                             \
        }                                                                                                              \
        gex_Event_Wait(event);                                                                                         \
        break;                                                                                                         \
      case NBI:                                                                                                        \
        while (gex_AD_OpNBI_##DT(ad, result, rank, at, op, op1, op2, flags)) {                                         \
          CHECK(flags & GEX_FLAG_IMMEDIATE);                                                                           \
          gasnet_AMPoll();                                                                                             \
        }                                                                                                              \
        gex_NBI_Wait(category(op), 0);                                                                                 \
        break;                                                                                                         \
      default:                                                                                                         \
        gex_NBI_BeginAccessRegion(0);                                                                                  \
        CHECK_EQ(gex_AD_OpNBI_##DT(ad, result, rank, at, op, op1, op2, flags & ~(gex_Flags_t)GEX_FLAG_IMMEDIATE), 0);  \
        gex_Event_Wait(gex_NBI_EndAccessRegion(0));                                                                    \
        break;                                                                                                         \
    }                                                                                                                  \
  }                                                                                                                    \
  /* The words beside it stay as they are, and so does a result that nothing is fetched into. */                       \
  static void model_##DT(gex_TM_t tm, gex_Rank_t rank, gex_Rank_t jobrank, char *base, int rounds) {                   \
    gex_AD_t ad = GEX_AD_INVALID;                                                                                      \
    type *word = (type *)(void *)(base + 8);                                                                           \
    type op0 = 0, op1, op2, results[3], beside[2];                                                                     \
    int round;                                                                                                         \
    gex_AD_Create(&ad, tm, GEX_DT_##DT, ops_of(is_integer), GEX_FLAG_AD_FAVOR_MY_NBRHD);                               \
    beside[0] = NUMBER(type), beside[1] = NUMBER(type);                                                                \
    do_##DT(ad, NB, NULL, rank, word - 1, GEX_OP_SET, beside[0], 0, 0);                                                \
    do_##DT(ad, NBI, NULL, rank, word + 1, GEX_OP_SET, beside[1], 0, 0);                                               \
    do_##DT(ad, NB, NULL, rank, word, GEX_OP_SET, op0, 0, 0);                                                          \
    for (round = 0; round < rounds; ++round) {                                                                         \
      gex_OP_t op = all_ops[is_integer ? check_below(OPS) : BITWISE + check_below(OPS - BITWISE)];                     \
      gex_Flags_t flags = some_flags();                                                                                \
      gex_Rank_t to = flags & GEX_FLAG_RANK_IS_JOBRANK ? jobrank : rank;                                               \
      op1 = check_below(3) ? NUMBER(type) : op0;                                                                       \
      op2 = NUMBER(type);                                                                                              \
      results[0] = results[1] = results[2] = (type)77;                                                                 \
      do_##DT(ad, (int)check_below(WAYS), fetches(op) ? &results[1] : check_below(2) ? &results[1] : NULL, to, word,   \
              op, op1, op2, flags);                                                                                    \
      CHECK(results[0] == (type)77 && results[2] == (type)77);                                                         \
      CHECK(results[1] == (fetches(op) ? op0 : (type)77));                                                             \
      op0 = after_##DT(op, op0, op1, op2);                                                                             \
      do_##DT(ad, (int)check_below(WAYS), &results[1], to, word, GEX_OP_GET, op1, op2, flags);                         \
      if (results[1] != op0) {                                                                                         \
        fprintf(stderr, #DT ", operation 0x%x\n", (unsigned)op);                                                       \
        CHECK(results[1] == op0);                                                                                      \
      }                                                                                                                \
      /* Small, so that floats stay exact. */                                                                          \
      if (!is_integer && (op0 > (type)1e4 || op0 < (type)-1e4)) {                                                      \
        op0 = NUMBER(type);                                                                                            \
        do_##DT(ad, NB, NULL, rank, word, GEX_OP_SET, op0, 0, 0);                                                      \
      }                                                                                                                \
    }                                                                                                                  \
    do_##DT(ad, NB, &results[0], rank, word - 1, GEX_OP_GET, 0, 0, 0);                                                 \
    do_##DT(ad, NB, &results[2], rank, word + 1, GEX_OP_GET, 0, 0, 0);                                                 \
    CHECK(results[0] == beside[0] && results[2] == beside[1]);                                                         \
    /* Constant operations, as the compiler inlines them. */                                                           \
    op0 = NUMBER(type), op1 = NUMBER(type);                                                                            \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, NULL, rank, word, GEX_OP_SET, op0, 0, 0));                                     \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, &results[0], rank, word, GEX_OP_FADD, op1, 0, 0));                             \
    CHECK(results[0] == op0);                                                                                          \
    CHECK_EQ(gex_AD_OpNBI_##DT(ad, NULL, rank, word, GEX_OP_SUB, op1, 0, GEX_FLAG_AD_REL), 0);                         \
    gex_NBI_Wait(GEX_EC_RMW, 0);                                                                                       \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, &results[0], jobrank, word, GEX_OP_FCAS, op0, op1,                             \
                                    GEX_FLAG_RANK_IS_JOBRANK | GEX_FLAG_AD_ACQ));                                      \
    CHECK(results[0] == op0);                                                                                          \
    CHECK_EQ(gex_AD_OpNBI_##DT(ad, &results[0], rank, word, GEX_OP_SWAP, op0, 0, 0), 0);                               \
    gex_NBI_Wait(GEX_EC_ALL, 0);                                                                                       \
    CHECK(results[0] == op1);                                                                                          \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, &results[0], rank, word, GEX_OP_FMULT, 3, 0, 0));                              \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, &results[1], rank, word, GEX_OP_FMAX, op1, 0, 0));                             \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, NULL, rank, word, GEX_OP_MIN, op1, 0, 0));                                     \
    CHECK(results[0] == op0 && results[1] == after_##DT(GEX_OP_MULT, op0, 3, 0));                                      \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, &results[0], rank, word, GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ));                  \
    CHECK(results[0] == op1);                                                                                          \
    /* Many under way at once. */                                                                                      \
    gex_Event_Wait(gex_AD_OpNB_##DT(ad, NULL, rank, word, GEX_OP_SET, 0, 0, 0));                                       \
    for (round = 0; round < 200; ++round)                                                                              \
      CHECK_EQ(gex_AD_OpNBI_##DT(ad, NULL, rank, word, round % 2 ? GEX_OP_INC : GEX_OP_ADD, 1, 0, 0), 0);              \
    gex_NBI_Wait(GEX_EC_RMW, 0);                                                                                       \
    do_##DT(ad, NBI, &results[0], rank, word, GEX_OP_FDEC, 0, 0, 0);                                                   \
    CHECK(results[0] == (type)200);                                                                                    \
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));                                                                         \
    gex_AD_Destroy(ad);                                                                                                \
  }

#define BITS_OF_INTEGER(op, type, op0, op1)                                                                            \
  ((type)(GEX_OP_TO_NONFETCHING(op) == GEX_OP_AND  ? (op0) & (op1)                                                     \
          : GEX_OP_TO_NONFETCHING(op) == GEX_OP_OR ? (op0) | (op1)                                                     \
                                                   : (op0) ^ (op1)))
#define NO_BITS(op, type, op0, op1) (check_fail(__FILE__, __LINE__, "floats have no such operation"), (type)0)

DEFINE(I32, int32_t, uint64_t, 1, BITS_OF_INTEGER, INTEGER)
DEFINE(U32, uint32_t, uint64_t, 1, BITS_OF_INTEGER, INTEGER)
DEFINE(I64, int64_t, uint64_t, 1, BITS_OF_INTEGER, INTEGER)
DEFINE(U64, uint64_t, uint64_t, 1, BITS_OF_INTEGER, INTEGER)
DEFINE(FLT, float, float, 0, NO_BITS, FLOATING)
DEFINE(DBL, double, double, 0, NO_BITS, FLOATING)

/* `rank` of the team is `jobrank`; the 64 bytes at `base` of it are this rank's. Collective. */
static inline void model(gex_TM_t tm, gex_Rank_t rank, gex_Rank_t jobrank, char *base, int rounds) {
  model_I32(tm, rank, jobrank, base, rounds);
  model_U32(tm, rank, jobrank, base, rounds);
  model_I64(tm, rank, jobrank, base, rounds);
  model_U64(tm, rank, jobrank, base, rounds);
  model_FLT(tm, rank, jobrank, base, rounds);
  model_DBL(tm, rank, jobrank, base, rounds);
}

/* All ranks change the same words of all ranks: nothing is lost or done twice, and every value
 * before is another. */
static inline void hammer(gex_TM_t tm, char *const *bases, uint64_t count) {
  gex_AD_t ints = GEX_AD_INVALID, floats = GEX_AD_INVALID;
  gex_Rank_t rank;
  uint64_t i, value, before, sum = 0, last = 0;
  double number = 0;
  gex_AD_Create(&ints, tm, GEX_DT_U64, ops_of(1), 0);
  gex_AD_Create(&floats, tm, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_FSUB | GEX_OP_SET | GEX_OP_GET, 0);
  for (i = 0; i < 5; ++i)
    gex_Event_Wait(gex_AD_OpNB_U64(ints, NULL, me, bases[me] + 8 * i, GEX_OP_SET, i == 2 ? ~(uint64_t)0 : 0, 0, 0));
  gex_Event_Wait(gex_AD_OpNB_DBL(floats, NULL, me, bases[me] + 40, GEX_OP_SET, 0, 0, 0));
  check_barrier();
  for (i = 0; i < count; ++i) {
    for (rank = 0; rank < ranks; ++rank) {
      char *at = bases[rank];
      /* One of them by a call even where memory is near. */
      if (i % 3 == 0)
        gex_Event_Wait(gex_AD_OpNB_U64(ints, &before, rank, (void *)(uintptr_t)(at - check_base(rank)), GEX_OP_FADD, 1, 0,
                                       GEX_FLAG_PEER_SEG_OFFSET));
      else
        gex_Event_Wait(gex_AD_OpNB_U64(ints, &before, rank, at, i % 3 == 1 ? GEX_OP_FADD : GEX_OP_FINC, 1, 0, 0));
      CHECK(before < count * ranks);
      CHECK(rank != me || i == 0 || before > last);
      if (rank == me) last = before;
      sum += before;
      /* The compare-and-swap of each rank succeeds some time. */
      do {
        gex_Event_Wait(gex_AD_OpNB_U64(ints, &before, rank, at + 8, GEX_OP_GET, 0, 0, 0));
        gex_Event_Wait(gex_AD_OpNB_U64(ints, &value, rank, at + 8, GEX_OP_FCAS, before, before + 3, 0));
      } while (value != before);
      CHECK_EQ(gex_AD_OpNBI_U64(ints, NULL, rank, at + 16, GEX_OP_MIN, (me + 1) * (count - i), 0, 0), 0);
      CHECK_EQ(gex_AD_OpNBI_U64(ints, NULL, rank, at + 24, GEX_OP_MAX, (me + 1) * i, 0, 0), 0);
      CHECK_EQ(gex_AD_OpNBI_U64(ints, NULL, rank, at + 32, GEX_OP_XOR, (uint64_t)1 << me, 0, 0), 0);
      CHECK_EQ(gex_AD_OpNBI_DBL(floats, NULL, rank, at + 40, GEX_OP_ADD, 2.5, 0, 0), 0);
      gex_Event_Wait(gex_AD_OpNB_DBL(floats, &number, rank, at + 40, GEX_OP_FSUB, 0.5, 0, 0));
    }
  }
  gex_NBI_Wait(GEX_EC_ALL, 0);
  /* Values before, over all ranks: each number once for each word. */
  gex_Event_Wait(gex_AD_OpNB_U64(ints, NULL, 0, bases[0] + 48, GEX_OP_ADD, sum, 0, 0));
  check_barrier();
  {
    uint64_t all = count * ranks, words[7];
    for (i = 0; i < 5; ++i) gex_Event_Wait(gex_AD_OpNB_U64(ints, &words[i], me, bases[me] + 8 * i, GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U64(ints, &words[6], 0, bases[0] + 48, GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_DBL(floats, &number, me, bases[me] + 40, GEX_OP_GET, 0, 0, 0));
    CHECK_EQ(words[0], all);
    CHECK_EQ(words[1], 3 * all);
    CHECK_EQ(words[2], 1);
    CHECK_EQ(words[3], ranks * (count - 1));
    CHECK_EQ(words[4], count % 2 ? ((uint64_t)1 << ranks) - 1 : 0);
    CHECK(number == 2.0 * (double)all);
    CHECK_EQ(words[6], ranks * (all * (all - 1) / 2));
  }
  check_barrier();
  gex_AD_Destroy(ints);
  gex_AD_Destroy(floats);
}

/* Teams of the ranks that are odd or even, the last one first: by ranks of the team and of the
 * job. */
static inline void parts(char *const *bases) {
  gex_TM_t half = GEX_TM_INVALID;
  gex_Rank_t size, rank;
  gex_TM_Split(&half, team, (gex_Rank_t)(me % 2), (gex_Rank_t)(ranks - me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(half != GEX_TM_INVALID);
  size = gex_TM_QuerySize(half);
  for (rank = 0; rank < size; ++rank) {
    gex_Rank_t jobrank = gex_TM_TranslateRankToJobrank(half, rank);
    CHECK_EQ(jobrank % 2, me % 2);
    model(half, rank, jobrank, bases[jobrank] + 64 * (1 + me), 20);
  }
  check_barrier();
  gex_TM_Destroy(half, NULL, 0);
}

#endif
