//! The file that interfaces share, mapped.

use super::config::SoftwareConfig;
use super::layout::{Layout, MAGIC, record};
use crate::gni::GniError;
use crate::host_file::{HostFile, HostFileError, Words};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::fd::BorrowedFd;

/// The mapping with its layout.
///
/// Invariant: the file holds [`Layout::total_bytes`]. Everything but the buffers is accessed as
/// `AtomicU64`, sleep words as `AtomicU32`, data of datagrams and buffers through `bulk` and
/// atomics.
pub(super) struct Region {
    file: HostFile,
    pub(super) layout: Layout,
}

impl Region {
    /// Makes the file long enough and maps it.
    ///
    /// All ranks call it with the same sizes; fresh bytes are zero.
    pub(super) fn map(file: BorrowedFd<'_>, config: SoftwareConfig) -> Result<Self, GniError> {
        let ranks = config.ranks;
        let wrong = |error| match error {
            HostFileError::Wrong(reason) => GniError::WrongFile { ranks, reason },
            HostFileError::Os { action, source } => GniError::Os { action, source },
        };
        let too_large = || HostFileError::Wrong("its tables would be too large".to_owned());
        let layout = Layout::new(config).ok_or_else(too_large).map_err(wrong)?;
        let file = HostFile::map(file, layout.total_bytes()).map_err(wrong)?;
        file.identify([
            MAGIC,
            u64::from(config.first.0) << 32 | u64::from(config.ranks),
            u64::from(config.nics) << 32 | u64::from(config.registrations),
            u64::from(config.queues) << 32 | u64::from(config.queue_events),
            config.buffer_bytes,
            0,
            0,
            0,
        ])
        .map_err(wrong)?;
        Ok(Self { file, layout })
    }

    #[inline(always)]
    pub(super) fn word(&self, at: u64) -> &AtomicU64 {
        self.file.word(at)
    }

    /// The registration at this index; `None` if there is no such place.
    #[inline(always)]
    pub(super) fn record(&self, place: u32, index: u32) -> Option<Words<'_, { record::WORDS }>> {
        if index >= self.layout.config.registrations {
            return None;
        }
        self.file.words(self.layout.record(place, index))
    }

    /// The word on which threads of an interface sleep.
    #[inline(always)]
    pub(super) fn sleep_word(&self, place: u32) -> &AtomicU32 {
        self.file.sleep_word(self.layout.sleep(place))
    }

    /// Some bytes of the file.
    #[inline(always)]
    pub(super) fn bytes(&self, at: u64, len: u64) -> Option<NonNull<u8>> {
        self.file.bytes(at, len)
    }

    /// Some bytes of the buffers of an interface.
    #[inline(always)]
    pub(super) fn buffers(&self, place: u32, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let config = &self.layout.config;
        let end = offset.checked_add(len)?;
        if place >= config.places() || end > config.buffer_bytes {
            return None;
        }
        let at = self.layout.buffers(place) + offset;
        // SAFETY: the layout keeps the buffers of every place, all `buffer_bytes` of them, inside
        // of the file.
        Some(unsafe { self.file.address(at) })
    }

    /// Where in the buffers of an interface some memory of this process lies.
    pub(super) fn in_buffers(&self, place: u32, address: usize, len: u64) -> Option<u64> {
        let base = self.buffers(place, 0, 0)?.addr().get();
        let offset = address.checked_sub(base)? as u64;
        let end = offset.checked_add(len)?;
        (end <= self.layout.config.buffer_bytes).then_some(offset)
    }
}
