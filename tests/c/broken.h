/* Mechanisms that do not work, one for each BROKEN_NAME. The driver compiles
 * gasnett_run_diagnostics with one of them, and wants it to find that. */
#ifndef ARGONET_TESTS_BROKEN_H
#define ARGONET_TESTS_BROKEN_H

#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>

#include <string.h>

#define BROKEN_INLINE __attribute__((__unused__)) static

#if defined(BROKEN_MUTEX)
/* Locks nothing. */
#undef gasnett_mutex_lock
#undef gasnett_mutex_trylock
#undef gasnett_mutex_unlock
#define gasnett_mutex_lock(m) ((void)(m))
#define gasnett_mutex_trylock(m) ((void)(m), 0)
#define gasnett_mutex_unlock(m) ((void)(m))
#elif defined(BROKEN_TRYLOCK)
/* Does not see that another has the lock, but leaves it alone. */
#undef gasnett_mutex_trylock
#define gasnett_mutex_trylock(m) (argonett_mutex_trylock((m), "", 0) == 0 ? 0 : EAGAIN)
#elif defined(BROKEN_RWLOCK)
/* Readers do not keep writers out, nor writers readers. */
#undef gasnett_rwlock_rdlock
#define gasnett_rwlock_rdlock(l) ((void)(l))
#undef gasnett_rwlock_tryrdlock
#define gasnett_rwlock_tryrdlock(l) ((void)(l), 0)
#undef gasnett_rwlock_wrlock
#define gasnett_rwlock_wrlock(l) ((void)(l))
#undef gasnett_rwlock_trywrlock
#define gasnett_rwlock_trywrlock(l) ((void)(l), 0)
#undef gasnett_rwlock_unlock
#define gasnett_rwlock_unlock(l) ((void)(l))
#elif defined(BROKEN_HSL)
#define gex_HSL_Lock(l) ((void)(l))
#define gex_HSL_Trylock(l) ((void)(l), GASNET_OK)
#define gex_HSL_Unlock(l) ((void)(l))
#elif defined(BROKEN_ADD)
/* Reads, and later writes. */
BROKEN_INLINE uint32_t broken_add(gasnett_strongatomic32_t *p, uint32_t v) {
  uint32_t before = p->ctr;
  if (before % 64 == 0) gasnett_sched_yield();
  return p->ctr = before + v;
}
#define gasnett_strongatomic32_add(p, v, flags) broken_add(p, v)
#elif defined(BROKEN_SWAP)
/* Swaps for any old value. */
#define gasnett_strongatomic64_compare_and_swap(p, old, value, flags) ((p)->ctr = (value), 1)
#elif defined(BROKEN_TEARING)
/* Writes one half after the other. */
BROKEN_INLINE void broken_set(gasnett_strongatomic64_t *p, uint64_t v) {
  p->ctr = (p->ctr & UINT64_C(0xffffffff00000000)) | (uint32_t)v;
  gasnett_sched_yield();
  p->ctr = v;
}
#define gasnett_strongatomic64_set(p, v, flags) broken_set(p, v)
#elif defined(BROKEN_SPIN)
/* The operation on which a spin lock stands always says that it has the lock. */
#undef gasnett_atomic_compare_and_swap
#define gasnett_atomic_compare_and_swap(p, old, value, flags) ((void)(p), (void)(old), 1)
#elif defined(BROKEN_WMB)
/* Stores after the barrier are visible before those ahead of it. */
#undef gasnett_local_wmb
#define gasnett_local_wmb()                                                                                            \
  do {                                                                                                                 \
    last = round;                                                                                                      \
    data[7] = round - 1;                                                                                               \
    gasnett_sched_yield();                                                                                             \
    data[7] = round;                                                                                                   \
  } while (0)
#elif defined(BROKEN_KEY)
/* All threads have the same. */
#undef GASNETT_THREADKEY_DECLARE
#undef GASNETT_THREADKEY_DEFINE
#define GASNETT_THREADKEY_DECLARE(key) extern void *argonett_key_##key
#define GASNETT_THREADKEY_DEFINE(key) void *argonett_key_##key = 0
#elif defined(BROKEN_CALLOC)
/* Leaves the old value. */
#include <stdlib.h>
BROKEN_INLINE void *broken_calloc(size_t bytes) {
  void *block = malloc(bytes);
  return block ? memset(block, 1, bytes) : block;
}
#define calloc(count, bytes) broken_calloc((count) * (bytes))
#elif defined(BROKEN_PUT)
/* Forgets the last byte of copies that are longer than a word. */
#define gex_RMA_PutNBI(tm, rank, to, from, bytes, lc, flags)                                                           \
  (gex_RMA_PutNBI)(tm, rank, to, from, (bytes) > 8 ? (bytes) - 1 : (bytes), lc, flags)
#elif defined(BROKEN_BESIDE)
/* Writes a byte more. */
#define gex_RMA_PutNB(tm, rank, to, from, bytes, lc, flags)                                                            \
  (gex_RMA_PutBlocking(tm, rank, (char *)(to) + (bytes), "", 1, 0), (gex_RMA_PutNB)(tm, rank, to, from, bytes, lc, flags))
#elif defined(BROKEN_VALUE)
#define gex_RMA_PutBlockingVal(tm, rank, to, value, bytes, flags)                                                      \
  (gex_RMA_PutBlockingVal)(tm, rank, to, (value) & 0xffffffff, bytes, flags)
#elif defined(BROKEN_EVENTS)
/* Says that all are done, and leaves one. */
#define gex_Event_TestAll(events, count, flags) ((events)[0] = (gex_Event_t)(uintptr_t)8, GASNET_OK)
#elif defined(BROKEN_REGION)
/* The region's operations are lost. */
#define gex_NBI_BeginAccessRegion(flags) (memset(here, 0, room), gex_NBI_BeginAccessRegion(flags))
#elif defined(BROKEN_ARGUMENT)
#define gex_AM_ReplyShort2(token, handler, flags, a, b) (gex_AM_ReplyShort2)(token, handler, flags, a, (b) ^ 1)
#elif defined(BROKEN_MEDIUM)
#define gex_AM_ReplyMedium3(token, handler, from, bytes, lc, flags, a, b, c)                                           \
  (gex_AM_ReplyMedium3)(token, handler, from, (bytes) / 2, lc, flags, a, b, c)
#elif defined(BROKEN_LONG)
/* Arrives beside where it should. */
#define gex_AM_RequestLong6(tm, rank, handler, from, bytes, to, ...)                                                   \
  (gex_AM_RequestLong6)(tm, rank, handler, from, bytes, (char *)(to) + ((bytes) > 1), __VA_ARGS__)
#elif defined(BROKEN_BROADCAST)
/* From another root. */
#define gex_Coll_BroadcastNB(tm, root, to, from, bytes, flags)                                                         \
  gex_Coll_BroadcastNB(tm, (gex_Rank_t)(((root) + 1) % gex_TM_QuerySize(tm)), to, from, bytes, flags)
#elif defined(BROKEN_BARRIER)
/* Does not wait. */
#define gex_Coll_BarrierNB(tm, flags) GEX_EVENT_INVALID
#elif defined(BROKEN_MMAP)
/* Not from the start of a page. */
#undef gasnett_mmap
#define gasnett_mmap(bytes) ((void *)((char *)argonet_map_memory((bytes) + 64) + 64))
#else
#error which mechanism?
#endif

#endif
