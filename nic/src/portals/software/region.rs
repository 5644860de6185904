//! The file that interfaces share, mapped.

use super::config::SoftwareConfig;
use super::layout::{Layout, MAGIC};
use crate::host_file::{HostFile, HostFileError};
use crate::portals::NicError;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::fd::BorrowedFd;

pub(super) use crate::host_file::Words;

/// The mapping with its layout.
///
/// Invariant: the file holds [`Layout::total_bytes`]. Everything but the buffers is accessed as
/// `AtomicU64`, sleep words as `AtomicU32`; buffers are accessed through `bulk` and atomics.
pub(super) struct Region {
    file: HostFile,
    pub(super) layout: Layout,
}

impl Region {
    /// Makes the file long enough and maps it.
    ///
    /// All ranks call it with the same sizes; fresh bytes are zero.
    pub(super) fn map(file: BorrowedFd<'_>, config: SoftwareConfig) -> Result<Self, NicError> {
        let ranks = config.ranks;
        let wrong = |error| match error {
            HostFileError::Wrong(reason) => NicError::WrongFile { ranks, reason },
            HostFileError::Os { action, source } => NicError::Os { action, source },
        };
        let too_large = || HostFileError::Wrong("its tables would be too large".to_owned());
        let layout = Layout::new(config).ok_or_else(too_large).map_err(wrong)?;
        let file = HostFile::map(file, layout.total_bytes()).map_err(wrong)?;
        file.identify([
            MAGIC,
            u64::from(config.first.0) << 32 | u64::from(config.ranks),
            u64::from(config.portals) << 32 | u64::from(config.entries),
            u64::from(config.queues) << 32 | u64::from(config.counters),
            config.queue_events,
            config.arena_bytes,
            0,
            0,
        ])
        .map_err(wrong)?;
        Ok(Self { file, layout })
    }

    /// The word at this place, or, outside of the file, one that no record uses.
    #[inline(always)]
    pub(super) fn word(&self, at: u64) -> &AtomicU64 {
        self.file.word(at)
    }

    /// So many words from this place on; `None` if they are not all in the file.
    #[inline(always)]
    pub(super) fn words<const N: usize>(&self, at: u64) -> Option<Words<'_, N>> {
        self.file.words(at)
    }

    /// The word on which threads of the rank at `place` sleep.
    #[inline(always)]
    pub(super) fn sleep_word(&self, place: u32) -> &AtomicU32 {
        self.file.sleep_word(self.layout.sleep(place))
    }

    #[inline(always)]
    pub(super) fn load(&self, at: u64) -> u64 {
        self.file.load(at)
    }

    #[inline(always)]
    pub(super) fn store(&self, at: u64, value: u64) {
        self.file.store(at, value);
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
        // the file.
        Some(unsafe { self.file.address(at) })
    }

    /// Where in the buffers of a rank some memory of this process lies.
    pub(super) fn in_arena(&self, place: u32, address: usize, len: u64) -> Option<u64> {
        let base = self.arena(place, 0, 0)?.addr().get();
        let offset = address.checked_sub(base)? as u64;
        let end = offset.checked_add(len)?;
        (end <= self.layout.config.arena_bytes).then_some(offset)
    }
}
