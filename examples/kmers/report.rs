//! The result: sums over a table that can be merged with those of other ranks, and how they are
//! printed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::kmer::{K, Kmer};

/// How much of the result is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Counts with a line of their own in the histogram; one more takes all greater counts.
    pub histogram: usize,
    /// K-mers in the list of the most frequent.
    pub top: usize,
}

/// The summary of a set of counts.
///
/// Merging the tallies of disjoint sets gives that of their union.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Windows counted.
    pub total: u64,
    /// Different k-mers.
    pub distinct: u64,
    /// Sum of a hash over all k-mers with their counts, in any order.
    pub checksum: u64,
    /// Number of k-mers by count: `histogram[0]` occur once, the last entry is for all that have no
    /// own.
    pub histogram: Vec<u64>,
    /// The most frequent k-mers, the least of them on top of the heap: by falling count, then by
    /// letters.
    top: BinaryHeap<(Reverse<u32>, Kmer)>,
    top_limit: usize,
}

impl Tally {
    /// Of no counts.
    pub fn new(limits: Limits) -> Self {
        Self {
            total: 0,
            distinct: 0,
            checksum: 0,
            histogram: vec![0; limits.histogram + 1],
            top: BinaryHeap::new(),
            top_limit: limits.top,
        }
    }

    /// Adds a k-mer that is not in yet.
    pub fn add(&mut self, kmer: Kmer, count: u32) {
        self.total += u64::from(count);
        self.distinct += 1;
        self.checksum = self
            .checksum
            .wrapping_add(mix(kmer.0.wrapping_mul(ODD) ^ mix(u64::from(count))));
        let last = self.histogram.len() - 1;
        self.histogram[(count as usize).saturating_sub(1).min(last)] += 1;
        self.add_top(count, kmer);
    }

    /// All of it in one array, as ranks pass it on.
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.total, self.distinct, self.checksum];
        words.extend(&self.histogram);
        words.push(self.top.len() as u64);
        for (count, kmer) in self.top() {
            words.extend([count.into(), kmer.0]);
        }
        words
    }

    /// Adds the tally of another rank: its [`words`](Self::words), and anything that lies behind
    /// them.
    pub fn merge(&mut self, words: &[u64]) {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        self.total += next();
        self.distinct += next();
        self.checksum = self.checksum.wrapping_add(next());
        for sum in &mut self.histogram {
            *sum += next();
        }
        for _ in 0..next().min(self.top_limit as u64) {
            let count = u32::try_from(next()).unwrap_or(u32::MAX);
            self.add_top(count, Kmer(next()));
        }
    }

    /// The most frequent k-mers, by falling count, then by letters.
    pub fn top(&self) -> Vec<(u32, Kmer)> {
        let mut top: Vec<_> = self.top.iter().copied().collect();
        top.sort_unstable();
        top.into_iter()
            .map(|(Reverse(count), kmer)| (count, kmer))
            .collect()
    }

    fn add_top(&mut self, count: u32, kmer: Kmer) {
        let entry = (Reverse(count), kmer);
        if self.top.len() < self.top_limit {
            self.top.push(entry);
        } else if let Some(mut least) = self.top.peek_mut()
            && entry < *least
        {
            *least = entry;
        }
    }
}

impl PartialEq for Tally {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Tally {}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Everything that goes to standard output, the same for every number of ranks.
pub struct Report<'a> {
    /// Length of the k-mers.
    pub k: K,
    /// Records of the file.
    pub records: u64,
    /// Letters in them.
    pub letters: u64,
    /// The counts.
    pub tally: &'a Tally,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            k,
            records,
            letters,
            tally,
        } = self;
        writeln!(f, "records\t{records}\nletters\t{letters}\nk\t{k}")?;
        writeln!(
            f,
            "k-mers\t{}\ndistinct\t{}\nchecksum\t{:016x}",
            tally.total, tally.distinct, tally.checksum
        )?;
        writeln!(f, "\ncount\tk-mers")?;
        let last = tally.histogram.len() - 1;
        for (i, &kmers) in tally
            .histogram
            .iter()
            .enumerate()
            .filter(|&(_, &kmers)| kmers > 0)
        {
            let count = if i == last {
                format!(">{last}")
            } else {
                (i + 1).to_string()
            };
            writeln!(f, "{count}\t{kmers}")?;
        }
        let top = tally.top();
        if !top.is_empty() {
            writeln!(f, "\ncount\tmost frequent")?;
        }
        top.into_iter()
            .try_for_each(|(count, kmer)| writeln!(f, "{count}\t{}", kmer.letters(*k)))
    }
}

/// A line with the time and rate of one phase.
pub fn throughput(phase: &str, amount: u64, unit: &str, time: Duration) -> String {
    let mut line = format!("{phase}: {:.3} s", time.as_secs_f64());
    let rate = amount as f64 / time.as_secs_f64() / 1e6;
    if rate.is_finite() {
        // Writing to a string cannot fail.
        let _ = write!(line, ", {rate:.1} million {unit} a second");
    }
    line
}

/// A line as [`throughput`] gives, with the rate of one of so many ranks.
pub fn throughput_of_ranks(ranks: u32, amount: u64, unit: &str, time: Duration) -> String {
    let mut line = throughput(&format!("counting on {ranks} rank(s)"), amount, unit, time);
    let rate = amount as f64 / f64::from(ranks) / time.as_secs_f64() / 1e6;
    if ranks > 1 && rate.is_finite() {
        // Writing to a string cannot fail.
        let _ = write!(line, ", {rate:.1} million on each rank");
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        histogram: 3,
        top: 2,
    };

    #[test]
    fn prints() {
        let mut tally = Tally::new(LIMITS);
        for (kmer, count) in [(1, 1), (9, 5), (2, 5), (3, 3), (0, 1)] {
            tally.add(Kmer(kmer), count);
        }
        let k = K::new(2).unwrap();
        let text = Report {
            k,
            records: 1,
            letters: 16,
            tally: &tally,
        }
        .to_string();
        let (head, lists) = text.split_once("checksum").unwrap();
        assert_eq!(
            head,
            "records\t1\nletters\t16\nk\t2\nk-mers\t15\ndistinct\t5\n"
        );
        let lists = lists.split_once('\n').unwrap().1;
        assert_eq!(
            lists,
            "\ncount\tk-mers\n1\t2\n3\t1\n>3\t2\n\ncount\tmost frequent\n5\tAG\n5\tGC\n"
        );
    }

    proptest! {
        #[test]
        fn merging_is_counting_together(
            counts in prop::collection::btree_map(0u64..1000, 1u32..9, 0..100),
            ranks in 1usize..5,
        ) {
            let mut parts = vec![Tally::new(LIMITS); ranks];
            let mut whole = Tally::new(LIMITS);
            for (i, (&kmer, &count)) in counts.iter().enumerate() {
                parts[i * 7 % ranks].add(Kmer(kmer), count);
                whole.add(Kmer(kmer), count);
            }
            let mut merged = Tally::new(LIMITS);
            for part in parts.iter().rev() {
                merged.merge(&part.words());
            }
            prop_assert_eq!(&merged, &whole);
            let mut sorted: Vec<_> = counts.iter().map(|(&kmer, &count)| (Reverse(count), kmer)).collect();
            sorted.sort_unstable();
            let top: Vec<_> = merged.top().into_iter().map(|(count, kmer)| (Reverse(count), kmer.0)).collect();
            prop_assert_eq!(&top[..], &sorted[..top.len()]);
            prop_assert_eq!(top.len(), sorted.len().min(LIMITS.top));
        }
    }
}
