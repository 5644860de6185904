//! The payload that follows a head: nothing, bytes that are copied, or bytes that stay where they
//! are.

use crate::channel::frame::{Fields, Kind};
use crate::wire::UserBytes;
use argonet_segment::SharedBytes;
use core::ptr::NonNull;

/// A payload that does not lie in the ring.
#[derive(Debug)]
pub(crate) enum Extent {
    /// With the user, until the peer has taken it.
    User(UserBytes),
    /// A copy.
    Owned(Box<[u8]>, usize),
    /// In this rank's segment, for a get.
    Segment(NonNull<u8>, usize),
}

// SAFETY: the segment stays mapped as long as the conduit, and is read through the kernel alone.
unsafe impl Send for Extent {}

impl Extent {
    pub(crate) fn len(&self) -> usize {
        match self {
            Extent::User(bytes) => bytes.len(),
            Extent::Owned(_, len) | Extent::Segment(_, len) => *len,
        }
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        match self {
            Extent::User(bytes) => bytes.as_ptr().cast_mut(),
            Extent::Owned(bytes, _) => bytes.as_ptr().cast_mut(),
            Extent::Segment(start, _) => start.as_ptr(),
        }
    }
}

/// The payload that follows a head.
pub(crate) enum Body<'a> {
    /// Nothing.
    Empty,
    /// Bytes that are copied.
    Copy(SharedBytes<'a>),
    /// The same, but written from where they lie until they are, by
    /// [`SendStream::keep_lent`](super::SendStream::keep_lent).
    Lend(SharedBytes<'a>),
    /// Bytes that stay where they are.
    Stay(Extent),
    /// The same, and they may leave the stream: the kind and the fields of the head.
    Move(Extent, Kind, Fields),
}
