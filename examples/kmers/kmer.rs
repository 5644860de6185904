//! K-mers packed at two bits a base, the rolling window over them, and their hash.
//!
//! `A C G T` are 0 to 3, so that the order of packed k-mers of one length is the order of their
//! letters, and the complement of a base is `3 - base`.

use std::fmt;
use std::str::FromStr;

use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Stands between codes 0 to 3 where no window may pass: a letter other than `ACGT`, or the end of
/// a record.
pub const BREAK: u8 = 4;

/// The length of a k-mer: 1 to 31, so that it fits 62 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct K(u32);

impl K {
    /// The longest k-mer that fits.
    pub const MAX: Self = Self(31);

    /// A length within 1 to 31.
    pub const fn new(k: u32) -> Option<Self> {
        if k >= 1 && k <= Self::MAX.0 {
            Some(Self(k))
        } else {
            None
        }
    }

    /// The length in bases.
    pub const fn bases(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for K {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for K {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| format!("k must be 1 to {}", Self::MAX))
    }
}

/// A canonical k-mer: the lesser of a window and its reverse complement, first base in the highest
/// bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kmer(pub u64);

impl Kmer {
    /// The letters of this k-mer.
    pub fn letters(self, k: K) -> String {
        (0..k.bases())
            .rev()
            .map(|i| char::from(b"ACGT"[(self.0 >> (2 * i) & 3) as usize]))
            .collect()
    }
}

/// Bits of a [`Hash`].
pub const HASH_BITS: u32 = 62;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;
const HALF: u32 = HASH_BITS / 2;
const FIRST_FACTOR: u64 = 0xff51_afd7_ed55_8ccd;
const SECOND_FACTOR: u64 = 0xc4ce_b9fe_1a85_ec53;
/// Low bits of a hash that choose the rank; the table takes its bits from the other end.
const OWNER_BITS: u32 = 24;

/// A k-mer scrambled by a bijection of 62-bit numbers.
///
/// Messages and tables hold the hash, and the k-mer is recovered when it is printed: the receiver
/// of a hash need not compute it again, and a table may keep only a part of it.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[zerocopy(crate = "argonet::zerocopy")]
#[repr(transparent)]
pub struct Hash(u64);

impl Hash {
    /// The hash of a k-mer: Murmur's finalizer cut to 62 bits.
    #[inline]
    pub const fn of(kmer: Kmer) -> Self {
        let mut x = kmer.0;
        x ^= x >> HALF;
        x = x.wrapping_mul(FIRST_FACTOR) & HASH_MASK;
        x ^= x >> HALF;
        x = x.wrapping_mul(SECOND_FACTOR) & HASH_MASK;
        Self(x ^ (x >> HALF))
    }

    /// The k-mer of this hash.
    pub const fn kmer(self) -> Kmer {
        // Shifting by half of the width makes each of the three steps its own inverse.
        let mut x = self.bits();
        x ^= x >> HALF;
        x = x.wrapping_mul(inverse(SECOND_FACTOR)) & HASH_MASK;
        x ^= x >> HALF;
        x = x.wrapping_mul(inverse(FIRST_FACTOR)) & HASH_MASK;
        Kmer(x ^ (x >> HALF))
    }

    /// A hash of these bits; higher ones, which no sender of ours sets, are dropped.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & HASH_MASK)
    }

    /// The number, below 2^62 for any bytes that it was read from.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0 & HASH_MASK
    }

    /// The rank that counts this k-mer.
    #[inline]
    pub const fn owner(self, ranks: u32) -> u32 {
        (((self.0 & ((1 << OWNER_BITS) - 1)) * ranks as u64) >> OWNER_BITS) as u32
    }
}

/// The number that times `odd` is 1 modulo 2^64.
const fn inverse(odd: u64) -> u64 {
    // Newton's iteration: each step doubles the number of correct low bits, and `odd` itself has
    // three.
    let mut x = odd;
    let mut step = 0;
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// The window that rolls over codes.
///
/// It goes on where it stopped, so codes may come in pieces.
pub struct Roller {
    k: u32,
    mask: u64,
    /// Bit where the complement of the newest base enters the reverse strand.
    top: u32,
    forward: u64,
    reverse: u64,
    /// Bases since the last break, at most `k`.
    run: u32,
}

impl Roller {
    /// A window of `k` bases, still empty.
    pub fn new(k: K) -> Self {
        Self {
            k: k.0,
            mask: (1 << (2 * k.0)) - 1,
            top: 2 * (k.0 - 1),
            forward: 0,
            reverse: 0,
            run: 0,
        }
    }

    /// Rolls over `codes` and calls `emit` with the canonical k-mer of each whole window.
    #[inline]
    pub fn roll(&mut self, codes: &[u8], mut emit: impl FnMut(Kmer)) {
        let Self {
            k,
            mask,
            top,
            mut forward,
            mut reverse,
            mut run,
        } = *self;
        for &code in codes {
            if code >= BREAK {
                run = 0;
                continue;
            }
            let code = u64::from(code);
            forward = (forward << 2 | code) & mask;
            reverse = reverse >> 2 | (3 - code) << top;
            run += 1;
            if run >= k {
                run = k;
                emit(Kmer(forward.min(reverse)));
            }
        }
        *self = Self {
            k,
            mask,
            top,
            forward,
            reverse,
            run,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sequential;

    fn rolled(codes: &[u8], k: K, piece: usize) -> Vec<Kmer> {
        let mut kmers = Vec::new();
        let mut roller = Roller::new(k);
        for part in codes.chunks(piece) {
            roller.roll(part, |kmer| kmers.push(kmer));
        }
        kmers
    }

    #[test]
    fn letters_round_trip() {
        let k = K::new(4).unwrap();
        assert_eq!(Kmer(0b00_01_10_11).letters(k), "ACGT");
        assert_eq!(
            rolled(&[3, 3, 3, 3], k, 1),
            [Kmer(0)],
            "TTTT is AAAA on the other strand"
        );
    }

    #[test]
    fn lengths_are_checked() {
        assert!(K::new(0).is_none() && K::new(32).is_none());
        assert_eq!("31".parse(), Ok(K::MAX));
        assert!("0".parse::<K>().is_err() && "x".parse::<K>().is_err());
    }

    #[test]
    fn owners_are_even() {
        for ranks in [1, 2, 3, 7, 64] {
            let mut owned = vec![0u32; ranks as usize];
            for kmer in 0..100_000 {
                owned[Hash::of(Kmer(kmer)).owner(ranks) as usize] += 1;
            }
            let fair = 100_000 / ranks;
            assert!(
                owned
                    .iter()
                    .all(|&n| n > fair * 8 / 10 && n < fair * 12 / 10),
                "{owned:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn hash_is_a_bijection(kmer in 0..=HASH_MASK) {
            let hash = Hash::of(Kmer(kmer));
            prop_assert!(hash.bits() <= HASH_MASK);
            prop_assert_eq!(hash.kmer(), Kmer(kmer));
        }

        #[test]
        fn rolling_finds_the_windows(
            codes in prop::collection::vec(prop_oneof![20 => 0u8..4, 1 => Just(BREAK)], 0..200),
            k in 1u32..=31,
            piece in 1usize..50,
        ) {
            let k = K::new(k).unwrap();
            let plain: Vec<_> = sequential::windows(&codes, k).collect();
            prop_assert_eq!(rolled(&codes, k, piece), plain);
        }
    }
}
