//! Where everything lies in the shared region of a neighborhood.
//!
//! ```text
//! 0            sleep words, one line a rank
//! positions    read position of ring (reader, writer, class), one line each
//! rings        ring (reader, writer, class), RING_BYTES each
//! cells        block (slot, rank), BLOCK_BYTES each
//! pools        pool (slot, rank), POOL_BYTES each
//! ```
//!
//! Only touched pages cost memory: the region is sparse.

use super::cells::BLOCK_WORDS;
use super::ring::ROOM_FOR_ANY;
use argonet_am::MessageClass;
use argonet_am::record::UNIT;
use argonet_base::JobRank;
use static_assertions::const_assert;

/// A cache line.
pub(crate) const LINE: usize = 64;

/// Units of one ring, a power of two; a skip's length must be less than 2^16.
///
/// Large payloads go once around all of it, 1 MiB. Lines that were written so long ago have left
/// the caches of the cores that wrote and read them for the one that both share, where it costs
/// less to write them anew: 64 KiB there and back take half the time that they take in a ring of
/// 256 KiB.
pub(crate) const RING_UNITS: u32 = 64 * 1024;

/// Units that other records use, from the beginning of the ring on, as long as their reader keeps
/// up: a rank that sends no large ones touches no more memory.
///
/// The reader publishes its position after a quarter of them.
pub(crate) const LAP_UNITS: u32 = 16 * 1024;

/// Records of more units are large: those of mediums above 8 KiB.
pub(crate) const LARGE_UNITS: u32 = 512;

/// Bytes of one ring.
pub const RING_BYTES: usize = RING_UNITS as usize * UNIT;

/// Slots for teams: those of one rank's teams of which each has a slot of its own are at most so
/// many.
pub(crate) const SLOTS: u32 = 64;

/// Bytes of the cells of one rank in one slot.
pub(crate) const BLOCK_BYTES: usize = BLOCK_WORDS * 8;

/// Slots with pools, the first ones: pools take addresses, of which a process may have few.
pub(crate) const POOLS: u32 = 8;

const_assert!(POOLS <= SLOTS);

/// Bytes of the pool of one rank in one slot: for data of collective operations that is longer than
/// cells.
pub(crate) const POOL_BYTES: usize = 2 << 20;

const_assert!(BLOCK_BYTES.is_multiple_of(LINE));
const_assert!(RING_UNITS.is_power_of_two());
const_assert!(RING_UNITS - LAP_UNITS + LARGE_UNITS <= u16::MAX as u32);
// Any record fits while the reader has a quarter of a lap unpublished; and one that is not large at
// the end of a lap goes back.
const_assert!(ROOM_FOR_ANY <= RING_UNITS - LAP_UNITS / 4);
const_assert!(2 * LARGE_UNITS < LAP_UNITS - LAP_UNITS / 4);

/// Offsets within the region for a number of ranks.
///
/// The sums are made once, as every message asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The lowest of the ranks.
    first: usize,
    ranks: usize,
    /// Where these three would begin if rank 0 were the lowest, modulo the size of addresses: so no
    /// rank is subtracted from for a message.
    sleep_words: usize,
    positions: usize,
    rings: usize,
    cells: usize,
    pools: usize,
}

/// Ranks that can share memory: their rings need less than the address space.
pub const MOST_RANKS: u32 = 1 << 20;

const_assert!((MOST_RANKS as u128).pow(2) * 2 * (RING_BYTES + LINE) as u128 <= 1 << 62);
const_assert!(
    MOST_RANKS as u128 * (SLOTS as u128 * BLOCK_BYTES as u128 + POOLS as u128 * POOL_BYTES as u128)
        <= 1 << 61
);

impl Layout {
    /// The layout for `ranks` ranks, from `first` on: at most [`MOST_RANKS`], whose numbers are
    /// below 2^32.
    #[must_use]
    pub const fn new(first: JobRank, ranks: u32) -> Self {
        let ranks = ranks as usize;
        let rings = (ranks * LINE + ranks * ranks * 2 * LINE).next_multiple_of(64 * 1024);
        let cells = rings + ranks * ranks * 2 * RING_BYTES;
        let pools = cells + SLOTS as usize * ranks * BLOCK_BYTES;
        let first = first.0 as usize;
        let before = first.wrapping_mul(ranks).wrapping_add(first) * 2;
        Self {
            first,
            ranks,
            sleep_words: 0usize.wrapping_sub(first * LINE),
            positions: (ranks * LINE).wrapping_sub(before.wrapping_mul(LINE)),
            rings: rings.wrapping_sub(before.wrapping_mul(RING_BYTES)),
            cells,
            pools,
        }
    }

    /// Those of its bytes that pools take, if all are used in full.
    #[must_use]
    pub const fn pools_bytes(&self) -> usize {
        self.bytes() - self.pools
    }

    /// Bytes of the region.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.pools + POOLS as usize * self.ranks * POOL_BYTES
    }

    /// Offset of a rank's cells in a slot.
    ///
    /// # Panics
    /// If there is no such slot or rank.
    #[inline(always)]
    #[must_use]
    pub fn block(&self, slot: u32, rank: JobRank) -> usize {
        self.cells + self.of_slot(slot, rank) * BLOCK_BYTES
    }

    /// Offset of a rank's pool in a slot.
    ///
    /// # Panics
    /// If there is no such rank, or the slot has no pools.
    #[must_use]
    pub fn pool(&self, slot: u32, rank: JobRank) -> usize {
        assert!(slot < POOLS, "a slot with pools");
        self.pools + self.of_slot(slot, rank) * POOL_BYTES
    }

    /// Which of the ranks one is, from 0 on; no less than their number if it is none of them.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, rank: JobRank) -> usize {
        rank.index().wrapping_sub(self.first)
    }

    /// Whether a rank is one of the ranks.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, rank: JobRank) -> bool {
        self.place(rank) < self.ranks
    }

    #[inline(always)]
    fn of_slot(&self, slot: u32, rank: JobRank) -> usize {
        let place = self.place(rank);
        assert!(
            slot < SLOTS && place < self.ranks,
            "a slot and a rank that exist"
        );
        slot as usize * self.ranks + place
    }

    #[inline(always)]
    fn index(&self, reader: JobRank, writer: JobRank, class: MessageClass) -> usize {
        debug_assert!(self.place(reader) < self.ranks && self.place(writer) < self.ranks);
        // At most 2^32 times 2^10, twice.
        (reader.index() * self.ranks + writer.index()) * 2 + class as usize
    }

    /// Sleep word of a rank.
    #[inline(always)]
    #[must_use]
    pub fn sleep_word(&self, rank: JobRank) -> usize {
        debug_assert!(self.place(rank) < self.ranks);
        self.sleep_words.wrapping_add(rank.index() * LINE)
    }

    /// Offsets of a ring's read position and of its first byte; also for tests that examine a
    /// region, or damage one on purpose.
    #[inline(always)]
    #[must_use]
    pub fn ring(&self, reader: JobRank, writer: JobRank, class: MessageClass) -> (usize, usize) {
        let index = self.index(reader, writer, class);
        (
            self.positions.wrapping_add(index * LINE),
            self.rings.wrapping_add(index.wrapping_mul(RING_BYTES)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        for (first, ranks) in [(0, 1), (0, 2), (5, 3), (u32::MAX - 7, 7)] {
            let layout = Layout::new(JobRank(first), ranks);
            let members = first..first + ranks;
            let mut spans = Vec::new();
            for reader in members.clone().map(JobRank) {
                spans.push((layout.sleep_word(reader), LINE));
                for slot in 0..SLOTS {
                    spans.push((layout.block(slot, reader), BLOCK_BYTES));
                    if slot < POOLS {
                        spans.push((layout.pool(slot, reader), POOL_BYTES));
                    }
                }
                for writer in members.clone().map(JobRank) {
                    for class in [MessageClass::Request, MessageClass::Reply] {
                        let (position, ring) = layout.ring(reader, writer, class);
                        spans.push((position, LINE));
                        spans.push((ring, RING_BYTES));
                    }
                }
            }
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(
                    pair[0].0 + pair[0].1 <= pair[1].0,
                    "{ranks} ranks: {pair:?}"
                );
            }
            let last = spans.last().unwrap();
            assert!(last.0 + last.1 <= layout.bytes());
        }
    }
}
