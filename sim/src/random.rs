//! The one source of chance of a run.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Numbers that are the same for a seed in every run, on every machine.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Seeds that differ in one bit must have nothing in common.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed ^ mixed >> 31))
    }

    /// A stream of its own for `purpose`, so that draws for one purpose do not shift another's.
    #[must_use]
    pub fn fork(seed: u64, purpose: u64) -> Self {
        let own = Self::new(purpose).bits();
        Self::new(seed ^ own)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, both included.
    ///
    /// # Panics
    /// If `high` is less than `low`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range");
        match (high - low).checked_add(1) {
            // The high half of a product: as even as 64 bits allow.
            Some(count) => low + ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64,
            None => self.bits(),
        }
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.range(0, len as u64 - 1) as usize
    }

    /// True `per_million` times in a million.
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.range(1, 1_000_000) <= u64::from(per_million)
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.index(values.len())]
    }

    /// A number of the order of `mean`: seldom many times as large (exponential, cut at 16 times).
    pub fn around(&mut self, mean: u64) -> u64 {
        // Between 0 and 1, never 0.
        let unit = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-unit.ln() * mean as f64).min(mean as f64 * 16.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept_and_seeds_differ() {
        let (mut a, mut b) = (Random::new(1), Random::new(2));
        assert_ne!(a.bits(), b.bits());
        let mut seen = [0; 6];
        for _ in 0..6000 {
            seen[a.range(5, 10) as usize - 5] += 1;
        }
        assert!(seen.iter().all(|count| *count > 800), "{seen:?}");
        assert!(!a.chance(0) && a.chance(1_000_000));
        let mean = (0..10_000).map(|_| a.around(1000)).sum::<u64>() / 10_000;
        assert!((900..1100).contains(&mean), "{mean}");
    }

    #[test]
    fn neighboring_seeds_have_nothing_in_common() {
        for purpose in 0..50 {
            let drawn: Vec<u64> = (0..100)
                .map(|seed| Random::fork(seed, purpose).range(0, 9))
                .collect();
            let same = drawn.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(same < 30, "{same} of 99 neighbors agree");
            assert!((0..10).all(|n| drawn.contains(&n)), "{drawn:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        assert_eq!(Random::new(1).bits(), Random::new(1).bits());
        let mut random = Random::fork(0x1234, 3);
        let drawn: Vec<u64> = (0..3).map(|_| random.range(0, 999)).collect();
        let mut again = Random::fork(0x1234, 3);
        assert!(drawn.iter().all(|n| *n == again.range(0, 999)));
    }
}
