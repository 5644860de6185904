//! A set of ranks, of which most are not in it.

use core::sync::atomic::{AtomicU64, Ordering};

/// One bit for each rank.
///
/// A thread adds a rank after the stores that the thread that finds it must see. Adding and finding
/// are SeqCst: one order with the other words of sleepers and wakers.
#[derive(Debug)]
pub(super) struct Bits(Box<[AtomicU64]>);

impl Bits {
    pub(super) fn new(ranks: u32) -> Self {
        let words = ranks.div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(super) fn set(&self, rank: u32) {
        let (word, bit) = (&self.0[rank as usize / 64], 1 << (rank % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Takes a rank out.
    ///
    /// Whether it was there. The caller that takes it looks for the rank's work afterwards, under
    /// the lock under which the rank was set.
    #[inline]
    pub(super) fn take(&self, rank: u32) -> bool {
        let (word, bit) = (&self.0[rank as usize / 64], 1 << (rank % 64));
        word.load(Ordering::Relaxed) & bit != 0 && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    /// The ranks that are in it while it is looked at.
    #[inline]
    pub(super) fn each(&self, mut f: impl FnMut(u32)) {
        for (i, word) in self.0.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                f(i as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_and_go() {
        let bits = Bits::new(130);
        assert!(!bits.any());
        for rank in [0, 63, 64, 129] {
            bits.set(rank);
        }
        assert!(bits.take(63) && !bits.take(63));
        let mut found = Vec::new();
        bits.each(|rank| found.push(rank));
        assert_eq!(found, [0, 64, 129]);
    }
}
