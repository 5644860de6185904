//! Bound descriptors.
//!
//! Only their owner uses them, so they are memory of its process.
//!
//! A slot's word holds the generation of its handle, whether it is bound, and how many operations
//! are under way. An operation begins by counting itself and looking at the rest of the word: if
//! its descriptor was bound there, the word stays as it is until the operation has ended. So
//! operations of many threads take no lock; binding and releasing take one.

use crate::portals::{Descriptor, DescriptorHandle, NicError, Part};
use argonet_base::JobRank;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::Backoff;
use parking_lot::{Mutex, MutexGuard};

/// A descriptor, as an operation sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) handle: DescriptorHandle,
    pub(super) options: Descriptor,
    /// No other operation of this rank has the number, from four billion before to four billion
    /// after.
    pub(super) link: u64,
    /// Where in the descriptor.
    pub(super) offset: u64,
    /// Where that is.
    pub(super) memory: NonNull<u8>,
}

// SAFETY: the pointer is into a bound descriptor, whose memory stays while operations are under
// way, also if another thread carries them on.
unsafe impl Send for Local {}

#[derive(Clone, Copy)]
struct Bound {
    memory: NonNull<u8>,
    len: u64,
    options: Descriptor,
}

/// Bits of a slot's word below the generation: whether it is bound, and above 0 how many operations
/// are under way.
const GENERATION_AT: u32 = 32;
const BOUND: u64 = 1 << 31;
const UNDER_WAY: u64 = BOUND - 1;

/// The word of a bound slot of which nothing is under way.
const fn idle(generation: u32) -> u64 {
    (generation as u64) << GENERATION_AT | BOUND
}

/// The word of a free slot of which nothing is under way.
const fn free(generation: u32) -> u64 {
    (generation as u64) << GENERATION_AT
}

struct Slot {
    word: AtomicU64,
    /// Operations begun.
    begun: AtomicU64,
    /// Operations ended, of descriptors that release themselves.
    ended: AtomicU64,
    moved_bytes: AtomicU64,
    /// Written by the thread that binds the slot, while it is not bound; read while it is bound,
    /// under the lock of the free slots or by an operation under way.
    bound: UnsafeCell<Bound>,
}

// SAFETY: `bound` is written and read as it says; its pointer is as `Local`'s.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            bound: UnsafeCell::new(Bound {
                memory: NonNull::dangling(),
                len: 0,
                options: Descriptor::SILENT,
            }),
        }
    }

    /// Counts an operation as under way, if the slot is bound in this generation.
    #[inline]
    fn enter(&self, generation: u32) -> Option<Bound> {
        let word = self.word.fetch_add(1, Ordering::Acquire);
        if word & !UNDER_WAY == idle(generation) {
            // SAFETY: it is bound, and stays so until this operation has ended.
            return Some(unsafe { *self.bound.get() });
        }
        self.leave();
        None
    }

    #[inline]
    fn leave(&self) {
        self.word.fetch_sub(1, Ordering::Release);
    }

    /// Counts an operation as begun, if so many may be; how many were before.
    #[inline]
    fn count_begun(&self, threshold: Option<u32>) -> Result<u64, u64> {
        let Some(threshold) = threshold else {
            return Ok(self.begun.fetch_add(1, Ordering::Relaxed));
        };
        let next = |begun: u64| (begun < u64::from(threshold)).then_some(begun + 1);
        self.begun
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
    }

    /// Releases the slot if nothing but `under_way` operations are.
    fn release(&self, generation: u32, under_way: u64) -> Result<(), u64> {
        let (from, to) = (
            idle(generation) + under_way,
            free(generation.wrapping_add(1)),
        );
        let released = self
            .word
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        released.map(drop)
    }
}

/// The descriptors of a rank.
pub(super) struct Table {
    rank: JobRank,
    slots: Box<[Slot]>,
    /// Places that are free, the last used on top.
    ///
    /// Held by threads that bind, release, or look at all.
    free: Mutex<Vec<u32>>,
}

impl Table {
    pub(super) fn new(rank: JobRank, descriptors: u32) -> Self {
        Self {
            rank,
            slots: (0..descriptors).map(|_| Slot::new()).collect(),
            free: Mutex::new((0..descriptors).rev().collect()),
        }
    }

    #[cold]
    fn gone(&self, handle: DescriptorHandle) -> NicError {
        NicError::BadHandle {
            rank: self.rank,
            what: "descriptor",
            index: handle.index,
            generation: handle.generation,
        }
    }

    /// The slot of a handle, which may be gone.
    #[inline]
    fn slot(&self, handle: DescriptorHandle) -> Result<&Slot, NicError> {
        let slot = self.slots.get(handle.index as usize);
        slot.ok_or_else(|| self.gone(handle))
    }

    /// The bound memory and options, if there are any; under the lock.
    fn look(slot: &Slot, _lock: &MutexGuard<'_, Vec<u32>>) -> Option<(u32, Bound)> {
        let word = slot.word.load(Ordering::Acquire);
        if word & BOUND == 0 {
            return None;
        }
        // SAFETY: it is bound, and a writer needs the lock.
        let bound = unsafe { *slot.bound.get() };
        Some(((word >> GENERATION_AT) as u32, bound))
    }

    /// Runs `f` on a descriptor that exists.
    fn with<T>(
        &self,
        handle: DescriptorHandle,
        f: impl FnOnce(&Slot, Bound) -> T,
    ) -> Result<T, NicError> {
        let slot = self.slot(handle)?;
        let lock = self.free.lock();
        match Self::look(slot, &lock) {
            Some((generation, bound)) if generation == handle.generation => Ok(f(slot, bound)),
            _ => Err(self.gone(handle)),
        }
    }

    pub(super) fn bind(
        &self,
        memory: NonNull<u8>,
        len: u64,
        options: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        let mut free = self.free.lock();
        let place = free.pop();
        let slot = place.and_then(|index| Some((index, self.slots.get(index as usize)?)));
        let Some((index, slot)) = slot else {
            return Err(NicError::NoSpace {
                rank: self.rank,
                what: "descriptor",
                limit: self.slots.len() as u64,
            });
        };
        // SAFETY: it is not bound, and this thread, with the lock, is the one that binds.
        unsafe {
            *slot.bound.get() = Bound {
                memory,
                len,
                options,
            };
        }
        for count in [&slot.begun, &slot.ended, &slot.moved_bytes] {
            count.store(0, Ordering::Relaxed);
        }
        let word = slot.word.fetch_or(BOUND, Ordering::Release);
        Ok(DescriptorHandle {
            index,
            generation: (word >> GENERATION_AT) as u32,
        })
    }

    pub(super) fn release(&self, handle: DescriptorHandle) -> Result<(), NicError> {
        let slot = self.slot(handle)?;
        let mut free = self.free.lock();
        match slot.release(handle.generation, 0) {
            Ok(()) => {
                free.push(handle.index);
                Ok(())
            }
            Err(word) if word & !UNDER_WAY == idle(handle.generation) => Err(NicError::InUse {
                rank: self.rank,
                what: "descriptor",
                index: handle.index,
                by: "by operations under way",
            }),
            Err(_) => Err(self.gone(handle)),
        }
    }

    /// How long a descriptor's memory is.
    pub(super) fn len(&self, handle: DescriptorHandle) -> Result<u64, NicError> {
        self.with(handle, |_, bound| bound.len)
    }

    /// Operations that a descriptor has begun, and bytes that they have moved.
    pub(super) fn counts(&self, handle: DescriptorHandle) -> Result<(u64, u64), NicError> {
        self.with(handle, |slot, _| {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            (load(&slot.begun), load(&slot.moved_bytes))
        })
    }

    /// Begins an operation on a part of a descriptor.
    #[inline]
    pub(super) fn begin(&self, handle: DescriptorHandle, part: Part) -> Result<Local, NicError> {
        let slot = self.slot(handle)?;
        let Some(bound) = slot.enter(handle.generation) else {
            return Err(self.gone(handle));
        };
        let Bound {
            memory,
            len,
            options,
        } = bound;
        let end = part.offset_bytes.checked_add(part.len_bytes);
        if end.is_none_or(|end| end > len) {
            slot.leave();
            return Err(NicError::OutOfRange {
                rank: self.rank,
                offset_bytes: part.offset_bytes,
                len_bytes: part.len_bytes,
                size_bytes: len,
            });
        }
        let Ok(before) = slot.count_begun(options.threshold) else {
            slot.leave();
            return Err(NicError::Exhausted {
                rank: self.rank,
                index: handle.index,
                threshold: options.threshold.unwrap_or(0),
            });
        };
        let place = u64::from(handle.generation as u16) << 48 | u64::from(handle.index) << 32;
        Ok(Local {
            handle,
            options,
            link: place | u64::from(before as u32),
            offset: part.offset_bytes,
            // SAFETY: the offset is within the memory, checked above, which the binder vouched for.
            memory: unsafe { memory.add(part.offset_bytes as usize) },
        })
    }

    /// Takes back a beginning: nothing was done.
    pub(super) fn abandon(&self, local: &Local) {
        if let Ok(slot) = self.slot(local.handle) {
            slot.begun.fetch_sub(1, Ordering::Relaxed);
            slot.leave();
        }
    }

    /// Ends an operation; whether the descriptor is released with it.
    #[inline]
    pub(super) fn end(&self, local: &Local, moved_bytes: u64) -> bool {
        let Ok(slot) = self.slot(local.handle) else {
            return false;
        };
        if moved_bytes != 0 {
            slot.moved_bytes.fetch_add(moved_bytes, Ordering::Relaxed);
        }
        let limit = local.options.threshold.map(u64::from);
        if limit.is_some() && local.options.auto_unlink {
            let ended = slot.ended.fetch_add(1, Ordering::AcqRel) + 1;
            if Some(ended) == limit {
                self.release_last(slot, local.handle);
                return true;
            }
        }
        slot.leave();
        false
    }

    /// Releases a descriptor of which the last operation that may be has ended, this thread's.
    ///
    /// Others may have counted themselves, and will find that they are too many.
    fn release_last(&self, slot: &Slot, handle: DescriptorHandle) {
        let mut free = self.free.lock();
        let backoff = Backoff::new();
        while slot.release(handle.generation, 1).is_err() {
            backoff.snooze();
        }
        free.push(handle.index);
    }

    /// Whether some descriptor reports to a queue or counter.
    pub(super) fn any(&self, mut has: impl FnMut(&Descriptor) -> bool) -> bool {
        let lock = self.free.lock();
        let mut slots = self.slots.iter();
        slots.any(|slot| Self::look(slot, &lock).is_some_and(|(_, bound)| has(&bound.options)))
    }
}
