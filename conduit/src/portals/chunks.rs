//! Chunks that messages are sent from, and records of those messages, so that they can be sent
//! again.

use super::resources::Pieces;
use crate::owned::Owned;
use crate::threads::ThreadMode;
use argonet_base::JobRank;
use argonet_nic::portals::{DescriptorHandle, PortalIndex};
use argonet_segment::bulk;
use core::ptr::NonNull;

/// A message that was sent from a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) to: JobRank,
    pub(super) portal: PortalIndex,
    /// In the entry.
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) bits: u64,
    pub(super) header: u64,
}

/// ReqSB or RplSB.
pub(super) struct Chunks {
    pub(super) free: Pieces,
    start: NonNull<u8>,
    chunk_bytes: usize,
    pub(super) descriptor: DescriptorHandle,
    /// By chunk: the message that was sent from it and is not answered.
    sent: Box<[Owned<Option<Sent>>]>,
}

// SAFETY: the pointer is to the rank's buffers, which belong to the process and are accessed by
// atomics and `bulk` only.
unsafe impl Send for Chunks {}
// SAFETY: as above; only the taker of a chunk writes it.
unsafe impl Sync for Chunks {}

impl Chunks {
    /// # Safety
    /// `count` chunks from `start` on are this rank's buffers, used for nothing else, and covered
    /// by the descriptor.
    pub(super) unsafe fn new(
        start: NonNull<u8>,
        count: u32,
        chunk_bytes: usize,
        descriptor: DescriptorHandle,
        mode: ThreadMode,
    ) -> Self {
        Self {
            free: Pieces::new(mode, count),
            start,
            chunk_bytes,
            descriptor,
            sent: (0..count).map(|_| Owned::new(mode, None)).collect(),
        }
    }

    /// Where a chunk lies.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[inline]
    pub(super) fn memory(&self, chunk: u32) -> NonNull<u8> {
        assert!((chunk as usize) < self.sent.len(), "a chunk that exists");
        // SAFETY: the chunk is one of those that `new` was promised.
        unsafe { self.start.add(chunk as usize * self.chunk_bytes) }
    }

    /// Where it begins in its descriptor or entry.
    #[inline]
    pub(super) fn offset(&self, chunk: u32) -> u64 {
        u64::from(chunk) * self.chunk_bytes as u64
    }

    /// The chunk that begins there.
    #[inline]
    pub(super) fn at(&self, offset: u64) -> Option<u32> {
        let size = self.chunk_bytes as u64;
        let chunk = u32::try_from(offset / size).ok()?;
        (offset.is_multiple_of(size) && (chunk as usize) < self.sent.len()).then_some(chunk)
    }

    /// Writes into a chunk.
    ///
    /// # Safety
    /// The caller has taken the chunk; `from` is readable for `len` bytes.
    ///
    /// # Panics
    /// If it does not fit.
    #[inline]
    pub(super) unsafe fn write(&self, chunk: u32, at: usize, from: *const u8, len: usize) {
        let end = at.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.chunk_bytes), "it fits");
        // SAFETY: it lies in the chunk, as was just checked; the caller promises the source.
        unsafe { bulk::copy(self.memory(chunk).as_ptr().add(at), from, len) };
    }

    /// Records the message that is sent from a chunk.
    #[inline]
    pub(super) fn note(&self, chunk: u32, sent: Sent) {
        if let Some(place) = self.sent.get(chunk as usize) {
            *place.lock() = Some(sent);
        }
    }

    pub(super) fn sent(&self, chunk: u32) -> Option<Sent> {
        *self.sent.get(chunk as usize)?.lock()
    }

    /// Takes the message that was sent from a chunk to rank `by`: it is not under way any more.
    #[inline]
    pub(super) fn answered(&self, chunk: u32, by: JobRank) -> Option<Sent> {
        let mut sent = self.sent.get(chunk as usize)?.lock();
        let mine = (*sent).filter(|sent| sent.to == by)?;
        *sent = None;
        Some(mine)
    }
}
