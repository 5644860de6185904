//! Registered memory: records that peers read.
//!
//! The owner writes the key last and clears it first, so a peer that finds the key of its handle
//! before and after it has read the rest has read what belongs together. Memory that grows under
//! the same key keeps its place; a reader may see the length of before, which is still valid.

use super::layout::record;
use super::ring::Target;
use super::shared::Shared;
use crate::gni::{Access, GniError, MemHandle, NicAddress};
use crate::host_file::Words;
use crate::place::{Place, Window, locate_in_segment, resolve_in_segment};
use argonet_base::random;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

const READ_ONLY: u64 = 1;

/// Access, and the queue that gets events, as a word.
#[derive(Clone, Copy)]
pub(super) struct Flags(u64);

impl Flags {
    fn new(access: Access, queue: Option<Target>) -> Self {
        let access = match access {
            Access::ReadWrite => 0,
            Access::ReadOnly => READ_ONLY,
        };
        let queue = queue.map_or(0, |queue| {
            u64::from(queue.generation) << 32 | u64::from(queue.index + 1) << 1
        });
        Self(access | queue)
    }

    #[inline(always)]
    pub(super) fn is_read_only(self) -> bool {
        self.0 & READ_ONLY != 0
    }

    #[inline(always)]
    pub(super) fn queue(self) -> Option<Target> {
        let index = ((self.0 as u32) >> 1).checked_sub(1)?;
        Some(Target {
            index,
            generation: (self.0 >> 32) as u32,
        })
    }
}

/// What a record says.
#[derive(Clone, Copy)]
pub(super) struct Found {
    place: Place,
    pub(super) len: u64,
    pub(super) flags: Flags,
}

/// What this interface has registered.
#[derive(Default)]
pub(super) struct Registrations {
    table: Vec<Option<Registered>>,
}

#[derive(Clone, Copy)]
struct Registered {
    key: u64,
    place: Place,
    len: u64,
}

impl Registrations {
    /// A place that is free.
    fn free(&self, limit: u32) -> Option<u32> {
        let free = self.table.iter().position(Option::is_none);
        let index = free.unwrap_or(self.table.len());
        (index < limit as usize).then_some(index as u32)
    }

    fn get(&self, index: u32) -> Option<Registered> {
        *self.table.get(index as usize)?
    }

    fn set(&mut self, index: u32, registered: Option<Registered>) {
        let index = index as usize;
        if index >= self.table.len() {
            self.table.resize(index + 1, None);
        }
        self.table[index] = registered;
    }
}

/// A key that was not used and cannot be guessed.
fn new_key() -> Result<u64, GniError> {
    loop {
        let key = random::number().map_err(|error| GniError::Os {
            action: "get a random number",
            source: error.into(),
        })?;
        if key != 0 {
            return Ok(key);
        }
    }
}

impl Shared {
    pub(super) fn register(
        &self,
        index: Option<(u32, u64)>,
        memory: NonNull<u8>,
        len: u64,
        access: Access,
        queue: Option<Target>,
    ) -> Result<MemHandle, GniError> {
        let rank = self.rank();
        let place = self.locate(memory, len).ok_or(GniError::NotShared {
            rank,
            address: memory.addr().get(),
            len_bytes: len,
        })?;
        let limit = self.region.layout.config.registrations;
        let mut registrations = self.registrations.lock();
        let (index, key) = match index {
            Some((_, 0)) => return Err(self.invalid("0 is no key of registered memory")),
            Some((index, key)) => (index, key),
            None => {
                let free = registrations.free(limit);
                let index =
                    free.ok_or_else(|| self.no_space("place for registered memory", limit.into()))?;
                (index, new_key()?)
            }
        };
        let words = self.region.record(self.place, index);
        let words =
            words.ok_or_else(|| self.no_space("place for registered memory", limit.into()))?;
        let before = registrations.get(index);
        if before.is_some_and(|before| before.place != place || before.len > len) {
            return Err(self.invalid("what is registered at that place is no beginning of it"));
        }
        let flags = Flags::new(access, queue);
        if before.is_some_and(|before| before.key == key) {
            self.step();
            words.set(record::FLAGS, flags.0);
            words.set(record::LEN, len);
        } else {
            words.set(record::KEY, 0);
            // Peers that find what follows find that the key has gone.
            fence(Ordering::Release);
            self.step();
            words.set(record::PLACE, place.to_bits());
            words.set(record::LEN, len);
            words.set(record::FLAGS, flags.0);
            self.step();
            fence(Ordering::Release);
            words.set(record::KEY, key);
        }
        registrations.set(index, Some(Registered { key, place, len }));
        Ok(MemHandle {
            of: self.address,
            index,
            key,
        })
    }

    pub(super) fn deregister(&self, handle: MemHandle) -> Result<(), GniError> {
        let mut registrations = self.registrations.lock();
        let there = registrations.get(handle.index);
        let known = there.is_some_and(|there| there.key == handle.key);
        let words = self.region.record(self.place, handle.index);
        match words {
            Some(words) if known && handle.of == self.address => {
                registrations.set(handle.index, None);
                self.step();
                words.set(record::KEY, 0);
                fence(Ordering::SeqCst);
                Ok(())
            }
            _ => Err(self.bad_handle("registered memory")),
        }
    }

    /// Peers access nothing more.
    pub(super) fn deregister_all(&self) {
        let mut registrations = self.registrations.lock();
        for index in 0..registrations.table.len() as u32 {
            registrations.set(index, None);
            if let Some(words) = self.region.record(self.place, index) {
                words.set(record::KEY, 0);
            }
        }
        fence(Ordering::SeqCst);
    }

    fn locate(&self, memory: NonNull<u8>, len: u64) -> Option<Place> {
        let address = memory.addr().get();
        if let Some(offset) = self.region.in_buffers(self.place, address, len) {
            let window = Window::Arena;
            return Some(Place { window, offset });
        }
        locate_in_segment(self.segments.as_ref()?, self.rank(), memory.as_ptr(), len)
    }

    /// What is registered at the interface at `place`, if it has the key of the handle.
    #[inline(always)]
    pub(super) fn look_up(&self, place: u32, handle: &MemHandle) -> Option<Found> {
        let words = self.region.record(place, handle.index)?;
        if !has_key(&words, handle, Ordering::Acquire) {
            return None;
        }
        let found = Found {
            place: Place::from_bits(words.get(record::PLACE)),
            len: words.get(record::LEN),
            flags: Flags(words.get(record::FLAGS)),
        };
        fence(Ordering::Acquire);
        has_key(&words, handle, Ordering::Relaxed).then_some(found)
    }

    /// As [`look_up`](Self::look_up), of memory that was reached before: its flags.
    #[inline(always)]
    pub(super) fn still_there(&self, place: u32, handle: &MemHandle) -> Option<Flags> {
        let words = self.region.record(place, handle.index)?;
        let there = has_key(&words, handle, Ordering::Acquire);
        there.then(|| Flags(words.get(record::FLAGS)))
    }

    /// The address here of a range of what was found; `None` if it cannot be reached.
    #[inline(always)]
    pub(super) fn resolve(
        &self,
        (place, of): (u32, NicAddress),
        found: &Found,
        offset: u64,
        len: u64,
    ) -> Option<NonNull<u8>> {
        let base = found.place.offset;
        let at = base.checked_add(offset)?;
        if found.place.window == Window::Arena {
            return self.region.buffers(place, at, len);
        }
        let segments = self.segments.as_ref()?;
        resolve_in_segment(segments, of.rank, (at, len), base.checked_add(found.len))
    }

    /// The address of a range of registered memory, and what is registered.
    #[inline(always)]
    pub(super) fn reach(
        &self,
        place: u32,
        handle: &MemHandle,
        offset: u64,
        len: u64,
    ) -> Result<(NonNull<u8>, Flags), GniError> {
        let Some(found) = self.look_up(place, handle) else {
            return Err(self.bad_handle("registered memory"));
        };
        let end = offset.checked_add(len);
        if end.is_none_or(|end| end > found.len) {
            return Err(GniError::OutOfRange {
                rank: self.rank(),
                offset,
                len_bytes: len,
                size_bytes: found.len,
            });
        }
        match self.resolve((place, handle.of), &found, offset, len) {
            Some(address) => Ok((address, found.flags)),
            None => Err(self.bad_handle("registered memory")),
        }
    }
}

#[inline(always)]
fn has_key(words: &Words<'_, { record::WORDS }>, handle: &MemHandle, order: Ordering) -> bool {
    handle.key != 0 && words.load(record::KEY, order) == handle.key
}
