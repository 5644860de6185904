//! A scope counts outstanding implicit operations by category: a thread's default scope for as long
//! as the thread lives, or an access region until its event is reaped.
//!
//! ```text
//!              63               27 26     25     24       4 3          0
//! life        +-------------------+------+------+----------+------------+
//!             | generation        |orphan|closed|    0     | categories |  not yet drained
//!             +-------------------+------+------+----------+------------+
//!              63               27   26   25                           0
//! pending[c]  +-------------------+------+------------------------------+
//!             | generation        |closed| operations outstanding       |
//!             +-------------------+------+------------------------------+
//! ```
//!
//! A scope is *open* while its thread starts operations in it; only counts move then. When it is
//! closed, each category in use gets its closed bit in the same atomic step that reads its count,
//! so that exactly one side, the closing thread or the completer that brings the count to zero,
//! sees the category drained and takes it off `life`. The thread that takes the last category off a
//! closed region makes its event complete. The thread that takes the last one off an orphan, the
//! scope of a thread that has ended, frees it.

use core::array;

use argonet_base::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{Linked, Links};
use crate::event::{GENERATION_SHIFT, next_generation, same_generation};
use crate::{Category, CategoryMask, Event, EventError, NbiToken};

const CATEGORY_CLOSED: u64 = 1 << 26;
const COUNT_MASK: u64 = CATEGORY_CLOSED - 1;
const ORPHAN: u64 = 1 << 26;
const CLOSED: u64 = 1 << 25;
const DRAINING_MASK: u64 = 0xf;

/// The next state of a scope when its thread closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The event of a region, reaped by a test.
    Event,
    /// Without an owner: the last completion frees it.
    Orphan,
}

/// Outcome of counting a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// More of the category are outstanding.
    More,
    /// None of the category is outstanding.
    Drained,
    /// The scope was an orphan and is now the caller's, to be returned to the free list.
    Freed,
}

/// A slot for a scope; one cache line.
pub(crate) struct Scope {
    /// Stored by the owning thread when the scope begins and when it is closed; from then on
    /// decremented by the thread that drains a category (acquire and release) and replaced by the
    /// tester that reaps it.
    ///
    /// Testers load it with acquire, which pairs with those releases.
    life: AtomicU64,
    /// Incremented by the owning thread alone (relaxed), decremented by completers (acquire and
    /// release), loaded by the owner's tests and by tests of leaves (acquire).
    pending: [AtomicU64; Category::COUNT],
    links: Links,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            life: AtomicU64::new(0),
            pending: array::from_fn(|_| AtomicU64::new(0)),
            links: Links::default(),
        }
    }
}

impl Linked for Scope {
    fn links(&self) -> &Links {
        &self.links
    }
}

impl Scope {
    /// The most operations of one category outstanding in one scope.
    pub(crate) const MAX_OUTSTANDING: u32 = COUNT_MASK as u32;

    /// Begins a life; the slot is the caller's.
    ///
    /// Returns the word that holds the generation.
    pub(crate) fn begin(&self) -> u64 {
        let word = next_generation(self.life.load(Ordering::Relaxed));
        self.renew(word);
        word
    }

    /// Counts `count` operations as started.
    ///
    /// For the owning thread of an open scope only.
    #[inline]
    pub(crate) fn initiate(&self, category: Category, count: u32) -> Result<(), EventError> {
        let pending = &self.pending[category as usize];
        let outstanding = pending.load(Ordering::Relaxed) & COUNT_MASK;
        let sum = outstanding + u64::from(count);
        if sum > COUNT_MASK {
            return Err(EventError::CompletionLimit {
                count: sum,
                limit: Self::MAX_OUTSTANDING,
            });
        }
        // No other thread adds, so the count can only have fallen since. Relaxed, as it publishes
        // nothing; being a read-modify-write it keeps completers' release sequences whole.
        pending.fetch_add(u64::from(count), Ordering::Relaxed);
        Ok(())
    }

    /// Counts `count` operations as complete.
    #[inline]
    pub(crate) fn complete(
        &self,
        token: NbiToken,
        category: Category,
        count: u32,
    ) -> Result<Counted, EventError> {
        let pending = &self.pending[category as usize];
        let event = Event::from_raw(token.raw());
        let mut word = pending.load(Ordering::Relaxed);
        let left = loop {
            if !same_generation(word, token.raw()) {
                return Err(EventError::Stale(event));
            }
            let outstanding = (word & COUNT_MASK) as u32;
            if count > outstanding {
                let pending = outstanding;
                return Err(EventError::TooManyCompletions {
                    event,
                    count,
                    pending,
                });
            }
            let next = word - u64::from(count);
            // Acquire too: the completer that drains the category passes on the writes that earlier
            // completers released.
            match pending.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break next,
                Err(other) => word = other,
            }
        };
        if left & COUNT_MASK != 0 || count == 0 {
            return Ok(Counted::More);
        }
        if left & CATEGORY_CLOSED != 0 && self.drain(1) == ORPHAN | CLOSED {
            self.end(self.life.load(Ordering::Relaxed));
            return Ok(Counted::Freed);
        }
        Ok(Counted::Drained)
    }

    /// Whether nothing of these categories is outstanding.
    ///
    /// For the owner of an open scope.
    #[inline]
    pub(crate) fn is_drained(&self, mask: CategoryMask) -> bool {
        mask.iter().all(|category| {
            self.pending[category as usize].load(Ordering::Acquire) & COUNT_MASK == 0
        })
    }

    /// Closes the scope; `used` are the categories that operations were started in.
    ///
    /// Returns whether everything was complete, in which case the slot is the caller's.
    pub(crate) fn close(&self, used: CategoryMask, closing: Closing) -> bool {
        let flags = match closing {
            Closing::Event => CLOSED,
            Closing::Orphan => CLOSED | ORPHAN,
        };
        // One more for this thread, so that no completer drains the scope while it is being closed.
        let draining = u64::from(used.bits().count_ones()) + 1;
        let life = self.life.load(Ordering::Relaxed);
        // Relaxed: completers look at it only after they have seen a closed bit, set with release.
        self.life.store(life | flags | draining, Ordering::Relaxed);
        let mut drained = 1;
        for category in used.iter() {
            let word = self.pending[category as usize].fetch_or(CATEGORY_CLOSED, Ordering::AcqRel);
            drained += u64::from(word & COUNT_MASK == 0);
        }
        // Afterwards the scope may be reaped and begin another life at any time, unless it is ours.
        let done = self.drain(drained) == flags;
        if done {
            self.end(life);
        }
        done
    }

    /// Ends the life of a closed region if all is complete.
    ///
    /// `Ok(true)` makes the slot the caller's.
    #[inline]
    pub(crate) fn reap(&self, event: Event) -> Result<bool, EventError> {
        let life = self.life.load(Ordering::Acquire);
        // A scope that is open, or an orphan, has no event; one that names it is invented.
        if !same_generation(life, event.raw()) || life & (CLOSED | ORPHAN) != CLOSED {
            return Err(EventError::Stale(event));
        }
        if life & DRAINING_MASK != 0 {
            return Ok(false);
        }
        self.life
            .compare_exchange(
                life,
                next_generation(life),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .map_err(|_| EventError::Stale(event))?;
        self.renew(next_generation(life));
        Ok(true)
    }

    /// Whether one category of a closed region is complete.
    #[inline]
    pub(crate) fn is_leaf_done(
        &self,
        event: Event,
        category: Category,
    ) -> Result<bool, EventError> {
        self.check_region(event)?;
        let word = self.pending[category as usize].load(Ordering::Acquire);
        if same_generation(word, event.raw()) {
            Ok(word & COUNT_MASK == 0)
        } else {
            Err(EventError::Stale(event))
        }
    }

    /// Fails unless the event names this scope as a closed region.
    pub(crate) fn check_region(&self, event: Event) -> Result<(), EventError> {
        let life = self.life.load(Ordering::Relaxed);
        if same_generation(life, event.raw()) && life & (CLOSED | ORPHAN) == CLOSED {
            Ok(())
        } else {
            Err(EventError::Stale(event))
        }
    }

    /// Takes categories off a closed scope.
    ///
    /// Returns the flags and the number left, without the generation: just the flags if none is
    /// left.
    fn drain(&self, categories: u64) -> u64 {
        let before = self.life.fetch_sub(categories, Ordering::AcqRel);
        (before - categories) & ((1 << GENERATION_SHIFT) - 1)
    }

    /// Ends the life `life`, whose slot is the caller's.
    fn end(&self, life: u64) {
        self.renew(next_generation(life));
    }

    /// Writes the generation in `word` everywhere.
    ///
    /// The slot is the caller's and all its counts are zero, so no completion can succeed on the
    /// words of the old generation meanwhile.
    fn renew(&self, word: u64) {
        self.life.store(word, Ordering::Relaxed);
        for pending in &self.pending {
            pending.store(word, Ordering::Relaxed);
        }
    }
}

#[cfg(not(loom))]
static_assertions::const_assert!(size_of::<Scope>() <= 64);
static_assertions::const_assert!(Category::COUNT < DRAINING_MASK as usize);
