//! Payloads that leave the stream: which may, on which rail, and how they go on when that is lost.

use super::SendStream;
use super::extents::Route;
use crate::channel::frame::{BESIDE_FLAG, FLAGS_AT, Fields, HeadBytes, Kind};
use crate::channel::stream::bodies::MOST_BODIES;
use crate::channel::stream::pieces::Pieces;

/// Payloads that wait for a further rail at most while their heads go on in the stream.
const MOST_WAITING: usize = 1024;

/// The first payloads that the peer has not taken, of which any may be written beside the stream;
/// later ones wait until it has taken some.
const MOST_UNTAKEN: usize = 4096;

// The peer keeps a head or a body for each payload that has left the stream.
static_assertions::const_assert!(MOST_UNTAKEN + MOST_WAITING <= MOST_BODIES);

/// A payload that travels beside the stream, over some rail.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Where its frame begins in the stream.
    pub(crate) position: u64,
    head: HeadBytes,
    payload: *mut u8,
    len: usize,
    /// Bytes that are written.
    at: usize,
}

// SAFETY: a rail reads the payload as pieces are read, and it is kept as long as the claim is under
// way.
unsafe impl Send for Claim {}

impl Claim {
    /// Whether some of it is written.
    pub(crate) fn has_begun(&self) -> bool {
        self.at > 0
    }

    /// Bytes that are not written.
    pub(crate) fn left(&self) -> usize {
        self.head.as_bytes().len() + self.len - self.at
    }

    pub(crate) fn pieces(&self, out: &mut Pieces) {
        let head = self.head.as_bytes();
        let of_head = self.at.min(head.len());
        out.add(head[of_head..].as_ptr().cast_mut(), head.len() - of_head);
        let of_payload = self.at - of_head;
        let payload = self.payload.wrapping_add(of_payload);
        out.add(payload, self.len - of_payload);
    }

    /// So many bytes were written.
    ///
    /// Whether that is all.
    pub(crate) fn wrote(&mut self, bytes: usize) -> bool {
        self.at += bytes;
        self.left() == 0
    }
}

impl SendStream {
    /// How many rails there are besides the stream's, and whether payloads leave the stream
    /// for them.
    pub(crate) fn set_rails(&mut self, rails: usize, is_striping: bool) {
        self.rails = rails;
        self.is_striping = is_striping && rails > 0;
    }

    /// Whether a payload that has left the stream waits for a rail.
    #[inline]
    pub(crate) fn waits_for_rail(&self) -> bool {
        self.extents.waiting() > 0 || self.own.is_some()
    }

    /// Has all payloads wait for a further rail that may leave the stream, so that what lies behind
    /// them in it need not wait.
    #[cold]
    pub(crate) fn leave_stream(&mut self) {
        let (first, len) = (self.extents.next_index(), self.extents.len());
        let is_in_stream = |index: &usize| {
            let placed = self.extents.get(*index);
            placed.is_some_and(|placed| placed.route() == Route::Stream)
        };
        // Those before one that has left did so before.
        let count = (first..len).rev().take_while(is_in_stream).count();
        for index in len - count..len {
            let Some(placed) = self.extents.get(index) else {
                return;
            };
            if self.extents.waiting() >= MOST_WAITING {
                return;
            }
            if placed.may_leave(self.boundary, self.stays_until) {
                let head = placed.begin - placed.before;
                *self.ring.byte_mut(head + FLAGS_AT) |= BESIDE_FLAG;
                self.extents.wait(index);
            }
        }
    }

    /// The next payload that some rail must carry: its length, and that of all from there on.
    pub(crate) fn next_to_stripe(&self) -> Option<(usize, u64)> {
        let index = self.next_striped()?;
        let (first, last) = (self.extents.get(index)?, self.extents.last()?);
        let behind_last = last.before + last.extent.len() as u64;
        Some((first.extent.len(), behind_last - first.before))
    }

    fn next_striped(&self) -> Option<usize> {
        self.first_to_stripe().filter(|index| *index < MOST_UNTAKEN)
    }

    fn first_to_stripe(&self) -> Option<usize> {
        if self.extents.waiting() > 0 {
            return self.extents.first_waiting();
        }
        if !self.is_striping {
            return None;
        }
        let mut free = self.extents.rest();
        let found = free.position(|placed| placed.may_leave(self.boundary, self.stays_until));
        found.map(|index| self.extents.next_index() + index)
    }

    /// The next payload stays in the stream.
    ///
    /// False if it has left it already.
    pub(crate) fn keep_next(&mut self) -> bool {
        let index = self.next_striped();
        match index.and_then(|index| self.extents.get(index)) {
            Some(placed) if self.extents.waiting() == 0 => {
                self.stays_until = placed.end();
                true
            }
            _ => false,
        }
    }

    /// Gives the next payload to a rail.
    ///
    /// Until it is written ([`wrote_body`](Self::wrote_body)) or the rail is lost
    /// ([`lose_rail`](Self::lose_rail)), it stays where it is.
    pub(crate) fn claim(&mut self, rail: u16) -> Option<Claim> {
        let index = self.next_striped()?;
        let placed = self.extents.get(index)?;
        let (kind, fields) = placed.movable?;
        if placed.route() != Route::Waits {
            let head = placed.begin - placed.before;
            *self.ring.byte_mut(head + FLAGS_AT) |= BESIDE_FLAG;
        }
        let len = placed.extent.len();
        let fields = Fields {
            position: placed.begin,
            wanted: u8::from(kind).into(),
            ..fields
        };
        let claim = Claim {
            position: placed.begin,
            head: HeadBytes::new(Kind::Body, 0, &[], len, &fields),
            payload: placed.extent.as_ptr(),
            len,
            at: 0,
        };
        self.extents.leave(index, rail);
        Some(claim)
    }

    /// The payload of the frame at `position` was written to its end.
    pub(crate) fn wrote_body(&mut self, position: u64) {
        self.extents.wrote(position);
        if self.taken > self.released {
            self.release();
        }
    }

    /// A rail is lost: payloads that it carried and the peer has not taken wait for another one.
    pub(crate) fn lose_rail(&mut self, lost: u16) {
        self.extents.lose(lost);
        if self.taken > self.released {
            self.release();
        }
    }

    /// Bytes of extents that were released since the beginning: those that large transfers have
    /// moved.
    pub(crate) fn moved(&self) -> u64 {
        self.extents.released()
    }

    /// Bytes of the stream that must be written next.
    pub(crate) fn committed(&self) -> u64 {
        self.boundary - self.sent
    }
}
