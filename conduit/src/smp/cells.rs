//! Cells: ranks of a neighborhood publish data of small collective operations to each other,
//! without messages.
//!
//! For each *slot*, which a team has to itself, a rank has a block that it alone writes and all
//! others may read:
//!
//! ```text
//! bytes      0      8      16            192           384      3072    3968      4032         4096
//!            +------+------+-------------+-------------+-- ... --+- ... --+---------+------------+
//!            | call | what | data        | cell        | cells   | -      | on      | done, by   |
//!            +------+------+-------------+-------------+-- ... --+- ... --+---------+------------+
//!            cell of calls 0, 16, 32 ...   1, 17, 33 ...
//!
//! call       number of the call + 1 in the upper 56 bits; in the lower 8 the calls before it that this rank has
//!            not finished
//! what       which operation it is, for others to compare
//! done       calls that this rank has finished: it reads nothing of them any more
//! by         1 + the number of this rank's last call by messages in the sequence of all rounds
//!            and calls of the team; 0 before the first
//! on         the processor on which this rank has waited last, + 1; 0 before that
//! ```
//!
//! A rank *enters* a call by writing into the call's cell, the word `call` last; up to 48 bytes of
//! data travel in the cache line of that word. A rank that needs them looks at that word until it
//! has the number of the call.
//!
//! Invariants
//! 1. Members of a team number their calls alike, and each enters them in order. The first is 0, or
//!    in a slot that another team had, above all numbers that the members have used in slots.
//! 2. A rank enters call n only when all members have finished call n - [`DEPTH`], whose cell it
//!    uses anew.
//!
//! Orderings: `call` is stored with Release and loaded with Acquire, so a rank that sees the number
//! sees the data. `done` is stored with Release after the last read of a call and loaded with
//! Acquire by the rank that wants to write the cell anew; the same order follows from `call` where
//! a rank says there that it has finished the calls before. `on` is a hint, Relaxed, and on a line
//! of its own, as it hardly ever changes while `done` changes with each call.

use super::words::Words;
use argonet_base::sync::atomic::Ordering;
use static_assertions::const_assert;

/// Calls that a rank can have entered while another has not yet finished the first of them.
///
/// The model checker has smaller blocks.
pub(crate) const DEPTH: u64 = if cfg!(loom) { 2 } else { 16 };

/// Words of one cell: three cache lines.
const CELL_WORDS: usize = if cfg!(loom) { 3 } else { 24 };

/// Words of a cell before its data.
const HEADER_WORDS: usize = 2;

/// Bytes that a call can carry.
pub(crate) const MAX_BYTES: usize = (CELL_WORDS - HEADER_WORDS) * 8;

/// Words of one block.
pub(crate) const BLOCK_WORDS: usize = if cfg!(loom) { 16 } else { 512 };

/// Where `done` is: not in the pair of lines of a cell, which processors fetch together.
const DONE_WORD: usize = BLOCK_WORDS - 8;

/// Where `by` is.
const BY_WORD: usize = DONE_WORD + 1;

/// Where `on` is.
const ON_WORD: usize = if cfg!(loom) {
    BY_WORD + 1
} else {
    DONE_WORD - 8
};

const_assert!(DEPTH as usize * CELL_WORDS + if cfg!(loom) { 0 } else { 16 } <= DONE_WORD);
const_assert!(DEPTH <= 1 << UNFINISHED_BITS);

/// Bits of the number of unfinished calls.
const UNFINISHED_BITS: u32 = 8;

/// A rank's record of a call that it has entered, beside the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Calls before this one that the rank had not finished yet.
    pub unfinished: u64,
    /// Which operation it is.
    pub what: u64,
}

/// The block of one rank in one slot.
pub(crate) struct Block(pub(crate) Words);

impl Block {
    #[inline(always)]
    fn cell(call: u64) -> usize {
        (call % DEPTH) as usize * CELL_WORDS
    }

    /// Enters a call.
    ///
    /// Only the block's owner calls it, by invariant 2.
    #[inline(always)]
    pub(crate) fn enter(&self, call: u64, entry: Entry, data: &[u8]) {
        assert!(data.len() <= MAX_BYTES, "a cell holds the data");
        let Self(words) = self;
        let at = Self::cell(call);
        let chunks = data.chunks_exact(8);
        let rest = chunks.remainder();
        let mut i = at + HEADER_WORDS;
        for chunk in chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            words.store(i, u64::from_ne_bytes(word), Ordering::Relaxed);
            i += 1;
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            words.store(i, u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        words.store(at + 1, entry.what, Ordering::Relaxed);
        let head = (call + 1) << UNFINISHED_BITS | entry.unfinished;
        words.store(at, head, Ordering::Release);
    }

    /// The owner's record of a call; `None` as long as it has not entered it.
    #[inline(always)]
    pub(crate) fn look(&self, call: u64) -> Option<Entry> {
        let Self(words) = self;
        let at = Self::cell(call);
        let head = words.load(at, Ordering::Acquire);
        (head >> UNFINISHED_BITS == call + 1).then(|| Entry {
            unfinished: head & ((1 << UNFINISHED_BITS) - 1),
            what: words.load(at + 1, Ordering::Relaxed),
        })
    }

    /// Copies the data of a call that has been seen by [`look`](Self::look) and that the caller has
    /// not finished.
    #[inline(always)]
    pub(crate) fn read(&self, call: u64, data: &mut [u8]) {
        assert!(data.len() <= MAX_BYTES, "a cell holds the data");
        let Self(words) = self;
        let mut i = Self::cell(call) + HEADER_WORDS;
        let mut chunks = data.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&words.load(i, Ordering::Relaxed).to_ne_bytes());
            i += 1;
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let word = words.load(i, Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
    }

    /// Whether the cell of a call holds a later one, which invariant 2 excludes where the call is
    /// not finished.
    pub(crate) fn is_past(&self, call: u64) -> bool {
        let head = self.0.load(Self::cell(call), Ordering::Acquire);
        head >> UNFINISHED_BITS > call + 1
    }

    /// Calls that the owner has finished.
    #[inline(always)]
    pub(crate) fn done(&self) -> u64 {
        self.0.load(DONE_WORD, Ordering::Acquire)
    }

    /// The owner has finished so many calls.
    #[inline(always)]
    pub(crate) fn finish(&self, calls: u64) {
        self.0.store(DONE_WORD, calls, Ordering::Release);
    }

    /// 1 + the number of the owner's last call by messages among the team's rounds and calls.
    pub(crate) fn by_messages(&self) -> u64 {
        self.0.load(BY_WORD, Ordering::Acquire)
    }

    /// Publishes that the owner has begun the call by messages whose number is `count` - 1.
    #[inline(always)]
    pub(crate) fn publish_messages(&self, count: u64) {
        self.0.store(BY_WORD, count, Ordering::Release);
    }

    /// The processor on which the owner has waited last.
    #[inline]
    pub(crate) fn processor(&self) -> Option<u32> {
        u32::try_from(self.0.load(ON_WORD, Ordering::Relaxed).checked_sub(1)?).ok()
    }

    /// The owner waits on that processor.
    #[inline]
    pub(crate) fn waits_on(&self, processor: u32) {
        if self.processor() != Some(processor) {
            let word = u64::from(processor) + 1;
            self.0.store(ON_WORD, word, Ordering::Relaxed);
        }
    }
}

#[cfg(not(loom))]
pub use shared::SharedCells;

#[cfg(not(loom))]
mod shared {
    use super::super::region::Region;
    use super::super::wake::{self, Barrier, Linux};
    use super::{Block, Entry};
    use argonet_base::JobRank;
    use core::ptr::NonNull;

    /// The cells of a neighborhood, as one of its ranks uses them.
    ///
    /// Numbers of calls are the caller's; see the module for its rules.
    #[derive(Clone, Copy)]
    pub struct SharedCells<'c> {
        region: &'c Region,
        rank: JobRank,
        barrier: Barrier,
    }

    impl<'c> SharedCells<'c> {
        /// Slots of every rank.
        pub const SLOTS: u32 = super::super::layout::SLOTS;
        /// Cells of a rank in each slot: so many calls they hold at once.
        pub const DEPTH: u64 = super::DEPTH;
        /// Bytes that a call can carry.
        pub const MAX_BYTES: usize = super::MAX_BYTES;
        /// Slots that have pools, the first ones.
        pub const POOLS: u32 = super::super::layout::POOLS;
        /// Bytes of a rank's pool in such a slot.
        ///
        /// Untouched pages take no memory.
        pub const POOL_BYTES: usize = super::super::layout::POOL_BYTES;

        #[inline(always)]
        pub(crate) fn new(region: &'c Region, rank: JobRank, barrier: Barrier) -> Self {
            Self {
                region,
                rank,
                barrier,
            }
        }

        #[inline(always)]
        fn own(&self, slot: u32) -> Block {
            self.region.block(slot, self.rank)
        }

        /// This rank enters a call of the slot.
        ///
        /// All members have finished the call that is [`DEPTH`](Self::DEPTH) before it.
        /// The caller wakes the ranks that may wait for it by [`wake`](Self::wake).
        ///
        /// # Panics
        /// If there is no such slot, or `data` is longer than [`MAX_BYTES`](Self::MAX_BYTES).
        #[inline(always)]
        pub fn enter(&self, slot: u32, call: u64, entry: Entry, data: &[u8]) {
            self.own(slot).enter(call, entry, data);
        }

        /// Memory of `rank` in the slot, [`POOL_BYTES`](Self::POOL_BYTES) long, which all ranks map
        /// as long as the conduit is there.
        ///
        /// It is for data that is too long for cells: `rank` alone writes it, and calls of the slot
        /// say which rank reads which bytes when; their entries order the bytes. Peers may write
        /// any bytes, so that only the bulk routine touches it.
        ///
        /// # Panics
        /// If there is no such rank, or the slot is not one of the first [`POOLS`](Self::POOLS).
        #[must_use]
        pub fn pool(&self, slot: u32, rank: JobRank) -> NonNull<u8> {
            self.region.pool(slot, rank)
        }

        /// Wakes those of the ranks that sleep, after something that they may wait for.
        ///
        /// # Panics
        /// If there is no such rank.
        #[inline(always)]
        pub fn wake(&self, ranks: impl Iterator<Item = JobRank>) {
            let words = ranks.map(|rank| self.region.sleep_word_of(rank));
            wake::wake_all(words, self.barrier, &Linux);
        }

        /// The record of `rank` of a call of the slot; `None` as long as it has not entered it.
        ///
        /// # Panics
        /// If there is no such slot or rank.
        #[inline(always)]
        #[must_use]
        pub fn look(&self, slot: u32, rank: JobRank, call: u64) -> Option<Entry> {
            self.region.block(slot, rank).look(call)
        }

        /// Copies the data of `rank` for a call that has been [seen](Self::look) and is not
        /// finished here.
        ///
        /// # Panics
        /// If there is no such slot or rank, or `data` is longer than
        /// [`MAX_BYTES`](Self::MAX_BYTES).
        #[inline(always)]
        pub fn read(&self, slot: u32, rank: JobRank, call: u64, data: &mut [u8]) {
            self.region.block(slot, rank).read(call, data);
        }

        /// Whether `rank` has gone on without this one, so that a call will never be seen.
        ///
        /// # Panics
        /// If there is no such slot or rank.
        #[must_use]
        pub fn is_past(&self, slot: u32, rank: JobRank, call: u64) -> bool {
            self.region.block(slot, rank).is_past(call)
        }

        /// Calls of the slot that `rank` has finished.
        ///
        /// # Panics
        /// If there is no such slot or rank.
        #[inline(always)]
        #[must_use]
        pub fn done(&self, slot: u32, rank: JobRank) -> u64 {
            self.region.block(slot, rank).done()
        }

        /// This rank has finished so many calls of the slot.
        ///
        /// # Panics
        /// If there is no such slot.
        #[inline(always)]
        pub fn finish(&self, slot: u32, calls: u64) {
            self.own(slot).finish(calls);
        }

        /// 1 + the number of the last call by messages of `rank`, among the rounds and calls of the
        /// slot's team; 0 before the first.
        ///
        /// # Panics
        /// If there is no such slot or rank.
        #[must_use]
        pub fn by_messages(&self, slot: u32, rank: JobRank) -> u64 {
            self.region.block(slot, rank).by_messages()
        }

        /// Says that this rank waits, and for a call of which ranks; whether one of them may need
        /// this processor to come to it: it has not entered the call, and has waited here last, or
        /// never.
        ///
        /// A hint: ranks move.
        ///
        /// # Panics
        /// If there is no such slot or rank.
        #[must_use]
        pub fn needs_processor(&self, slot: u32, ranks: &[JobRank], call: u64) -> bool {
            let here = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
            self.needs(here, slot, ranks, call)
        }

        /// The same for a rank that waits on the processor `here`.
        pub(crate) fn needs(&self, here: u32, slot: u32, ranks: &[JobRank], call: u64) -> bool {
            self.own(slot).waits_on(here);
            ranks.iter().any(|&rank| {
                let block = self.region.block(slot, rank);
                block.processor().is_none_or(|on| on == here) && block.look(call).is_none()
            })
        }

        /// Publishes that this rank has begun the call by messages whose number is `count` - 1.
        ///
        /// # Panics
        /// If there is no such slot.
        #[inline(always)]
        pub fn publish_messages(&self, slot: u32, count: u64) {
            self.own(slot).publish_messages(count);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Memory of one block; 16-byte aligned, as `Words` wants it.
    #[repr(align(64))]
    struct Memory([u64; BLOCK_WORDS]);

    fn block(memory: &mut Memory) -> Block {
        // SAFETY: the memory is BLOCK_WORDS words, aligned, and its owner outlives the block in
        // each test.
        Block(unsafe { Words::new(memory.0.as_mut_ptr().cast(), BLOCK_WORDS) })
    }

    #[test]
    fn a_block_says_on_which_processor_its_owner_waited_last() {
        let mut memory = Box::new(Memory([0; BLOCK_WORDS]));
        let block = block(&mut memory);
        assert_eq!(block.processor(), None);
        for processor in [0, 3, u32::MAX] {
            block.waits_on(processor);
            assert_eq!(block.processor(), Some(processor));
        }
        // Nothing else is there.
        (0..DEPTH).for_each(|call| assert_eq!(block.look(call), None));
        assert_eq!((block.done(), block.by_messages()), (0, 0));
        // A peer wrote a number that is no processor.
        memory.0[ON_WORD] = u64::MAX;
        let block = self::tests::block(&mut memory);
        assert_eq!(block.processor(), None);
    }

    #[test]
    fn a_call_is_seen_when_it_is_entered_and_not_before() {
        let mut memory = Box::new(Memory([0; BLOCK_WORDS]));
        let block = block(&mut memory);
        for call in 0..3 * DEPTH {
            assert_eq!(block.look(call), None);
            let entry = Entry {
                unfinished: call % DEPTH,
                what: call * 17,
            };
            block.enter(call, entry, &[]);
            assert_eq!(block.look(call), Some(entry));
            assert_eq!(block.look(call + 1), None);
            assert!(!block.is_past(call) && (call < DEPTH || block.is_past(call - DEPTH)));
        }
        assert_eq!((block.done(), block.by_messages()), (0, 0));
    }

    proptest! {
        #[test]
        fn data_of_the_last_calls_is_kept(
            calls in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..=MAX_BYTES), 1..40),
        ) {
            let mut memory = Box::new(Memory([0; BLOCK_WORDS]));
            let block = block(&mut memory);
            for (call, data) in (0..).zip(&calls) {
                block.enter(call, Entry::default(), data);
                block.finish(call);
                let first = (call + 1).saturating_sub(DEPTH);
                for kept in first..=call {
                    let expected = &calls[kept as usize];
                    let mut got = vec![0xa5; expected.len()];
                    prop_assert!(block.look(kept).is_some());
                    block.read(kept, &mut got);
                    prop_assert_eq!(&got, expected);
                }
                prop_assert_eq!(block.done(), call);
            }
        }
    }
}
