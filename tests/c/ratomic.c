/* Remote atomic operations on attached segments: domains and what their queries return, all
 * operations of all types against a model, and words that all ranks change at once. */
#include "ratomic.h"

/* So many that ranks are at it at the same time, however they are scheduled; a call is slower than
 * an instruction. Over a network targets do one after the other, whenever that is. */
#if GASNET_DEBUG
enum { ROUNDS = 60000, NETWORK_ROUNDS = 1000 };
#else
enum { ROUNDS = 2000000, NETWORK_ROUNDS = 1000 };
#endif

/* A domain returns the arguments that it was made with, unknown flags too, and domains of one team
 * are apart. */
static void domains(void) {
  gex_AD_t ad = GEX_AD_INVALID, other = GEX_AD_INVALID;
  const gex_Flags_t flags = 0x40000000u | GEX_FLAG_AD_FAVOR_REMOTE;
  int here = 0;
  CHECK((uintptr_t)GEX_AD_INVALID == 0);
  gex_AD_Create(&ad, team, GEX_DT_I64, GEX_OP_ADD | GEX_OP_GET, flags);
  gex_AD_Create(&other, team, GEX_DT_FLT, GEX_OP_FMAX, 0);
  CHECK(ad != GEX_AD_INVALID && other != GEX_AD_INVALID && ad != other);
  CHECK_SAME(gex_AD_QueryTM(ad), team);
  CHECK_EQ(gex_AD_QueryDT(ad), GEX_DT_I64);
  CHECK_EQ(gex_AD_QueryOps(ad), GEX_OP_ADD | GEX_OP_GET);
  CHECK_EQ(gex_AD_QueryFlags(ad), flags);
  CHECK_EQ(gex_AD_QueryDT(other), GEX_DT_FLT);
  CHECK_EQ(gex_AD_QueryOps(other), GEX_OP_FMAX);
  CHECK_EQ(gex_AD_QueryFlags(other), 0);
  CHECK_SAME(gex_AD_QueryCData(ad), NULL);
  gex_AD_SetCData(ad, &here);
  CHECK_SAME(gex_AD_QueryCData(ad), &here);
  CHECK_SAME(gex_AD_QueryCData(other), NULL);
  gex_AD_SetCData(ad, NULL);
  CHECK_SAME(gex_AD_QueryCData(ad), NULL);
  check_barrier();
  gex_AD_Destroy(other);
  gex_AD_Destroy(ad);
}

static void pairs(void) {
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_SET), GEX_OP_SWAP);
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_CAS), GEX_OP_FCAS);
  CHECK_EQ(GEX_OP_TO_FETCHING(GEX_OP_MIN), GEX_OP_FMIN);
  CHECK_EQ(GEX_OP_TO_NONFETCHING(GEX_OP_SWAP), GEX_OP_SET);
  CHECK_EQ(GEX_OP_TO_NONFETCHING(GEX_OP_FXOR), GEX_OP_XOR);
  CHECK_EQ(GEX_OP_CSWAP, GEX_OP_FCAS);
}

/* Hints where they are true, and offsets in place of addresses, of the word and of the result. */
static void hints(char *own) {
  gex_AD_t ad = GEX_AD_INVALID;
  char *base = check_base(me);
  uint32_t *word = (uint32_t *)(void *)own, result = 0;
  gex_RankInfo_t *near_ranks = NULL;
  gex_Rank_t count = 0, i;
  gex_AD_Create(&ad, team, GEX_DT_U32, ops_of(1), GEX_FLAG_AD_FAVOR_MY_RANK);
  gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, me, word, GEX_OP_SET, 40, 0, GEX_FLAG_AD_MY_RANK));
  gex_Event_Wait(gex_AD_OpNB_U32(ad, &result, me, word, GEX_OP_FINC, 0, 0, GEX_FLAG_AD_MY_NBRHD));
  CHECK_EQ(result, 40);
  gex_Event_Wait(gex_AD_OpNB_U32(ad, (uint32_t *)(uintptr_t)(own + 8 - base), me, (void *)(uintptr_t)(own - base), GEX_OP_FADD, 1, 0,
                                 GEX_FLAG_SELF_SEG_OFFSET | GEX_FLAG_PEER_SEG_OFFSET));
  CHECK_EQ(word[2], 41);
  CHECK_EQ(word[0], 42);
  check_barrier();
  gex_System_QueryNbrhdInfo(&near_ranks, &count, NULL);
  for (i = 0; i < count; ++i)
    CHECK_EQ(gex_AD_OpNBI_U32(ad, NULL, near_ranks[i].gex_jobrank, check_base(near_ranks[i].gex_jobrank) + (own - base),
                              GEX_OP_ADD, 1, 0, GEX_FLAG_AD_MY_NBRHD | GEX_FLAG_RANK_IS_JOBRANK), 0);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  check_barrier();
  CHECK_EQ(word[0], 42 + count);
  check_barrier();
  gex_AD_Destroy(ad);
}

/* By bits, and as C compares. */
static void floats(char *own) {
  gex_AD_t ad = GEX_AD_INVALID;
  double result = 0, zero = 0.0, nan_value;
  uint64_t bits = 0x7ff8000000000123u;
  memcpy(&nan_value, &bits, sizeof nan_value);
  gex_AD_Create(&ad, team, GEX_DT_DBL, ops_of(0), 0);
  /* A NaN equals itself, and the zeros are two. */
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, me, own, GEX_OP_SET, nan_value, 0, 0));
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, me, own, GEX_OP_CAS, nan_value, zero, 0));
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, &result, me, own, GEX_OP_FCAS, -zero, 1.0, 0));
  CHECK(memcmp(&result, &zero, sizeof zero) == 0);
  /* If the word or the operand is a NaN, the operand is taken. */
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, NULL, me, own, GEX_OP_MIN, nan_value, 0, 0));
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, &result, me, own, GEX_OP_FMAX, -5.0, 0, 0));
  CHECK(memcmp(&result, &nan_value, sizeof result) == 0);
  gex_Event_Wait(gex_AD_OpNB_DBL(ad, &result, me, own, GEX_OP_GET, 0, 0, 0));
  CHECK(result == -5.0);
  check_barrier();
  gex_AD_Destroy(ad);
}

/* A store with release and a load with acquire hand over earlier stores. */
static void handed_over(char *const *bases) {
  gex_AD_t ad = GEX_AD_INVALID;
  uint32_t turn;
  const gex_Rank_t to = check_next();
  gex_AD_Create(&ad, team, GEX_DT_U32, GEX_OP_SET | GEX_OP_GET, 0);
  gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, me, bases[me], GEX_OP_SET, 0, 0, 0));
  check_barrier();
  for (turn = 1; turn < 100; ++turn) {
    uint32_t seen = 0;
    CHECK_EQ(gex_RMA_PutBlockingVal(team, to, bases[to] + 8, turn * 7, 8, 0), 0);
    gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, to, bases[to], GEX_OP_SET, turn, 0, GEX_FLAG_AD_REL));
    do {
      gex_Event_Wait(gex_AD_OpNB_U32(ad, &seen, me, bases[me], GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ));
      if (seen < turn) gasnet_AMPoll();
    } while (seen < turn);
    CHECK_EQ(seen, turn);
    CHECK_EQ(*(volatile uint64_t *)(void *)(bases[me] + 8), turn * 7);
    check_barrier();
  }
  gex_AD_Destroy(ad);
}

int main(int argc, char **argv) {
  char *bases[64];
  gex_Rank_t step, rank;
  check_start(&argc, &argv, "ratomic");
  check_seed(me);
  pairs();
  domains();
  check_attach(64 * (ranks + 2));
  CHECK(ranks <= 64);
  for (rank = 0; rank < ranks; ++rank) bases[rank] = check_base(rank);
  check_barrier();
  for (step = 0; step < ranks; ++step) {
    rank = (gex_Rank_t)((me + step) % ranks);
    model(team, rank, gex_TM_TranslateRankToJobrank(team, rank), bases[rank] + 64 * (1 + me), check_trips(300, 30));
  }
  hints(bases[me] + 64 * (1 + ranks));
  floats(bases[me] + 64 * (1 + me));
  check_barrier();
  memset(bases[me], 0, 64);
  check_barrier();
  hammer(team, bases, check_trips(ROUNDS, NETWORK_ROUNDS) / ranks);
  parts(bases);
  handed_over(bases);
  return check_finish();
}
