//! The window of numbers by which replayed datagrams are recognized (RFC 6479).

/// Words of the bitmap, which has one bit for each number.
const WORDS: u64 = 16;

/// Which of the newest numbers have arrived.
///
/// The bitmap reaches at least 960 numbers behind the newest. One further behind counts as arrived:
/// its datagram is dropped, and the sender retransmits the record with a new number.
#[derive(Debug, Default)]
pub(super) struct Replays {
    newest: u64,
    /// The bits of the 16 newest words of numbers, each at its word modulo 16.
    words: [u64; WORDS as usize],
}

fn place(number: u64) -> (u64, usize, u64) {
    let word = number / u64::from(u64::BITS);
    (
        word,
        (word % WORDS) as usize,
        1 << (number % u64::from(u64::BITS)),
    )
}

impl Replays {
    /// Whether no datagram with this number has arrived, and the bitmap would know.
    pub(super) fn is_fresh(&self, number: u64) -> bool {
        if number > self.newest {
            return true;
        }
        let ((newest, ..), (word, at, bit)) = (place(self.newest), place(number));
        number != 0 && newest - word < WORDS && self.words[at] & bit == 0
    }

    /// Records the arrival of a number that was fresh.
    pub(super) fn mark(&mut self, number: u64) {
        let (word, at, bit) = place(number);
        if number > self.newest {
            let (newest, ..) = place(self.newest);
            for passed in newest + 1..=word.min(newest + WORDS) {
                self.words[(passed % WORDS) as usize] = 0;
            }
            self.newest = number;
        }
        self.words[at] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Least numbers behind the newest that are known one by one.
    const LEAST: u64 = (WORDS - 1) * 64;

    proptest! {
        #[test]
        fn a_number_is_fresh_once(
            from in prop_oneof![Just(1_u64), any::<u64>(), Just(u64::MAX - 5000)],
            steps in prop::collection::vec((-1200_i64..1200, 0_i64..2), 1..400),
        ) {
            let (mut replays, mut here) = (Replays::default(), HashSet::from([0]));
            let (mut number, mut newest) = (from, 0_u64);
            for (step, wide) in steps {
                number = number.saturating_add_signed(step * (1 + wide * 3));
                let is_fresh = replays.is_fresh(number);
                if here.contains(&number) {
                    prop_assert!(!is_fresh, "{} comes twice", number);
                } else if newest.saturating_sub(number) <= LEAST {
                    prop_assert!(is_fresh, "{} behind {}", number, newest);
                }
                if is_fresh {
                    replays.mark(number);
                    here.insert(number);
                    newest = newest.max(number);
                }
            }
        }
    }
}
