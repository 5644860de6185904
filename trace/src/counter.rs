//! Counts of each kind of event.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::kind::Kind;

/// A number of measurements, and their sum, least and greatest.
pub(crate) struct Range {
    sum: AtomicU64,
    least: AtomicU64,
    greatest: AtomicU64,
}

/// A snapshot of a [`Range`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Total {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) least: u64,
    pub(crate) greatest: u64,
}

impl Total {
    /// Of nothing.
    pub(crate) const NONE: Self = Self {
        count: 0,
        sum: 0,
        least: u64::MAX,
        greatest: 0,
    };

    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum.saturating_add(other.sum),
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

impl Range {
    const fn new() -> Self {
        Self {
            sum: AtomicU64::new(0),
            least: AtomicU64::new(u64::MAX),
            greatest: AtomicU64::new(0),
        }
    }

    fn add(&self, value: u64) {
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.least.fetch_min(value, Ordering::Relaxed);
        self.greatest.fetch_max(value, Ordering::Relaxed);
    }

    fn total(&self, count: u64) -> Total {
        Total {
            count,
            sum: self.sum.load(Ordering::Relaxed),
            least: self.least.load(Ordering::Relaxed),
            greatest: self.greatest.load(Ordering::Relaxed),
        }
    }

    fn reset(&self) {
        self.sum.store(0, Ordering::Relaxed);
        self.least.store(u64::MAX, Ordering::Relaxed);
        self.greatest.store(0, Ordering::Relaxed);
    }
}

/// One kind.
struct Counter {
    count: AtomicU64,
    value: Range,
    time_ns: Range,
}

/// All kinds.
///
/// Any thread counts; the four numbers of a total may be of slightly different moments while
/// threads do.
pub(crate) struct Counters([Counter; Kind::ALL.len()]);

impl Counters {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| Counter {
            count: AtomicU64::new(0),
            value: Range::new(),
            time_ns: Range::new(),
        }))
    }

    pub(crate) fn add(&self, kind: Kind, value: u64, time_ns: u64) {
        let counter = &self.0[kind as usize];
        counter.count.fetch_add(1, Ordering::Relaxed);
        counter.value.add(value);
        counter.time_ns.add(time_ns);
    }

    /// Values and times of a kind.
    pub(crate) fn totals(&self, kind: Kind) -> (Total, Total) {
        let counter = &self.0[kind as usize];
        let count = counter.count.load(Ordering::Relaxed);
        (counter.value.total(count), counter.time_ns.total(count))
    }

    pub(crate) fn reset(&self) {
        for counter in &self.0 {
            counter.count.store(0, Ordering::Relaxed);
            counter.value.reset();
            counter.time_ns.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_extremes() {
        let counters = Counters::new();
        for (value, time) in [(8, 300), (16, 100), (0, 200)] {
            counters.add(Kind::Put, value, time);
        }
        let total = |count, sum, least, greatest| Total {
            count,
            sum,
            least,
            greatest,
        };
        let expected = (total(3, 24, 0, 16), total(3, 600, 100, 300));
        assert_eq!(counters.totals(Kind::Put), expected);
        assert_eq!(counters.totals(Kind::Get), (Total::NONE, Total::NONE));
        assert_eq!(expected.0.with(total(1, 5, 5, 50)), total(4, 29, 0, 50));
        counters.reset();
        assert_eq!(counters.totals(Kind::Put), (Total::NONE, Total::NONE));
    }
}
