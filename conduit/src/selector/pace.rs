//! How often a rank that has neighbors polls its network.

use argonet_base::cpu::{SHORT_PAUSE_TICKS, ticks};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Polls in which the network is polled, too, after something was sent or has come.
const EAGER_POLLS: u32 = 256;

/// Ticks between two polls of the network otherwise: about a microsecond.
const GAP_TICKS: u64 = 8 * SHORT_PAUSE_TICKS;

/// When the network is polled next.
///
/// All fields are hints, which threads may overwrite for each other.
#[derive(Debug)]
pub(super) struct Pace {
    /// Whether there is anything else to poll.
    paced: bool,
    /// Polls that still are eager.
    eager: AtomicU32,
    /// When the network was polled last.
    polled_at: AtomicU64,
}

impl Pace {
    /// For a rank that polls something else besides, or not.
    pub(super) const fn new(paced: bool) -> Self {
        Self {
            paced,
            eager: AtomicU32::new(0),
            polled_at: AtomicU64::new(0),
        }
    }

    /// An answer may come soon.
    #[inline]
    pub(super) fn used(&self) {
        if self.paced {
            self.eager.store(EAGER_POLLS, Ordering::Relaxed);
        }
    }

    /// Whether the network is polled now.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        !self.paced
            || self.eager.load(Ordering::Relaxed) > 0
            || ticks().wrapping_sub(self.polled_at.load(Ordering::Relaxed)) >= GAP_TICKS
    }

    /// The network was polled, and so many things were taken.
    #[inline]
    pub(super) fn polled(&self, taken: usize) {
        if !self.paced {
            return;
        }
        let eager = self.eager.load(Ordering::Relaxed);
        if taken > 0 {
            self.eager.store(EAGER_POLLS, Ordering::Relaxed);
        } else if eager > 0 {
            self.eager.store(eager - 1, Ordering::Relaxed);
        }
        if eager <= 1 {
            self.polled_at.store(ticks(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_without_neighbors_always_polls() {
        let pace = Pace::new(false);
        for _ in 0..3 {
            assert!(pace.is_due());
            pace.polled(0);
        }
    }

    #[test]
    fn polls_are_eager_while_something_comes_and_rare_when_nothing_does() {
        let pace = Pace::new(true);
        pace.polled_at.store(ticks() + (1 << 40), Ordering::Relaxed);
        // As if the clock stood still until the gap is over.
        let stand_still = || pace.polled_at.store(ticks(), Ordering::Relaxed);
        pace.used();
        for _ in 0..EAGER_POLLS {
            assert!(pace.is_due());
            pace.polled(0);
        }
        assert_eq!(pace.eager.load(Ordering::Relaxed), 0);
        stand_still();
        pace.polled(1);
        assert!(pace.is_due(), "something has come");
        pace.eager.store(0, Ordering::Relaxed);
        pace.polled_at
            .store(ticks().wrapping_sub(GAP_TICKS), Ordering::Relaxed);
        assert!(pace.is_due(), "the gap is over");
    }
}
