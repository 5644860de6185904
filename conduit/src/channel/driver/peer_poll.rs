//! A poll of one peer: takes, serves and reports frames that have come from it.

use super::core::Core;
use super::peer::{Inbound, Outbound, Peer};
use crate::channel::frame::{Frame, Kind};
use crate::channel::rail::Rails;
use crate::channel::stream::{Next, Pieces};
use crate::conduit::{Completion, OpToken, Sink};
use argonet_am::record::RecordError;
use argonet_am::{AmError, MessageClass};
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;
use std::io;

/// Messages and fragments that one poll takes from a peer, and as many completions.
pub(super) const BATCH: usize = 512;

/// More than this is acknowledged by a frame of its own.
const ACK_BYTES: u64 = 64 << 10;

/// How far the frames went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Went {
    /// To the end of the bytes that were read.
    Dry,
    /// To the bound of a poll.
    Bound,
    /// To a reply for which there is no room until the rank handles some.
    Held,
}

pub(super) struct PeerPoll<'a, R: Rails, S: ?Sized> {
    pub(super) core: &'a Core<R>,
    pub(super) peer: &'a Peer<R>,
    pub(super) sink: &'a mut S,
    /// Messages that may still be taken.
    pub(super) budget: usize,
    pub(super) taken: usize,
    /// Something has changed, if only what is known to be taken.
    pub(super) moved: bool,
    /// There is something to be reported perhaps.
    reports: bool,
    /// Whether the largest reply has room; `None` when that must be looked at.
    pub(super) accepts: Option<bool>,
    /// No handler may run here: messages are set aside for the rank's own poll.
    pub(super) serves_only: bool,
    /// How far it went.
    went: Went,
}

/// Outcome of a look at a peer while its rank makes no call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// All frames that were there.
    All,
    /// As much as a poll takes; there is more.
    Some,
    /// There is no more room for messages that the rank must handle.
    Held,
    /// The rank looks itself.
    Busy,
}

/// Keeps completions while the rank makes no call: its next poll reports them.
struct Later<'a, R: Rails>(&'a Peer<R>);

impl<R: Rails> Sink for Later<'_, R> {
    fn deliver(&mut self, _delivery: &mut argonet_am::Delivery<'_>) {
        unreachable!("a poll that only serves sets messages aside");
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        let mut outbound = self.0.outbound.lock();
        outbound.reports.push_back((op, completion, 1));
    }

    fn on_error(&mut self, error: AmError) {
        let mut outbound = self.0.outbound.lock();
        outbound.errors.push(error);
    }
}

impl<R: Rails> Core<R> {
    /// Looks at a peer.
    ///
    /// Says how many messages and completions were taken.
    #[inline]
    pub(super) fn poll_peer<S: Sink + ?Sized>(&self, peer: &Peer<R>, sink: &mut S) -> usize {
        match peer.inbound.try_lock() {
            Some(inbound) => {
                let reports = self.work.take(peer.rank.0);
                self.poll_locked(peer, inbound, sink, reports, false).0
            }
            None => 0,
        }
    }

    /// Looks at a peer for a rank that makes no call.
    #[cold]
    pub(super) fn serve(&self, peer: &Peer<R>) -> Served {
        match peer.inbound.try_lock() {
            Some(inbound) => {
                let (_, went) = self.poll_locked(peer, inbound, &mut Later(peer), false, true);
                match went {
                    Went::Dry => Served::All,
                    Went::Bound => Served::Some,
                    Went::Held => Served::Held,
                }
            }
            None => Served::Busy,
        }
    }

    #[inline]
    fn poll_locked<S: Sink + ?Sized>(
        &self,
        peer: &Peer<R>,
        mut guard: MutexGuard<'_, Inbound<R>>,
        sink: &mut S,
        reports: bool,
        serves_only: bool,
    ) -> (usize, Went) {
        let inbound = &mut *guard;
        let mut poll = PeerPoll {
            core: self,
            peer,
            sink,
            budget: BATCH,
            taken: 0,
            moved: false,
            reports,
            accepts: None,
            serves_only,
            went: Went::Dry,
        };
        poll.run(inbound);
        let (taken, moved, went) = (poll.taken, poll.moved, poll.went);
        if inbound.heard_close.is_some() {
            self.hear_close(peer, inbound);
        }
        let lost = core::mem::take(&mut inbound.lost_rails);
        drop(guard);
        if lost > 0 {
            self.want_rails(peer, lost);
        }
        if taken > 0 || moved {
            self.moved();
            self.scavenge();
        }
        (taken, went)
    }
}

impl<R: Rails, S: Sink + ?Sized> PeerPoll<'_, R, S> {
    fn run(&mut self, inbound: &mut Inbound<R>) {
        let mut went = self.look(inbound);
        if matches!(went, Ok(Went::Dry)) && self.read(inbound) {
            went = self.frames(inbound);
        }
        if matches!(went, Ok(Went::Dry)) && self.peer.ready_rails.load(Ordering::Relaxed) != 0 {
            went = self.rails(inbound);
        }
        match went {
            Ok(went) => {
                self.went = went;
                self.finish(inbound);
            }
            Err(cause) => {
                let error = self.core.broken(self.peer.rank, cause);
                self.core.fail(self.peer, inbound, error.clone());
                self.moved = true;
                self.sink.on_error(error);
                self.core.work.set(self.peer.rank.0);
            }
        }
    }

    /// Takes frames that were read before.
    fn look(&mut self, inbound: &mut Inbound<R>) -> Result<Went, RecordError> {
        if inbound.has_aside() {
            self.aside(inbound)?;
        }
        self.frames(inbound)
    }

    /// Reads once.
    ///
    /// Whether anything came.
    fn read(&mut self, inbound: &mut Inbound<R>) -> bool {
        let Some(wire) = &inbound.wire else {
            return false;
        };
        let mut pieces = Pieces::new();
        inbound.receive_stream.room(&mut pieces);
        // SAFETY: the receive stream's own memory, and the place of a payload, which its owner
        // keeps writable.
        match unsafe { wire.read(&pieces) } {
            Ok(0) => {
                self.lost(inbound);
                false
            }
            Ok(bytes) => {
                inbound.receive_stream.filled(bytes);
                self.moved |= self.serves_only;
                if !self.serves_only {
                    self.core.heard(self.peer, inbound);
                }
                true
            }
            Err(error) => {
                let later = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                if !later.contains(&error.kind()) {
                    self.lost(inbound);
                }
                false
            }
        }
    }

    /// The first rail has ended, and all whole frames of it were taken: what is left is a part of
    /// one, which comes again if it is wanted.
    #[cold]
    fn lost(&mut self, inbound: &mut Inbound<R>) {
        self.core.lost(self.peer, inbound);
        inbound.receive_stream.reset();
        self.moved = true;
    }

    /// Messages that were set aside: replies, and requests whose reply has room now.
    #[cold]
    fn aside(&mut self, inbound: &mut Inbound<R>) -> Result<(), RecordError> {
        let long_bytes = self.core.sizes.long_bytes;
        // They were read before.
        let read = |bytes: &[u8]| Frame::read(bytes, long_bytes)?.ok_or(RecordError::Kind(0));
        while self.budget > 0 && !self.serves_only && !inbound.replies.is_empty() {
            let bytes = inbound.replies.first();
            let frame = read(bytes)?;
            self.budget -= 1;
            self.deliver(&frame, &mut bytes[..frame.kept()])?;
            inbound.replies.pass(frame.kept());
        }
        while self.budget > 0 && !inbound.parked.is_empty() && self.accepts() {
            let bytes = inbound.parked.first();
            let frame = read(bytes)?;
            if self.serves_only && frame.kind != Kind::Get {
                break;
            }
            self.budget -= 1;
            let charge = frame.charge();
            self.request(&frame, &mut bytes[..charge])?;
            inbound.parked.pass(charge);
            inbound.parked.handle(charge);
        }
        Ok(())
    }

    /// Frames that are here.
    fn frames(&mut self, inbound: &mut Inbound<R>) -> Result<Went, RecordError> {
        while self.budget > 0 {
            if self.quick(inbound)? {
                continue;
            }
            let next = inbound.receive_stream.next()?;
            if self.serves_only && self.has_no_room_for(inbound, &next) {
                return Ok(Went::Held);
            }
            match next {
                Next::More => return Ok(Went::Dry),
                Next::Whole(frame) => {
                    inbound.ack_requested |= frame.wants_ack;
                    self.whole(inbound, &frame)?;
                    inbound.receive_stream.pass(&frame);
                }
                Next::Begun(body) if body.kind == Kind::Body => {
                    match self.body_begins(inbound, 0, &body)? {
                        // SAFETY: as below.
                        Some(place) => unsafe { inbound.receive_stream.place(body, place) },
                        None => inbound.receive_stream.skip(body),
                    }
                }
                Next::Placed(body) if body.kind == Kind::Body => {
                    inbound.receive_stream.pass_behind();
                    self.body_here(inbound, &body, true)?;
                }
                Next::Skipped(body) if body.kind == Kind::Body => {
                    inbound.receive_stream.pass_behind();
                    self.body_here(inbound, &body, false)?;
                }
                Next::Begun(frame) => match self.place_of(&frame)? {
                    // SAFETY: a place in this rank's segment, which stays mapped as long as the
                    // conduit, or of a get, which is writable until its completion is reported.
                    Some(place) => unsafe { inbound.receive_stream.place(frame, place) },
                    None => inbound.receive_stream.skip(frame),
                },
                Next::Placed(frame) => {
                    inbound.ack_requested |= frame.wants_ack;
                    self.placed(inbound, &frame)?;
                    inbound.receive_stream.pass_behind();
                }
                Next::Skipped(frame) => {
                    inbound.ack_requested |= frame.wants_ack;
                    self.nowhere(inbound, &frame)?;
                    inbound.receive_stream.pass_behind();
                }
            }
        }
        Ok(Went::Bound)
    }

    /// Whether a reply must stay where it is until the rank handles those before it.
    #[cold]
    fn has_no_room_for(&self, inbound: &Inbound<R>, next: &Next) -> bool {
        match next {
            Next::Whole(frame) | Next::Placed(frame) => {
                let is_reply = matches!(frame.kind.message(), Some((MessageClass::Reply, _)));
                is_reply && inbound.replies.len() + frame.kept() > self.core.sizes.window_bytes
            }
            _ => false,
        }
    }

    pub(super) fn outbound(&self) -> parking_lot::MutexGuard<'_, Outbound<R>> {
        self.peer.outbound.lock()
    }

    /// Acknowledges taken bytes, and leaves the rest to the next poll.
    fn finish(&mut self, inbound: &mut Inbound<R>) {
        let rank = self.peer.rank.0;
        let mut more = self.went == Went::Bound;
        if self.taken > 0 || self.moved || self.reports || inbound.ack_requested {
            if !inbound.rails.is_empty() || !inbound.bodies.is_empty() {
                self.pass_bodies(inbound);
            }
            if !self.serves_only {
                self.report(inbound);
            }
            let (taken, handled) = (inbound.complete(), inbound.parked.handled());
            let mut outbound = self.peer.outbound.lock();
            outbound.send_stream.set_ack(taken, handled);
            if let Some(bank) = &self.core.bank {
                bank.arrived(inbound.parked.take_count());
                self.core
                    .look_at_credits(self.peer, &mut outbound, bank, &inbound.parked);
            }
            let due = outbound.send_stream.ack_due();
            // A rank that makes no call counts no polls until an acknowledgement is due.
            if ((inbound.ack_requested || self.serves_only) && !more) || due > ACK_BYTES {
                outbound.send_stream.ack_now();
                inbound.ack_requested = false;
            }
            if outbound.striping.has_rails() {
                self.core.look_at_choice(&mut outbound);
            }
            if outbound.send_stream.wants_to_write() {
                self.core.flush(self.peer, &mut outbound);
            }
            if outbound.send_stream.ack_due() > 0 {
                outbound.patience = 0;
                self.core.ack_due.set(rank);
            }
            more |= outbound.has_reports() || !inbound.completions.is_empty();
        }
        more |= self.serves_only && inbound.has_aside();
        more |= !inbound.replies.is_empty() || (!inbound.parked.is_empty() && self.accepts());
        more |= inbound.wire.as_ref().is_some_and(|wire| wire.holds_own());
        if more {
            self.core.work.set(rank);
        }
    }

    /// Reports completions and refusals to the sink, a bounded number.
    fn report(&mut self, inbound: &mut Inbound<R>) {
        let errors = {
            let mut outbound = self.outbound();
            if inbound.completions.is_empty() {
                // All at once: nothing is copied, and the sink runs without the lock.
                core::mem::swap(&mut inbound.completions, &mut outbound.reports);
            }
            core::mem::take(&mut outbound.errors)
        };
        for error in errors {
            self.sink.on_error(error);
            self.taken += 1;
        }
        let count = inbound.completions.len().min(BATCH);
        for (op, completion, count) in inbound.completions.drain(..count) {
            self.sink.completed_all(op, completion, count);
        }
        self.taken += count;
    }
}
