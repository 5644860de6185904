//! The four messages of a handshake, each of fixed size.
//!
//! ```text
//! open       0        8        10          26       58         62        66          68           76        84     116
//!            | magic  | version| job       | nonce  | connector| acceptor| connection| incarnation| received| code |
//! challenge  116      148      180
//!            | nonce  | code   |
//! proof      180      212
//!            | code   |
//! verdict    212      213         221      229      261
//!            | verdict| incarnation| received| code |
//! ```
//!
//! Offsets are those in the transcript, which is the four messages one after the other. All numbers
//! are little-endian. A code is BLAKE3, keyed for its kind of message, of everything in the
//! transcript before it.

use super::super::key::IDENTITY_BYTES;
use core::mem::offset_of;
use core::ops::Range;
use num_enum::{IntoPrimitive, TryFromPrimitive};
use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of every connection.
pub(super) const MAGIC: [u8; 8] = *b"argotcp\n";
/// The version of the handshake and of the frames after it.
pub(super) const VERSION: u16 = 1;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes of an authentication code.
pub(super) const CODE_BYTES: usize = 32;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(super) struct Open {
    pub(super) magic: [u8; 8],
    pub(super) version: U16,
    pub(super) job: [u8; IDENTITY_BYTES],
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) connector: U32,
    pub(super) acceptor: U32,
    pub(super) connection: U16,
    pub(super) incarnation: U64,
    pub(super) received: U64,
    pub(super) code: [u8; CODE_BYTES],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(super) struct Answer {
    pub(super) verdict: u8,
    pub(super) incarnation: U64,
    pub(super) received: U64,
    pub(super) code: [u8; CODE_BYTES],
}

/// Where the messages lie in the transcript.
pub(super) const OPEN: Range<usize> = 0..116;
pub(super) const CHALLENGE: Range<usize> = 116..180;
pub(super) const PROOF: Range<usize> = 180..212;
pub(super) const VERDICT: Range<usize> = 212..261;

/// Bytes of all messages of a handshake, in both directions.
pub const HANDSHAKE_BYTES: usize = VERDICT.end;

/// Where the fields end that are looked at before any code is.
pub(super) const MAGIC_END: usize = offset_of!(Open, version);
pub(super) const VERSION_END: usize = offset_of!(Open, job);
pub(super) const JOB_END: usize = offset_of!(Open, nonce);

const_assert_eq!(MAGIC_END, 8);
const_assert_eq!(VERSION_END, 10);
const_assert_eq!(JOB_END, 26);
const_assert_eq!(offset_of!(Open, connector), 58);
const_assert_eq!(offset_of!(Open, connection), 66);
const_assert_eq!(offset_of!(Open, incarnation), 68);
const_assert_eq!(offset_of!(Open, code), 84);
const_assert_eq!(size_of::<Open>(), OPEN.end - OPEN.start);
const_assert_eq!(NONCE_BYTES + CODE_BYTES, CHALLENGE.end - CHALLENGE.start);
const_assert_eq!(CODE_BYTES, PROOF.end - PROOF.start);
const_assert_eq!(size_of::<Answer>(), VERDICT.end - VERDICT.start);

/// The acceptor's answer to a peer that has proved to be of the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub enum Verdict {
    /// The connection is used from now on.
    Accepted = 1,
    /// Two connections have crossed, and the acceptor's is the one that stays.
    Crossing = 2,
    /// The acceptor has seen this or a later incarnation; the verdict says which.
    Stale = 3,
    /// The acceptor takes no further connection of this number.
    Limit = 4,
}
