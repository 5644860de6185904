//! What is counted: tickets, chunks and slots.

use crate::owned::Owned;
use crate::threads::ThreadMode;

/// Tickets: so many of something may be under way.
// seed P4: send tickets and tickets of temporary descriptors.
#[derive(Debug)]
pub(super) struct Tickets(Owned<u32>);

impl Tickets {
    pub(super) fn new(mode: ThreadMode, count: u32) -> Self {
        Self(Owned::new(mode, count))
    }

    /// Takes `count`, all or none.
    #[inline]
    pub(super) fn take(&self, count: u32) -> bool {
        self.take_leaving(count, 0)
    }

    /// Takes `count` if that leaves so many.
    #[inline]
    pub(super) fn take_leaving(&self, count: u32, rest: u32) -> bool {
        let mut free = self.0.lock();
        match free.checked_sub(count) {
            Some(left) if left >= rest => {
                *free = left;
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(super) fn give(&self, count: u32) {
        *self.0.lock() += count;
    }

    #[inline]
    pub(super) fn free(&self) -> u32 {
        *self.0.lock()
    }
}

/// Pieces of equal size, of which some are free; the last used on top.
#[derive(Debug)]
pub(super) struct Pieces {
    free: Owned<Vec<u32>>,
}

impl Pieces {
    pub(super) fn new(mode: ThreadMode, count: u32) -> Self {
        Self {
            free: Owned::new(mode, (0..count).rev().collect()),
        }
    }

    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.lock().pop()
    }

    /// Takes one for somebody who holds `held` already: not if fewer are left than that. So one peer that gives none back leaves half of
    /// all to the others, and two leave a quarter.
    #[inline]
    pub(super) fn take_fairly(&self, held: u32) -> Option<u32> {
        let mut free = self.free.lock();
        let fair = held == 0 || (held as usize) < free.len();
        if fair { free.pop() } else { None }
    }

    #[inline]
    pub(super) fn give(&self, piece: u32) {
        self.free.lock().push(piece);
    }

    /// How many are free.
    pub(super) fn count(&self) -> u32 {
        self.free.lock().len() as u32
    }

    #[inline]
    pub(super) fn has_any(&self) -> bool {
        !self.free.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // seed P4
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
    fn one_who_gives_nothing_back_leaves_half() {
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
}
