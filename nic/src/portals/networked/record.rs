//! The wire format of records between interfaces.
//!
//! ```text
//! request   0      1      2    3             4        8    16     24       32       40    48     56        64
//!           | kind | asks | op | element     | portal | id | bits | header | offset | len | link | compare | data
//! answer    0      1         2               8    16      24
//!           | kind | outcome | acknowledged  | id | moved | data
//! more      0      8    16
//!           | kind | at | data
//! ```
//!
//! Numbers little-endian; elements of atomic operations in the order of the hosts' processors, of
//! which a job has one kind. Between two ranks there is one message at a time in each direction: a
//! request or an answer whose data does not fit goes on in records of more of it, before anything
//! else. `at` is how much came before. `id` is the initiator's, which the answer repeats.

use crate::portals::software::{Arrival, Asked, Request};
use crate::portals::{AtomicKind, AtomicOp, Outcome, PortalIndex};
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// Bytes before the data of each.
pub(super) const REQUEST_BYTES: usize = 64;
pub(super) const ANSWER_BYTES: usize = 24;
pub(super) const MORE_BYTES: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
enum Kind {
    Put = 1,
    Get,
    Atomic,
    Fetch,
    Answer,
    More,
}

/// A record, but for the data behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Head {
    Request {
        request: Request,
        /// Whether the initiator wants an answer.
        asks: bool,
        id: u64,
    },
    Answer {
        arrival: Arrival,
        id: u64,
    },
    More {
        at: u64,
    },
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

impl Head {
    /// How long it is.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Request { .. } => REQUEST_BYTES,
            Self::Answer { .. } => ANSWER_BYTES,
            Self::More { .. } => MORE_BYTES,
        }
    }

    /// Writes it to its place, which is that long.
    pub(super) fn write(&self, place: &mut [u8]) {
        place.fill(0);
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = place.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        match self {
            Self::Request { request, asks, id } => {
                let (kind, op, compare) = match request.asked {
                    Asked::Put => (Kind::Put, None, 0),
                    Asked::Get => (Kind::Get, None, 0),
                    Asked::Atomic { op, kind } => (Kind::Atomic, Some((op, kind)), 0),
                    Asked::Fetch { op, kind, compare } => (Kind::Fetch, Some((op, kind)), compare),
                };
                put(0, &[kind.into(), u8::from(*asks)]);
                if let Some((op, kind)) = op {
                    put(2, &[op.into(), kind.into()]);
                }
                put(4, &request.portal.0.to_le_bytes());
                let words = [
                    *id,
                    request.bits,
                    request.header,
                    request.offset,
                    request.len,
                    request.link,
                    compare,
                ];
                for (at, word) in (8..).step_by(8).zip(words) {
                    put(at, &word.to_le_bytes());
                }
            }
            Self::Answer { arrival, id } => {
                let outcome = arrival.outcome.into();
                put(
                    0,
                    &[Kind::Answer.into(), outcome, u8::from(arrival.acknowledged)],
                );
                put(8, &id.to_le_bytes());
                put(16, &arrival.moved.to_le_bytes());
            }
            Self::More { at } => {
                put(0, &[Kind::More.into()]);
                put(8, &at.to_le_bytes());
            }
        }
    }

    /// Reads a record: its head, and the data behind.
    pub(super) fn read(record: &[u8]) -> Option<(Self, &[u8])> {
        let [first, second, third, fourth] = field(record, 0)?;
        let elements = || {
            let kind = AtomicKind::try_from(fourth).ok()?;
            Some((AtomicOp::try_from(third).ok()?, kind))
        };
        let asked = match Kind::try_from(first).ok()? {
            Kind::Put => Asked::Put,
            Kind::Get => Asked::Get,
            Kind::Atomic => {
                let (op, kind) = elements()?;
                Asked::Atomic { op, kind }
            }
            Kind::Fetch => {
                let (op, kind) = elements()?;
                let compare = word(record, 56)?;
                Asked::Fetch { op, kind, compare }
            }
            Kind::Answer => {
                let arrival = Arrival {
                    outcome: Outcome::try_from(second).ok()?,
                    moved: word(record, 16)?,
                    acknowledged: flag(third)?,
                };
                let id = word(record, 8)?;
                return Some((Self::Answer { arrival, id }, record.get(ANSWER_BYTES..)?));
            }
            Kind::More => {
                let at = word(record, 8)?;
                return Some((Self::More { at }, record.get(MORE_BYTES..)?));
            }
        };
        let request = Request {
            asked,
            portal: PortalIndex(u32::from_le_bytes(field(record, 4)?)),
            bits: word(record, 16)?,
            header: word(record, 24)?,
            offset: word(record, 32)?,
            len: word(record, 40)?,
            link: word(record, 48)?,
        };
        let head = Self::Request {
            request,
            asks: flag(second)?,
            id: word(record, 8)?,
        };
        Some((head, record.get(REQUEST_BYTES..)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> Vec<Head> {
        let op = AtomicOp::CompareSwap;
        let kind = AtomicKind::F32;
        let compare = 9;
        let asked = [
            Asked::Put,
            Asked::Get,
            Asked::Atomic { op, kind },
            Asked::Fetch { op, kind, compare },
        ];
        let request = |(asked, asks)| Head::Request {
            request: Request {
                asked,
                portal: PortalIndex(1),
                bits: 2,
                header: 3,
                offset: u64::MAX,
                len: 5,
                link: 6,
            },
            asks,
            id: 7,
        };
        let mut heads: Vec<_> = asked
            .into_iter()
            .zip([true, false, true, false])
            .map(request)
            .collect();
        for acknowledged in [true, false] {
            let arrival = Arrival {
                outcome: Outcome::Disabled,
                moved: 8,
                acknowledged,
            };
            heads.push(Head::Answer { arrival, id: 9 });
        }
        heads.push(Head::More { at: 10 });
        heads
    }

    #[test]
    fn written_heads_are_read_back() {
        for head in heads() {
            let mut record = vec![0xff; head.bytes()];
            head.write(&mut record);
            record.extend(b"data");
            assert_eq!(Head::read(&record), Some((head, &b"data"[..])));
            for len in 0..head.bytes() {
                assert_eq!(Head::read(&record[..len]), None, "{head:?} cut to {len}");
            }
        }
    }

    #[test]
    fn bytes_that_mean_nothing_are_no_record() {
        // Where a byte names something, and a value that names nothing.
        let [put, _, atomic, fetch, answer, _, more] = heads()[..] else {
            panic!("seven heads");
        };
        let wrong = [
            (put, 0, 0),
            (more, 0, 7),
            (put, 1, 2),
            (atomic, 2, 9),
            (fetch, 3, 6),
            (answer, 1, 6),
            (answer, 2, 2),
        ];
        for (head, at, value) in wrong {
            let mut record = vec![0; head.bytes()];
            head.write(&mut record);
            record[at] = value;
            assert_eq!(Head::read(&record), None, "{head:?} with {value} at {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((head, data)) = Head::read(&bytes) {
                prop_assert_eq!(head.bytes() + data.len(), bytes.len());
            }
        }
    }
}
