//! Frames of which there are many, seen at once to be in order.
//!
//! [`Frame::read`](super::Frame::read) reads all other frames.

use super::{HEADER_BYTES, Kind, MAX_FRAGMENT, WANTS_ACK};
use argonet_am::MAX_CARRIED;
use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The flag in the first word of a header.
const WANTS_ACK_BIT: u32 = (WANTS_ACK as u32) << 24;

/// The header of a frame, by words.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Header {
    /// Kind, handler, arguments and flags.
    begin: U32,
    length: U32,
    position: U32,
}

const_assert_eq!(size_of::<Header>(), HEADER_BYTES);

/// The head of a put.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct PutHead {
    header: Header,
    offset: U64,
    rest: U64,
}

const_assert_eq!(size_of::<PutHead>(), HEADER_BYTES + Kind::Put.fields());

/// A put whose payload is in the stream and all of which is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WholePut {
    pub(crate) wants_ack: bool,
    pub(crate) length: usize,
    pub(crate) offset: u64,
    pub(crate) rest: u64,
}

impl WholePut {
    /// Bytes before the payload.
    pub(crate) const HEAD: usize = size_of::<PutHead>();

    /// Its head.
    #[inline]
    pub(crate) fn head(&self, position: u64) -> [u8; Self::HEAD] {
        let header = Header {
            begin: (Kind::Put as u32 | (u32::from(self.wants_ack) * WANTS_ACK_BIT)).into(),
            length: (self.length as u32).into(),
            position: (position as u32).into(),
        };
        zerocopy::transmute!(PutHead {
            header,
            offset: self.offset.into(),
            rest: self.rest.into(),
        })
    }

    /// The put that begins there, at a position of the stream.
    #[inline]
    pub(crate) fn read(bytes: &[u8], position: u32) -> Option<Self> {
        let (head, payload) = PutHead::ref_from_prefix(bytes).ok()?;
        let (begin, length) = (head.header.begin.get(), head.header.length.get() as usize);
        let put = Self {
            wants_ack: begin & WANTS_ACK_BIT != 0,
            length,
            offset: head.offset.get(),
            rest: head.rest.get(),
        };
        let is_put = begin & !WANTS_ACK_BIT == Kind::Put as u32;
        let is_next = head.header.position.get() == position;
        let is_whole = length.wrapping_sub(1) < MAX_FRAGMENT && length <= payload.len();
        (is_put && is_next && is_whole && length as u64 <= put.rest).then_some(put)
    }
}

/// A short request all of which is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WholeShort {
    pub(crate) wants_ack: bool,
    pub(crate) handler: u8,
    pub(crate) nargs: usize,
}

impl WholeShort {
    /// The request that begins there, at a position of the stream.
    #[inline]
    pub(crate) fn read(bytes: &[u8], position: u32) -> Option<Self> {
        let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
        let begin = header.begin.get();
        let short = Self {
            wants_ack: begin & WANTS_ACK_BIT != 0,
            handler: (begin >> 8) as u8,
            nargs: (begin >> 16 & 0xff) as usize,
        };
        let is_short = begin & 0xff == Kind::ShortRequest as u32 && begin >> 25 == 0;
        let is_next = header.length.get() == 0 && header.position.get() == position;
        let is_whole = short.nargs <= MAX_CARRIED && 4 * short.nargs <= rest.len();
        (is_short && is_next && is_whole).then_some(short)
    }

    /// All its bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + 4 * self.nargs
    }

    /// The arguments, out of its bytes.
    #[inline]
    pub(crate) fn args<'a>(&self, bytes: &[u8], room: &'a mut [u32; MAX_CARRIED]) -> &'a [u32] {
        let args = bytes[HEADER_BYTES..self.len()].as_chunks::<4>().0;
        let room = &mut room[..self.nargs];
        for (arg, bytes) in room.iter_mut().zip(args) {
            *arg = u32::from_le_bytes(*bytes);
        }
        room
    }
}
