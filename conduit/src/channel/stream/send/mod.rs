//! The sending half: the stream to a peer, of which what the peer has not taken is kept.

mod credits;
mod extent;
mod lent;
mod striped;

pub(crate) use credits::Credits;
pub(crate) use extent::{Body, Extent};
pub(crate) use striped::Claim;

use super::pieces::Pieces;
use super::ring::Ring;
use crate::channel::frame::{Fields, HEADER_BYTES, HeadBytes, Kind, WholePut};
use argonet_am::record::RecordError;
use argonet_segment::{SharedBytes, bulk};
use lent::Lent;
use std::collections::VecDeque;

/// Extents that one burst writes, at most.
const BURST_EXTENTS: usize = 8;

/// Bytes of extents of one burst, about: what the peer waits for is not held up for longer.
const BURST_BYTES: u64 = 1 << 20;

/// Bytes of a control frame, and a question and an answer of the system queue behind it.
const CONTROL_BYTES: usize = 3 * HEADER_BYTES + Kind::Control.fields() + 2 * Kind::System.fields();

/// Where a payload travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// In the stream.
    Stream,
    /// Beside it, over no connection yet.
    Waits,
    /// Over this connection; and whether it is in the middle of being written.
    With(u16, bool),
}

#[derive(Debug)]
struct Placed {
    /// Where its frame begins in the stream, and where it does.
    begin: u64,
    at: u64,
    /// Bytes of extents before it, since the stream began.
    before: u64,
    extent: Extent,
    way: Way,
    /// The kind and the fields of its head, if it may leave the stream.
    movable: Option<(Kind, Fields)>,
}

impl Placed {
    fn end(&self) -> u64 {
        self.at + self.extent.len() as u64
    }

    /// Whether it may leave the stream, as its head is not among what must be written next.
    fn may_leave(&self, boundary: u64, stays_until: u64) -> bool {
        self.way == Way::Stream
            && self.movable.is_some()
            && self.begin >= boundary
            && self.end() > stays_until
    }
}

/// The stream to one peer. Positions count its bytes from the beginning, over all connections.
#[derive(Debug)]
pub(crate) struct SendStream {
    ring: Ring,
    extents: VecDeque<Placed>,
    /// The first extent that is not written to its end.
    next_extent: usize,
    /// Bytes of extents that were given up, and of all.
    extents_released: u64,
    extents_total: u64,
    /// Bytes of copies among the extents.
    owned_bytes: usize,
    /// Everything before was given up: it is not read any more.
    released: u64,
    /// The peer has taken everything before.
    taken: u64,
    /// Where the next byte is written from. Between `sent` and `boundary` nothing else may be
    /// written.
    sent: u64,
    boundary: u64,
    /// Where the next frame begins.
    head: u64,
    /// Up to where anything was ever written.
    written: u64,
    /// A control frame and what goes with it, how much of that is written, and where it ends.
    control: [u8; CONTROL_BYTES],
    control_at: usize,
    control_end: usize,
    /// What to acknowledge, and what was acknowledged last: stream taken, requests handled.
    ack: (u64, u64),
    acked: (u64, u64),
    ack_now: bool,
    credits: Credits,
    /// Acknowledges also what the peer knows.
    probe: bool,
    /// This position is not acknowledged before the peer has taken the refusal of what lies
    /// there, which ends at the second.
    held: Option<(u64, u64)>,
    /// Up to where an acknowledgement was last requested.
    asked: u64,
    /// Payloads that could leave the stream stay out of it, but for those before the position.
    stripes: bool,
    stays_until: u64,
    /// Payloads beside the stream that wait for a connection, and that are being written.
    waiting: usize,
    writing: usize,
    /// Other connections that could take them; where there is none, this one does.
    rails: usize,
    own: Option<Claim>,
    /// The copy that is not made yet.
    lent: Option<Lent>,
}

impl SendStream {
    pub(crate) fn new() -> Self {
        Self {
            ring: Ring::new(),
            extents: VecDeque::new(),
            next_extent: 0,
            extents_released: 0,
            extents_total: 0,
            owned_bytes: 0,
            released: 0,
            taken: 0,
            sent: 0,
            boundary: 0,
            head: 0,
            written: 0,
            control: [0; CONTROL_BYTES],
            control_at: 0,
            control_end: 0,
            ack: (0, 0),
            acked: (0, 0),
            ack_now: false,
            credits: Credits::default(),
            probe: false,
            held: None,
            asked: 0,
            stripes: false,
            stays_until: 0,
            waiting: 0,
            writing: 0,
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

    /// Bytes of what it holds: the ring, copies, and the list of extents.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.ring.capacity() + self.owned_bytes + self.extents.capacity() * size_of::<Placed>()
    }

    /// Copies among the extents, in bytes.
    pub(crate) fn owned_bytes(&self) -> usize {
        self.owned_bytes
    }

    /// Extents under way.
    pub(crate) fn extents(&self) -> usize {
        self.extents.len()
    }

    /// Where the next frame begins.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Up to where the peer has taken the stream and nothing is read any more. In the middle of a burst
    /// that repeats what was taken before, that is less than what was taken.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released
    }

    /// Whether the peer has taken everything.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.released == self.head
    }

    /// Bytes that are not written.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.head - self.sent
    }

    /// Whether there is something to write now.
    #[inline]
    pub(crate) fn wants_to_write(&self) -> bool {
        self.sent != self.head
            || self.control_at < self.control_end
            || self.ack_now
            || self.own.is_some()
            || self.waiting > 0
    }

    /// Adds a frame. `is_short`: the peer should acknowledge it soon, as room is short.
    /// Returns where the frame begins; it ends at [`head`](Self::head).
    #[inline]
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

    /// Adds a put of bytes that are copied, and requests an acknowledgement. Returns where the frame
    /// begins.
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
            // SAFETY: `push_both` asks for the parts of `bytes`, one after the other, and the
            // ring is nobody else's.
            unsafe {
                bulk::copy(place.as_mut_ptr(), bytes.as_ptr().add(at), place.len());
            }
        });
        self.head += (head.len() + bytes.len()) as u64;
    }

    fn push_extent(&mut self, begin: u64, extent: Extent, movable: Option<(Kind, Fields)>) {
        let len = extent.len() as u64;
        if let Extent::Owned(_, len) = extent {
            self.owned_bytes += len;
        }
        self.extents.push_back(Placed {
            begin,
            at: self.head,
            before: self.extents_total,
            extent,
            way: Way::Stream,
            movable,
        });
        self.extents_total += len;
        self.head += len;
    }

    /// What to acknowledge: up to where the peer's stream was taken, and what of its requests was
    /// handled.
    #[inline]
    pub(crate) fn set_ack(&mut self, taken: u64, handled: u64) {
        self.ack = (taken, handled);
    }

    /// How much of the peer's stream is not acknowledged.
    #[inline]
    pub(crate) fn ack_due(&self) -> u64 {
        (self.ack.0 - self.acked.0).max(self.ack.1 - self.acked.1)
    }

    /// Acknowledges with what is written next, or by itself.
    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.ack_now |= self.ack_due() > 0;
    }

    /// Has something written that the peer's host must acknowledge, if only what the peer knows.
    #[cold]
    pub(crate) fn probe(&mut self) {
        self.probe = true;
        self.ack_now = true;
    }

    /// The frame just added refuses what begins at `position` of the peer's stream.
    pub(crate) fn hold(&mut self, position: u64) {
        let first = self.held.map_or(position, |(first, _)| first.min(position));
        self.held = Some((first, self.head));
    }

    /// What may be acknowledged now.
    fn next_ack(&mut self) -> (u64, u64) {
        if self.held.is_some_and(|(_, until)| self.taken >= until) {
            self.held = None;
        }
        let held = self.held.map_or(u64::MAX, |(position, _)| position);
        (self.ack.0.min(held).max(self.acked.0), self.ack.1)
    }

    /// The bytes to write now, in order. They stay where they are until [`wrote`](Self::wrote).
    pub(crate) fn next_burst(&mut self, out: &mut Pieces) {
        if self.sent == self.boundary {
            // It would lie before what is left of a payload that has begun.
            let between_frames = self.own.as_ref().is_none_or(|own| !own.has_begun());
            let has_left = self.control_at == self.control_end;
            if between_frames && has_left && (self.ack_now || self.ack_due() > 0) {
                self.write_control();
            }
            if self.waiting > 0 && self.rails == 0 && self.own.is_none() {
                self.own = self.claim(0);
            }
            self.boundary = self.burst_end();
        }
        out.add(
            self.control[self.control_at..].as_mut_ptr(),
            self.control_end - self.control_at,
        );
        if let Some(own) = &self.own {
            own.pieces(out);
        }
        let (mut position, mut next) = (self.sent, self.next_extent);
        while position < self.boundary {
            match self.extents.get(next) {
                Some(placed) if placed.at <= position && placed.way != Way::Stream => {
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
                    let before = placed.map_or(self.extents_total, |p| p.before);
                    let len = (until - position) as usize;
                    self.ring_pieces(position - before, len, out);
                    position = until;
                }
            }
        }
    }

    fn write_control(&mut self) {
        let ack = self.next_ack();
        self.ack_now = false;
        (self.control_at, self.control_end) = (0, 0);
        let news = ack != self.acked || self.credits.has_news();
        if news || self.probe {
            self.probe = false;
            self.acked = ack;
            let head = self.credits.control(ack);
            self.add_control(&head);
        }
        while let Some(head) = self.credits.system() {
            self.add_control(&head);
        }
    }

    fn add_control(&mut self, head: &HeadBytes) {
        let (begin, bytes) = (self.control_end, head.as_bytes());
        self.control_end += bytes.len();
        self.control[begin..self.control_end].copy_from_slice(bytes);
    }

    /// Changes what is to be reported of credits. It is reported at once if `f` says so.
    #[inline]
    pub(crate) fn report_credits(&mut self, f: impl FnOnce(&mut Credits) -> bool) {
        self.ack_now |= f(&mut self.credits);
    }

    /// A burst ends with a frame.
    fn burst_end(&self) -> u64 {
        let mut bytes = 0;
        for (count, placed) in self.extents.range(self.next_extent..).enumerate() {
            if self.stripes && placed.may_leave(self.sent, self.stays_until) {
                return placed.begin;
            }
            if placed.way == Way::Stream {
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
        let of_control = bytes.min(self.control_end - self.control_at);
        self.control_at += of_control;
        let mut bytes = bytes - of_control;
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

    /// So many bytes of the stream were written, which passes over what is beside it.
    #[inline]
    fn advance(&mut self, mut bytes: u64) {
        while let Some(placed) = self.extents.get(self.next_extent) {
            let stop = if placed.way == Way::Stream {
                placed.end()
            } else {
                placed.at
            };
            let step = bytes.min(stop.saturating_sub(self.sent));
            self.sent += step;
            bytes -= step;
            // The first byte behind its head says that there is no payload; a head that is not written ends before it.
            if self.sent < stop || self.sent >= self.boundary && self.sent < placed.end() {
                return;
            }
            self.sent = self.sent.max(placed.end());
            self.next_extent += 1;
        }
        self.sent += bytes;
    }

    /// The peer has taken everything before `taken`. What is old is passed over.
    ///
    /// # Errors
    /// That was never written.
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

    /// Gives up what the peer has taken.
    fn release(&mut self) {
        if self.taken > self.sent {
            // It had taken that from an earlier connection. In the middle of a burst the rest must be
            // written all the same.
            if self.sent != self.boundary {
                return;
            }
            self.sent = self.taken;
            self.boundary = self.taken;
            let sent = self.sent;
            self.next_extent = self
                .extents
                .iter()
                .take_while(|placed| placed.end() <= sent)
                .count();
        }
        let taken = self.taken.min(self.being_written());
        while let Some(first) = self.extents.front()
            && first.end() <= taken
        {
            if first.way == Way::Waits {
                self.waiting -= 1;
            }
            self.extents_released = first.before + first.extent.len() as u64;
            if let Extent::Owned(_, len) = first.extent {
                self.owned_bytes -= len;
            }
            self.extents.pop_front();
            self.next_extent = self.next_extent.saturating_sub(1);
        }
        // Inside of an extent, where no frame ends, what lies before it is given up.
        let end = self.extents.front().map_or(taken, |p| p.at.min(taken));
        self.ring.release(end - self.extents_released);
        self.released = taken;
    }

    /// Where the first payload lies that another connection is in the middle of writing.
    fn being_written(&self) -> u64 {
        if self.writing == 0 {
            return u64::MAX;
        }
        let writes = |placed: &&Placed| matches!(placed.way, Way::With(_, true));
        let first = self.extents.iter().find(writes);
        first.map_or(u64::MAX, |placed| placed.begin)
    }

    /// Another connection was made; the peer says that it has taken everything before `received`.
    ///
    /// # Errors
    /// That was never written, or given up.
    pub(crate) fn resume(&mut self, received: u64) -> Result<(), RecordError> {
        if received <= self.written {
            self.own = None;
            self.lose_rail(0);
            self.control_at = self.control_end;
            // It may have said more on the old connection since.
            self.sent = received.max(self.taken);
            self.boundary = self.sent;
        }
        self.acknowledge(received)?;
        let from = self.sent;
        self.next_extent = self.extents.iter().take_while(|p| p.end() <= from).count();
        self.release();
        // What was acknowledged may be lost.
        self.acked = (0, 0);
        self.credits.is_lost();
        self.ack_now = true;
        Ok(())
    }
}
