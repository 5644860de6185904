//! What travels between two ends of a link.
//!
//! ```text
//! byte 0        4        5       6      7         8                16
//!      | magic  | version| flags | class | reserved| epoch          |
//!      16       20       24               32               40
//!      | from   | to     | seq            | ack            |
//!      40               48       52       56       60      64
//!      | sack           | window | length | check  | reserved
//!      64 ... the payload
//! ```
//!
//! All fields are little-endian. `seq` is the number of this frame's payload, counted from 0 for
//! the life of the connection: 64 bits do not wrap. `ack` is the number that the sender of the frame expects
//! next, bit i of `sack` says that it has number `ack + 1 + i`, and `window` how many numbers from
//! `ack` on it takes. `check` is the CRC-32 of everything else. `epoch` is agreed on when the job
//! starts; whatever carries another is from another life and dropped.

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;

const MAGIC: u32 = u32::from_le_bytes(*b"ARGL");
const VERSION: u8 = 1;

/// The frame has a payload with a number.
pub(super) const DATA: u8 = 1;
/// The payload begins a message.
pub(super) const FIRST: u8 = 2;
/// The payload ends a message.
pub(super) const LAST: u8 = 4;
/// The sender wants an acknowledgement.
pub(super) const PROBE: u8 = 8;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Wire {
    magic: U32,
    version: u8,
    flags: u8,
    class: u8,
    reserved: u8,
    epoch: U64,
    from: U32,
    to: U32,
    seq: U64,
    ack: U64,
    sack: U64,
    window: U32,
    length: U32,
    check: U32,
    reserved_too: U32,
}

const_assert_eq!(size_of::<Wire>(), HEADER_BYTES);
const_assert_eq!(core::mem::offset_of!(Wire, epoch), 8);
const_assert_eq!(core::mem::offset_of!(Wire, seq), 24);
const_assert_eq!(core::mem::offset_of!(Wire, window), 48);
const_assert_eq!(core::mem::offset_of!(Wire, check), 56);

/// One end of one link: which pair of ranks, which class, which connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The rank that has this end.
    pub from: u32,
    /// The rank at the other end.
    pub to: u32,
    /// Which of the links between the two.
    pub class: u8,
    /// The connection.
    pub epoch: u64,
}

/// A header whose fields have been checked for what can be checked without the link's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// From whom to whom.
    pub address: Address,
    /// What the frame is.
    pub flags: u8,
    /// Number of the payload.
    pub seq: u64,
    /// Number expected next.
    pub ack: u64,
    /// Numbers beyond that are there.
    pub sack: u64,
    /// How many numbers from `ack` on are taken.
    pub window: u32,
}

/// Why a frame was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than a header, or not as long as the header says.
    #[error("the length is wrong")]
    Length,
    /// The bytes are not those that were sent.
    #[error("the checksum is wrong")]
    Check,
    /// Another protocol, version, or flags that do not exist or do not fit together.
    #[error("not a frame of this protocol")]
    Format,
    /// For another link or of another connection.
    #[error("of another connection")]
    Connection,
    /// It acknowledges what was not sent.
    #[error("acknowledges what was not sent")]
    Acknowledgement,
    /// Its number is beyond the window.
    #[error("beyond the window")]
    Window,
    /// Its part of a message does not follow the part before, or makes it too long.
    #[error("parts of messages that do not fit together")]
    Parts,
}

fn check(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    // The checksum's own place counts as zero.
    hasher.update(&bytes[..56]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[60..]);
    hasher.finalize()
}

/// Writes a frame into `out`, whose payload `fill` writes.
pub(super) fn write(
    header: &Header,
    length: usize,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) {
    let mut wire = Wire {
        magic: MAGIC.into(),
        version: VERSION,
        flags: header.flags,
        class: header.address.class,
        reserved: 0,
        epoch: header.address.epoch.into(),
        from: header.address.from.into(),
        to: header.address.to.into(),
        seq: header.seq.into(),
        ack: header.ack.into(),
        sack: header.sack.into(),
        window: header.window.into(),
        length: (length as u32).into(),
        check: 0.into(),
        reserved_too: 0.into(),
    };
    out.clear();
    out.resize(HEADER_BYTES + length, 0);
    fill(&mut out[HEADER_BYTES..]);
    out[..HEADER_BYTES].copy_from_slice(wire.as_bytes());
    wire.check = check(out).into();
    out[..HEADER_BYTES].copy_from_slice(wire.as_bytes());
}

/// Checks a frame and gives its header and payload.
///
/// # Errors
/// Why it cannot be used.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), FrameError> {
    let (wire, payload) = Wire::ref_from_prefix(bytes).map_err(|_| FrameError::Length)?;
    if wire.check.get() != check(bytes) {
        return Err(FrameError::Check);
    }
    if payload.len() as u64 != u64::from(wire.length.get()) {
        return Err(FrameError::Length);
    }
    let flags = wire.flags;
    let has_data = flags & DATA != 0;
    let fits = wire.magic.get() == MAGIC
        && wire.version == VERSION
        && wire.reserved == 0
        && wire.reserved_too.get() == 0
        && flags & !(DATA | FIRST | LAST | PROBE) == 0
        && has_data != payload.is_empty()
        && (has_data || flags & (FIRST | LAST) == 0);
    if !fits {
        return Err(FrameError::Format);
    }
    let header = Header {
        address: Address {
            from: wire.from.get(),
            to: wire.to.get(),
            class: wire.class,
            epoch: wire.epoch.get(),
        },
        flags,
        seq: wire.seq.get(),
        ack: wire.ack.get(),
        sack: wire.sack.get(),
        window: wire.window.get(),
    };
    Ok((header, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let header = Header {
            address: Address {
                from: 1,
                to: 2,
                class: 1,
                epoch: 77,
            },
            flags: DATA | FIRST,
            seq: 5,
            ack: 6,
            sack: 7,
            window: 8,
        };
        let mut out = Vec::new();
        write(&header, 3, &mut out, |payload| {
            payload.copy_from_slice(&[1, 2, 3]);
        });
        let (read, payload) = parse(&out).unwrap();
        assert_eq!((read, payload), (header, &[1, 2, 3][..]));
        out
    }

    #[test]
    fn a_frame_is_read_as_it_was_written_and_no_bit_may_change() {
        let frame = sample();
        for bit in 0..frame.len() * 8 {
            let mut broken = frame.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&broken).is_err(), "bit {bit}");
        }
        for len in 0..frame.len() {
            assert!(parse(&frame[..len]).is_err());
        }
    }

    proptest! {
        #[test]
        fn bytes_from_anywhere_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
