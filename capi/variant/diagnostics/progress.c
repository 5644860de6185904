/* Barriers, broadcasts, and that a wait for one thing goes on with everything else. One thread. */
#include "diagnostics.h"

/* Ranks that take their turn in what all ranks wait for: more would only take time. */
#define MOST_TURNS 8

/* This rank's word at the peer, and all of them here. */
static volatile uint64_t *words(const struct argonet_diagnosis *run)
{
    return (volatile uint64_t *)(run->own + run->size * run->own_slot_bytes);
}

static void set_word(const struct argonet_diagnosis *run, uint64_t value)
{
    gex_RMA_PutBlocking(run->tm, run->peer, run->word, &value, sizeof value, 0);
}

/* Each rank has the number of the round in its memory before a barrier: after it, so has the peer.
 * One rank in turn comes late. */
static void diagnose_barriers(const struct argonet_diagnosis *run)
{
    volatile uint64_t *here = (volatile uint64_t *)(run->own + run->rank * run->own_slot_bytes);
    uint64_t *there = (uint64_t *)(run->slot - run->rank * run->slot_bytes + run->peer * run->slot_bytes);
    const uint64_t rounds = (uint64_t)run->iterations;
    uint64_t round, is;
    int polls;
    for (round = 1; round <= rounds; ++round) {
        for (polls = 0; round % run->size == run->rank && polls < 8; ++polls) {
            gasnet_AMPoll();
            gasnett_sched_yield();
        }
        *here = round;
        argonet_diagnose_barrier();
        is = gex_RMA_GetBlockingVal(run->tm, run->peer, there, sizeof *there, 0);
        DIAGNOSE(is == round, "after barrier %" PRIu64 " rank %u is at %" PRIu64, round, (unsigned)run->peer, is);
        argonet_diagnose_barrier();
    }
}

/* A put makes a condition true that its target waits for, without a barrier. A first round shows
 * which ranks put here. */
static void diagnose_waiting(const struct argonet_diagnosis *run)
{
    volatile uint64_t *here = words(run);
    const uint64_t rounds = 1 + (uint64_t)run->iterations;
    uint64_t round;
    gex_Rank_t rank;
    char *known = (char *)argonet_diagnose_memory(run->size);
    for (rank = 0; rank < run->size; ++rank) here[rank] = 0;
    argonet_diagnose_barrier();
    set_word(run, 1);
    argonet_diagnose_barrier();
    for (rank = 0; rank < run->size; ++rank) known[rank] = here[rank] != 0;
    argonet_diagnose_barrier();
    for (round = 2; round <= rounds; ++round) {
        set_word(run, round);
        for (rank = 0; rank < run->size; ++rank)
            if (known[rank]) GASNET_BLOCKUNTIL(here[rank] >= round);
    }
    argonet_diagnose_barrier();
    for (rank = 0; rank < run->size; ++rank)
        DIAGNOSE(!known[rank] || here[rank] == rounds, "the word of rank %u is %" PRIu64 ", should be %" PRIu64,
                 (unsigned)rank, (uint64_t)here[rank], rounds);
    free(known);
}

/* One rank at a time comes late, as it waits for answers of its peer, which is in the barrier by
 * then. */
static void diagnose_late(const struct argonet_diagnosis *run)
{
    gex_Rank_t rank;
    uint32_t number;
    for (rank = 0; rank < run->size && rank < MOST_TURNS; ++rank) {
        for (number = 0; rank == run->rank && number < 16; ++number) argonet_diagnose_ping(number * 7 + rank);
        argonet_diagnose_barrier();
    }
}

static void diagnose_broadcasts(const struct argonet_diagnosis *run)
{
    char from[256], to[256];
    gex_Rank_t root;
    for (root = 0; root < run->size && root < MOST_TURNS; ++root) {
        memset(to, 0, sizeof to);
        argonet_diagnose_fill(from, sizeof from, run->seed + run->rank);
        gex_Event_Wait(gex_Coll_BroadcastNB(run->tm, root, to, from, sizeof to, 0));
        DIAGNOSE_FILLED("gex_Coll_BroadcastNB", to, sizeof to, run->seed + root);
    }
}

void argonet_diagnose_progress(struct argonet_diagnoser *me)
{
    diagnose_barriers(me->run);
    diagnose_waiting(me->run);
    diagnose_late(me->run);
    diagnose_broadcasts(me->run);
}
