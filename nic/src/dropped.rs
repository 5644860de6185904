//! Datagrams and records from a network that were dropped as meaningless.

use core::fmt;

/// Datagrams, and records in them, that came to the socket of a rank and were dropped, by the
/// reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Datagrams of no known form.
    pub malformed: u64,
    /// Datagrams whose code of the job is missing or wrong.
    pub forged: u64,
    /// Datagrams whose number has come before, or may have: repeated by the network, or recorded.
    pub replayed: u64,
    /// Datagrams of another job, for another rank, or of an earlier one.
    pub strangers: u64,
    /// Datagrams that acknowledge what was never sent, or whose number is not due.
    pub impossible: u64,
    /// Records in datagrams of this job that mean nothing.
    pub bad_records: u64,
}

/// The reasons, in the order of the words.
const REASONS: [&str; Dropped::WORDS] = [
    "of another protocol",
    "without the job's code",
    "that came before",
    "of another job or rank",
    "with impossible numbers",
    "with records that mean nothing",
];

impl Dropped {
    /// How many numbers it has.
    pub const WORDS: usize = 6;

    /// Its numbers, in a fixed order.
    #[must_use]
    pub fn to_words(self) -> [u64; Self::WORDS] {
        [
            self.malformed,
            self.forged,
            self.replayed,
            self.strangers,
            self.impossible,
            self.bad_records,
        ]
    }

    /// The reverse of [`to_words`](Self::to_words).
    #[must_use]
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [
            malformed,
            forged,
            replayed,
            strangers,
            impossible,
            bad_records,
        ] = words;
        Self {
            malformed,
            forged,
            replayed,
            strangers,
            impossible,
            bad_records,
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let sum = |sum: u64, one: u64| sum.saturating_add(one);
        self.to_words().into_iter().fold(0, sum)
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dropped", self.total())?;
        let mut between = ": ";
        for (why, count) in REASONS.iter().zip(self.to_words()) {
            if count > 0 {
                write!(f, "{between}{count} {why}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_word_and_its_reason() {
        let words = [1, 2, 3, 4, 5, 6];
        let dropped = Dropped::from_words(words);
        assert_eq!(dropped.to_words(), words);
        let text = dropped.to_string();
        assert!(
            text.starts_with("21 dropped: 1 of another protocol, 2 without"),
            "{text}"
        );
        assert!(
            text.ends_with(", 6 with records that mean nothing"),
            "{text}"
        );
        assert_eq!(Dropped::default().to_string(), "0 dropped");
    }
}
