/* Atomic operations of every width: what each does by itself, and that none is lost among
 * threads. */
#include "diagnostics.h"

/* The same for each type. A token goes from thread to thread by swap: its holder may update. */
#define DIAGNOSE_ATOMIC(type, value_type, top)                                                                         \
    static void alone_##type(void)                                                                                     \
    {                                                                                                                  \
        type##_t it = type##_init(5);                                                                                  \
        const value_type most = (value_type)(top);                                                                     \
        DIAGNOSE(type##_read(&it, 0) == 5, #type "_init");                                                             \
        type##_set(&it, 7, GASNETT_ATOMIC_REL);                                                                        \
        DIAGNOSE(type##_read(&it, GASNETT_ATOMIC_ACQ) == 7, #type "_set");                                             \
        type##_increment(&it, 0);                                                                                      \
        DIAGNOSE(type##_read(&it, 0) == 8, #type "_increment");                                                        \
        type##_decrement(&it, GASNETT_ATOMIC_REL);                                                                     \
        DIAGNOSE(type##_read(&it, 0) == 7, #type "_decrement");                                                        \
        DIAGNOSE(type##_add(&it, 3, 0) == 10 && type##_read(&it, 0) == 10, #type "_add");                              \
        DIAGNOSE(type##_subtract(&it, 8, 0) == 2 && type##_read(&it, 0) == 2, #type "_subtract");                      \
        DIAGNOSE(!type##_decrement_and_test(&it, 0), #type "_decrement_and_test of 2");                                \
        DIAGNOSE(type##_decrement_and_test(&it, GASNETT_ATOMIC_ACQ_IF_TRUE), #type "_decrement_and_test of 1");        \
        DIAGNOSE(!type##_compare_and_swap(&it, 1, 9, 0) && type##_read(&it, 0) == 0,                                   \
                 #type "_compare_and_swap of another value");                                                          \
        DIAGNOSE(type##_compare_and_swap(&it, 0, most, GASNETT_ATOMIC_ACQ | GASNETT_ATOMIC_REL) &&                     \
                     type##_read(&it, 0) == most, #type "_compare_and_swap of its value");                             \
        type##_increment(&it, 0);                                                                                      \
        DIAGNOSE(type##_read(&it, 0) == 0, #type "_increment of the greatest value");                                  \
        DIAGNOSE(type##_swap(&it, 4, 0) == 0 && type##_swap(&it, 0, 0) == 4, #type "_swap");                           \
    }                                                                                                                  \
    static void together_##type(struct argonet_diagnoser *me)                                                          \
    {                                                                                                                  \
        static type##_t sum = type##_init(0);                                                                          \
        static type##_t up_and_down = type##_init(0);                                                                  \
        static type##_t swapped_in = type##_init(0);                                                                   \
        static type##_t token = type##_init(1);                                                                        \
        static volatile uint64_t updates;                                                                              \
        const int rounds = 10 * me->run->iterations;                                                                   \
        const uint64_t all = (uint64_t)rounds * (uint64_t)me->threads;                                                 \
        int round;                                                                                                     \
        if (me->thread == 0) {                                                                                         \
            type##_set(&sum, 0, 0);                                                                                    \
            type##_set(&up_and_down, 0, 0);                                                                            \
            type##_set(&swapped_in, 0, 0);                                                                             \
            type##_set(&token, 1, 0);                                                                                  \
            updates = 0;                                                                                               \
        }                                                                                                              \
        argonet_diagnose_meet(me);                                                                                     \
        for (round = 0; round < rounds; ++round) {                                                                     \
            value_type seen;                                                                                           \
            (void)type##_add(&sum, 3, 0);                                                                              \
            (void)type##_subtract(&sum, 1, 0);                                                                         \
            type##_increment(&up_and_down, 0);                                                                         \
            DIAGNOSE(type##_read(&up_and_down, 0) != 0, #type "_increment: lost");                                     \
            (void)type##_decrement_and_test(&up_and_down, 0);                                                          \
            do                                                                                                         \
                seen = type##_read(&swapped_in, 0);                                                                    \
            while (!type##_compare_and_swap(&swapped_in, seen, (value_type)(seen + 1), 0));                            \
            if (type##_swap(&token, 0, GASNETT_ATOMIC_ACQ)) {                                                          \
                uint64_t before = updates;                                                                             \
                if (round % 16 == 0) gasnett_sched_yield();                                                            \
                updates = before + 1;                                                                                  \
                DIAGNOSE(type##_swap(&token, 1, GASNETT_ATOMIC_REL) == 0, #type "_swap: two had the token");           \
                DIAGNOSE(updates > before, #type "_swap: an update is lost");                                          \
            }                                                                                                          \
        }                                                                                                              \
        argonet_diagnose_meet(me);                                                                                     \
        if (me->thread != 0) return;                                                                                   \
        DIAGNOSE(type##_read(&sum, 0) == (value_type)(2 * all), #type "_add: %" PRIu64 " is left of %" PRIu64,         \
                 (uint64_t)type##_read(&sum, 0), 2 * all);                                                             \
        DIAGNOSE(type##_read(&up_and_down, 0) == 0, #type "_increment and _decrement_and_test: %" PRIu64 " is left",   \
                 (uint64_t)type##_read(&up_and_down, 0));                                                              \
        DIAGNOSE(type##_read(&swapped_in, 0) == (value_type)all, #type "_compare_and_swap: %" PRIu64 " of %" PRIu64,   \
                 (uint64_t)type##_read(&swapped_in, 0), all);                                                          \
    }

DIAGNOSE_ATOMIC(gasnett_atomic, gasnett_atomic_val_t, GASNETT_ATOMIC_MAX)
DIAGNOSE_ATOMIC(gasnett_atomic32, uint32_t, UINT32_MAX)
DIAGNOSE_ATOMIC(gasnett_atomic64, uint64_t, UINT64_MAX)
DIAGNOSE_ATOMIC(gasnett_strongatomic, gasnett_strongatomic_val_t, GASNETT_STRONGATOMIC_MAX)
DIAGNOSE_ATOMIC(gasnett_strongatomic32, uint32_t, UINT32_MAX)
DIAGNOSE_ATOMIC(gasnett_strongatomic64, uint64_t, UINT64_MAX)

/* 64 bits are written at once: no reader sees half of them. */
static void diagnose_tearing(struct argonet_diagnoser *me)
{
    static gasnett_strongatomic64_t shared = gasnett_strongatomic64_init(0);
    int round;
    for (round = 0; round < 10 * me->run->iterations; ++round) {
        const uint64_t half = (uint32_t)(round * 256 + me->thread);
        const uint64_t seen = gasnett_strongatomic64_read(&shared, 0);
        DIAGNOSE(seen >> 32 == (uint32_t)seen, "gasnett_strongatomic64_read: halves of two values, 0x%" PRIx64, seen);
        gasnett_strongatomic64_set(&shared, half << 32 | half, 0);
    }
}

void argonet_diagnose_atomics(struct argonet_diagnoser *me)
{
    if (me->thread == 0) {
        alone_gasnett_atomic();
        alone_gasnett_atomic32();
        alone_gasnett_atomic64();
        alone_gasnett_strongatomic();
        alone_gasnett_strongatomic32();
        alone_gasnett_strongatomic64();
        DIAGNOSE(gasnett_atomic_signed(GASNETT_ATOMIC_MAX) == -1, "gasnett_atomic_signed");
        DIAGNOSE(gasnett_strongatomic_signed(GASNETT_STRONGATOMIC_MAX) == -1, "gasnett_strongatomic_signed");
    }
    together_gasnett_atomic(me);
    together_gasnett_atomic32(me);
    together_gasnett_atomic64(me);
    together_gasnett_strongatomic(me);
    together_gasnett_strongatomic32(me);
    together_gasnett_strongatomic64(me);
    diagnose_tearing(me);
}
