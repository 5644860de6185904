//! Arguments and results that are longer than one message: they travel in parts.
//!
//! A caller sends the parts of arguments, and its target's engine those of a result, as requests.
//! A part of arguments has the words of its call first, then these, of 64 bits each; a part of a
//! result has only these, and its number is the ticket.
//!
//! ```text
//! number of the value | its length | offset of the part
//! ```
//!
//! Threads that poll run the handlers of several parts at once, and send the parts of one result
//! together, so any part may be the last. That one completes the value. Memory is taken only for
//! bytes that have come.

use argonet_am::Delivery;
use argonet_base::JobRank;
use argonet_segment::SharedBytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};

/// One part of a value, as its message says.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The number of the value, among those of its sender to this rank.
    pub(super) number: u64,
    /// Bytes of the value.
    pub(super) total: u64,
    /// Where the part begins.
    pub(super) offset: u64,
}

impl Part {
    /// Words of a message that says it.
    pub(super) const WORDS: usize = 6;

    /// That of a message whose words before it are so many.
    pub(super) fn read(delivery: &Delivery<'_>, before: usize) -> Self {
        Self {
            number: u64_at(delivery, before),
            total: u64_at(delivery, before + 2),
            offset: u64_at(delivery, before + 4),
        }
    }

    pub(super) fn words(self) -> [u32; Self::WORDS] {
        let [n, t, o] = [self.number, self.total, self.offset].map(words_of);
        [n[0], n[1], t[0], t[1], o[0], o[1]]
    }
}

/// A number as two words of a message.
pub(super) fn words_of(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// The number that two words of a message are; 0 if it has none there.
pub(super) fn u64_at(delivery: &Delivery<'_>, first: usize) -> u64 {
    let word = |index: usize| u64::from(delivery.args().get(index).copied().unwrap_or(0));
    word(first) | word(first + 1) << 32
}

/// A value of which some parts have come.
struct Partial {
    total: u64,
    /// Its beginning.
    bytes: Vec<u8>,
    /// Parts that have overtaken others, by offset.
    ahead: BTreeMap<u64, Vec<u8>>,
}

impl Partial {
    fn new(total: u64) -> Self {
        Self {
            total,
            bytes: Vec::new(),
            ahead: BTreeMap::new(),
        }
    }

    /// `None` if the part is not of this value, or overlaps others.
    fn add(&mut self, part: Part, bytes: &SharedBytes<'_>) -> Option<()> {
        let end = part.offset.checked_add(bytes.len() as u64)?;
        let have = self.bytes.len() as u64;
        let is_new = part.offset >= have && !bytes.is_empty();
        if part.total != self.total || end > self.total || !is_new {
            return None;
        }
        if part.offset > have {
            let before = self.ahead.insert(part.offset, bytes.to_vec());
            return before.is_none().then_some(());
        }
        bytes.append_to(&mut self.bytes);
        while let Some(next) = self.ahead.first_entry() {
            let have = self.bytes.len() as u64;
            if *next.key() > have {
                break;
            }
            if *next.key() < have {
                return None;
            }
            self.bytes.extend_from_slice(&next.remove());
        }
        Some(())
    }
}

/// Values of which some parts have come, by sender and number.
#[derive(Default)]
pub(super) struct Parts(Mutex<HashMap<JobRank, HashMap<u64, Partial>>>);

/// Values of one sender that are incomplete at one time, at most: it sends one after another in
/// each of its threads.
const MOST_INCOMPLETE: usize = 4096;

/// Why a part is not kept, nor what had come of its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("no rank sends such a part")]
    Garbled,
    #[error("more than {MOST_INCOMPLETE} others of that rank are incomplete")]
    TooMany,
}

impl Parts {
    /// Another part; returns the value once all parts have come.
    ///
    /// A value one of whose parts is refused is forgotten.
    pub(super) fn add(
        &self,
        from: JobRank,
        part: Part,
        bytes: &SharedBytes<'_>,
    ) -> Result<Option<Vec<u8>>, Refused> {
        let mut values = self.0.lock();
        let incomplete = values.entry(from).or_default();
        let known = incomplete.remove(&part.number);
        let mut value = known.unwrap_or_else(|| Partial::new(part.total));
        value.add(part, bytes).ok_or(Refused::Garbled)?;
        if (value.bytes.len() as u64) < value.total {
            if incomplete.len() >= MOST_INCOMPLETE {
                return Err(Refused::TooMany);
            }
            incomplete.insert(part.number, value);
            return Ok(None);
        }
        Ok(Some(value.bytes))
    }

    /// A rank is lost: no further parts of it come.
    pub(super) fn lose(&self, rank: JobRank) {
        self.0.lock().remove(&rank);
    }

    /// Whether no value is incomplete.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.0.lock().values().all(HashMap::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANK: JobRank = JobRank(3);

    type Added = Result<Option<Vec<u8>>, Refused>;

    fn add(parts: &Parts, from: JobRank, words: [u64; 3], bytes: &[u8]) -> Added {
        let [number, total, offset] = words;
        let part = Part {
            number,
            total,
            offset,
        };
        parts.add(from, part, &SharedBytes::from_slice(bytes))
    }

    proptest! {
        #[test]
        fn parts_in_any_order_make_the_value(
            (value, cuts, order) in (
                proptest::collection::vec(any::<u8>(), 1..200),
                proptest::collection::vec(0usize..200, 0..8),
                any::<u64>(),
            ),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < value.len()).collect();
            cuts.extend([0, value.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let mut pieces: Vec<_> = cuts.windows(2).map(|w| w[0]..w[1]).collect();
            // Any order that the number gives.
            let place = |start: usize| (start as u64 + 1).wrapping_mul(order | 1).rotate_left(17);
            pieces.sort_by_key(|piece| place(piece.start));
            let parts = Parts::default();
            let last = pieces.len() - 1;
            for (at, piece) in pieces.into_iter().enumerate() {
                let words = [7, value.len() as u64, piece.start as u64];
                let whole = add(&parts, RANK, words, &value[piece]).unwrap();
                prop_assert_eq!(whole, (at == last).then(|| value.clone()));
            }
            prop_assert!(parts.is_empty());
        }

        #[test]
        fn any_parts_are_refused_or_kept(messages in proptest::collection::vec(
            (0u64..3, 0u64..40, 0u64..40, 0usize..20), 0..20,
        )) {
            let parts = Parts::default();
            for (number, total, offset, len) in messages {
                if let Ok(Some(value)) = add(&parts, RANK, [number, total, offset], &vec![1; len]) {
                    prop_assert_eq!(value.len() as u64, total);
                }
            }
        }
    }

    #[test]
    fn values_differ_by_rank_and_number() {
        let parts = Parts::default();
        assert_eq!(add(&parts, RANK, [1, 3, 0], &[1]), Ok(None));
        assert_eq!(add(&parts, JobRank(4), [1, 3, 0], &[2]), Ok(None));
        assert_eq!(add(&parts, RANK, [2, 3, 1], &[4, 5]), Ok(None));
        let whole = add(&parts, RANK, [1, 3, 1], &[6, 7]);
        assert_eq!(whole, Ok(Some(vec![1, 6, 7])));
        let whole = add(&parts, RANK, [2, 3, 0], &[3]);
        assert_eq!(whole, Ok(Some(vec![3, 4, 5])));
        parts.lose(RANK);
        assert!(!parts.is_empty());
        parts.lose(JobRank(4));
        assert!(parts.is_empty());
    }

    #[test]
    fn incomplete_values_of_a_rank_are_bounded() {
        let parts = Parts::default();
        for number in 1..=MOST_INCOMPLETE as u64 {
            assert_eq!(add(&parts, RANK, [number, 2, 0], &[1]), Ok(None));
        }
        assert_eq!(add(&parts, RANK, [0, 2, 0], &[1]), Err(Refused::TooMany));
        // Others are not affected, nor those that complete at once or go on.
        assert_eq!(add(&parts, JobRank(4), [0, 2, 0], &[1]), Ok(None));
        assert_eq!(add(&parts, RANK, [0, 1, 0], &[1]), Ok(Some(vec![1])));
        assert_eq!(add(&parts, RANK, [7, 2, 1], &[2]), Ok(Some(vec![1, 2])));
        assert_eq!(add(&parts, RANK, [0, 2, 0], &[1]), Ok(None));
    }

    #[test]
    fn parts_that_no_rank_sends_are_refused() {
        let first: [([u64; 3], &[u8]); 4] = [
            ([1, 3, 3], &[1]),
            ([1, 3, u64::MAX], &[1]),
            ([1, 3, 1], &[]),
            ([1, 0, 0], &[]),
        ];
        for (words, bytes) in first {
            let parts = Parts::default();
            assert_eq!(add(&parts, RANK, words, bytes), Err(Refused::Garbled));
            assert!(parts.is_empty());
        }
        // Another length, the same place twice, the same place twice ahead of others, and one that
        // reaches into another that has come before it.
        for (before, words, len) in [
            ([1, 3, 0], [1, 4, 1], 1),
            ([1, 3, 0], [1, 3, 0], 1),
            ([1, 3, 1], [1, 3, 1], 1),
            ([1, 4, 1], [1, 4, 0], 2),
        ] {
            let parts = Parts::default();
            assert_eq!(add(&parts, RANK, before, &[1]), Ok(None));
            assert_eq!(
                add(&parts, RANK, words, &vec![0; len]),
                Err(Refused::Garbled)
            );
            assert!(parts.is_empty());
        }
    }
}
