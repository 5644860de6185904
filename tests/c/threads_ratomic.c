/* Remote atomic operations by all threads at once, on words of all ranks, attached and not: sums,
 * tickets that are given once, implicit operations of each thread, and an event that another thread
 * waits for. */
#include "check_threads.h"

#include <gasnet_ratomic.h>

enum { ROUNDS = 300, WORDS = 8 };

static char *bases[2][64];
static gex_TM_t bound_team;
static gex_EP_t second;
static gex_AD_t ints[2], floats[2];
static uint64_t tickets[2][CHECK_MOST_THREADS];

static struct {
  gex_Event_t event;
  uint64_t result;
} handed[CHECK_MOST_THREADS];

static void *work(void *argument) {
  struct check_thread *thread = (struct check_thread *)argument;
  int is_bound, other;
  uint64_t i, sum, before;
  for (is_bound = 0; is_bound < 2; ++is_bound) {
    sum = 0;
    for (i = 0; i < ROUNDS; ++i) {
      gex_Rank_t rank = (gex_Rank_t)(check_draw(thread) % ranks);
      uint64_t *words = (uint64_t *)(void *)bases[is_bound][rank];
      uint64_t *first = (uint64_t *)(void *)bases[is_bound][0];
      gex_Flags_t flags = check_draw(thread) % 2 ? GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL : 0;
      /* Tickets of the job. */
      gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], &before, 0, first, GEX_OP_FADD, 1, 0, flags));
      sum += before;
      CHECK_EQ(gex_AD_OpNBI_U64(ints[is_bound], NULL, rank, words + 1, GEX_OP_ADD, i, 0, flags), 0);
      CHECK_EQ(gex_AD_OpNBI_U64(ints[is_bound], NULL, rank, words + 1, GEX_OP_SUB, i, 0, flags), 0);
      CHECK_EQ(gex_AD_OpNBI_U64(ints[is_bound], NULL, rank, words + 2, i % 2 ? GEX_OP_INC : GEX_OP_DEC, 0, 0, 0), 0);
      CHECK_EQ(gex_AD_OpNBI_DBL(floats[is_bound], NULL, 0, first + 3, GEX_OP_ADD, 0.25, 0, flags), 0);
      /* A lock of one word, whose value is changed in two steps. */
      if (i % 16 == 0) {
        do {
          /* The message that frees it may have to be handled here. */
          gasnet_AMPoll();
          gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], &before, 0, first + 4, GEX_OP_FCAS, 0, 1, GEX_FLAG_AD_ACQ));
        } while (before);
        gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], &before, 0, first + 5, GEX_OP_GET, 0, 0, 0));
        gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], NULL, 0, first + 5, GEX_OP_SET, before + 1, 0, 0));
        gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], NULL, 0, first + 4, GEX_OP_SET, 0, 0, GEX_FLAG_AD_REL));
      }
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
    tickets[is_bound][thread->index] = sum;
    /* An operation that the next thread waits for. */
    check_meet();
    handed[thread->index].result = 0;
    handed[thread->index].event = gex_AD_OpNB_U64(ints[is_bound], &handed[thread->index].result, me,
                                                  bases[is_bound][me] + 8 * 6, GEX_OP_FADD, 1, 0, 0);
    check_meet();
    other = (thread->index + 1) % threads;
    gex_Event_Wait(handed[other].event);
    CHECK(handed[other].result < (uint64_t)threads);
    check_meet();
  }
  return NULL;
}

int main(int argc, char **argv) {
  const gex_OP_t ops = GEX_OP_FADD | GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | GEX_OP_FCAS | GEX_OP_GET | GEX_OP_SET;
  gex_Segment_t bound = GEX_SEGMENT_INVALID;
  gex_TM_t pair;
  gex_Rank_t rank;
  int is_bound, i;
  check_start(&argc, &argv, "threads_ratomic");
  check_threads_of(argc, argv);
  CHECK(ranks <= 64);
  check_attach(8 * WORDS);
  memset(check_base(me), 0, 8 * WORDS);
  /* Further endpoints of all ranks are a team of their own; its memory is reached by messages. */
  CHECK_OK(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0));
  CHECK_OK(gex_Segment_Create(&bound, client, NULL, 8 * WORDS, GEX_MK_HOST, 0));
  memset(gex_Segment_QueryAddr(bound), 0, 8 * WORDS);
  CHECK_OK(gex_EP_BindSegment(second, bound, 0));
  CHECK_OK(gex_EP_PublishBoundSegment(team, &second, 1, 0));
  pair = gex_TM_Pair(ep, gex_EP_QueryIndex(second));
  {
    static gex_EP_Location_t all[64];
    for (rank = 0; rank < ranks; ++rank) {
      all[rank].gex_rank = rank;
      all[rank].gex_ep_index = gex_EP_QueryIndex(second);
    }
    CHECK_EQ(gex_TM_Create(&bound_team, 1, team, all, ranks, NULL, 0, GEX_FLAG_TM_NO_SCRATCH), 0);
  }
  for (rank = 0; rank < ranks; ++rank) {
    bases[0][rank] = check_base(rank);
    check_bound(pair, rank, &bases[1][rank], NULL, NULL);
  }
  for (is_bound = 0; is_bound < 2; ++is_bound) {
    gex_AD_Create(&ints[is_bound], is_bound ? bound_team : team, GEX_DT_U64, ops, 0);
    gex_AD_Create(&floats[is_bound], is_bound ? bound_team : team, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_GET, 0);
  }
  check_barrier();
  check_run(work);
  check_barrier();
  for (is_bound = 0; is_bound < 2; ++is_bound) {
    const uint64_t all = (uint64_t)ranks * (uint64_t)threads * ROUNDS;
    uint64_t sum = 0, words[WORDS];
    double number = 0;
    for (i = 0; i < threads; ++i) sum += tickets[is_bound][i];
    gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], NULL, 0, bases[is_bound][0] + 8 * 7, GEX_OP_ADD, sum, 0, 0));
    check_barrier();
    for (i = 0; i < WORDS; ++i)
      gex_Event_Wait(gex_AD_OpNB_U64(ints[is_bound], &words[i], me, bases[is_bound][me] + 8 * i, GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_DBL(floats[is_bound], &number, me, bases[is_bound][me] + 24, GEX_OP_GET, 0, 0, 0));
    CHECK_EQ(words[1], 0);
    CHECK_EQ(words[6], threads);
    if (me == 0) {
      CHECK_EQ(words[0], all);
      CHECK(number == (double)all / 4);
      CHECK_EQ(words[4], 0);
      CHECK_EQ(words[5], (uint64_t)ranks * (uint64_t)threads * ((ROUNDS + 15) / 16));
      CHECK_EQ(words[7], all * (all - 1) / 2);
    }
    check_barrier();
    gex_AD_Destroy(ints[is_bound]);
    gex_AD_Destroy(floats[is_bound]);
  }
  return check_finish();
}
