//! The request to the owner of a word for an atomic operation: numbers of 64 bits, two arguments
//! each.
//!
//! ```text
//!  63      32 31    24 23  16 15       8 7         0
//! | endpoint | zero   | kind | type     | operation |  type, operation: which bit; kind: 0 in what is
//! | address, or offset in the segment               |  bound at the endpoint, 1 in the attached segment
//! | number of the operation at its initiator        |
//! | first operand, if it has one                    |
//! | second operand, if it has two                   |
//! ```

use super::super::bound::{Args, BoundPlace, unpack};
use super::super::datatype::{DataType, Operation};
use super::super::location::Target;
use argonet_base::{JobRank, SegmentOffset};

const BOUND: u64 = 0;
const ATTACHED: u64 = 1;

/// An operation whose type is a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Untyped {
    pub(super) dt: DataType,
    pub(super) operation: Operation,
    /// Bits of the operands; zero where there is none.
    pub(super) operands: [u64; 2],
}

/// The request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) target: Target,
    pub(super) what: Untyped,
    /// Its number at the initiator.
    pub(super) op: u64,
}

impl Request {
    pub(super) fn pack(&self) -> Args {
        let (kind, endpoint, place) = match self.target {
            Target::Segment { offset, .. } => (ATTACHED, 0, offset.0),
            Target::Bound(place) => (BOUND, place.endpoint, place.address),
        };
        let Untyped {
            dt,
            operation,
            operands: [first, second],
        } = self.what;
        let head = u64::from(operation.bit().trailing_zeros())
            | u64::from(u32::from(dt).trailing_zeros()) << 8
            | kind << 16
            | u64::from(endpoint) << 32;
        match operation.operands() {
            0 => Args::pack([head, place, self.op]),
            1 => Args::pack([head, place, self.op, first]),
            _ => Args::pack([head, place, self.op, first, second]),
        }
    }

    /// Reads a message to `owner`, if it is such a request: of one valid operation on one type,
    /// with as many operands as that has.
    pub(super) fn unpack(owner: JobRank, args: &[u32]) -> Option<Self> {
        let [head, place, op] = unpack(args.get(..6)?)?;
        let bit = |number: u8| 1u32.checked_shl(number.into()).unwrap_or(0);
        let operation = Operation::try_from(bit(head as u8)).ok()?;
        let dt = DataType::try_from(bit((head >> 8) as u8)).ok()?;
        let bits = |number: u64| match dt.bytes() {
            Some(4) => (number >> 32 == 0).then_some(number),
            _ => Some(number),
        };
        let operands = match operation.operands() {
            0 => unpack(&args[6..]).map(|[]| [0, 0])?,
            1 => unpack(&args[6..]).map(|[first]| [first, 0])?,
            _ => unpack(&args[6..])?,
        };
        let target = match (head >> 16 & 0xffff, (head >> 32) as u32) {
            (ATTACHED, 0) => Target::Segment {
                rank: owner,
                offset: SegmentOffset(place),
            },
            (BOUND, endpoint) => Target::Bound(BoundPlace {
                rank: owner,
                endpoint,
                address: place,
            }),
            _ => return None,
        };
        let [first, second] = operands;
        operation.is_atomic_on(dt).then_some(Self {
            target,
            what: Untyped {
                dt,
                operation,
                operands: [bits(first)?, bits(second)?],
            },
            op,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: JobRank = JobRank(7);

    #[test]
    fn every_request_comes_back_and_nothing_else_is_one() {
        let targets = [
            Target::Segment {
                rank: OWNER,
                offset: SegmentOffset(u64::MAX - 7),
            },
            Target::Bound(BoundPlace {
                rank: OWNER,
                endpoint: u32::MAX,
                address: 1 << 40,
            }),
        ];
        for dt in DataType::ALL {
            for operation in Operation::all() {
                for target in targets {
                    let operands = match (operation.operands(), dt.bytes()) {
                        (0, _) => [0, 0],
                        (1, Some(4)) => [0xffff_fffe, 0],
                        (1, _) => [u64::MAX - 1, 0],
                        (_, Some(4)) => [5, 0xffff_fffe],
                        _ => [5, u64::MAX],
                    };
                    let what = Untyped {
                        dt,
                        operation,
                        operands,
                    };
                    let op = 0x1234_5678_9abc_def0;
                    let request = Request { target, what, op };
                    let args = request.pack();
                    let args = args.words();
                    let valid = operation.is_atomic_on(dt);
                    assert_eq!(
                        Request::unpack(OWNER, args),
                        valid.then_some(request),
                        "{operation:?} on {dt:?}"
                    );
                    // Operands too many, too few, or none of the numbers.
                    let longer = [args, &[0, 0]].concat();
                    assert_eq!(Request::unpack(OWNER, &longer), None);
                    for short in 0..args.len() {
                        assert_eq!(Request::unpack(OWNER, &args[..short]), None);
                    }
                }
            }
        }
    }

    #[test]
    fn malformed_requests_are_refused() {
        let good = Request {
            target: Target::Segment {
                rank: OWNER,
                offset: SegmentOffset(8),
            },
            what: Untyped {
                dt: DataType::U32,
                operation: Operation::Add,
                operands: [1, 0],
            },
            op: 0,
        };
        let args = good.pack();
        // Bits beyond the last operation and the last type, another kind, a word that is zero, an
        // endpoint of a segment, an operand of 33 bits.
        for (word, bit) in [(0, 5), (0, 11), (0, 17), (0, 24), (1, 0), (7, 0)] {
            let mut args = args.words().to_vec();
            args[word] ^= 1 << bit;
            assert_eq!(Request::unpack(OWNER, &args), None, "bit {bit} of {word}");
        }
    }
}
