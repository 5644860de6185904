//! Contents of match bits and immediate data.
//!
//! ```text
//!  match bits  63     56 55     48 47            24 23   16 15 13 12     8 7      0
//!  request,    | credits |         LID            | chunk, low  |  |      |         |
//!  reply       +---------+------------------------+-------------+kind+ nargs +handler
//!               56..63     32..55                   16..31       13   8       0
//!
//!  put, get,   | 0                  |  LID        |  handle of the operation |
//!  data half    48..63                24..47         0..23
//! ```
//!
//! The immediate data of a short are its first two arguments, of a medium its length, of a packed
//! long length and offset, of a long in two messages the offset (its length begins the chunk's
//! bytes), of a refusal the two counts of what was refused, of the payload of a large medium its
//! length (low 32 bits) and how much of it came before in parts. Entries ignore all match bits:
//! portals distinguish roles.

use super::config::{LARGE_BYTES, SHORTEST_MESSAGE};
use super::operations::Transfer;
use argonet_am::record::RecordError;
use argonet_am::{Category, MAX_CARRIED, MAX_MEDIUM};
use argonet_base::HandlerIndex;
use static_assertions::const_assert;

/// Bits of the number of a message in two halves.
pub(super) const LID_BITS: u32 = 24;
const LID_MASK: u64 = (1 << LID_BITS) - 1;

/// How a message travels.
// spec P5: packed longs and those of two messages.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, num_enum::TryFromPrimitive, num_enum::IntoPrimitive,
)]
#[repr(u8)]
pub(super) enum Kind {
    /// Arguments.
    Short = 1,
    /// Arguments and payload in one.
    Medium,
    /// Arguments, and a payload that comes apart into a buffer.
    LargeMedium,
    /// Arguments and payload in one, which the receiver copies to its place.
    PackedLong,
    /// Arguments, and a payload that comes apart to its place.
    SplitLong,
    /// No reply; it gives credits and chunk back.
    Empty,
    /// The request found no room and is to be sent again.
    Refused,
}

impl Kind {
    pub(super) fn category(self) -> Category {
        match self {
            Kind::Medium | Kind::LargeMedium => Category::Medium,
            Kind::PackedLong | Kind::SplitLong => Category::Long,
            _ => Category::Short,
        }
    }

    /// Whether the payload comes apart.
    pub(super) fn is_split(self) -> bool {
        matches!(self, Kind::LargeMedium | Kind::SplitLong)
    }
}

/// The match bits of a request or reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) handler: HandlerIndex,
    pub(super) nargs: usize,
    pub(super) kind: Kind,
    /// The requester's chunk that is answered into.
    pub(super) chunk: u32,
    pub(super) lid: u32,
    /// The byte of the credit machine.
    pub(super) credits: u8,
}

impl Head {
    #[inline]
    pub(super) fn bits(&self) -> u64 {
        u64::from(self.handler.0)
            | (self.nargs as u64) << 8
            | u64::from(u8::from(self.kind)) << 13
            | u64::from(self.chunk) << 16
            | u64::from(self.lid) << 32
            | u64::from(self.credits) << 56
    }

    #[inline]
    pub(super) fn of(bits: u64) -> Result<Self, RecordError> {
        let kind = (bits >> 13) as u8 & 7;
        let nargs = (bits >> 8) as usize & 31;
        if nargs > MAX_CARRIED {
            return Err(RecordError::Args(nargs));
        }
        Ok(Self {
            handler: HandlerIndex(bits as u8),
            nargs,
            kind: Kind::try_from(kind).map_err(|_| RecordError::Kind(kind))?,
            chunk: (bits >> 16) as u32 & 0xffff,
            lid: (bits >> 32 & LID_MASK) as u32,
            credits: (bits >> 56) as u8,
        })
    }
}

/// Arguments of a short that travel as immediate data.
pub(super) const HEADER_ARGS: usize = 2;
/// Bits of a packed long's length; the rest is its offset.
const PACKED_LEN_BITS: u32 = 16;
pub(super) const MOST_PACKED_OFFSET: u64 = u64::MAX >> PACKED_LEN_BITS;

/// Bytes of `nargs` arguments in a chunk, with the following bytes aligned.
#[inline]
pub(super) const fn args_bytes(nargs: usize) -> usize {
    (nargs * 4).next_multiple_of(8)
}

// The longest body without a payload is that of a split long.
const_assert!(8 + args_bytes(MAX_CARRIED) as u64 <= SHORTEST_MESSAGE);
// A piece's header has 32 bits for it.
const_assert!(LARGE_BYTES <= u32::MAX as usize);

/// How the bytes of a chunk are made up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Body {
    /// Bytes before the arguments.
    pub(super) before: usize,
    /// Arguments there.
    pub(super) args: usize,
    /// Bytes of the payload behind them.
    pub(super) payload: usize,
}

impl Body {
    #[inline]
    pub(super) fn of(kind: Kind, nargs: usize, payload: usize) -> Self {
        match kind {
            Kind::Short => Self {
                args: nargs.saturating_sub(HEADER_ARGS),
                ..Self::default()
            },
            Kind::Medium | Kind::PackedLong => Self {
                before: 0,
                args: nargs,
                payload,
            },
            Kind::LargeMedium => Self {
                args: nargs,
                ..Self::default()
            },
            Kind::SplitLong => Self {
                before: 8,
                args: nargs,
                payload: 0,
            },
            Kind::Empty | Kind::Refused => Self::default(),
        }
    }

    /// Where the payload begins.
    #[inline]
    pub(super) fn payload_at(&self) -> usize {
        self.before + args_bytes(self.args)
    }

    /// All of it, so that the next one lies aligned.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.payload_at() + self.payload).next_multiple_of(8)
    }
}

/// The immediate data of a message, from which the receiver reads the length of the payload and the
/// offset of a long.
///
/// The length of a split long is not in it.
#[inline]
pub(super) fn header(kind: Kind, args: &[u32], len: usize, offset: u64) -> u64 {
    match kind {
        Kind::Short => {
            let arg = |i: usize| u64::from(args.get(i).copied().unwrap_or(0));
            arg(0) | arg(1) << 32
        }
        Kind::Medium | Kind::LargeMedium => len as u64,
        Kind::PackedLong => offset << PACKED_LEN_BITS | len as u64,
        Kind::SplitLong => offset,
        Kind::Empty | Kind::Refused => 0,
    }
}

/// Length and offset out of the immediate data.
#[inline]
pub(super) fn extent(kind: Kind, header: u64) -> Result<(usize, u64), RecordError> {
    match kind {
        Kind::Medium | Kind::LargeMedium if header <= MAX_MEDIUM as u64 => Ok((header as usize, 0)),
        Kind::Medium | Kind::LargeMedium => Err(RecordError::Payload {
            len: header,
            max: MAX_MEDIUM as u64,
        }),
        Kind::PackedLong => Ok((
            (header & ((1 << PACKED_LEN_BITS) - 1)) as usize,
            header >> PACKED_LEN_BITS,
        )),
        Kind::SplitLong => Ok((0, header)),
        Kind::Short | Kind::Empty | Kind::Refused => Ok((0, 0)),
    }
}

/// Which part of a large medium's payload a put has: its immediate data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Bytes of the whole payload as it travels.
    pub(super) total: usize,
    /// Of them before this part.
    pub(super) offset: usize,
}

impl Piece {
    /// The part that the interface moves next.
    pub(super) fn of(transfer: &Transfer) -> Self {
        Self {
            total: transfer.total as usize,
            offset: (transfer.total - transfer.len) as usize,
        }
    }

    pub(super) fn header(self) -> u64 {
        self.total as u64 | (self.offset as u64) << 32
    }

    pub(super) fn from_header(header: u64) -> Self {
        Self {
            total: header as u32 as usize,
            offset: (header >> 32) as usize,
        }
    }
}

/// Match bits of an operation on the segment or of the data half of a message.
#[inline]
pub(super) fn operation(handle: u32, lid: u32) -> u64 {
    u64::from(handle) | u64::from(lid) << 24
}

/// The 24 bits that name an operation.
#[inline]
pub(super) fn handle_of(bits: u64) -> u32 {
    bits as u32 & 0xff_ffff
}

/// The number in the match bits of a data half.
#[inline]
pub(super) fn lid_of(bits: u64) -> u32 {
    (bits >> 24 & LID_MASK) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_bits_and_back() {
        for kind in [Kind::Short, Kind::LargeMedium, Kind::Refused] {
            for (chunk, lid, credits, nargs) in
                [(0, 0, 0, 0), (0xffff, 0xff_ffff, 255, MAX_CARRIED)]
            {
                let head = Head {
                    handler: HandlerIndex(255),
                    nargs,
                    kind,
                    chunk,
                    lid,
                    credits,
                };
                assert_eq!(Head::of(head.bits()), Ok(head));
            }
        }
        assert_eq!(Head::of(0), Err(RecordError::Kind(0)));
        assert_eq!(Head::of(0x3f00), Err(RecordError::Args(31)));
    }

    #[test]
    fn handles_and_numbers_keep_apart() {
        let bits = operation(0xff_fffe, 0xab_cdef);
        assert_eq!((handle_of(bits), lid_of(bits)), (0xff_fffe, 0xab_cdef));
    }

    #[test]
    fn pieces_come_back() {
        let (total, offset) = (LARGE_BYTES, LARGE_BYTES - 64);
        let piece = Piece { total, offset };
        assert_eq!(Piece::from_header(piece.header()), piece);
    }

    #[test]
    fn extents_come_back() {
        let header = header(Kind::PackedLong, &[], 1000, MOST_PACKED_OFFSET);
        assert_eq!(
            extent(Kind::PackedLong, header),
            Ok((1000, MOST_PACKED_OFFSET))
        );
        assert!(extent(Kind::Medium, MAX_MEDIUM as u64 + 1).is_err());
    }
}
