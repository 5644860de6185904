//! Arguments of the messages that reach far memory: numbers of 64 bits, two arguments each.

use super::super::limits::internal;
use argonet_am::MAX_ARGS;
use argonet_base::{HandlerIndex, JobRank};

/// Numbers, packed.
pub(super) struct Args {
    words: [u32; MAX_ARGS],
    count: usize,
}

impl Args {
    /// Packs at most [`MAX_ARGS`] / 2 numbers.
    pub(super) fn pack<const N: usize>(numbers: [u64; N]) -> Self {
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

    pub(super) fn words(&self) -> &[u32] {
        &self.words[..self.count]
    }
}

/// The numbers in a message's arguments, if there are exactly so many.
pub(super) fn unpack<const N: usize>(args: &[u32]) -> Option<[u64; N]> {
    if args.len() != N * 2 {
        return None;
    }
    let mut numbers = [0; N];
    for (number, pair) in numbers.iter_mut().zip(args.chunks_exact(2)) {
        *number = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
    Some(numbers)
}

/// A range of memory as its initiator names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) endpoint: u32,
    pub(super) address: u64,
    pub(super) len: u64,
}

impl Range {
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
pub(super) struct Refusal {
    /// Index of the message that was refused; tells the operation.
    pub(super) what: HandlerIndex,
    pub(super) range: Range,
    /// Address and length of what the target has bound at the endpoint.
    pub(super) bound: Option<(u64, u64)>,
}

impl Refusal {
    pub(super) fn pack(&self) -> Args {
        let (address, len) = self.bound.unwrap_or_default();
        Args::pack([
            u64::from(self.what.0) | u64::from(self.bound.is_some()) << 8,
            self.range.endpoint.into(),
            self.range.address,
            self.range.len,
            address,
            len,
        ])
    }

    pub(super) fn unpack(args: &[u32]) -> Option<Self> {
        let [what, endpoint, address, len, bound_at, bound_len] = unpack(args)?;
        Some(Self {
            what: HandlerIndex(what as u8),
            range: Range::read(endpoint, address, len)?,
            bound: (what >> 8 != 0).then_some((bound_at, bound_len)),
        })
    }

    /// For the user.
    pub(super) fn tell(&self, initiator: JobRank, target: JobRank) -> String {
        let what = match self.what {
            internal::FAR_GET => "get",
            internal::FAR_LONG | internal::FAR_LONG_PART => "long active message",
            _ => "put",
        };
        let Range {
            endpoint,
            address,
            len,
        } = self.range;
        let bound = match self.bound {
            Some((address, len)) => format!(
                "rank {target} has bound {len} bytes from {address:#x} to {:#x} there",
                address.saturating_add(len)
            ),
            None => format!("rank {target} has bound no segment there"),
        };
        format!(
            "rank {initiator}: a {what} of {len} bytes at {address:#x} of rank {target}, endpoint {endpoint}, is outside of its segment: {bound}"
        )
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
    fn refusals_come_back() {
        let range = Range {
            endpoint: 7,
            address: u64::MAX,
            len: 3,
        };
        for bound in [None, Some((0, 0)), Some((1 << 40, 9))] {
            let refusal = Refusal {
                what: internal::FAR_GET,
                range,
                bound,
            };
            assert_eq!(Refusal::unpack(refusal.pack().words()), Some(refusal));
        }
    }
}
