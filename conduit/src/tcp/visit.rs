//! A look at one peer: what has come from it is taken, served and reported.

use super::core::Core;
use super::frame::{Fields, Frame, HeadBytes, Kind, LONGEST_HEAD};
use super::lane::{Body, Extent, Next, Pieces};
use super::operations::Data;
use super::peer::{Inbound, Outbound, Peer, Report};
use crate::conduit::{Part, Sink};
use argonet_am::record::RecordError;
use argonet_am::{AmError, Category, Delivery, Lane, MAX_ARGS};
use argonet_base::{HandlerIndex, SegmentOffset};
use argonet_segment::{SharedBytes, SharedBytesMut, bulk};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::io;

/// Messages and parts of puts and gets that one poll takes from a peer, and as many completions.
pub(super) const BATCH: usize = 512;

/// Reports that are taken at once from behind the lock.
const SOME_REPORTS: usize = 32;

/// What a peer has not been told of goes to it by itself when it is more than this.
const TELL_BYTES: u64 = 64 << 10;

/// Data of gets up to this length is copied; longer data is sent from where it lies.
const COPIED_DATA: usize = 16 << 10;

/// How far the frames went.
#[derive(PartialEq, Eq)]
enum Went {
    /// To the end of what was read.
    Dry,
    /// To the bound of a poll.
    Bound,
}

struct Visit<'a, S: ?Sized> {
    core: &'a Core,
    peer: &'a Peer,
    sink: &'a mut S,
    /// Messages that may still be taken.
    budget: usize,
    taken: usize,
    /// Something has changed, if only what is known to be taken.
    moved: bool,
    /// There is something to be reported perhaps.
    reports: bool,
    /// Whether the largest reply has room; `None` when that must be looked at.
    accepts: Option<bool>,
}

impl Core {
    /// Looks at a peer. Says how many messages and completions were taken.
    pub(super) fn visit<S: Sink + ?Sized>(&self, peer: &Peer, sink: &mut S) -> usize {
        let Some(mut guard) = peer.inbound.try_lock() else {
            return 0;
        };
        let inbound = &mut *guard;
        let mut visit = Visit {
            core: self,
            peer,
            sink,
            budget: BATCH,
            taken: 0,
            moved: false,
            reports: self.work.take(peer.rank.0),
            accepts: None,
        };
        visit.run(inbound);
        let (taken, moved) = (visit.taken, visit.moved);
        let lost = core::mem::take(&mut inbound.lost);
        drop(guard);
        if lost {
            self.connector.want(peer.rank);
        }
        if taken > 0 || moved {
            self.sleepers.moved();
            self.wake();
        }
        taken
    }
}

impl<S: Sink + ?Sized> Visit<'_, S> {
    fn run(&mut self, inbound: &mut Inbound) {
        let mut went = self.look(inbound);
        if matches!(went, Ok(Went::Dry)) && self.read(inbound) {
            went = self.frames(inbound);
        }
        match went {
            Ok(went) => self.finish(inbound, went),
            Err(cause) => {
                let error = self.core.broken(self.peer.rank, cause);
                self.core.fail(self.peer, inbound, error.clone());
                self.moved = true;
                self.sink.broken(error);
            }
        }
    }

    /// What was there before.
    fn look(&mut self, inbound: &mut Inbound) -> Result<Went, RecordError> {
        self.parked(inbound)?;
        self.frames(inbound)
    }

    /// Reads once. Whether anything came.
    fn read(&mut self, inbound: &mut Inbound) -> bool {
        let Some(wire) = &inbound.wire else {
            return false;
        };
        let mut pieces = Pieces::new();
        inbound.inbox.room(&mut pieces);
        // SAFETY: the inbox's own memory, and the place of a payload, which whoever gave it keeps writable.
        match unsafe { wire.read(&pieces) } {
            Ok(0) => {
                self.core.lost(self.peer, inbound);
                self.moved = true;
                false
            }
            Ok(bytes) => {
                inbound.inbox.filled(bytes);
                if self.core.hot.load(Ordering::Relaxed) == self.peer.rank.0 {
                    self.core.hit(self.peer, inbound);
                }
                true
            }
            Err(error) => {
                let later = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                if !later.contains(&error.kind()) {
                    self.core.lost(self.peer, inbound);
                    self.moved = true;
                }
                false
            }
        }
    }

    /// Requests that were set aside and whose reply has room now.
    fn parked(&mut self, inbound: &mut Inbound) -> Result<(), RecordError> {
        while self.budget > 0 && !inbound.parked.is_empty() && self.accepts() {
            let long_bytes = self.core.sizes.long_bytes;
            let bytes = inbound.parked.first();
            // It was read before.
            let Some(frame) = Frame::read(bytes, long_bytes)? else {
                return Err(RecordError::Kind(0));
            };
            let charge = frame.charge();
            self.request(&frame, &mut bytes[..charge])?;
            inbound.parked.pass(charge);
            inbound.parked.handle(charge);
        }
        Ok(())
    }

    /// Frames that are here.
    fn frames(&mut self, inbound: &mut Inbound) -> Result<Went, RecordError> {
        while self.budget > 0 {
            match inbound.inbox.next()? {
                Next::More => return Ok(Went::Dry),
                Next::Whole(frame) => {
                    inbound.tell |= frame.tell;
                    self.whole(inbound, &frame)?;
                    inbound.inbox.pass(&frame);
                }
                Next::Begun(frame) => match self.place_of(&frame)? {
                    // SAFETY: a place in this rank's segment, which stays mapped as long as the conduit, or
                    // of a get, which is writable until its completion is reported.
                    Some(place) => unsafe { inbound.inbox.place(frame, place) },
                    None => inbound.inbox.skip(frame),
                },
                Next::Placed(frame) => {
                    inbound.tell |= frame.tell;
                    self.placed(inbound, &frame)?;
                    inbound.inbox.pass_behind();
                }
                Next::Skipped(frame) => {
                    inbound.tell |= frame.tell;
                    self.nowhere(inbound, &frame)?;
                    inbound.inbox.pass_behind();
                }
            }
        }
        Ok(Went::Bound)
    }

    fn outbound(&self) -> parking_lot::MutexGuard<'_, Outbound> {
        self.peer.outbound.lock()
    }

    /// Whether the largest reply has room.
    fn accepts(&mut self) -> bool {
        match self.accepts {
            Some(accepts) => accepts,
            None => {
                let accepts = self.outbound().has_reply_room(&self.core.sizes);
                self.accepts = Some(accepts);
                accepts
            }
        }
    }

    /// Where the payload of a frame goes that has a place of its own; `None` where that must not be written.
    fn place_of(&self, frame: &Frame) -> Result<Option<NonNull<u8>>, RecordError> {
        let (offset, len) = (frame.fields.offset, frame.length as u64);
        match frame.kind {
            Kind::Got => match self.outbound().operations.data(frame)? {
                Data::Place(place) => Ok(NonNull::new(place.as_ptr())),
                Data::Drop => Ok(None),
            },
            // Without bytes any place will do.
            Kind::LongRequest | Kind::LongReply if len == 0 => Ok(Some(NonNull::dangling())),
            Kind::Put if frame.fields.rest < len || len == 0 => {
                let (len, max) = (len, frame.fields.rest);
                Err(RecordError::Payload { len, max })
            }
            // All of it is looked at before the first part is written.
            Kind::Put => Ok(self.core.own(offset, frame.fields.rest)),
            _ => Ok(self.core.own(offset, len)),
        }
    }

    /// A frame that is here with all its bytes.
    fn whole(&mut self, inbound: &mut Inbound, frame: &Frame) -> Result<(), RecordError> {
        match frame.kind {
            Kind::Control => {
                self.moved = true;
                // What was taken has made room.
                self.accepts = None;
                return self.outbound().control(&frame.fields, &self.core.sizes);
            }
            Kind::Refused => {
                self.moved = true;
                let mut outbound = self.outbound();
                outbound.operations.refused(&frame.fields)?;
                outbound
                    .reports
                    .push_back(Report::Broken(AmError::OutsideSegment {
                        offset: frame.fields.offset,
                        len: frame.fields.rest as usize,
                        segment: frame.fields.segment,
                        from: self.core.rank,
                        to: self.peer.rank,
                    }));
                return Ok(());
            }
            kind if kind.is_placed() => {
                let Some(place) = self.place_of(frame)? else {
                    return self.nowhere(inbound, frame);
                };
                let payload = inbound.inbox.bytes()[frame.head_len()..].as_ptr();
                // SAFETY: the frame is here with its payload, and `place_of` has checked the place.
                unsafe { bulk::copy(place.as_ptr(), payload, frame.length) };
            }
            _ => {}
        }
        self.budget -= 1;
        if frame.kind.is_request() {
            let charge = frame.charge();
            inbound.parked.arrive(charge)?;
            let bytes = inbound.inbox.bytes();
            if !inbound.parked.is_empty() || !self.accepts() {
                inbound.parked.park(&bytes[..charge]);
                return Ok(());
            }
            self.request(frame, &mut bytes[..frame.len()])?;
            inbound.parked.handle(charge);
            return Ok(());
        }
        match frame.kind {
            Kind::Put => self.taken += 1,
            Kind::Got => self.got(frame),
            _ => {
                let bytes = inbound.inbox.bytes();
                self.deliver(frame, &mut bytes[..frame.len()])?;
            }
        }
        Ok(())
    }

    /// A frame whose payload is at its place.
    fn placed(&mut self, inbound: &mut Inbound, frame: &Frame) -> Result<(), RecordError> {
        self.budget -= 1;
        match frame.kind {
            Kind::Put => self.taken += 1,
            Kind::Got => self.got(frame),
            _ => {
                let mut head = [0; LONGEST_HEAD];
                let head = &mut head[..frame.head_len()];
                head.copy_from_slice(inbound.inbox.placed_head());
                if !frame.kind.is_request() {
                    return self.deliver(frame, head);
                }
                let charge = frame.charge();
                inbound.parked.arrive(charge)?;
                if !inbound.parked.is_empty() || !self.accepts() {
                    inbound.parked.park(head);
                } else {
                    self.request(frame, head)?;
                    inbound.parked.handle(charge);
                }
            }
        }
        Ok(())
    }

    /// A frame whose payload must not be written.
    #[cold]
    fn nowhere(&mut self, inbound: &mut Inbound, frame: &Frame) -> Result<(), RecordError> {
        let segment = self.core.own_bytes();
        self.moved = true;
        match frame.kind {
            Kind::Got => {
                self.outbound()
                    .operations
                    .answered(frame.fields.op, frame.length);
                return Ok(());
            }
            // Whoever asked for the reply said where it should go.
            Kind::LongReply => {
                let len = frame.fields.offset.saturating_add(frame.length as u64);
                return Err(RecordError::Payload { len, max: segment });
            }
            Kind::LongRequest => {
                inbound.parked.arrive(frame.charge())?;
                inbound.parked.handle(frame.charge());
            }
            _ => {}
        }
        self.refuse(frame, inbound.inbox.taken(), frame.length)
    }

    /// Tells the peer that a frame, which began at a position of its stream, is not for this rank's segment.
    fn refuse(&mut self, frame: &Frame, position: u64, len: usize) -> Result<(), RecordError> {
        let fields = Fields {
            offset: frame.fields.offset,
            rest: len as u64,
            segment: self.core.own_bytes(),
            position,
            op: if frame.kind == Kind::Get {
                frame.fields.op
            } else {
                0
            },
            wanted: 0,
        };
        self.accepts = None;
        self.outbound().refuse(&fields, &self.core.sizes)
    }

    /// A request whose reply has room.
    fn request(&mut self, frame: &Frame, bytes: &mut [u8]) -> Result<(), RecordError> {
        if frame.kind == Kind::Get {
            self.serve_get(frame)
        } else {
            self.deliver(frame, bytes)
        }
    }

    /// Runs a handler. `bytes` are those of the frame, without the payload of a long.
    #[inline]
    fn deliver(&mut self, frame: &Frame, bytes: &mut [u8]) -> Result<(), RecordError> {
        let Some((lane, category)) = frame.kind.message() else {
            return Err(RecordError::Kind(frame.kind.into()));
        };
        let mut room = [0; MAX_ARGS];
        let args = frame.args(bytes, &mut room);
        let payload = match category {
            Category::Short => None,
            Category::Medium => Some(SharedBytesMut::from_slice(&mut bytes[frame.head_len()..])),
            Category::Long if frame.length == 0 => None,
            Category::Long => {
                let place = self.core.own(frame.fields.offset, frame.length as u64);
                // The segment has been given up meanwhile.
                let place = place.ok_or(RecordError::Payload {
                    len: frame.fields.offset.saturating_add(frame.length as u64),
                    max: self.core.own_bytes(),
                })?;
                // SAFETY: the directory has checked that the bytes lie in this rank's own segment,
                // which stays mapped as long as the directory.
                Some(unsafe { SharedBytesMut::from_raw(place, frame.length) })
            }
        };
        let mut delivery = Delivery::new(
            self.peer.rank,
            lane,
            category,
            HandlerIndex(frame.handler),
            args,
            payload,
            SegmentOffset(frame.fields.offset),
            self.core,
        );
        self.sink.deliver(&mut delivery);
        if lane == Lane::Request && delivery.has_replied() {
            self.accepts = None;
        }
        self.taken += 1;
        Ok(())
    }

    /// Data of a get is at its place.
    fn got(&mut self, frame: &Frame) {
        let complete = self
            .outbound()
            .operations
            .answered(frame.fields.op, frame.length);
        if let Some(op) = complete {
            self.sink.completed(op, Part::Remote);
            self.taken += 1;
        }
    }

    /// Answers a part of a get.
    fn serve_get(&mut self, frame: &Frame) -> Result<(), RecordError> {
        let Fields {
            offset,
            rest,
            op,
            wanted,
            ..
        } = frame.fields;
        let len = wanted as usize;
        let too_long = len > Kind::Got.most(0) || u64::from(wanted) > rest;
        if len == 0 || op == 0 || too_long {
            return Err(RecordError::Kind(Kind::Get.into()));
        }
        self.taken += 1;
        self.accepts = None;
        let Some(place) = self.core.own(offset, rest) else {
            // No put is taken for it.
            return self.refuse(frame, u64::MAX, len);
        };
        let body = if len <= COPIED_DATA {
            // SAFETY: the directory has checked the place.
            Body::Copy(unsafe { SharedBytes::from_raw(place, len) })
        } else {
            Body::Stay(Extent::Segment(place, len))
        };
        let mut outbound = self.outbound();
        let fields = Fields {
            offset,
            op,
            ..Fields::default()
        };
        let head = HeadBytes::new(Kind::Got, 0, &[], len, &fields);
        outbound.outbox.push(head, body, false);
        Ok(())
    }

    /// What the peer is told, and what is left for the next poll.
    fn finish(&mut self, inbound: &mut Inbound, went: Went) {
        let rank = self.peer.rank.0;
        let mut more = went == Went::Bound;
        if self.taken > 0 || self.moved || self.reports || inbound.tell {
            self.report();
            let (taken, granted) = (inbound.inbox.taken(), inbound.parked.granted());
            let mut outbound = self.peer.outbound.lock();
            outbound.outbox.set_tell(taken, granted);
            let untold = outbound.outbox.untold();
            if (inbound.tell && !more) || untold > TELL_BYTES {
                outbound.outbox.tell_now();
                inbound.tell = false;
            }
            if outbound.outbox.wants_to_write() {
                self.core.flush(self.peer, &mut outbound);
            }
            if outbound.outbox.untold() > 0 {
                outbound.patience = 0;
                self.core.owing.set(rank);
            }
            more |= !outbound.reports.is_empty();
        }
        more |= !inbound.parked.is_empty() && self.accepts();
        more |= inbound.wire.as_ref().is_some_and(|wire| wire.holds_own());
        if more {
            self.core.work.set(rank);
        }
    }

    /// Tells the sink what is complete or refused, a bounded number.
    fn report(&mut self) {
        let mut left = BATCH;
        while left > 0 {
            let mut some = [const { None }; SOME_REPORTS];
            let mut count = 0;
            {
                let mut outbound = self.outbound();
                while count < SOME_REPORTS.min(left)
                    && let Some(report) = outbound.reports.pop_front()
                {
                    some[count] = Some(report);
                    count += 1;
                }
            }
            for report in some.into_iter().flatten() {
                match report {
                    Report::Completed(op, part) => self.sink.completed(op, part),
                    Report::Broken(error) => self.sink.broken(error),
                }
            }
            self.taken += count;
            left -= count;
            if count < SOME_REPORTS {
                return;
            }
        }
    }
}
