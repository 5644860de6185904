//! A payload that is written before it is copied: its peer reads while this rank copies.

use super::SendStream;
use crate::channel::stream::pieces::Pieces;
use crate::channel::stream::ring::Ring;
use argonet_segment::SharedBytes;
use core::ptr::NonNull;

/// A payload whose place in the ring is taken and not filled.
#[derive(Debug)]
pub(super) struct Lent {
    /// Position in the ring.
    at: u64,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: only the thread that lends it reads it, before the call that lends it ends.
unsafe impl Send for Lent {}

impl SendStream {
    /// Adds a head, and a payload that [`keep_lent`](Self::keep_lent) copies.
    #[inline]
    pub(super) fn lend(&mut self, head: &[u8], bytes: SharedBytes<'_>) {
        assert!(self.lent.is_none(), "one payload at a time");
        let len = bytes.len();
        let at = self.ring.push_head(head, len);
        self.head += (head.len() + len) as u64;
        let start = NonNull::new(bytes.as_ptr().cast_mut());
        self.lent = start.map(|start| Lent { at, start, len });
    }

    /// Whether the payload that was added last is only lent.
    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Copies the payload that was added last, if it is only lent.
    ///
    /// # Safety
    /// The payload can still be read.
    #[inline]
    pub(crate) unsafe fn keep_lent(&mut self) {
        if let Some(Lent { at, start, len }) = self.lent.take() {
            // SAFETY: the caller promises it.
            let bytes = unsafe { SharedBytes::from_raw(start, len) };
            self.ring.fill(at, bytes);
        }
    }
}

/// Adds the places of `len` bytes from a position of the ring on, of which some may be lent.
///
/// Of the parts of a stream: another borrow of all of it would end the pointers to its other parts.
#[inline]
pub(super) fn ring_pieces(
    (ring, lent): (&mut Ring, Option<&Lent>),
    from: u64,
    len: usize,
    out: &mut Pieces,
) {
    let until = from + len as u64;
    let Some(lent) = lent.filter(|lent| lent.at < until) else {
        ring.pieces(from, len, out);
        return;
    };
    // It is the last that was added.
    assert!(until <= lent.at + lent.len as u64);
    let begin = lent.at.max(from);
    let place = lent.start.as_ptr().wrapping_add((begin - lent.at) as usize);
    ring.pieces(from, (begin - from) as usize, out);
    out.add(place, (until - begin) as usize);
}
