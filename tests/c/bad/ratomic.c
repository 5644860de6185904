/* Wrong domains and wrong remote atomic operations. */
#include "bad.h"
#include <gasnet_ratomic.h>

static int64_t result;
static uint32_t narrow;
/* Volatile, as compilers would warn of these values. */
static int64_t *volatile nowhere;
static gex_AD_t *volatile no_place;

static void creations(void) {
  gex_AD_t ad = GEX_AD_INVALID;
  CASE("create-nowhere") gex_AD_Create(no_place, team, GEX_DT_I64, GEX_OP_ADD, 0);
  CASE("create-no-team") gex_AD_Create(&ad, GEX_TM_INVALID, GEX_DT_I64, GEX_OP_ADD, 0);
  CASE("create-pair") gex_AD_Create(&ad, gex_TM_Pair(ep, 0), GEX_DT_I64, GEX_OP_ADD, 0);
  CASE("create-no-type") gex_AD_Create(&ad, team, 0, GEX_OP_ADD, 0);
  CASE("create-two-types") gex_AD_Create(&ad, team, GEX_DT_I64 | GEX_DT_U64, GEX_OP_ADD, 0);
  CASE("create-user-type") gex_AD_Create(&ad, team, GEX_DT_USER, GEX_OP_ADD, 0);
  CASE("create-no-operation") gex_AD_Create(&ad, team, GEX_DT_I64, 0, 0);
  CASE("create-bits-of-float") gex_AD_Create(&ad, team, GEX_DT_FLT, GEX_OP_ADD | GEX_OP_FXOR, 0);
  CASE("create-user-operation") gex_AD_Create(&ad, team, GEX_DT_I64, GEX_OP_USER, 0);
  CASE("create-unknown-operation") gex_AD_Create(&ad, team, GEX_DT_I64, GEX_OP_ADD | (1u << 12), 0);
  CASE("create-two-favors")
    gex_AD_Create(&ad, team, GEX_DT_I64, GEX_OP_ADD, GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_REMOTE);
  CASE("create-type-differs") gex_AD_Create(&ad, team, me ? GEX_DT_I64 : GEX_DT_U64, GEX_OP_ADD, 0);
  CASE("create-operations-differ") gex_AD_Create(&ad, team, GEX_DT_I64, me ? GEX_OP_ADD : GEX_OP_SUB, 0);
  CASE("create-flags-differ") gex_AD_Create(&ad, team, GEX_DT_I64, GEX_OP_ADD, me * 0x1000u);
  CASE("destroy-invalid") gex_AD_Destroy(GEX_AD_INVALID);
  CASE("query-invalid") (void)gex_AD_QueryOps(GEX_AD_INVALID);
}

static void operations(void) {
  const gex_OP_t ops = GEX_OP_ADD | GEX_OP_FADD | GEX_OP_SET;
  gex_AD_t ad = GEX_AD_INVALID;
  gex_TM_t own = GEX_TM_INVALID;
  gex_Rank_t to = check_next();
  char *base = NULL;
  uintptr_t size = 0;
  check_bound(team, to, &base, NULL, &size);
  gex_AD_Create(&ad, team, GEX_DT_I64, ops, 0);
  CASE("op-no-domain") gex_AD_OpNBI_I64(GEX_AD_INVALID, NULL, to, base, GEX_OP_ADD, 1, 0, 0);
  CASE("op-rank") gex_AD_OpNBI_I64(ad, NULL, ranks, base, GEX_OP_ADD, 1, 0, 0);
  CASE("op-rank-of-job") gex_AD_OpNBI_I64(ad, NULL, ranks, base, GEX_OP_ADD, 1, 0, GEX_FLAG_RANK_IS_JOBRANK);
  CASE("op-not-asked-for") gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_SUB, 1, 0, 0);
  CASE("op-two") gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_ADD | GEX_OP_SET, 1, 0, 0);
  CASE("op-none") gex_Event_Wait(gex_AD_OpNB_I64(ad, NULL, to, base, 0, 1, 0, 0));
  CASE("op-user") gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_USER, 1, 0, 0);
  CASE("op-wrong-type") gex_Event_Wait(gex_AD_OpNB_U32(ad, &narrow, to, base, GEX_OP_FADD, 1, 0, 0));
  CASE("op-unaligned") gex_AD_OpNBI_I64(ad, NULL, to, base + 4, GEX_OP_ADD, 1, 0, 0);
  CASE("op-null") gex_AD_OpNBI_I64(ad, NULL, to, NULL, GEX_OP_ADD, 1, 0, 0);
  CASE("op-past-segment") gex_AD_OpNBI_I64(ad, NULL, to, base + size, GEX_OP_ADD, 1, 0, 0);
  CASE("op-before-segment") gex_Event_Wait(gex_AD_OpNB_I64(ad, &result, to, base - 8, GEX_OP_FADD, 1, 0, 0));
  CASE("op-no-result") gex_AD_OpNBI_I64(ad, nowhere, to, base, GEX_OP_FADD, 1, 0, 0);
  CASE("op-result-over-word")
    gex_AD_OpNBI_I64(ad, (int64_t *)(void *)check_base(me), me, check_base(me), GEX_OP_FADD, 1, 0, 0);
  CASE("op-not-my-rank") gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_ADD, 1, 0, GEX_FLAG_AD_MY_RANK);
  CASE("op-two-hints") gex_AD_OpNBI_I64(ad, NULL, me, check_base(me), GEX_OP_ADD, 1, 0,
                                        GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_MY_NBRHD);
  CASE("op-unknown-flag") gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_ADD, 1, 0, GEX_FLAG_LC_COPY_YES);
  CASE("op-offset-outside")
    gex_AD_OpNBI_I64(ad, NULL, to, (void *)size, GEX_OP_ADD, 1, 0, GEX_FLAG_PEER_SEG_OFFSET);
  CASE("op-offset-unaligned")
    gex_AD_OpNBI_I64(ad, NULL, to, (void *)(uintptr_t)12, GEX_OP_ADD, 1, 0, GEX_FLAG_PEER_SEG_OFFSET);
  CASE("op-own-offset-outside")
    gex_AD_OpNBI_I64(ad, (int64_t *)size, to, base, GEX_OP_FADD, 1, 0, GEX_FLAG_SELF_SEG_OFFSET);
  CASE("op-no-member") {
    gex_TM_Split(&own, team, (gex_Rank_t)me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_AD_Create(&ad, own, GEX_DT_I64, ops, 0);
    gex_AD_OpNBI_I64(ad, NULL, to, base, GEX_OP_ADD, 1, 0, GEX_FLAG_RANK_IS_JOBRANK);
  }
}

/* On memory that is bound and not attached: errors that only its owner finds. */
static void bound_memory(void) {
  static gex_EP_Location_t all[2];
  gex_EP_t second = GEX_EP_INVALID;
  gex_TM_t bound_team = GEX_TM_INVALID;
  gex_Segment_t bound = GEX_SEGMENT_INVALID;
  gex_AD_t ad = GEX_AD_INVALID;
  gex_Rank_t to = check_next();
  char *base = NULL;
  CHECK_OK(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_Segment_Create(&bound, client, NULL, 4096, GEX_MK_HOST, 0));
  CHECK_OK(gex_EP_BindSegment(second, bound, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &second, 1, 0));
  all[0].gex_rank = 0, all[1].gex_rank = 1;
  all[0].gex_ep_index = all[1].gex_ep_index = gex_EP_QueryIndex(second);
  gex_TM_Create(&bound_team, 1, team, all, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_AD_Create(&ad, bound_team, GEX_DT_I64, GEX_OP_FADD, 0);
  check_bound(bound_team, to, &base, NULL, NULL);
  CASE("bound-outside") gex_Event_Wait(gex_AD_OpNB_I64(ad, &result, to, base + 4096, GEX_OP_FADD, 1, 0, 0));
  CASE("bound-unaligned") gex_Event_Wait(gex_AD_OpNB_I64(ad, &result, to, base + 4, GEX_OP_FADD, 1, 0, 0));
  CASE("bound-own-outside") gex_Event_Wait(gex_AD_OpNB_I64(ad, &result, me, (char *)gex_Segment_QueryAddr(bound) - 8, GEX_OP_FADD, 1, 0, 0));
}

int main(int argc, char **argv) {
  if (argc > 1) bad_case = argv[1];
  check_start(&argc, &argv, "bad_ratomic");
  check_attach(65536);
  check_barrier();
  creations();
  operations();
  if (!bad_found) bound_memory();
  check_barrier();
  return bad_finish();
}
