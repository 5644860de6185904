/* Memory barriers and atomic operations. Part of gasnet_tools.h, which has settled the thread mode
 * before. */
#ifndef ARGONET_ATOMICS_H
#define ARGONET_ATOMICS_H

#include "argonet/annotations.h"
#include "argonet/numbers_tools.h"
#include <stdint.h>

#define GASNETT_MEMBAR_CONFIG "builtin"
#define gasnett_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* A write barrier orders earlier stores before later loads too, which only a full barrier does. */
#define gasnett_local_wmb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define gasnett_local_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasnett_local_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#if GASNETT_THREAD_SAFE
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb() gasnett_local_mb()
#else
#define gasnett_weak_wmb() gasnett_compiler_fence()
#define gasnett_weak_rmb() gasnett_compiler_fence()
#define gasnett_weak_mb() gasnett_compiler_fence()
#endif

GASNETT_INLINE(gasnett_spinloop_hint)
void gasnett_spinloop_hint(void)
{
#if PLATFORM_ARCH_X86_64
    __asm__ __volatile__("pause" : : : "memory");
#else
    __asm__ __volatile__("yield" : : : "memory");
#endif
}

#if !GASNETT_LITE_MODE

/* The processor's operations that read and write are full barriers on x86-64: only the compiler
 * needs a fence. */
#if PLATFORM_ARCH_X86_64
#define ARGONETT_FENCE_OF_UPDATE(order) __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define ARGONETT_FENCE_OF_UPDATE(order) __atomic_thread_fence(order)
#endif

/* Before a read: everything earlier that the flags name, against a load. */
GASNETT_INLINE(argonett_before_read)
void argonett_before_read(int flags)
{
    if (flags & GASNETT_ATOMIC_WMB_PRE) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else if (flags & GASNETT_ATOMIC_RMB_PRE) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
}

/* Before a store: earlier loads and stores stay before it. */
GASNETT_INLINE(argonett_before_set)
void argonett_before_set(int flags)
{
    if ((flags & GASNETT_ATOMIC_MB_PRE) == GASNETT_ATOMIC_MB_PRE) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else if (flags & GASNETT_ATOMIC_MB_PRE) {
        __atomic_thread_fence(__ATOMIC_ACQ_REL);
    }
}

GASNETT_INLINE(argonett_after_access)
void argonett_after_access(int flags)
{
    if (flags & GASNETT_ATOMIC_WMB_POST) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else if (flags & GASNETT_ATOMIC_RMB_POST) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
}

GASNETT_INLINE(argonett_before_update)
void argonett_before_update(int flags)
{
    if (flags & GASNETT_ATOMIC_MB_PRE) {
        ARGONETT_FENCE_OF_UPDATE(__ATOMIC_SEQ_CST);
    }
}

GASNETT_INLINE(argonett_after_update)
void argonett_after_update(int flags)
{
    if (flags & GASNETT_ATOMIC_MB_POST) {
        ARGONETT_FENCE_OF_UPDATE(__ATOMIC_SEQ_CST);
    }
}

GASNETT_INLINE(argonett_after_test)
int argonett_after_test(int flags, int result)
{
    argonett_after_update(flags);
    if ((flags & GASNETT_ATOMIC_RMB_POST_IF_TRUE) && result) {
        ARGONETT_FENCE_OF_UPDATE(__ATOMIC_ACQUIRE);
    }
    if ((flags & GASNETT_ATOMIC_RMB_POST_IF_FALSE) && !result) {
        ARGONETT_FENCE_OF_UPDATE(__ATOMIC_ACQUIRE);
    }
    return result;
}

/* The flags' order comes from the fences around an operation. ThreadSanitizer, which a client may
 * be built with, sees no fences: for it the operation itself has that order, too, so that it finds
 * a flag that a client has forgotten and nothing else. No order depends on a value: such an
 * operation gcc would not show to it. */
#if defined(__SANITIZE_THREAD__)
#define ARGONETT_SHOWS_ORDER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARGONETT_SHOWS_ORDER 1
#endif
#endif
#ifndef ARGONETT_SHOWS_ORDER
#define ARGONETT_SHOWS_ORDER 0
#endif

#if ARGONETT_SHOWS_ORDER
#define ARGONETT_PRE_FLAGS GASNETT_ATOMIC_MB_PRE
#define ARGONETT_POST_FLAGS GASNETT_ATOMIC_MB_POST
/* After a test, too, whatever it found. */
#define ARGONETT_TEST_FLAGS                                                                                            \
    (ARGONETT_POST_FLAGS | GASNETT_ATOMIC_RMB_POST_IF_TRUE | GASNETT_ATOMIC_RMB_POST_IF_FALSE)
#define ARGONETT_LOAD(p, flags)                                                                                        \
    ((flags)&ARGONETT_POST_FLAGS ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : __atomic_load_n(p, __ATOMIC_RELAXED))
#define ARGONETT_STORE(p, v, flags)                                                                                    \
    ((flags)&ARGONETT_PRE_FLAGS ? __atomic_store_n(p, v, __ATOMIC_RELEASE) : __atomic_store_n(p, v, __ATOMIC_RELAXED))
#define ARGONETT_UPDATE(operation, p, v, flags)                                                                        \
    ((flags)&ARGONETT_PRE_FLAGS                                                                                        \
         ? ((flags)&ARGONETT_TEST_FLAGS ? operation(p, v, __ATOMIC_ACQ_REL) : operation(p, v, __ATOMIC_RELEASE))       \
         : ((flags)&ARGONETT_TEST_FLAGS ? operation(p, v, __ATOMIC_ACQUIRE) : operation(p, v, __ATOMIC_RELAXED)))
#else
#define ARGONETT_LOAD(p, flags) __atomic_load_n(p, __ATOMIC_RELAXED)
#define ARGONETT_STORE(p, v, flags) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ARGONETT_UPDATE(operation, p, v, flags) operation(p, v, __ATOMIC_RELAXED)
#endif

/* As an operation for `ARGONETT_UPDATE`. */
#define ARGONETT_EXCHANGE_EXPECTED(p, v, order)                                                                        \
    __atomic_compare_exchange_n(p, &expected, v, 0, order,                                                             \
                                (order) == __ATOMIC_ACQUIRE || (order) == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE          \
                                                                                           : __ATOMIC_RELAXED)

/* Of natural size and alignment. May lie where a variable of another type of this size lies. */
typedef struct {
    volatile uint32_t ctr;
} ARGONETT_MAY_ALIAS gasnett_strongatomic32_t;
typedef struct {
    volatile uint64_t ctr;
} ARGONETT_MAY_ALIAS gasnett_strongatomic64_t;

#define gasnett_strongatomic32_init(v) {(uint32_t)(v)}
#define gasnett_strongatomic64_init(v) {(uint64_t)(v)}

/* Operations that are atomic in every mode. */
#define ARGONETT_STRONG(name, value)                                                                                   \
    GASNETT_INLINE(name##_set)                                                                                         \
    void name##_set(name##_t *p, value v, int flags)                                                                   \
    {                                                                                                                  \
        argonett_before_set(flags);                                                                                    \
        ARGONETT_STORE(&p->ctr, v, flags);                                                                             \
        argonett_after_access(flags);                                                                                  \
    }                                                                                                                  \
    GASNETT_INLINE(name##_read)                                                                                        \
    value name##_read(name##_t *p, int flags)                                                                          \
    {                                                                                                                  \
        value v;                                                                                                       \
        argonett_before_read(flags);                                                                                   \
        v = ARGONETT_LOAD(&p->ctr, flags);                                                                             \
        argonett_after_access(flags);                                                                                  \
        return v;                                                                                                      \
    }                                                                                                                  \
    GASNETT_INLINE(name##_add)                                                                                         \
    value name##_add(name##_t *p, value v, int flags)                                                                  \
    {                                                                                                                  \
        argonett_before_update(flags);                                                                                 \
        v = ARGONETT_UPDATE(__atomic_add_fetch, &p->ctr, v, flags);                                                    \
        argonett_after_update(flags);                                                                                  \
        return v;                                                                                                      \
    }                                                                                                                  \
    GASNETT_INLINE(name##_swap)                                                                                        \
    value name##_swap(name##_t *p, value v, int flags)                                                                 \
    {                                                                                                                  \
        argonett_before_update(flags);                                                                                 \
        v = ARGONETT_UPDATE(__atomic_exchange_n, &p->ctr, v, flags);                                                   \
        argonett_after_update(flags);                                                                                  \
        return v;                                                                                                      \
    }                                                                                                                  \
    GASNETT_INLINE(name##_compare_and_swap)                                                                            \
    int name##_compare_and_swap(name##_t *p, value expected, value v, int flags)                                       \
    {                                                                                                                  \
        int done;                                                                                                      \
        argonett_before_update(flags);                                                                                 \
        done = ARGONETT_UPDATE(ARGONETT_EXCHANGE_EXPECTED, &p->ctr, v, flags);                                         \
        return argonett_after_test(flags, done);                                                                       \
    }                                                                                                                  \
    ARGONETT_DERIVED(name, value)

/* The same without atomicity, for programs with one thread. */
#define ARGONETT_PLAIN(name, value)                                                                                    \
    GASNETT_INLINE(name##_set)                                                                                         \
    void name##_set(name##_t *p, value v, int flags)                                                                   \
    {                                                                                                                  \
        (void)flags;                                                                                                   \
        p->ctr = v;                                                                                                    \
        gasnett_compiler_fence();                                                                                      \
    }                                                                                                                  \
    GASNETT_INLINE(name##_read)                                                                                        \
    value name##_read(name##_t *p, int flags)                                                                          \
    {                                                                                                                  \
        (void)flags;                                                                                                   \
        gasnett_compiler_fence();                                                                                      \
        return p->ctr;                                                                                                 \
    }                                                                                                                  \
    GASNETT_INLINE(name##_add)                                                                                         \
    value name##_add(name##_t *p, value v, int flags)                                                                  \
    {                                                                                                                  \
        (void)flags;                                                                                                   \
        v += p->ctr;                                                                                                   \
        p->ctr = v;                                                                                                    \
        gasnett_compiler_fence();                                                                                      \
        return v;                                                                                                      \
    }                                                                                                                  \
    GASNETT_INLINE(name##_swap)                                                                                        \
    value name##_swap(name##_t *p, value v, int flags)                                                                 \
    {                                                                                                                  \
        value old = p->ctr;                                                                                            \
        (void)flags;                                                                                                   \
        p->ctr = v;                                                                                                    \
        gasnett_compiler_fence();                                                                                      \
        return old;                                                                                                    \
    }                                                                                                                  \
    GASNETT_INLINE(name##_compare_and_swap)                                                                            \
    int name##_compare_and_swap(name##_t *p, value expected, value v, int flags)                                       \
    {                                                                                                                  \
        int same = p->ctr == expected;                                                                                 \
        (void)flags;                                                                                                   \
        if (same) {                                                                                                    \
            p->ctr = v;                                                                                                \
        }                                                                                                              \
        gasnett_compiler_fence();                                                                                      \
        return same;                                                                                                   \
    }                                                                                                                  \
    ARGONETT_DERIVED(name, value)

#define ARGONETT_DERIVED(name, value)                                                                                  \
    GASNETT_INLINE(name##_subtract)                                                                                    \
    value name##_subtract(name##_t *p, value v, int flags)                                                             \
    {                                                                                                                  \
        return name##_add(p, (value)0 - v, flags);                                                                     \
    }                                                                                                                  \
    GASNETT_INLINE(name##_increment)                                                                                   \
    void name##_increment(name##_t *p, int flags)                                                                      \
    {                                                                                                                  \
        (void)name##_add(p, 1, flags);                                                                                 \
    }                                                                                                                  \
    GASNETT_INLINE(name##_decrement)                                                                                   \
    void name##_decrement(name##_t *p, int flags)                                                                      \
    {                                                                                                                  \
        (void)name##_subtract(p, 1, flags);                                                                            \
    }                                                                                                                  \
    GASNETT_INLINE(name##_decrement_and_test)                                                                          \
    int name##_decrement_and_test(name##_t *p, int flags)                                                              \
    {                                                                                                                  \
        return argonett_after_test(flags, name##_subtract(p, 1, flags) == 0);                                          \
    }

ARGONETT_STRONG(gasnett_strongatomic32, uint32_t)
ARGONETT_STRONG(gasnett_strongatomic64, uint64_t)

typedef gasnett_strongatomic32_t gasnett_atomic32_t;
typedef gasnett_strongatomic64_t gasnett_atomic64_t;
#define gasnett_atomic32_init(v) gasnett_strongatomic32_init(v)
#define gasnett_atomic64_init(v) gasnett_strongatomic64_init(v)

#if GASNETT_THREAD_SAFE
#define gasnett_atomic32_set gasnett_strongatomic32_set
#define gasnett_atomic32_read gasnett_strongatomic32_read
#define gasnett_atomic32_add gasnett_strongatomic32_add
#define gasnett_atomic32_subtract gasnett_strongatomic32_subtract
#define gasnett_atomic32_increment gasnett_strongatomic32_increment
#define gasnett_atomic32_decrement gasnett_strongatomic32_decrement
#define gasnett_atomic32_decrement_and_test gasnett_strongatomic32_decrement_and_test
#define gasnett_atomic32_swap gasnett_strongatomic32_swap
#define gasnett_atomic32_compare_and_swap gasnett_strongatomic32_compare_and_swap
#define gasnett_atomic64_set gasnett_strongatomic64_set
#define gasnett_atomic64_read gasnett_strongatomic64_read
#define gasnett_atomic64_add gasnett_strongatomic64_add
#define gasnett_atomic64_subtract gasnett_strongatomic64_subtract
#define gasnett_atomic64_increment gasnett_strongatomic64_increment
#define gasnett_atomic64_decrement gasnett_strongatomic64_decrement
#define gasnett_atomic64_decrement_and_test gasnett_strongatomic64_decrement_and_test
#define gasnett_atomic64_swap gasnett_strongatomic64_swap
#define gasnett_atomic64_compare_and_swap gasnett_strongatomic64_compare_and_swap
#define GASNETT_ATOMIC_CONFIG "builtin"
#else
ARGONETT_PLAIN(gasnett_atomic32, uint32_t)
ARGONETT_PLAIN(gasnett_atomic64, uint64_t)
#define GASNETT_ATOMIC_CONFIG "plain"
#endif
#define GASNETT_ATOMIC32_CONFIG GASNETT_ATOMIC_CONFIG
#define GASNETT_ATOMIC64_CONFIG GASNETT_ATOMIC_CONFIG

/* The type without a width has 32 bits. */
typedef gasnett_atomic32_t gasnett_atomic_t;
typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define gasnett_atomic_init(v) gasnett_atomic32_init(v)
#define gasnett_atomic_set gasnett_atomic32_set
#define gasnett_atomic_read gasnett_atomic32_read
#define gasnett_atomic_add gasnett_atomic32_add
#define gasnett_atomic_subtract gasnett_atomic32_subtract
#define gasnett_atomic_increment gasnett_atomic32_increment
#define gasnett_atomic_decrement gasnett_atomic32_decrement
#define gasnett_atomic_decrement_and_test gasnett_atomic32_decrement_and_test
#define gasnett_atomic_swap gasnett_atomic32_swap
#define gasnett_atomic_compare_and_swap gasnett_atomic32_compare_and_swap
#define gasnett_atomic_signed(v) ((gasnett_atomic_sval_t)(v))
#define GASNETT_ATOMIC_MAX ((gasnett_atomic_val_t)0xFFFFFFFFU)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)(-0x7FFFFFFF - 1))
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)0x7FFFFFFF)
#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_ATOMIC_ADD_SUB 1

typedef gasnett_strongatomic32_t gasnett_strongatomic_t;
typedef uint32_t gasnett_strongatomic_val_t;
typedef int32_t gasnett_strongatomic_sval_t;
#define gasnett_strongatomic_init(v) gasnett_strongatomic32_init(v)
#define gasnett_strongatomic_set gasnett_strongatomic32_set
#define gasnett_strongatomic_read gasnett_strongatomic32_read
#define gasnett_strongatomic_add gasnett_strongatomic32_add
#define gasnett_strongatomic_subtract gasnett_strongatomic32_subtract
#define gasnett_strongatomic_increment gasnett_strongatomic32_increment
#define gasnett_strongatomic_decrement gasnett_strongatomic32_decrement
#define gasnett_strongatomic_decrement_and_test gasnett_strongatomic32_decrement_and_test
#define gasnett_strongatomic_swap gasnett_strongatomic32_swap
#define gasnett_strongatomic_compare_and_swap gasnett_strongatomic32_compare_and_swap
#define gasnett_strongatomic_signed(v) ((gasnett_strongatomic_sval_t)(v))
#define GASNETT_STRONGATOMIC_MAX GASNETT_ATOMIC_MAX
#define GASNETT_STRONGATOMIC_SIGNED_MIN GASNETT_ATOMIC_SIGNED_MIN
#define GASNETT_STRONGATOMIC_SIGNED_MAX GASNETT_ATOMIC_SIGNED_MAX
#define GASNETT_HAVE_STRONGATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

#endif /* !GASNETT_LITE_MODE */
#endif
