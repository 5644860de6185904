//! The format of a rail's bytes: a stream of frames.
//!
//! ```text
//! byte 0     1        2      3      4         8          12
//!      |kind | handler| nargs| flags| length  | position |
//!      12 ... the fields of the kind, nargs arguments of 4 bytes, then `length` bytes of payload
//!
//! fields  control       taken (8)   handled (8)   lent (2)    wanted (2)
//!         system        word (8)
//!         long          offset (8)
//!         put           offset (8)  rest (8)
//!         get           offset (8)  rest (8)      op (4)  wanted (4)
//!         got           at (8)      op (4)        0 (4)
//!         refused       offset (8)  len (8)       segment (8)  position (8)  op (4)  0 (4)
//!         body          offset (8)  rest (8)      position (8)  op (4)  kind (4)
//!         close         none
//!         closed        none
//! ```
//!
//! All fields are little-endian. Every frame but *control*, *system*, *body*, *close* and *closed*
//! belongs to the stream from one rank to another.
//!
//! The stream goes on over all rails between the two: its bytes are counted from 0, and
//! `position` holds the low 32 bits of the number of the frame's first byte. So the receiver
//! recognizes bytes that arrive a second time after a rail was made again, and missing bytes, too.
//! Control frames are outside of the stream and never repeated: `taken` says up to which byte the
//! stream of the frame's receiver has been taken, `handled` how many bytes of its requests, as
//! [`charge`] counts them, have been handled since the beginning, `lent` the low bits of how many
//! credits it has been lent in addition to its share, and `wanted` how many the frame's sender
//! would like to be lent. A *system* frame is outside of the stream, too: a question or an answer
//! of the [system queue](argonet_am::system_queue). *Close* and *closed* are outside of it as well:
//! the first asks the peer to close the rails between the two as nothing is under way, the second
//! says that its sender does so with the end of this frame.
//!
//! The head of a put or of data may say that its payload is *beside* the stream: it does not follow
//! the head, although positions go on as if it did, but comes as a *body* on any rail between the
//! two, before the head or after it. A body is outside of the stream, and repeats the data of its
//! head: the position, the fields, and the kind.

mod quick;

pub(crate) use quick::{WholePut, WholeShort};

use argonet_am::record::RecordError;
use argonet_am::{Category, MAX_CARRIED, MAX_MEDIUM, MessageClass};
use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 12;

/// Bytes before the payload, at most: header, longest fields, and arguments, which do not come
/// together.
pub(crate) const LONGEST_HEAD: usize = HEADER_BYTES + 40 + 4 * MAX_CARRIED;

/// The longest payload of a put or of the data of a get.
pub(crate) const MAX_FRAGMENT: usize = 1 << 20;

/// The sender wants the frame to be acknowledged soon.
const WANTS_ACK: u8 = 1;

/// The payload comes as a body.
const BESIDE: u8 = 2;

/// The sender has ended an epoch of its credits.
const EPOCH: u8 = 4;

/// Where in a head that is.
pub(crate) const FLAGS_AT: u64 = 3;
pub(crate) const BESIDE_FLAG: u8 = BESIDE;

/// Kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Reports bytes taken and handled, credits lent and wanted.
    Control = 1,
    /// A short request.
    ShortRequest = 2,
    /// A medium request.
    MediumRequest = 3,
    /// A long request.
    LongRequest = 4,
    /// A short reply.
    ShortReply = 5,
    /// A medium reply.
    MediumReply = 6,
    /// A long reply.
    LongReply = 7,
    /// A part of a put; taking it completes it.
    Put = 8,
    /// Asks for a part of a get.
    Get = 9,
    /// The answer to a `Get`: that part.
    Got = 10,
    /// A request, put or get does not lie in the segment.
    Refused = 11,
    /// The payload of a put or of data whose head says that it is beside the stream.
    Body = 12,
    /// A message of the system queue.
    System = 13,
    /// Asks for the end of all rails.
    Close = 14,
    /// Is the end of all rails.
    Closed = 15,
}

impl Kind {
    pub(crate) fn of(class: MessageClass, category: Category) -> Self {
        match (class, category) {
            (MessageClass::Request, Category::Short) => Kind::ShortRequest,
            (MessageClass::Request, Category::Medium) => Kind::MediumRequest,
            (MessageClass::Request, Category::Long) => Kind::LongRequest,
            (MessageClass::Reply, Category::Short) => Kind::ShortReply,
            (MessageClass::Reply, Category::Medium) => Kind::MediumReply,
            (MessageClass::Reply, Category::Long) => Kind::LongReply,
        }
    }

    /// MessageClass and category of an active message.
    pub(crate) fn message(self) -> Option<(MessageClass, Category)> {
        Some(match self {
            Kind::ShortRequest => (MessageClass::Request, Category::Short),
            Kind::MediumRequest => (MessageClass::Request, Category::Medium),
            Kind::LongRequest => (MessageClass::Request, Category::Long),
            Kind::ShortReply => (MessageClass::Reply, Category::Short),
            Kind::MediumReply => (MessageClass::Reply, Category::Medium),
            Kind::LongReply => (MessageClass::Reply, Category::Long),
            _ => return None,
        })
    }

    /// Bytes of its fields.
    pub(crate) const fn fields(self) -> usize {
        match self {
            Kind::Put | Kind::Got => 16,
            Kind::Control => 20,
            Kind::LongRequest | Kind::LongReply | Kind::System => 8,
            Kind::Get => 24,
            Kind::Refused => 40,
            Kind::Body => 32,
            _ => 0,
        }
    }

    /// Whether it belongs to no stream.
    #[inline]
    pub(crate) const fn is_outside(self) -> bool {
        matches!(
            self,
            Kind::Control | Kind::Body | Kind::System | Kind::Close | Kind::Closed
        )
    }

    /// Whether its payload may be beside the stream.
    pub(crate) const fn may_be_beside(self) -> bool {
        matches!(self, Kind::Put | Kind::Got)
    }

    /// Whether it asks for an answer, for which its receiver keeps room: it needs a grant.
    pub(crate) const fn is_request(self) -> bool {
        matches!(
            self,
            Kind::ShortRequest | Kind::MediumRequest | Kind::LongRequest | Kind::Get
        )
    }

    /// Whether its payload goes to a place of its own.
    pub(crate) const fn is_placed(self) -> bool {
        matches!(
            self,
            Kind::LongRequest | Kind::LongReply | Kind::Put | Kind::Got | Kind::Body
        )
    }

    /// The longest payload.
    pub(crate) const fn most(self, long_bytes: usize) -> usize {
        match self {
            Kind::MediumRequest | Kind::MediumReply => MAX_MEDIUM,
            Kind::LongRequest | Kind::LongReply => long_bytes,
            Kind::Put | Kind::Got | Kind::Body => MAX_FRAGMENT,
            _ => 0,
        }
    }
}

/// Bytes of the grant that a request takes: those that its receiver keeps until it can handle it.
pub(crate) const fn charge(kind: Kind, nargs: usize, len: usize) -> usize {
    let kept = if matches!(kind, Kind::MediumRequest) {
        len
    } else {
        0
    };
    HEADER_BYTES + kind.fields() + 4 * nargs + kept
}

/// The charge of the largest request.
pub(crate) const LARGEST_CHARGE: usize = charge(Kind::MediumRequest, MAX_CARRIED, MAX_MEDIUM);

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Wire {
    kind: u8,
    handler: u8,
    nargs: u8,
    flags: u8,
    length: U32,
    position: U32,
}

const_assert_eq!(size_of::<Wire>(), HEADER_BYTES);
const_assert_eq!(core::mem::offset_of!(Wire, length), 4);
const_assert_eq!(core::mem::offset_of!(Wire, position), 8);

/// Fields after the header, by kind; see the module's introduction.
///
/// Fields that a kind does not have are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fields {
    /// Place in the segment, or in the operation, bytes taken, or the word of a system frame.
    pub(crate) offset: u64,
    /// Bytes from there to the end of the operation, or bytes handled.
    pub(crate) rest: u64,
    /// Bytes of the segment that was missed.
    pub(crate) segment: u64,
    /// Position of the frame that is refused, or whose payload it is.
    pub(crate) position: u64,
    /// The requester's name of a get, 0 is none; or credits lent.
    pub(crate) op: u32,
    /// Bytes that a get wants, credits that are wanted, or the kind of the head that a body belongs
    /// to.
    pub(crate) wanted: u32,
}

/// The bytes of a frame before its payload.
#[derive(Debug)]
pub(crate) struct HeadBytes {
    bytes: [u8; LONGEST_HEAD],
    len: usize,
}

impl HeadBytes {
    /// Writes them; the position is 0 until [`set_position`](Self::set_position).
    #[inline(always)]
    pub(crate) fn new(
        kind: Kind,
        handler: u8,
        args: &[u32],
        length: usize,
        fields: &Fields,
    ) -> Self {
        let wire = Wire {
            kind: kind.into(),
            handler,
            nargs: args.len() as u8,
            flags: 0,
            length: (length as u32).into(),
            position: 0.into(),
        };
        let mut this = Self {
            bytes: [0; LONGEST_HEAD],
            len: 0,
        };
        this.add(wire.as_bytes());
        match kind {
            Kind::LongRequest | Kind::LongReply | Kind::System => this.add_u64(fields.offset),
            Kind::Put => {
                this.add_u64(fields.offset);
                this.add_u64(fields.rest);
            }
            Kind::Control => {
                this.add_u64(fields.offset);
                this.add_u64(fields.rest);
                this.add_u32((fields.op & 0xffff) | (fields.wanted << 16));
            }
            Kind::Get => {
                this.add_u64(fields.offset);
                this.add_u64(fields.rest);
                this.add_u32(fields.op);
                this.add_u32(fields.wanted);
            }
            Kind::Got => {
                this.add_u64(fields.offset);
                this.add_u32(fields.op);
                this.add_u32(0);
            }
            Kind::Refused => {
                this.add_u64(fields.offset);
                this.add_u64(fields.rest);
                this.add_u64(fields.segment);
                this.add_u64(fields.position);
                this.add_u32(fields.op);
                this.add_u32(0);
            }
            Kind::Body => {
                this.add_u64(fields.offset);
                this.add_u64(fields.rest);
                this.add_u64(fields.position);
                this.add_u32(fields.op);
                this.add_u32(fields.wanted);
            }
            _ => {}
        }
        for arg in args {
            this.add_u32(*arg);
        }
        this
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline]
    fn add_u32(&mut self, value: u32) {
        self.add(&value.to_le_bytes());
    }

    #[inline]
    fn add_u64(&mut self, value: u64) {
        self.add(&value.to_le_bytes());
    }

    /// Says where in the stream the frame begins.
    #[inline]
    pub(crate) fn set_position(&mut self, position: u64) {
        self.bytes[8..12].copy_from_slice(&(position as u32).to_le_bytes());
    }

    /// Asks the receiver to acknowledge the frame soon.
    #[inline]
    pub(crate) fn request_ack(&mut self) {
        self.bytes[3] |= WANTS_ACK;
    }

    /// Says that an epoch has ended; of control frames.
    pub(crate) fn end_epoch(&mut self) {
        self.bytes[3] |= EPOCH;
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A head that was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) handler: u8,
    pub(crate) nargs: usize,
    /// The sender waits for the acknowledgement.
    pub(crate) wants_ack: bool,
    /// The sender has ended an epoch.
    pub(crate) epoch: bool,
    /// The payload comes as a body.
    pub(crate) beside: bool,
    /// Bytes of the payload.
    pub(crate) length: usize,
    /// Low bits of its place in the stream.
    pub(crate) position: u32,
    pub(crate) fields: Fields,
}

impl Frame {
    /// Bytes before the arguments.
    pub(crate) fn args_at(&self) -> usize {
        HEADER_BYTES + self.kind.fields()
    }

    /// Bytes before the payload.
    #[inline]
    pub(crate) fn head_len(&self) -> usize {
        HEADER_BYTES + self.kind.fields() + 4 * self.nargs
    }

    /// All its bytes, as the stream counts them.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head_len() + self.length
    }

    /// Its bytes on the rail.
    #[inline]
    pub(crate) fn here(&self) -> usize {
        if self.beside {
            self.head_len()
        } else {
            self.len()
        }
    }

    /// The head that a body belongs to.
    ///
    /// # Errors
    /// There is none that it could be.
    pub(crate) fn of_body(&self) -> Result<Self, RecordError> {
        let of = u8::try_from(self.fields.wanted).ok();
        let kind = of.and_then(|kind| Kind::try_from(kind).ok());
        let kind = kind.filter(|kind| kind.may_be_beside() && self.length > 0);
        let kind = kind.ok_or(RecordError::Kind(Kind::Body.into()))?;
        let fields = Fields {
            position: 0,
            wanted: 0,
            ..self.fields
        };
        Ok(Self {
            kind,
            fields,
            beside: true,
            position: self.fields.position as u32,
            ..*self
        })
    }

    /// Bytes that are kept when it is set aside: the payload of a long is in its place.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        if self.kind.is_placed() {
            self.head_len()
        } else {
            self.len()
        }
    }

    /// Bytes of the grant that it takes.
    #[inline]
    pub(crate) fn charge(&self) -> usize {
        charge(self.kind, self.nargs, self.length)
    }

    /// Checks the head of a frame; `None` while it is not all there.
    ///
    /// Longs have at most `long_bytes`.
    ///
    /// # Errors
    /// The frame is impossible.
    #[inline]
    pub(crate) fn read(bytes: &[u8], long_bytes: usize) -> Result<Option<Self>, RecordError> {
        let Ok((wire, rest)) = Wire::ref_from_prefix(bytes) else {
            return Ok(None);
        };
        let unknown = RecordError::Kind(wire.kind);
        let kind = Kind::try_from(wire.kind).map_err(|_| unknown)?;
        let (nargs, length) = (usize::from(wire.nargs), wire.length.get() as usize);
        if nargs > MAX_CARRIED {
            return Err(RecordError::Args(nargs));
        }
        let max = kind.most(long_bytes);
        if length > max {
            let (len, max) = (length as u64, max as u64);
            return Err(RecordError::Payload { len, max });
        }
        let is_message = kind.message().is_some();
        let beside = wire.flags & BESIDE != 0;
        let epoch = wire.flags & EPOCH != 0;
        if wire.flags & !(WANTS_ACK | BESIDE | EPOCH) != 0
            || (epoch && kind != Kind::Control)
            || (beside && (!kind.may_be_beside() || length == 0))
            || (kind == Kind::Body && length == 0)
            || (!is_message && (nargs != 0 || wire.handler != 0))
        {
            return Err(unknown);
        }
        if rest.len() < kind.fields() + 4 * nargs {
            return Ok(None);
        }
        let fields = if kind.fields() == 0 {
            Fields::default()
        } else {
            read_fields(kind, rest).ok_or(unknown)?
        };
        Ok(Some(Self {
            kind,
            handler: wire.handler,
            nargs,
            wants_ack: wire.flags & WANTS_ACK != 0,
            epoch,
            beside,
            length,
            position: wire.position.get(),
            fields,
        }))
    }

    /// The arguments, out of the frame's bytes.
    #[inline]
    pub(crate) fn args<'a>(&self, bytes: &[u8], room: &'a mut [u32; MAX_CARRIED]) -> &'a [u32] {
        let args = bytes.get(self.args_at()..self.head_len()).unwrap_or(&[]);
        for (arg, bytes) in room.iter_mut().zip(args.chunks_exact(4)) {
            *arg = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        &room[..self.nargs]
    }
}

/// The fields of a kind that has some; `None` if they are not all there, or a reserved one is not
/// zero.
fn read_fields(kind: Kind, bytes: &[u8]) -> Option<Fields> {
    let u64_at = |at: usize| {
        U64::ref_from_prefix(bytes.get(at..)?)
            .ok()
            .map(|(v, _)| v.get())
    };
    let u32_at = |at: usize| {
        U32::ref_from_prefix(bytes.get(at..)?)
            .ok()
            .map(|(v, _)| v.get())
    };
    let mut fields = Fields {
        offset: u64_at(0)?,
        ..Fields::default()
    };
    match kind {
        Kind::Put => fields.rest = u64_at(8)?,
        Kind::Control => {
            fields.rest = u64_at(8)?;
            let credits = u32_at(16)?;
            fields.op = credits & 0xffff;
            fields.wanted = credits >> 16;
        }
        Kind::Get => {
            fields.rest = u64_at(8)?;
            fields.op = u32_at(16)?;
            fields.wanted = u32_at(20)?;
        }
        Kind::Got => {
            fields.op = u32_at(8)?;
            (u32_at(12)? == 0).then_some(())?;
        }
        Kind::Refused => {
            fields.rest = u64_at(8)?;
            fields.segment = u64_at(16)?;
            fields.position = u64_at(24)?;
            fields.op = u32_at(32)?;
            (u32_at(36)? == 0).then_some(())?;
        }
        Kind::Body => {
            fields.rest = u64_at(8)?;
            fields.position = u64_at(16)?;
            fields.op = u32_at(24)?;
            fields.wanted = u32_at(28)?;
        }
        _ => {}
    }
    Some(fields)
}

#[cfg(test)]
mod tests;
