//! Slots that are made in blocks and never freed, and the free lists over them.
//!
//! A thread takes slots from and returns them to its own [`Magazine`], with plain loads and stores.
//! Magazines are filled from and emptied to a list of chains under the arena's lock, a chain at a
//! time, so that the lock is taken at most once in [`Arena::batch`] operations, and not at all
//! while the number of operations in flight swings by less than that.

use core::cell::Cell;
use std::sync::OnceLock;

use argonet_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::Exhausted;
use crate::lock::Mutex;

/// Slots in a block.
const BLOCK: u32 = 4096;
/// Slots in the first block.
///
/// Blocks double from there until they have `BLOCK` slots, because a simulator has 10,000 tables
/// with few operations each.
///
/// A slot's *place* is its index plus `FIRST`: then the highest bit of a place below `BLOCK` gives
/// its block and the lower bits where it lies in there.
const FIRST: u32 = if cfg!(loom) { 4 } else { 64 };
/// Blocks of fewer than `BLOCK` slots.
const NEAR: usize = (BLOCK / FIRST).ilog2() as usize;
/// Blocks in a group.
const GROUP: u32 = 64;
/// Groups, for all places.
const GROUPS: u32 = (crate::event::MAX_SLOTS + FIRST).div_ceil(BLOCK * GROUP);
/// The most slots in a chain; a chain's length has 8 bits.
pub(crate) const MAX_BATCH: u32 = 64;

/// Where a slot stands in a free list.
///
/// Both are `index + 1`, 0 at the end.
///
/// Written by the thread that owns the free slot: the one in whose magazine it is, or the one that
/// holds the arena's lock. They are atomic only because the slot is shared; the lock orders them,
/// so every access is relaxed.
#[derive(Default)]
pub(crate) struct Links {
    /// The next slot of the chain.
    next: AtomicU32,
    /// In the first slot of a chain on the shared list: the next chain in the low 24 bits, this
    /// chain's length above.
    chain: AtomicU32,
}

/// A slot that can stand in a free list.
pub(crate) trait Linked: Default {
    fn links(&self) -> &Links;
}

/// Free slots linked by [`Links::next`].
#[derive(Clone, Copy, Default)]
struct Chain {
    /// `index + 1` of the first slot, 0 if the chain is empty.
    head: u32,
    len: u32,
}

/// A thread's own free slots.
///
/// Two chains, so that a thread at the edge of one does not take the lock each time.
#[derive(Default)]
pub(crate) struct Magazine {
    active: Cell<Chain>,
    spare: Cell<Chain>,
}

impl Magazine {
    /// The number of free slots that it holds.
    pub(crate) fn len(&self) -> u32 {
        self.active.get().len + self.spare.get().len
    }
}

/// The shared free list.
#[derive(Default)]
struct Shared {
    /// `index + 1` of the first slot of the first chain.
    head: u32,
    /// Free slots in all chains.
    free: u32,
    /// Slots given out at least once: 0 to `made - 1`.
    made: u32,
}

type Block<S> = OnceLock<Box<[S]>>;
type Group<S> = OnceLock<Box<[Block<S>]>>;

pub(crate) struct Arena<S> {
    near: [Block<S>; NEAR],
    far: OnceLock<Box<[Group<S>]>>,
    shared: Mutex<Shared>,
    /// Whether an allocation was refused since one last succeeded in taking slots.
    ///
    /// Written under the lock, read by every thread that frees a slot: it then returns its
    /// magazine, so that the thread that was refused finds something. A hint; relaxed.
    starving: AtomicBool,
    limit: u32,
    batch: u32,
}

impl<S: Linked> Arena<S> {
    /// An arena of at most `limit` slots, of which a magazine holds up to twice `batch`.
    ///
    /// With a batch of 0 nothing is held and every call takes the lock.
    pub(crate) fn new(limit: u32, batch: u32) -> Self {
        Self {
            near: [const { OnceLock::new() }; NEAR],
            far: OnceLock::new(),
            shared: Mutex::new(Shared::default()),
            starving: AtomicBool::new(false),
            limit: limit.min(crate::event::MAX_SLOTS),
            batch: batch.min(MAX_BATCH),
        }
    }

    /// The slot at `index`, if its block has been made.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&S> {
        let place = index + FIRST;
        if place < BLOCK {
            let (block, offset) = near_position(place);
            self.near[block].get()?.get(offset)
        } else {
            let block = place / BLOCK;
            let group = self.far.get()?.get((block / GROUP) as usize)?.get()?;
            group[(block % GROUP) as usize]
                .get()?
                .get((place % BLOCK) as usize)
        }
    }

    /// The slot at an index that came from a free list or a living operation.
    #[inline]
    fn known(&self, index: u32) -> &S {
        self.get(index)
            .expect("a listed slot lies in a block that was made")
    }

    /// Takes a free slot, which is then the caller's.
    #[inline]
    pub(crate) fn pop(&self, magazine: &Magazine) -> Result<(u32, &S), Exhausted> {
        let mut chain = magazine.active.get();
        if chain.head == 0 {
            chain = self.refill(magazine)?;
        }
        let index = chain.head - 1;
        let slot = self.known(index);
        magazine.active.set(Chain {
            head: slot.links().next.load(Ordering::Relaxed),
            len: chain.len - 1,
        });
        Ok((index, slot))
    }

    /// Returns a slot that is the caller's.
    #[inline]
    pub(crate) fn push(&self, magazine: &Magazine, index: u32, slot: &S) {
        let mut chain = magazine.active.get();
        if chain.len >= self.batch {
            if self.batch == 0 {
                return self.push_shared(index, slot);
            }
            self.rotate(magazine);
            chain = Chain::default();
        }
        slot.links().next.store(chain.head, Ordering::Relaxed);
        magazine.active.set(Chain {
            head: index + 1,
            len: chain.len + 1,
        });
        self.relieve(magazine);
    }

    /// Returns a slot that is the caller's, past any magazine.
    #[cold]
    pub(crate) fn push_shared(&self, index: u32, slot: &S) {
        slot.links().next.store(0, Ordering::Relaxed);
        self.give(Chain {
            head: index + 1,
            len: 1,
        });
    }

    /// Returns the magazine's slots if a thread was refused.
    #[inline]
    pub(crate) fn relieve(&self, magazine: &Magazine) {
        if self.starving.load(Ordering::Relaxed) {
            self.flush(magazine);
        }
    }

    /// Returns all the magazine's slots.
    #[cold]
    pub(crate) fn flush(&self, magazine: &Magazine) {
        self.give(magazine.active.take());
        self.give(magazine.spare.take());
    }

    /// Slots given out: in use, or free in a magazine.
    pub(crate) fn given_out(&self) -> u32 {
        let shared = self.shared.lock();
        shared.made - shared.free
    }

    /// Moves the full active chain aside.
    #[cold]
    fn rotate(&self, magazine: &Magazine) {
        let full = magazine.active.take();
        self.give(magazine.spare.replace(full));
    }

    /// Makes the active chain a non-empty one and returns it.
    #[cold]
    fn refill(&self, magazine: &Magazine) -> Result<Chain, Exhausted> {
        let spare = magazine.spare.take();
        let chain = if spare.head != 0 { spare } else { self.take()? };
        magazine.active.set(chain);
        Ok(chain)
    }

    /// Puts a chain on the shared list.
    fn give(&self, chain: Chain) {
        if chain.head == 0 {
            return;
        }
        let links = self.known(chain.head - 1).links();
        let mut shared = self.shared.lock();
        let word = shared.head | (chain.len << crate::event::INDEX_BITS);
        links.chain.store(word, Ordering::Relaxed);
        shared.head = chain.head;
        shared.free += chain.len;
    }

    /// Takes a chain from the shared list, or one of slots never used.
    fn take(&self) -> Result<Chain, Exhausted> {
        let mut shared = self.shared.lock();
        let fresh = (self.limit - shared.made).min(self.batch.max(1));
        if shared.head == 0 && fresh == 0 {
            self.starving.store(true, Ordering::Relaxed);
            return Err(Exhausted {
                limit: self.limit,
                in_use: shared.made,
            });
        }
        if self.starving.load(Ordering::Relaxed) {
            self.starving.store(false, Ordering::Relaxed);
        }
        if shared.head != 0 {
            let head = shared.head;
            let word = self.known(head - 1).links().chain.load(Ordering::Relaxed);
            let len = word >> crate::event::INDEX_BITS;
            shared.head = word & crate::event::INDEX_MASK as u32;
            shared.free -= len;
            return Ok(Chain { head, len });
        }
        let first = shared.made;
        shared.made += fresh;
        // Blocks are made outside the lock: these indices are this thread's alone.
        drop(shared);
        let last = first + fresh - 1;
        for index in first..=last {
            let next = if index == last { 0 } else { index + 2 };
            let links = self.make(index).links();
            links.next.store(next, Ordering::Relaxed);
        }
        Ok(Chain {
            head: first + 1,
            len: fresh,
        })
    }

    /// The slot at `index`, with its block made if need be.
    fn make(&self, index: u32) -> &S {
        let place = index + FIRST;
        if place < BLOCK {
            let (block, offset) = near_position(place);
            &self.near[block].get_or_init(|| make_all(FIRST << block))[offset]
        } else {
            let block = place / BLOCK;
            let groups = self.far.get_or_init(|| make_all(GROUPS));
            let group = groups[(block / GROUP) as usize].get_or_init(|| make_all(GROUP));
            let slots = group[(block % GROUP) as usize].get_or_init(|| make_all(BLOCK));
            &slots[(place % BLOCK) as usize]
        }
    }
}

/// Block and offset of a place below `BLOCK`.
#[inline]
fn near_position(place: u32) -> (usize, usize) {
    let high = place.ilog2();
    let block = high - FIRST.ilog2();
    (block as usize, (place ^ (1 << high)) as usize)
}

fn make_all<T: Default>(len: u32) -> Box<[T]> {
    (0..len).map(|_| T::default()).collect()
}

static_assertions::const_assert!(FIRST.is_power_of_two() && BLOCK.is_power_of_two());
static_assertions::const_assert!(MAX_BATCH < 256);
// None is in vain.
static_assertions::const_assert!((GROUPS - 1) * GROUP * BLOCK < crate::event::MAX_SLOTS + FIRST);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Slot(Links);

    impl Linked for Slot {
        fn links(&self) -> &Links {
            &self.0
        }
    }

    #[test]
    fn near_blocks_tile_their_range() {
        let mut expected = (0, 0);
        for place in FIRST..BLOCK {
            let (block, offset) = near_position(place);
            if (block, offset) != expected {
                assert_eq!(expected.1, (FIRST << expected.0) as usize);
                assert_eq!((block, offset), (expected.0 + 1, 0));
            }
            expected = (block, offset + 1);
        }
        assert_eq!(expected, (NEAR - 1, (BLOCK / 2) as usize));
    }

    #[test]
    fn every_index_is_given_out_once_up_to_the_limit() {
        let limit = 3 * BLOCK + 5;
        let arena = Arena::<Slot>::new(limit, 64);
        let magazine = Magazine::default();
        let mut seen = vec![false; limit as usize];
        for _ in 0..limit {
            let (index, _) = arena.pop(&magazine).unwrap();
            assert!(!core::mem::replace(&mut seen[index as usize], true));
        }
        assert_eq!(
            arena.pop(&magazine).err(),
            Some(Exhausted {
                limit,
                in_use: limit
            })
        );
        assert!(arena.get(4 * BLOCK).is_none());
        assert!(arena.get(crate::event::MAX_SLOTS - 1).is_none());
        assert!(arena.get(GROUP * BLOCK).is_none());
    }

    #[test]
    fn a_magazine_is_bounded_and_flushes_all() {
        let arena = Arena::<Slot>::new(1000, 8);
        let magazine = Magazine::default();
        let taken: Vec<u32> = (0..100).map(|_| arena.pop(&magazine).unwrap().0).collect();
        for index in taken {
            arena.push(&magazine, index, arena.known(index));
            assert!(magazine.len() <= 16);
        }
        arena.flush(&magazine);
        assert_eq!((magazine.len(), arena.given_out()), (0, 0));
    }

    #[test]
    fn a_refused_thread_gets_what_another_holds_when_that_one_frees() {
        let arena = Arena::<Slot>::new(4, 4);
        let (holder, refused) = (Magazine::default(), Magazine::default());
        let (index, slot) = arena.pop(&holder).unwrap();
        assert_eq!(holder.len(), 3);
        assert!(arena.pop(&refused).is_err());
        arena.push(&holder, index, slot);
        assert_eq!(holder.len(), 0);
        assert!(arena.pop(&refused).is_ok());
        assert!(!arena.starving.load(Ordering::Relaxed));
    }

    #[test]
    fn without_a_batch_nothing_is_held() {
        let arena = Arena::<Slot>::new(2, 0);
        let magazine = Magazine::default();
        let (index, slot) = arena.pop(&magazine).unwrap();
        assert_eq!(magazine.len(), 0);
        arena.push(&magazine, index, slot);
        assert_eq!((magazine.len(), arena.given_out()), (0, 0));
    }
}
