//! The reference: every window on its own, in one standard hash map.
//!
//! Slow, and simple enough to believe.

use std::collections::HashMap;

use crate::kmer::{BREAK, K, Kmer};

/// Counts of canonical k-mers, stopping at `u32::MAX`.
pub type Counts = HashMap<Kmer, u32>;

/// The canonical k-mers of the windows of `codes`, in order.
pub fn windows(codes: &[u8], k: K) -> impl Iterator<Item = Kmer> {
    codes
        .windows(k.bases())
        .filter(|window| !window.contains(&BREAK))
        .map(canonical)
}

/// Counts the windows of `codes`.
pub fn count(codes: &[u8], k: K) -> Counts {
    let mut counts = Counts::new();
    for kmer in windows(codes, k) {
        let count = counts.entry(kmer).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

fn canonical(window: &[u8]) -> Kmer {
    let forward = window
        .iter()
        .fold(0, |packed, &code| packed << 2 | u64::from(code));
    let reverse = window
        .iter()
        .rev()
        .fold(0, |packed, &code| packed << 2 | u64::from(3 - code));
    Kmer(forward.min(reverse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_strands_are_one_kmer() {
        let k = K::new(2).unwrap();
        // AC GT is AC, CG, GT: GT is the reverse complement of AC.
        let counts = count(&[0, 1, 2, 3], k);
        assert_eq!(counts, Counts::from([(Kmer(0b0001), 2), (Kmer(0b0110), 1)]));
    }

    #[test]
    fn breaks_end_windows() {
        let k = K::new(2).unwrap();
        assert_eq!(count(&[0, BREAK, 0, 0], k), Counts::from([(Kmer(0), 1)]));
        assert!(count(&[0], k).is_empty());
    }
}
