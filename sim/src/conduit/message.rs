//! What lies in a message of the simulated conduit.
//!
//! ```text
//! byte 0    1        2      3       4        8        16       24       32       40
//!      |kind| handler| nargs| zero  | credits| offset | length | op     | rest   |
//!      40 ... nargs arguments of 4 bytes, then the payload
//! ```
//!
//! All fields are little-endian. `credits` is how many of the receiver's requests the sender has handled since it
//! last said so. `offset` is a place in the segment of the receiver (long, put, get) or in the operation (data of a
//! get); `length` that of the payload, or of what a get wants; `op` the requester's name of a put or get, `rest` how
//! many bytes of it there are from `offset` on: the target looks at all of them before it takes the first.

use argonet_am::{Category, MAX_CARRIED};
use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes before the arguments.
pub(crate) const HEADER_BYTES: usize = 40;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u8)]
pub(super) enum Kind {
    /// A short active message.
    Short = 1,
    /// A medium.
    Medium = 2,
    /// A long.
    Long = 3,
    /// A chunk of a put.
    Put = 4,
    /// Asks for a chunk of a get.
    Get = 5,
    /// A chunk of a put lies in the segment.
    PutDone = 6,
    /// A chunk of a get.
    GetData = 7,
    /// Nothing but credits.
    Credit = 8,
    /// A request, put or get does not lie in the segment, which has `length` bytes.
    Refused = 9,
}

impl Kind {
    /// The category, if it is an active message.
    pub(super) fn category(self) -> Option<Category> {
        match self {
            Kind::Short => Some(Category::Short),
            Kind::Medium => Some(Category::Medium),
            Kind::Long => Some(Category::Long),
            _ => None,
        }
    }

    pub(super) fn of(category: Category) -> Self {
        match category {
            Category::Short => Kind::Short,
            Category::Medium => Kind::Medium,
            Category::Long => Kind::Long,
        }
    }

    /// Whether it travels in the class of requests, and uses a credit there.
    pub(super) fn is_request(self, in_request_class: bool) -> bool {
        match self {
            Kind::Short | Kind::Medium | Kind::Long => in_request_class,
            Kind::Put | Kind::Get => true,
            Kind::PutDone | Kind::GetData | Kind::Credit | Kind::Refused => false,
        }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Wire {
    kind: u8,
    handler: u8,
    nargs: u8,
    zero: u8,
    credits: U32,
    offset: U64,
    length: U64,
    op: U64,
    rest: U64,
}

const_assert_eq!(size_of::<Wire>(), HEADER_BYTES);
const_assert_eq!(core::mem::offset_of!(Wire, offset), 8);
const_assert_eq!(core::mem::offset_of!(Wire, op), 24);

/// The fields of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) handler: u8,
    pub(super) credits: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) op: u64,
    pub(super) rest: u64,
}

impl Head {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            handler: 0,
            credits: 0,
            offset: 0,
            length: 0,
            op: 0,
            rest: 0,
        }
    }

    /// The bytes before the payload.
    pub(super) fn write(&self, args: &[u32]) -> Vec<u8> {
        let wire = Wire {
            kind: self.kind.into(),
            handler: self.handler,
            nargs: args.len() as u8,
            zero: 0,
            credits: self.credits.into(),
            offset: self.offset.into(),
            length: self.length.into(),
            op: self.op.into(),
            rest: self.rest.into(),
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + args.len() * 4);
        bytes.extend_from_slice(wire.as_bytes());
        for arg in args {
            bytes.extend_from_slice(&arg.to_le_bytes());
        }
        bytes
    }
}

/// A message that was checked: its fields, its arguments, and where its payload begins.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) head: Head,
    args: [u32; MAX_CARRIED],
    nargs: usize,
    pub(super) payload_at: usize,
}

impl Parsed {
    pub(super) fn args(&self) -> &[u32] {
        &self.args[..self.nargs]
    }

    /// Checks a message; `None` if it is none, or does not belong into this class.
    pub(super) fn read(bytes: &[u8], in_request_class: bool) -> Option<Self> {
        let (wire, rest) = Wire::ref_from_prefix(bytes).ok()?;
        let kind = Kind::try_from(wire.kind).ok()?;
        let nargs = usize::from(wire.nargs);
        let belongs = kind.is_request(in_request_class) == in_request_class;
        let is_am = kind.category().is_some();
        if !belongs || wire.zero != 0 || nargs > MAX_CARRIED || (nargs > 0 && !is_am) {
            return None;
        }
        let mut args = [0; MAX_CARRIED];
        let payload = rest.get(nargs * 4..)?;
        for (arg, bytes) in args.iter_mut().zip(rest[..nargs * 4].chunks_exact(4)) {
            *arg = u32::from_le_bytes(bytes.try_into().ok()?);
        }
        let length = wire.length.get();
        let fits = match kind {
            Kind::Medium | Kind::Long | Kind::Put | Kind::GetData => payload.len() as u64 == length,
            Kind::Short | Kind::Get | Kind::PutDone | Kind::Credit | Kind::Refused => {
                payload.is_empty()
            }
        };
        let head = Head {
            kind,
            handler: wire.handler,
            credits: wire.credits.get(),
            offset: wire.offset.get(),
            length,
            op: wire.op.get(),
            rest: wire.rest.get(),
        };
        fits.then_some(Self {
            head,
            args,
            nargs,
            payload_at: HEADER_BYTES + nargs * 4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let head = Head {
            handler: 200,
            credits: 3,
            offset: 4096,
            length: 5,
            ..Head::new(Kind::Medium)
        };
        let mut bytes = head.write(&[1, u32::MAX]);
        bytes.extend_from_slice(&[1, 2, 3, 4, 5]);
        let read = Parsed::read(&bytes, true).unwrap();
        assert_eq!((read.head, read.args()), (head, &[1, u32::MAX][..]));
        assert_eq!(bytes[read.payload_at..], [1, 2, 3, 4, 5]);
        for len in 0..bytes.len() {
            assert!(Parsed::read(&bytes[..len], true).is_none(), "{len}");
        }
        let put = Head::new(Kind::Put).write(&[]);
        assert!(Parsed::read(&put, true).is_some() && Parsed::read(&put, false).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_fit(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..12) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Some(read) = Parsed::read(&bytes, false) {
                prop_assert!(read.payload_at <= bytes.len());
            }
        }
    }
}
