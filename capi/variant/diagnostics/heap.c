/* Memory of the process: what is allocated is apart from everything else, and keeps what is written
 * to it. */
#include "diagnostics.h"

/* With GASNET_DEBUGMALLOC the checked functions, else those that they stand for. */
#if GASNET_DEBUGMALLOC
#define ALLOCATE(bytes) gasnett_debug_malloc(bytes)
#define ALLOCATE_ZEROS(count, bytes) gasnett_debug_calloc(count, bytes)
#define RESIZE(block, bytes) gasnett_debug_realloc(block, bytes)
#define FREE(block) gasnett_debug_free(block)
#else
#define ALLOCATE(bytes) malloc(bytes)
#define ALLOCATE_ZEROS(count, bytes) calloc(count, bytes)
#define RESIZE(block, bytes) realloc(block, bytes)
#define FREE(block) free(block)
#endif

struct block {
    char *at;
    size_t bytes;
    uint32_t key;
};
#define BLOCKS 64
#define MOST_BYTES 4096

static void look_at(const struct block *block)
{
#if GASNET_DEBUGMALLOC
    gasnett_debug_memcheck(block->at);
#endif
    DIAGNOSE((uintptr_t)block->at % 16 == 0, "a block begins at %p, which is no multiple of 16", (void *)block->at);
    DIAGNOSE_FILLED("an allocated block", block->at, block->bytes, block->key);
}

static void allocate(struct argonet_diagnoser *me, struct block *block)
{
    size_t at;
    block->bytes = 1 + argonet_diagnose_below(me, MOST_BYTES);
    if (argonet_diagnose_below(me, 2)) {
        block->at = (char *)ALLOCATE(block->bytes);
    } else {
        block->at = (char *)ALLOCATE_ZEROS(1, block->bytes);
        for (at = 0; at < block->bytes && block->at[at] == 0; ++at) continue;
        DIAGNOSE(at == block->bytes, "byte %zu of %zu is not zero, though zeros were asked for", at, block->bytes);
    }
}

static void resize(struct argonet_diagnoser *me, struct block *block)
{
    const size_t bytes = 1 + argonet_diagnose_below(me, MOST_BYTES);
    const size_t kept = bytes < block->bytes ? bytes : block->bytes;
    block->at = (char *)RESIZE(block->at, bytes);
    DIAGNOSE_FILLED("a block of another size", block->at, kept, block->key);
    block->bytes = bytes;
}

static void diagnose_blocks(struct argonet_diagnoser *me)
{
    struct block blocks[BLOCKS] = {{NULL, 0, 0}};
    int round, at;
    for (round = 0; round < me->run->iterations; ++round) {
        struct block *block = &blocks[argonet_diagnose_below(me, BLOCKS)];
        if (!block->at) {
            allocate(me, block);
        } else {
            look_at(block);
            if (argonet_diagnose_below(me, 2)) {
                FREE(block->at);
                block->at = NULL;
                continue;
            }
            resize(me, block);
        }
        block->key = (uint32_t)argonet_diagnose_random(me);
        argonet_diagnose_fill(block->at, block->bytes, block->key);
    }
    for (at = 0; at < BLOCKS; ++at) {
        if (blocks[at].at) look_at(&blocks[at]);
        FREE(blocks[at].at);
    }
}

static void diagnose_mapped(void)
{
    const size_t bytes = 3 * (size_t)GASNETT_PAGESIZE;
    char *memory = (char *)gasnett_mmap(bytes);
    size_t at;
    DIAGNOSE((uintptr_t)memory % GASNETT_PAGESIZE == 0, "gasnett_mmap gives %p, which is no page", (void *)memory);
    for (at = 0; at < bytes && memory[at] == 0; ++at) continue;
    DIAGNOSE(at == bytes, "gasnett_mmap: byte %zu is not zero", at);
    argonet_diagnose_fill(memory, bytes, 1);
    DIAGNOSE_FILLED("gasnett_mmap", memory, bytes, 1);
}

void argonet_diagnose_heap(struct argonet_diagnoser *me)
{
#if GASNET_DEBUGMALLOC
    gasnett_heapstats_t before, after;
    if (me->thread == 0) gasnett_getheapstats(&before);
    argonet_diagnose_meet(me);
#endif
    diagnose_blocks(me);
    if (me->thread == 0) diagnose_mapped();
    argonet_diagnose_meet(me);
#if GASNET_DEBUGMALLOC
    gasnett_debug_memcheck_one();
    if (me->thread == 0) {
        gasnett_debug_memcheck_all();
        gasnett_getheapstats(&after);
        DIAGNOSE(after.live_objects == before.live_objects && after.live_bytes == before.live_bytes,
                 "%" PRIu64 " objects of %" PRIu64 " bytes are live, before the section %" PRIu64 " of %" PRIu64,
                 after.live_objects, after.live_bytes, before.live_objects, before.live_bytes);
        DIAGNOSE(after.allocated_objects - before.allocated_objects == after.freed_objects - before.freed_objects,
                 "allocated and freed objects do not agree");
    }
    argonet_diagnose_meet(me);
#endif
}
