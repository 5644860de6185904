//! Counts of connections that a rank was asked for, and of drops by reason.

use core::fmt;

/// Counts of a rank's gate since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounts {
    /// Connections that were accepted.
    pub seen: u64,
    /// Connections whose peer proved to be of the job.
    pub proven: u64,
    /// Dropped at once: all places were taken.
    pub full: u64,
    /// Dropped for one from an address of the job.
    pub evicted: u64,
    /// Dropped at the deadline.
    pub expired: u64,
    /// Closed or broken by the other end.
    pub closed: u64,
    /// Dropped: no word of argonet's protocol.
    pub other_protocol: u64,
    /// Dropped: another version of it.
    pub other_version: u64,
    /// Dropped: of another job.
    pub other_job: u64,
    /// Dropped: without the key, or with an old message.
    pub no_proof: u64,
    /// Dropped: of the job, and for another rank than this or from none that it has.
    pub wrong_rank: u64,
}

impl GateCounts {
    /// How many were dropped, for all reasons.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.to_words()[2..].iter().sum()
    }

    /// How many numbers it has.
    pub const WORDS: usize = 11;

    /// Its numbers, in the order of the fields.
    #[must_use]
    pub const fn to_words(&self) -> [u64; Self::WORDS] {
        [
            self.seen,
            self.proven,
            self.full,
            self.evicted,
            self.expired,
            self.closed,
            self.other_protocol,
            self.other_version,
            self.other_job,
            self.no_proof,
            self.wrong_rank,
        ]
    }

    /// The reverse of [`to_words`](Self::to_words).
    #[must_use]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [
            seen,
            proven,
            full,
            evicted,
            expired,
            closed,
            other_protocol,
            other_version,
            other_job,
            no_proof,
            wrong_rank,
        ] = words;
        Self {
            seen,
            proven,
            full,
            evicted,
            expired,
            closed,
            other_protocol,
            other_version,
            other_job,
            no_proof,
            wrong_rank,
        }
    }
}

/// Why some were dropped, in the order of the fields behind `proven`.
const REASONS: [&str; GateCounts::WORDS - 2] = [
    "with all places taken",
    "for one from an address of the job",
    "silent until the deadline",
    "closed by the other end",
    "of another protocol",
    "of another version",
    "of another job",
    "without the key",
    "for another rank",
];

impl core::iter::Sum for GateCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        let add = |sum: Self, other: Self| {
            let (mut words, other) = (sum.to_words(), other.to_words());
            words
                .iter_mut()
                .zip(other)
                .for_each(|(word, more)| *word += more);
            Self::from_words(words)
        };
        each.fold(Self::default(), add)
    }
}

impl fmt::Display for GateCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seen, proven, dropped) = (self.seen, self.proven, self.dropped());
        write!(
            f,
            "{seen} came, {proven} proved to be of the job, {dropped} dropped"
        )?;
        let mut between = ": ";
        for (why, count) in REASONS.iter().zip(self.to_words().into_iter().skip(2)) {
            if count > 0 {
                write!(f, "{between}{count} {why}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}
