//! Transactions on the shared state of an interface, which survive the death of their process.
//!
//! An interface has one lock, and behind it one journal. A transaction reads any words, and writes
//! its changes into the journal: (place, value) pairs. To commit it writes their number, then
//! changes the words one by one, then sets the number to 0. A number that is not 0 in the journal
//! of a lock whose owner died means that the changes may be half made: making them all again
//! completes them. If it is 0 nothing was changed, or everything. A single word is changed at once.
//!
//! The lock holds its owner's place. A thread that waits long for it asks whether the owner's
//! process has ended, takes the lock over if so, and completes the changes in the journal. Recovery
//! itself may be interrupted at any step and begins again with the next waiter.
//!
//! Stores of a process that is killed become visible in the order in which its instructions
//! retired, up to some instruction; the compiler is held to that order by releasing stores.

use super::layout::{JOURNAL_ENTRIES, WORD};
use super::shared::Shared;
use core::sync::atomic::{Ordering, fence};
use crossbeam_utils::Backoff;

/// Looks at a lock between two questions whether its owner lives.
const PATIENCE: u32 = 256;

/// The lock of an interface, held, with the changes that its commit makes.
pub(super) struct Transaction<'a> {
    pub(super) shared: &'a Shared,
    /// The place of the interface.
    pub(super) place: u32,
    /// Pairs in the journal so far.
    count: usize,
    /// Changes that there was no room for: a mistake of this module.
    overflow: bool,
    /// Whether the lists change; threads that read them without the lock must learn it.
    lists: bool,
    /// Whether threads of the interface's rank may sleep for the events that were posted.
    pub(super) rings: bool,
}

impl Shared {
    /// Takes the lock of an interface.
    #[inline]
    pub(super) fn transaction(&self, place: u32) -> Transaction<'_> {
        let word = self.region.word(self.region.layout.lock(place));
        let mine = u64::from(self.place) + 1;
        if word
            .compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.wait_for(place);
        }
        self.step();
        Transaction {
            shared: self,
            place,
            count: 0,
            overflow: false,
            lists: false,
            rings: false,
        }
    }

    #[cold]
    fn wait_for(&self, place: u32) {
        let word = self.region.word(self.region.layout.lock(place));
        let mine = u64::from(self.place) + 1;
        let backoff = Backoff::new();
        let mut looks = 0_u32;
        loop {
            let held = word.load(Ordering::Relaxed);
            let take = |held| {
                word.compare_exchange(held, mine, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            };
            if held == 0 {
                if take(0) {
                    return;
                }
                continue;
            }
            backoff.snooze();
            looks += 1;
            if looks.is_multiple_of(PATIENCE) {
                // A lock word that names no rank was written by a process that must not write it;
                // no owner will release the lock.
                let owner = u32::try_from(held - 1).ok().filter(|p| *p < self.ranks());
                let gone = owner.is_none_or(|p| p != self.place && self.region.has_ended(p));
                if gone && take(held) {
                    self.recover(place, owner);
                    return;
                }
            }
        }
    }

    /// Completes the changes that the dead owner of this lock, now ours, had begun.
    fn recover(&self, place: u32, dead: Option<u32>) {
        let journal = self.region.layout.journal(place);
        let count = self.region.word(journal).load(Ordering::Acquire);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count <= JOURNAL_ENTRIES {
            for n in 0..count as u64 {
                self.step();
                let pair = journal + WORD + n * 2 * WORD;
                let (at, value) = (self.region.load(pair), self.region.load(pair + WORD));
                if self.region.layout.is_journalled(place, at) {
                    self.region.word(at).store(value, Ordering::Release);
                }
            }
        }
        self.step();
        self.region.word(journal).store(0, Ordering::Release);
        self.step();
        self.publish_lists(place);
        let mut transaction = Transaction {
            shared: self,
            place,
            count: 0,
            overflow: false,
            lists: false,
            rings: false,
        };
        transaction.count_up(super::shared::RECOVERIES, 1);
        transaction.commit();
        if let Some(dead) = dead {
            transaction.finish_operations_of(dead);
        }
        // The caller goes on with the lock.
        core::mem::forget(transaction);
    }

    /// Makes the version of the lists even: the lists are valid.
    fn publish_lists(&self, place: u32) {
        let version = self.region.word(self.region.layout.version(place));
        let held = version.load(Ordering::Relaxed);
        if held & 1 == 1 {
            version.store(held.wrapping_add(1), Ordering::Release);
        }
    }
}

impl Transaction<'_> {
    /// The place in the file of a pair of the journal.
    #[inline(always)]
    fn pair(&self, n: usize) -> u64 {
        let journal = self.shared.region.layout.journal(self.place);
        journal + WORD + n as u64 * 2 * WORD
    }

    /// The pair that changes a word.
    #[inline(always)]
    fn pair_of(&self, at: u64) -> Option<u64> {
        let mut pairs = (0..self.count).map(|n| self.pair(n));
        pairs.find(|pair| self.shared.region.load(*pair) == at)
    }

    /// A word as it will be after the commit.
    #[inline]
    pub(super) fn get(&self, at: u64) -> u64 {
        if self.count != 0
            && let Some(pair) = self.pair_of(at)
        {
            return self.shared.region.load(pair + WORD);
        }
        self.shared.region.load(at)
    }

    /// Changes a word with the next commit.
    #[inline]
    pub(super) fn set(&mut self, at: u64, value: u64) {
        if let Some(pair) = self.pair_of(at) {
            self.shared.step();
            self.shared.region.store(pair + WORD, value);
        } else {
            self.push(at, value);
        }
    }

    /// Changes a word with the next commit that nothing has changed in this transaction.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, value: u64) {
        self.shared.step();
        match self.shared.region.words::<2>(self.pair(self.count)) {
            Some(pair) if self.count < JOURNAL_ENTRIES => {
                pair.set(0, at);
                pair.set(1, value);
                self.count += 1;
            }
            _ => self.overflow = true,
        }
    }

    /// Adds to a word with the next commit.
    #[inline]
    pub(super) fn add(&mut self, at: u64, value: u64) {
        self.set(at, self.get(at).wrapping_add(value));
    }

    /// Whether the next commit changes nothing so far.
    #[inline(always)]
    pub(super) fn is_unchanged(&self) -> bool {
        self.count == 0
    }

    /// Adds to one of the interface's counts.
    #[inline]
    pub(super) fn count_up(&mut self, which: u64, value: u64) {
        let at = self.shared.region.layout.counts(self.place) + which * WORD;
        self.add(at, value);
    }

    /// Keeps threads out that read the lists without the lock, until the commit or the end of the
    /// transaction.
    ///
    /// Threads that began before are found by their announcements.
    pub(super) fn close_lists(&mut self) {
        if !self.lists {
            self.lists = true;
            let region = &self.shared.region;
            let version = region.word(region.layout.version(self.place));
            let held = version.load(Ordering::Relaxed);
            version.store(held | 1, Ordering::Relaxed);
            // Pairs with the fence of `direct`: either it sees the odd version, or we its
            // announcement.
            fence(Ordering::SeqCst);
            self.shared.step();
        }
    }

    /// Makes all changes at once.
    ///
    /// The lock stays.
    #[inline]
    pub(super) fn commit(&mut self) {
        let region = &self.shared.region;
        debug_assert!(
            !self.overflow,
            "a transaction changes less than a journal holds"
        );
        let apply = |pair: u64| {
            self.shared.step();
            if let Some(pair) = region.words::<2>(pair) {
                region
                    .word(pair.get(0))
                    .store(pair.get(1), Ordering::Release);
            }
        };
        if self.overflow {
            // Nothing is better than a part.
        } else if self.count == 1 {
            apply(self.pair(0));
        } else if self.count != 0 {
            let journal = region.word(region.layout.journal(self.place));
            journal.store(self.count as u64, Ordering::Release);
            (0..self.count).for_each(|n| apply(self.pair(n)));
            self.shared.step();
            journal.store(0, Ordering::Release);
        }
        self.shared.step();
        self.count = 0;
        self.overflow = false;
        if self.lists {
            self.lists = false;
            self.shared.publish_lists(self.place);
            self.shared.step();
        }
    }
}

impl Drop for Transaction<'_> {
    /// Releases the lock; uncommitted changes are forgotten.
    #[inline]
    fn drop(&mut self) {
        if self.lists {
            self.shared.publish_lists(self.place);
        }
        self.shared.step();
        let region = &self.shared.region;
        let sleeps = self.rings && self.shared.sleeps(self.place);
        let lock = region.word(region.layout.lock(self.place));
        lock.store(0, Ordering::Release);
        if sleeps {
            self.shared.wake(self.place);
        }
    }
}
