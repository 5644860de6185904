//! Bound descriptors. Nobody but their owner uses them, so they are memory of its process.

use crate::portals::{Descriptor, DescriptorHandle, NicError, Part};
use argonet_base::JobRank;
use core::ptr::NonNull;
use parking_lot::Mutex;

/// A descriptor, as an operation sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) handle: DescriptorHandle,
    pub(super) options: Descriptor,
    /// Where in the descriptor.
    pub(super) offset: u64,
    /// Where that is.
    pub(super) memory: NonNull<u8>,
}

// SAFETY: the pointer is into a bound descriptor, whose memory stays while operations are under way, whichever thread carries them on.
unsafe impl Send for Local {}

#[derive(Clone, Copy)]
struct Bound {
    memory: NonNull<u8>,
    len: u64,
    options: Descriptor,
    /// Operations begun, and those of them that are not complete.
    begun: u64,
    pending: u64,
    moved_bytes: u64,
}

// SAFETY: as for `Local`; the table is behind locks.
unsafe impl Send for Bound {}

#[derive(Default)]
struct Slot {
    generation: u32,
    bound: Option<Bound>,
}

/// The descriptors of a rank.
pub(super) struct Table {
    rank: JobRank,
    slots: Box<[Mutex<Slot>]>,
    /// Places that are free, the last used on top.
    free: Mutex<Vec<u32>>,
}

impl Table {
    pub(super) fn new(rank: JobRank, descriptors: u32) -> Self {
        Self {
            rank,
            slots: (0..descriptors).map(|_| Mutex::default()).collect(),
            free: Mutex::new((0..descriptors).rev().collect()),
        }
    }

    fn gone(&self, handle: DescriptorHandle) -> NicError {
        NicError::BadHandle {
            rank: self.rank,
            what: "descriptor",
            index: handle.index,
            generation: handle.generation,
        }
    }

    /// Runs `f` on a descriptor that exists.
    fn with<T>(
        &self,
        handle: DescriptorHandle,
        f: impl FnOnce(&mut Option<Bound>, Bound) -> Result<T, NicError>,
    ) -> Result<T, NicError> {
        let slot = self.slots.get(handle.index as usize);
        let mut slot = slot.ok_or_else(|| self.gone(handle))?.lock();
        match slot.bound {
            Some(bound) if slot.generation == handle.generation => {
                let result = f(&mut slot.bound, bound);
                if slot.bound.is_none() {
                    slot.generation = slot.generation.wrapping_add(1);
                    self.free.lock().push(handle.index);
                }
                result
            }
            _ => Err(self.gone(handle)),
        }
    }

    pub(super) fn bind(
        &self,
        memory: NonNull<u8>,
        len: u64,
        options: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        let free = self.free.lock().pop();
        let slot = free.and_then(|index| Some((index, self.slots.get(index as usize)?)));
        let Some((index, slot)) = slot else {
            return Err(NicError::NoSpace {
                rank: self.rank,
                what: "descriptor",
                limit: self.slots.len() as u64,
            });
        };
        let mut slot = slot.lock();
        slot.bound = Some(Bound {
            memory,
            len,
            options,
            begun: 0,
            pending: 0,
            moved_bytes: 0,
        });
        Ok(DescriptorHandle {
            index,
            generation: slot.generation,
        })
    }

    pub(super) fn release(&self, handle: DescriptorHandle) -> Result<(), NicError> {
        self.with(handle, |slot, bound| {
            if bound.pending != 0 {
                return Err(NicError::InUse {
                    rank: self.rank,
                    what: "descriptor",
                    index: handle.index,
                    by: "by operations under way",
                });
            }
            *slot = None;
            Ok(())
        })
    }

    /// How long a descriptor's memory is.
    pub(super) fn len(&self, handle: DescriptorHandle) -> Result<u64, NicError> {
        self.with(handle, |_, bound| Ok(bound.len))
    }

    /// Operations that a descriptor has begun, and bytes that they have moved.
    pub(super) fn counts(&self, handle: DescriptorHandle) -> Result<(u64, u64), NicError> {
        self.with(handle, |_, bound| Ok((bound.begun, bound.moved_bytes)))
    }

    /// Begins an operation on a part of a descriptor.
    #[inline]
    pub(super) fn begin(&self, handle: DescriptorHandle, part: Part) -> Result<Local, NicError> {
        self.with(handle, |slot, mut bound| {
            let end = part.offset_bytes.checked_add(part.len_bytes);
            if end.is_none_or(|end| end > bound.len) {
                return Err(NicError::OutOfRange {
                    rank: self.rank,
                    offset_bytes: part.offset_bytes,
                    len_bytes: part.len_bytes,
                    size_bytes: bound.len,
                });
            }
            if let Some(threshold) = bound.options.threshold
                && bound.begun >= u64::from(threshold)
            {
                return Err(NicError::Exhausted {
                    rank: self.rank,
                    index: handle.index,
                    threshold,
                });
            }
            bound.begun += 1;
            bound.pending += 1;
            *slot = Some(bound);
            Ok(Local {
                handle,
                options: bound.options,
                offset: part.offset_bytes,
                // SAFETY: the offset is within the memory, checked above, which the binder vouched for.
                memory: unsafe { bound.memory.add(part.offset_bytes as usize) },
            })
        })
    }

    /// Takes back a beginning: nothing was done.
    pub(super) fn abandon(&self, handle: DescriptorHandle) {
        // It exists, as an operation is pending.
        let _ = self.with(handle, |slot, mut bound| {
            bound.begun = bound.begun.saturating_sub(1);
            bound.pending = bound.pending.saturating_sub(1);
            *slot = Some(bound);
            Ok(())
        });
    }

    /// Ends an operation; whether the descriptor is released with it.
    #[inline]
    pub(super) fn end(&self, handle: DescriptorHandle, moved_bytes: u64) -> bool {
        let ended = self.with(handle, |slot, mut bound| {
            bound.pending = bound.pending.saturating_sub(1);
            bound.moved_bytes += moved_bytes;
            let limit = bound.options.threshold.map(u64::from);
            let last = limit.is_some_and(|limit| bound.begun >= limit) && bound.pending == 0;
            let released = last && bound.options.auto_unlink;
            *slot = (!released).then_some(bound);
            Ok(released)
        });
        ended.unwrap_or(false)
    }

    /// Whether some descriptor reports to a queue or counter.
    pub(super) fn any(&self, mut has: impl FnMut(&Descriptor) -> bool) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.lock().bound.is_some_and(|bound| has(&bound.options)))
    }
}
