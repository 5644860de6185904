/* Barriers, numbers, patterns, memory. */
#include "diagnostics.h"

/* How many threads have come, and how often all have. */
static int arrived;
static unsigned int met;

static void meet(struct argonet_diagnoser *me, int polls)
{
    unsigned int before = __atomic_load_n(&met, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == me->threads) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&met, before + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&met, __ATOMIC_ACQUIRE) == before) {
        if (polls) gasnet_AMPoll();
        gasnett_sched_yield();
    }
}

void argonet_diagnose_meet(struct argonet_diagnoser *me)
{
    meet(me, 1);
}

void argonet_diagnose_meet_quietly(struct argonet_diagnoser *me)
{
    meet(me, 0);
}

/* xorshift. */
uint64_t argonet_diagnose_random(struct argonet_diagnoser *me)
{
    uint64_t x = me->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return me->random = x;
}

size_t argonet_diagnose_below(struct argonet_diagnoser *me, size_t end)
{
    return (size_t)((argonet_diagnose_random(me) >> 11) % end);
}

static unsigned char byte_at(uint32_t key, size_t at)
{
    return (unsigned char)((key * 2654435761u + (uint32_t)at * 40503u + (uint32_t)(at >> 8) * 97u) >> 9);
}

void argonet_diagnose_fill(void *to, size_t bytes, uint32_t key)
{
    size_t at;
    for (at = 0; at < bytes; ++at) ((unsigned char *)to)[at] = byte_at(key, at);
}

size_t argonet_diagnose_wrong(const void *from, size_t bytes, uint32_t key)
{
    size_t at;
    for (at = 0; at < bytes; ++at)
        if (((const unsigned char *)from)[at] != byte_at(key, at)) break;
    return at;
}

void *argonet_diagnose_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory) gasnett_fatalerror("gasnett_run_diagnostics: there is no memory for %zu bytes", bytes);
    return memory;
}

char *argonet_diagnose_part(const struct argonet_diagnoser *me, size_t *bytes)
{
    *bytes = (me->run->slot_bytes / (size_t)me->threads) & ~(size_t)7;
    return me->run->slot + (size_t)me->thread * *bytes;
}
