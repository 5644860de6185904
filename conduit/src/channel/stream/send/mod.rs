//! The sending half: the stream to a peer, which keeps the bytes that the peer has not taken.

mod control;
mod credits;
mod extent;
mod extents;
mod lent;
mod striped;

pub(crate) use credits::Credits;
pub(crate) use extent::{Body, Extent};
pub(crate) use striped::Claim;

use super::pieces::Pieces;
use super::ring::Ring;
use crate::channel::frame::{Fields, HeadBytes, Kind, WholePut};
use argonet_am::record::RecordError;
use argonet_segment::{SharedBytes, bulk};
use control::Control;
use extents::Extents;
use lent::{Lent, ring_pieces};

/// Extents that one burst writes, at most.
pub(super) const BURST_EXTENTS: usize = 8;

/// Bytes of extents of one burst, about: a longer burst would hold up frames that the peer waits
/// for.
pub(super) const BURST_BYTES: u64 = 1 << 20;

/// The stream to one peer.
///
/// Positions count its bytes from the beginning, over all rails.
#[derive(Debug)]
pub(crate) struct SendStream {
    ring: Ring,
    extents: Extents,
    /// Everything before was given up: it is not read any more.
    released: u64,
    /// The peer has taken everything before.
    taken: u64,
    /// Where the next byte is written from.
    ///
    /// Between `sent` and `boundary` nothing else may be written.
    sent: u64,
    boundary: u64,
    /// Where the next frame begins.
    head: u64,
    /// Up to where anything was ever written.
    written: u64,
    control: Control,
    /// Up to where an acknowledgement was last requested.
    asked: u64,
    /// Movable payloads go to further rails, except those that end at or before `stays_until`.
    is_striping: bool,
    stays_until: u64,
    /// Further rails.
    ///
    /// Where there is none, bodies are written on the first one, one at a time (`own`).
    rails: usize,
    own: Option<Claim>,
    /// The copy that is not made yet.
    lent: Option<Lent>,
}

impl SendStream {
    pub(crate) fn new() -> Self {
        Self {
            ring: Ring::new(),
            extents: Extents::default(),
            released: 0,
            taken: 0,
            sent: 0,
            boundary: 0,
            head: 0,
            written: 0,
            control: Control::new(),
            asked: 0,
            is_striping: false,
            stays_until: 0,
            rails: 0,
            own: None,
            lent: None,
        }
    }

    /// Bytes of the ring in use.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.ring.used()
    }

    /// Bytes that it holds: the ring, copies, and the list of extents.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.ring.capacity() + self.extents.buffer_bytes()
    }

    /// Frees the buffers of which nothing is in use; they come back with the next frame.
    pub(crate) fn free_buffers(&mut self) {
        self.ring.free();
        self.extents.free();
    }

    /// Copies among the extents, in bytes.
    pub(crate) fn owned_bytes(&self) -> usize {
        self.extents.owned_bytes()
    }

    /// Extents under way.
    pub(crate) fn extents(&self) -> usize {
        self.extents.len()
    }

    /// Those of them that lie with the user.
    ///
    /// Answers to the peer's gets are not among them.
    pub(crate) fn user_extents(&self) -> usize {
        self.extents.of_user()
    }

    /// Where the next frame begins.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Up to where the peer has taken the stream and nothing is read any more.
    ///
    /// In the middle of a burst that repeats bytes taken before, it is less than the bytes taken.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released
    }

    /// Whether the peer has taken everything.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.released == self.head
    }

    /// Whether nothing is under way, in the stream or beside it, or waits to be reported.
    pub(crate) fn rests(&self) -> bool {
        self.is_quiescent() && !self.wants_to_write() && self.control.rests()
    }

    /// Bytes that are not written.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.head - self.sent
    }

    /// Whether a rail has taken a part of a control frame, and the rest is to be written.
    #[inline]
    pub(crate) fn is_writing_control(&self) -> bool {
        self.control.left() > 0
    }

    /// Whether there is something to write now.
    #[inline]
    pub(crate) fn wants_to_write(&self) -> bool {
        self.sent != self.head
            || self.control.wants_to_write()
            || self.own.is_some()
            || self.extents.waiting() > 0
    }

    /// Adds a frame.
    ///
    /// `is_short`: the peer should acknowledge it soon, as room is short.
    ///
    /// Returns where the frame begins; it ends at [`head`](Self::head).
    #[inline(always)]
    pub(crate) fn push(&mut self, mut head: HeadBytes, body: Body<'_>, is_short: bool) -> u64 {
        let begin = self.head;
        head.set_position(begin);
        // While the ring fills, once for each quarter.
        let filled = self.head - self.asked >= (self.ring.capacity() / 4) as u64;
        let waited_for = matches!(
            body,
            Body::Stay(Extent::User(_)) | Body::Move(Extent::User(_), ..)
        );
        if waited_for || is_short || (filled && self.ring.used() * 2 > self.ring.capacity()) {
            head.request_ack();
            self.asked = self.head;
        }
        let head = head.as_bytes();
        match body {
            Body::Copy(bytes) => {
                self.copy_in(head, bytes);
                return begin;
            }
            Body::Lend(bytes) => {
                self.lend(head, bytes);
                return begin;
            }
            _ => {}
        }
        self.ring.push(head);
        self.head += head.len() as u64;
        match body {
            Body::Empty | Body::Copy(_) | Body::Lend(_) => {}
            Body::Stay(extent) => self.push_extent(begin, extent, None),
            Body::Move(extent, kind, fields) => {
                self.push_extent(begin, extent, Some((kind, fields)));
            }
        }
        begin
    }

    /// Adds a put of bytes that are copied, and requests an acknowledgement.
    ///
    /// Returns where the frame begins.
    #[inline]
    pub(crate) fn push_put(&mut self, offset: u64, bytes: SharedBytes<'_>) -> u64 {
        let begin = self.head;
        let put = WholePut {
            wants_ack: true,
            length: bytes.len(),
            offset,
            rest: bytes.len() as u64,
        };
        self.asked = begin;
        self.copy_in(&put.head(begin), bytes);
        begin
    }

    /// Writes a head and the bytes behind it.
    #[inline]
    fn copy_in(&mut self, head: &[u8], bytes: SharedBytes<'_>) {
        self.ring.push_both(head, bytes.len(), |at, place| {
            // SAFETY: `push_both` asks for the parts of `bytes`, one after the other, and only
            // `self` has the ring.
            unsafe {
                bulk::copy(place.as_mut_ptr(), bytes.as_ptr().add(at), place.len());
            }
        });
        self.head += (head.len() + bytes.len()) as u64;
    }

    fn push_extent(&mut self, begin: u64, extent: Extent, movable: Option<(Kind, Fields)>) {
        self.head += self.extents.push(begin, self.head, extent, movable);
    }

    /// Sets the next acknowledgement: the bytes taken of the peer's stream, and handled of its
    /// requests.
    #[inline]
    pub(crate) fn set_ack(&mut self, taken: u64, handled: u64) {
        self.control.set_ack((taken, handled));
    }

    /// How much of the peer's stream is not acknowledged.
    #[inline]
    pub(crate) fn ack_due(&self) -> u64 {
        self.control.due()
    }

    /// Acknowledges with the next bytes written, or by itself.
    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.control.hurry();
    }

    /// Has a frame written that the peer's host must acknowledge, if only one without news.
    #[cold]
    pub(crate) fn probe(&mut self) {
        self.control.probe();
    }

    /// Has the peer asked to close the rails, as nothing is under way; or, where it has asked and
    /// this rank agrees, has the frame written that is their end.
    #[cold]
    pub(crate) fn close(&mut self, has_agreed: bool) {
        self.control.close(has_agreed);
    }

    /// Where this stream ends, and up to where the peer's has come.
    pub(crate) fn positions(&self) -> (u64, u64) {
        (self.head, self.control.heard())
    }

    /// The frame just added refuses the one that begins at `position` of the peer's stream.
    pub(crate) fn hold(&mut self, position: u64) {
        self.control.hold(position, self.head);
    }

    /// Changes the news of credits.
    ///
    /// It is reported at once if `f` says so.
    #[inline]
    pub(crate) fn report_credits(&mut self, f: impl FnOnce(&mut Credits) -> bool) {
        self.control.report_credits(f);
    }

    /// The bytes to write now, in order.
    ///
    /// They stay where they are until [`wrote`](Self::wrote).
    #[inline]
    pub(crate) fn next_burst(&mut self, out: &mut Pieces) {
        if self.sent == self.boundary {
            // It would lie before the rest of a payload that has begun.
            if self.own.as_ref().is_none_or(|own| !own.has_begun()) {
                self.control.prepare(self.taken);
            }
            if self.extents.waiting() > 0 && self.rails == 0 && self.own.is_none() {
                self.own = self.claim(0);
            }
            self.boundary = self.burst_end();
        }
        self.control.pieces(out);
        if let Some(own) = &self.own {
            own.pieces(out);
        }
        let (mut position, mut next) = (self.sent, self.extents.next_index());
        while position < self.boundary {
            match self.extents.get(next) {
                Some(placed) if placed.at <= position && !placed.is_in_stream() => {
                    position = placed.end();
                    next += 1;
                }
                Some(placed) if placed.at <= position => {
                    let from = (position - placed.at) as usize;
                    let len = placed.extent.len() - from;
                    out.add(placed.extent.as_ptr().wrapping_add(from), len);
                    position += len as u64;
                    next += 1;
                }
                placed => {
                    let until = placed.map_or(self.boundary, |p| p.at.min(self.boundary));
                    let before = placed.map_or(self.extents.total(), |p| p.before);
                    let len = (until - position) as usize;
                    ring_pieces(
                        (&mut self.ring, self.lent.as_ref()),
                        position - before,
                        len,
                        out,
                    );
                    position = until;
                }
            }
        }
    }

    /// A burst ends with a frame.
    #[inline]
    fn burst_end(&self) -> u64 {
        let mut bytes = 0;
        for (count, placed) in self.extents.rest().enumerate() {
            if self.is_striping && placed.may_leave(self.sent, self.stays_until) {
                return placed.begin;
            }
            if placed.is_in_stream() {
                bytes += placed.extent.len() as u64;
            }
            if bytes >= BURST_BYTES || count + 1 == BURST_EXTENTS {
                return placed.end();
            }
        }
        self.head
    }

    /// So many of the bytes were written.
    #[inline]
    pub(crate) fn wrote(&mut self, bytes: usize) {
        let mut bytes = bytes - self.control.wrote(bytes);
        if let Some(own) = &mut self.own {
            let of_own = bytes.min(own.left());
            bytes -= of_own;
            if own.wrote(of_own) {
                let position = own.position;
                self.own = None;
                self.wrote_body(position);
            }
        }
        self.advance(bytes as u64);
        debug_assert!(self.sent <= self.boundary);
        self.written = self.written.max(self.sent);
        if self.taken > self.released {
            self.release();
        }
    }

    /// So many bytes of the stream were written; payloads beside it are passed over.
    #[inline]
    fn advance(&mut self, mut bytes: u64) {
        while let Some(placed) = self.extents.get(self.extents.next_index()) {
            let stop = if placed.is_in_stream() {
                placed.end()
            } else {
                placed.at
            };
            let step = bytes.min(stop.saturating_sub(self.sent));
            self.sent += step;
            bytes -= step;
            // The first byte behind its head says that there is no payload; a head that is not
            // written ends before it.
            if self.sent < stop || self.sent >= self.boundary && self.sent < placed.end() {
                return;
            }
            self.sent = self.sent.max(placed.end());
            self.extents.pass_next();
        }
        self.sent += bytes;
    }

    // spec B10: the peer itself acknowledges; acknowledgements of its host do not count.
    /// The peer has taken everything before `taken`.
    ///
    /// An old position is passed over.
    ///
    /// # Errors
    /// `taken` lies beyond the bytes that were written.
    #[inline]
    pub(crate) fn acknowledge(&mut self, taken: u64) -> Result<(), RecordError> {
        if taken > self.written {
            return Err(RecordError::Account {
                what: "the stream is taken",
                got: taken,
                most: self.written,
            });
        }
        if taken > self.taken {
            self.taken = taken;
            self.release();
        }
        Ok(())
    }

    /// Releases the bytes that the peer has taken.
    fn release(&mut self) {
        if self.taken > self.sent {
            // It had taken that from an earlier rail. In the middle of a burst the rest must
            // be written all the same.
            if self.sent != self.boundary {
                return;
            }
            self.sent = self.taken;
            self.boundary = self.taken;
            self.extents.go_to(self.sent);
        }
        // spec B9: a payload is kept until no rail is writing it.
        let taken = self.taken.min(self.extents.being_written());
        self.ring.release(self.extents.release(taken));
        self.released = taken;
    }

    // spec B2: frames of every kind are sent again from the position that the peer names.
    /// Another rail was made; the peer says that it has taken everything before `received`.
    ///
    /// # Errors
    /// `received` lies beyond the bytes that were written.
    pub(crate) fn resume(&mut self, received: u64) -> Result<(), RecordError> {
        if received <= self.written {
            self.own = None;
            self.lose_rail(0);
            self.control.drop_rest();
            // It may have said more on the old rail since.
            self.sent = received.max(self.taken);
            self.boundary = self.sent;
        }
        self.acknowledge(received)?;
        self.extents.go_to(self.sent);
        self.release();
        self.control.report_again();
        Ok(())
    }
}
