//! Counted resources: tickets, chunks and slots.
//!
//! Any thread may look how many there are, also the one that sleeps on the network for the only
//! thread that calls: the holder of the lock changes the counts, and readers need no lock.

use crate::owned::Owned;
use crate::threads::ThreadMode;
use core::sync::atomic::{AtomicU32, Ordering};

/// Tickets: so many of something may be under way.
// spec P4: send tickets and tickets of temporary descriptors.
#[derive(Debug)]
pub(super) struct Tickets {
    lock: Owned<()>,
    free: AtomicU32,
}

impl Tickets {
    pub(super) fn new(mode: ThreadMode, count: u32) -> Self {
        Self {
            lock: Owned::new(mode, ()),
            free: AtomicU32::new(count),
        }
    }

    /// Takes `count`, all or none.
    #[inline]
    pub(super) fn take(&self, count: u32) -> bool {
        self.take_leaving(count, 0)
    }

    /// Takes `count` if that leaves so many.
    #[inline]
    pub(super) fn take_leaving(&self, count: u32, rest: u32) -> bool {
        let _held = self.lock.lock();
        match self.free().checked_sub(count) {
            Some(left) if left >= rest => {
                self.free.store(left, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(super) fn give(&self, count: u32) {
        let _held = self.lock.lock();
        self.free.store(self.free() + count, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }
}

/// Pieces of equal size, of which some are free; the last used on top.
#[derive(Debug)]
pub(super) struct Pieces {
    free: Owned<Vec<u32>>,
    count: AtomicU32,
}

impl Pieces {
    pub(super) fn new(mode: ThreadMode, count: u32) -> Self {
        Self {
            free: Owned::new(mode, (0..count).rev().collect()),
            count: AtomicU32::new(count),
        }
    }

    /// Stores how many are free; the caller holds the lock.
    #[inline]
    fn counted(&self, free: &[u32]) {
        self.count.store(free.len() as u32, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.take_fairly(0)
    }

    /// Takes one for a peer that holds `held` already, if more than that are left.
    ///
    /// So one peer that gives none back leaves half of all to the others, and two leave a quarter.
    #[inline]
    pub(super) fn take_fairly(&self, held: u32) -> Option<u32> {
        let mut free = self.free.lock();
        let fair = held == 0 || (held as usize) < free.len();
        let piece = if fair { free.pop() } else { None };
        self.counted(&free);
        piece
    }

    #[inline]
    pub(super) fn give(&self, piece: u32) {
        let mut free = self.free.lock();
        free.push(piece);
        self.counted(&free);
    }

    /// How many are free.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec P4
    #[test]
    fn tickets_are_taken_all_or_none() {
        let tickets = Tickets::new(ThreadMode::Par, 3);
        assert!(tickets.take(2));
        assert!(!tickets.take(2));
        assert_eq!(tickets.free(), 1);
        tickets.give(2);
        assert!(tickets.take(3));
    }

    #[test]
    fn a_hoarding_taker_leaves_half() {
        let pieces = Pieces::new(ThreadMode::Par, 8);
        let hoard = |pieces: &Pieces| {
            let mut held = 0;
            while pieces.take_fairly(held).is_some() {
                held += 1;
            }
            held
        };
        assert_eq!(hoard(&pieces), 4);
        assert_eq!(hoard(&pieces), 2);
        assert_eq!(hoard(&pieces), 1);
        assert_eq!(hoard(&pieces), 1);
        assert_eq!(hoard(&pieces), 0);
        pieces.give(3);
        assert_eq!(pieces.take_fairly(0), Some(3));
    }

    /// A thread that sleeps on the network looks like this while another one calls.
    #[test]
    fn another_thread_may_look_where_one_calls() {
        let (tickets, pieces) = (
            Tickets::new(ThreadMode::Seq, 3),
            Pieces::new(ThreadMode::Seq, 3),
        );
        let seen = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                while seen.fetch_add(1, Ordering::Relaxed) < 100_000 {
                    assert!((1..=3).contains(&tickets.free()));
                    assert!(pieces.has_any() && pieces.count() <= 3);
                }
            });
            while !looks.is_finished() {
                assert!(tickets.take(2));
                tickets.give(2);
                let piece = pieces.take().expect("a piece");
                pieces.give(piece);
            }
            looks.join().expect("no impossible count is seen");
        });
    }
}
