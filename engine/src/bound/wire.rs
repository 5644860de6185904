//! Arguments of the messages that reach bound memory: numbers of 64 bits, two arguments each.

use super::super::limits::internal;
use super::super::regions::Outside;
use argonet_am::MAX_ARGS;
use argonet_base::{HandlerIndex, JobRank};

/// Numbers, packed.
pub(in super::super) struct Args {
    words: [u32; MAX_ARGS],
    count: usize,
}

impl Args {
    /// Packs at most [`MAX_ARGS`] / 2 numbers.
    pub(in super::super) fn pack<const N: usize>(numbers: [u64; N]) -> Self {
        const { assert!(N * 2 <= MAX_ARGS) };
        let mut words = [0; MAX_ARGS];
        for (pair, number) in words.chunks_exact_mut(2).zip(numbers) {
            pair.copy_from_slice(&[number as u32, (number >> 32) as u32]);
        }
        Self {
            words,
            count: N * 2,
        }
    }

    pub(in super::super) fn words(&self) -> &[u32] {
        &self.words[..self.count]
    }
}

/// The numbers in a message's arguments, if there are exactly so many.
pub(in super::super) fn unpack<const N: usize>(args: &[u32]) -> Option<[u64; N]> {
    if args.len() != N * 2 {
        return None;
    }
    let mut numbers = [0; N];
    for (number, pair) in numbers.iter_mut().zip(args.chunks_exact(2)) {
        *number = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
    Some(numbers)
}

/// The subject of a query about an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Subject {
    /// The memory bound there.
    Memory,
    /// Whether messages may go there.
    Messages,
}

impl Subject {
    /// One number of it and an endpoint.
    pub(super) fn with(self, endpoint: u32) -> u64 {
        u64::from(endpoint) | (self as u64) << 32
    }

    pub(super) fn of_number(number: u64) -> Option<(Self, u32)> {
        let subject = match number >> 32 {
            0 => Self::Memory,
            1 => Self::Messages,
            _ => return None,
        };
        Some((subject, number as u32))
    }
}

/// A range of memory as its initiator names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Range {
    pub(in super::super) endpoint: u32,
    pub(in super::super) address: u64,
    pub(in super::super) len: u64,
}

impl Range {
    /// Stands for the attached segment where an endpoint is named.
    pub(in super::super) const SEGMENT: u32 = u32::MAX;
    /// The endpoint whose segment is attached.
    pub(in super::super) const FIRST: u32 = 0;

    /// From three numbers of a message.
    pub(super) fn read(endpoint: u64, address: u64, len: u64) -> Option<Self> {
        Some(Self {
            endpoint: endpoint.try_into().ok()?,
            address,
            len,
        })
    }
}

/// A range that its target has refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Refusal {
    /// Index of the message that was refused; names the operation.
    pub(in super::super) what: HandlerIndex,
    pub(in super::super) range: Range,
    /// The memory of the target there.
    pub(in super::super) outside: Outside,
}

/// An [`Outside`] as numbers: its variant, and two more.
fn numbers(outside: Outside) -> [u64; 3] {
    match outside {
        Outside::Nothing => [0, 0, 0],
        Outside::Segment { address, len } => [1, address, len],
        Outside::Hole(at) => [2, at, 0],
        Outside::ReadOnly(at) => [3, at, 0],
        Outside::Unaligned => [4, 0, 0],
    }
}

impl Refusal {
    pub(super) fn pack(&self) -> Args {
        let [which, first, second] = numbers(self.outside);
        Args::pack([
            u64::from(self.what.0) | which << 8,
            self.range.endpoint.into(),
            self.range.address,
            self.range.len,
            first,
            second,
        ])
    }

    pub(super) fn unpack(args: &[u32]) -> Option<Self> {
        let [what, endpoint, address, len, first, second] = unpack(args)?;
        Some(Self {
            what: HandlerIndex(what as u8),
            range: Range::read(endpoint, address, len)?,
            outside: match what >> 8 {
                0 => Outside::Nothing,
                1 => Outside::Segment {
                    address: first,
                    len: second,
                },
                2 => Outside::Hole(first),
                3 => Outside::ReadOnly(first),
                4 => Outside::Unaligned,
                _ => return None,
            },
        })
    }

    /// The message for the user.
    pub(in super::super) fn message(&self, initiator: JobRank, target: JobRank) -> String {
        let what = match self.what {
            internal::BOUND_GET => "get",
            internal::BOUND_LONG | internal::BOUND_LONG_PART => "long active message",
            internal::RATOMIC | internal::RATOMIC_BATCH => "remote atomic operation",
            internal::SIGNAL => "signal",
            internal::VIS_PUT => "non-contiguous put",
            internal::VIS_GET => "non-contiguous get",
            _ => "put",
        };
        let Range {
            endpoint,
            address,
            len,
        } = self.range;
        let range =
            format!("rank {initiator}: a {what} of {len} bytes at {address:#x} of rank {target}");
        let bound_at = match endpoint {
            Range::SEGMENT => range.clone(),
            endpoint => format!("{range}, endpoint {endpoint},"),
        };
        match self.outside {
            Outside::Nothing => format!(
                "{bound_at} is outside of its segment: rank {target} has bound no segment there"
            ),
            Outside::Segment { address, len } => format!(
                "{bound_at} is outside of its segment: rank {target} has bound {len} bytes from {address:#x} to {:#x} there",
                address.saturating_add(len)
            ),
            Outside::Hole(at) => format!(
                "{range} cannot be done: nothing is mapped at {at:#x} there; pass an address that is valid in that rank's process"
            ),
            Outside::ReadOnly(at) => {
                format!("{range} cannot be done: memory at {at:#x} there cannot be written")
            }
            Outside::Unaligned => {
                format!("{range} is not aligned; pass an address that is a multiple of {len}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_other_counts_do_not() {
        let numbers = [1, u64::MAX, 1 << 32];
        let args = Args::pack(numbers);
        assert_eq!(args.words(), [1, 0, u32::MAX, u32::MAX, 0, 1]);
        assert_eq!(unpack(args.words()), Some(numbers));
        assert_eq!(unpack::<2>(args.words()), None);
        assert_eq!(unpack::<3>(&args.words()[..5]), None);
    }

    #[test]
    fn questions_come_back_and_others_do_not() {
        for asked in [(Subject::Memory, u32::MAX), (Subject::Messages, 31)] {
            assert_eq!(Subject::of_number(asked.0.with(asked.1)), Some(asked));
        }
        assert_eq!(Subject::of_number(2 << 32), None);
    }

    #[test]
    fn refusals_come_back() {
        let range = Range {
            endpoint: 7,
            address: u64::MAX,
            len: 3,
        };
        let at = 1 << 40;
        for outside in [
            Outside::Nothing,
            Outside::Segment {
                address: at,
                len: 9,
            },
            Outside::Hole(at),
            Outside::ReadOnly(u64::MAX),
            Outside::Unaligned,
        ] {
            let refusal = Refusal {
                what: internal::BOUND_GET,
                range,
                outside,
            };
            assert_eq!(Refusal::unpack(refusal.pack().words()), Some(refusal));
        }
        let unknown = Args::pack([5 << 8, 0, 0, 0, 0, 0]);
        assert_eq!(Refusal::unpack(unknown.words()), None);
    }
}
