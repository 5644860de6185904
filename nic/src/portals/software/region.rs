//! The file that interfaces share, mapped.

use super::config::SoftwareConfig;
use super::layout::{IDENTITY_WORDS, Layout, MAGIC, WORD};
use crate::portals::NicError;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::BorrowedFd;
use rustix::fs::{fstat, ftruncate};

/// The mapping with its layout.
///
/// Invariant: the map holds `len` bytes, [`Layout::total_bytes`], as long as this value lives.
/// Everything but the buffers is accessed as `AtomicU64`, sleep words as `AtomicU32`; buffers are
/// accessed through `bulk` and atomics.
pub(super) struct Region {
    base: NonNull<u8>,
    len: u64,
    pub(super) layout: Layout,
    /// Read and written in place of words outside of the map.
    nowhere: AtomicU64,
    no_sleep: AtomicU32,
    _map: MmapRaw,
}

// SAFETY: the map belongs to the process, not to a thread, and is accessed as the invariant says,
// by atomics.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Words that lie one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Words<'a, const N: usize>(&'a [AtomicU64; N]);

impl<const N: usize> Words<'_, N> {
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> u64 {
        self.0[number].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn load(&self, number: usize, order: Ordering) -> u64 {
        self.0[number].load(order)
    }

    #[inline(always)]
    pub(super) fn set(&self, number: usize, value: u64) {
        self.0[number].store(value, Ordering::Relaxed);
    }

    /// Moves a word on by one, releasing, if no other thread has moved it from `held` before.
    #[inline(always)]
    pub(super) fn advance(&self, number: usize, held: u64) -> bool {
        let next = held.wrapping_add(1);
        let word = &self.0[number];
        word.compare_exchange(held, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }
}

impl Region {
    /// Makes the file long enough and maps it.
    ///
    /// All ranks call it with the same sizes; fresh bytes are zero.
    pub(super) fn map(file: BorrowedFd<'_>, config: SoftwareConfig) -> Result<Self, NicError> {
        let ranks = config.ranks;
        let wrong = |reason: &str| NicError::WrongFile {
            ranks,
            reason: reason.to_owned(),
        };
        let os = |action| move |source: std::io::Error| NicError::Os { action, source };
        let layout = Layout::new(config).ok_or_else(|| wrong("its tables would be too large"))?;
        let len = layout.total_bytes();
        let stat = fstat(file).map_err(|e| os("look at the interfaces' file")(e.into()))?;
        if u64::try_from(stat.st_size).unwrap_or(0) < len {
            ftruncate(file, len)
                .map_err(|e| os("set the length of the interfaces' file")(e.into()))?;
        }
        let map = MmapOptions::new()
            .len(len as usize)
            .map_raw(&file)
            .map_err(os("map the interfaces' file"))?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or_else(|| wrong("it was mapped nowhere"))?;
        let region = Self {
            base,
            len,
            layout,
            nowhere: AtomicU64::new(0),
            no_sleep: AtomicU32::new(0),
            _map: map,
        };
        region.identify(&config)?;
        Ok(region)
    }

    /// The first rank writes the sizes; all others compare them.
    fn identify(&self, config: &SoftwareConfig) -> Result<(), NicError> {
        let identity: [u64; IDENTITY_WORDS as usize] = [
            MAGIC,
            u64::from(config.first.0) << 32 | u64::from(config.ranks),
            u64::from(config.portals) << 32 | u64::from(config.entries),
            u64::from(config.queues) << 32 | u64::from(config.counters),
            config.queue_events,
            config.arena_bytes,
            0,
            0,
        ];
        for (at, wanted) in (0..).step_by(WORD as usize).zip(identity) {
            let word = self.word(at);
            // Not 0, so that a word that is 0 was not written.
            let held = match word.compare_exchange(
                0,
                wanted.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => wanted,
                Err(held) => held.wrapping_sub(1),
            };
            if held != wanted {
                return Err(NicError::WrongFile {
                    ranks: config.ranks,
                    reason: format!(
                        "word {} of its identity is {held:#x} and should be {wanted:#x}: another version of the library, or other sizes",
                        at / WORD
                    ),
                });
            }
        }
        Ok(())
    }

    /// The word at this place, or, outside of the file, `nowhere`, which no record uses.
    #[inline(always)]
    pub(super) fn word(&self, at: u64) -> &AtomicU64 {
        if at.is_multiple_of(WORD) && at < self.len {
            // SAFETY: the length is a multiple of the page size, so a whole aligned word lies in
            // the map, which lives as long as self; words are accessed as atomics only (invariant).
            unsafe { &*self.base.as_ptr().add(at as usize).cast() }
        } else {
            &self.nowhere
        }
    }

    /// So many words from this place on; `None` if they are not all in the file.
    #[inline(always)]
    pub(super) fn words<const N: usize>(&self, at: u64) -> Option<Words<'_, N>> {
        let end = at.checked_add(N as u64 * WORD)?;
        if !at.is_multiple_of(WORD) || end > self.len {
            return None;
        }
        // SAFETY: they lie in the map, which lives as long as self; words are accessed as atomics
        // only (invariant).
        Some(Words(unsafe {
            &*self.base.as_ptr().add(at as usize).cast()
        }))
    }

    /// The word on which threads of the rank at `place` sleep.
    #[inline(always)]
    pub(super) fn sleep_word(&self, place: u32) -> &AtomicU32 {
        let at = self.layout.sleep(place);
        if at >= self.len {
            return &self.no_sleep;
        }
        // SAFETY: as in `word`; the layout keeps the place aligned, and it is accessed as an
        // `AtomicU32` only.
        unsafe { &*self.base.as_ptr().add(at as usize).cast() }
    }

    #[inline(always)]
    pub(super) fn load(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn store(&self, at: u64, value: u64) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// Some bytes of the buffers of a rank.
    #[inline(always)]
    pub(super) fn arena(&self, place: u32, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let config = &self.layout.config;
        let end = offset.checked_add(len)?;
        if place >= config.ranks || end > config.arena_bytes {
            return None;
        }
        let at = self.layout.arena(place) + offset;
        // SAFETY: the layout keeps the buffers of every place, all `arena_bytes` of them, inside of
        // the map.
        Some(unsafe { self.base.add(at as usize) })
    }

    /// Where in the buffers of a rank some memory of this process lies.
    pub(super) fn in_arena(&self, place: u32, address: usize, len: u64) -> Option<u64> {
        let base = self.arena(place, 0, 0)?.addr().get();
        let offset = address.checked_sub(base)? as u64;
        let end = offset.checked_add(len)?;
        (end <= self.layout.config.arena_bytes).then_some(offset)
    }
}
