/* Code that the sections of gasnett_run_diagnostics share. They are compiled as a client of each
 * mode, so that they find the errors that such a client would meet. Nothing here uses the
 * mechanisms that are diagnosed: the compiler's atomic operations hold things together. */
#ifndef ARGONET_DIAGNOSTICS_H
#define ARGONET_DIAGNOSTICS_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>

#include <stdlib.h>
#include <string.h>

/* Names that objects of a variant share, and no other object sees. */
#define ARGONET_SHARED __attribute__((__visibility__("hidden")))

/* One run. */
struct argonet_diagnosis {
    gex_TM_t tm;
    gex_Rank_t rank;
    gex_Rank_t size;
    gex_Rank_t peer;
    int iterations;
    unsigned int seed;
    /* This rank's memory that others may write: a slot for each rank, and behind them one word for
     * each. */
    char *own;
    size_t own_slot_bytes;
    /* This rank's slot and word at the peer, as addresses of the peer's. */
    char *slot;
    size_t slot_bytes;
    uint64_t *word;
    /* Whether handlers have been given to the client, which then has registered them. */
    int has_handlers;
};

/* One thread of a section. Thread 0 is the caller. */
struct argonet_diagnoser {
    const struct argonet_diagnosis *run;
    int thread;
    int threads;
    uint64_t random;
};

/* Where messages find the run. */
ARGONET_SHARED extern struct argonet_diagnosis argonet_diagnosis;

/* Reports a fault and counts it. Legal in handlers. */
ARGONET_SHARED void argonet_diagnose_fault(const char *file, int line, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));
#define DIAGNOSE(condition, ...)                                                                                       \
    (GASNETT_PREDICT_TRUE(condition) ? (void)0 : argonet_diagnose_fault(__FILE__, __LINE__, __VA_ARGS__))

/* Waits for all threads of the section: polling, or, for those that hold locks, not. */
ARGONET_SHARED void argonet_diagnose_meet(struct argonet_diagnoser *me);
ARGONET_SHARED void argonet_diagnose_meet_quietly(struct argonet_diagnoser *me);
/* A barrier of all ranks; for thread 0 alone. */
ARGONET_SHARED void argonet_diagnose_barrier(void);

/* Numbers that depend on the seed. */
ARGONET_SHARED uint64_t argonet_diagnose_random(struct argonet_diagnoser *me);
ARGONET_SHARED size_t argonet_diagnose_below(struct argonet_diagnoser *me, size_t end);

/* Bytes that depend on their place and on a key; the first that is wrong, or `bytes`. */
ARGONET_SHARED void argonet_diagnose_fill(void *to, size_t bytes, uint32_t key);
ARGONET_SHARED size_t argonet_diagnose_wrong(const void *from, size_t bytes, uint32_t key);
#define DIAGNOSE_FILLED(what, from, bytes, key)                                                                        \
    do {                                                                                                               \
        size_t argonet_wrong = argonet_diagnose_wrong((from), (bytes), (key));                                         \
        DIAGNOSE(argonet_wrong == (bytes), "%s: byte %zu of %zu is wrong", (what), argonet_wrong, (size_t)(bytes));    \
    } while (0)

/* Memory, or the end of the job. */
ARGONET_SHARED void *argonet_diagnose_memory(size_t bytes);

/* A thread's part of the slot at the peer. */
ARGONET_SHARED char *argonet_diagnose_part(const struct argonet_diagnoser *me, size_t *bytes);

/* The handlers. */
ARGONET_SHARED void argonet_diagnose_handlers(gex_AM_Entry_t **table, int *count);
/* Sends a message that is answered, and waits for the answer; with a number of its own. */
ARGONET_SHARED void argonet_diagnose_ping(uint32_t number);

/* The sections: each is called by all of its threads. */
typedef void argonet_diagnose_section(struct argonet_diagnoser *me);
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_mutexes;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_conditions;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_rwlocks;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_hsls;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_atomics;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_fences;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_thread_data;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_heap;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_transfers;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_events;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_messages;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_negotiated;
ARGONET_SHARED extern argonet_diagnose_section argonet_diagnose_progress;

#endif
