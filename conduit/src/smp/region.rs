//! The shared region of a neighborhood, mapped.

use super::cells::{BLOCK_WORDS, Block};
use super::layout::{LAP_UNITS, LARGE_UNITS, LINE, Layout, RING_UNITS};
use super::ring::Ring;
use super::words::Words;
use argonet_am::MessageClass;
use argonet_am::record::UNIT;
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::BorrowedFd;
use std::sync::Arc;

/// The mapping with its layout.
///
/// Invariant: the map holds [`Layout::bytes`] bytes and lives as long as this value or a clone;
/// sleep words and read positions are only accessed as `AtomicU32`, rings through [`Ring`], cells
/// through [`Block`]; pools are left to the caller of [`pool`](Self::pool).
#[derive(Clone)]
pub(crate) struct Region {
    /// The beginning of the map.
    base: NonNull<u8>,
    layout: Layout,
    _map: Arc<MmapRaw>,
}

// SAFETY: the map belongs to the process, not to a thread, and is accessed as the invariant says,
// by atomics.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Makes the file large enough and maps it.
    ///
    /// All ranks call it with the same ranks; fresh bytes are zero.
    pub(crate) fn map(file: BorrowedFd<'_>, first: JobRank, ranks: u32) -> std::io::Result<Self> {
        let layout = Layout::new(first, ranks);
        let bytes = layout.bytes() as u64;
        let size = rustix::fs::fstat(file)?.st_size;
        if u64::try_from(size).unwrap_or(0) < bytes {
            rustix::fs::ftruncate(file, bytes)?;
        }
        let map = MmapOptions::new().len(layout.bytes()).map_raw(&file)?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            layout,
            _map: Arc::new(map),
        })
    }

    /// Which of the ranks one is; no less than their number if it is none of them.
    #[inline(always)]
    pub(crate) fn place(&self, rank: JobRank) -> usize {
        self.layout.place(rank)
    }

    #[inline(always)]
    fn atomic(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + LINE <= self.layout.bytes());
        // SAFETY: offsets come from the layout, which keeps them line-aligned and inside the map
        // (its test `nothing_overlaps`); the word is only ever accessed as an atomic.
        unsafe { &*self.base.as_ptr().add(offset).cast() }
    }

    /// Sleep word of a rank.
    #[inline(always)]
    pub(crate) fn sleep_word(&self, rank: JobRank) -> &AtomicU32 {
        self.atomic(self.layout.sleep_word(rank))
    }

    /// The same of a rank that was not checked.
    ///
    /// # Panics
    /// If there is no such rank.
    #[inline(always)]
    pub(crate) fn sleep_word_of(&self, rank: JobRank) -> &AtomicU32 {
        assert!(self.layout.has(rank), "a rank of the neighborhood");
        self.sleep_word(rank)
    }

    /// The cells of a rank in a slot.
    ///
    /// # Panics
    /// If there is no such slot or rank.
    #[inline(always)]
    pub(crate) fn block(&self, slot: u32, rank: JobRank) -> Block {
        let offset = self.layout.block(slot, rank);
        // SAFETY: the layout has checked slot and rank, and keeps the block inside the map and
        // aligned; the map outlives the use of the words, as `SharedCells` borrows the region.
        Block(unsafe { Words::new(self.base.as_ptr().add(offset), BLOCK_WORDS) })
    }

    /// The pool of a rank in a slot.
    ///
    /// # Panics
    /// If there is no such rank, or the slot has no pools.
    pub(crate) fn pool(&self, slot: u32, rank: JobRank) -> NonNull<u8> {
        let offset = self.layout.pool(slot, rank);
        // SAFETY: the layout has checked slot and rank, and keeps the pool inside the map.
        unsafe { self.base.add(offset) }
    }

    /// First word of the record at `position` of the ring in which `writer` writes to `reader`, 0
    /// for none: the one load of a poll for a peer without messages.
    #[inline(always)]
    pub(crate) fn first_word(
        &self,
        reader: JobRank,
        writer: JobRank,
        class: MessageClass,
        position: u32,
    ) -> u64 {
        let (_, ring) = self.layout.ring(reader, writer, class);
        let unit = (position & (RING_UNITS - 1)) as usize;
        // SAFETY: the layout keeps the ring inside the map and aligned, the unit is masked, and the
        // words of rings are atomics wherever a header can be.
        let word = unsafe {
            let place = self.base.as_ptr().add(ring + unit * UNIT);
            &*place.cast::<AtomicU64>()
        };
        word.load(Ordering::Acquire)
    }

    /// The ring in which `writer` writes to `reader`.
    #[inline(always)]
    pub(crate) fn ring(&self, reader: JobRank, writer: JobRank, class: MessageClass) -> Ring<'_> {
        let (position, offset) = self.layout.ring(reader, writer, class);
        // SAFETY: the layout keeps the ring inside the map, which outlives the borrow of self.
        let words = unsafe { Words::new(self.base.as_ptr().add(offset), RING_UNITS as usize * 2) };
        Ring {
            words,
            units: RING_UNITS,
            lap: LAP_UNITS,
            large: LARGE_UNITS,
            read_position: self.atomic(position),
        }
    }
}
