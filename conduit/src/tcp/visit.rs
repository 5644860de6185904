//! A look at one peer: what has come from it is taken, served and reported.

use super::core::Core;
use super::frame::Frame;
use super::lane::{Next, Pieces};
use super::peer::{Inbound, Outbound, Peer, Report};
use crate::conduit::Sink;
use argonet_am::record::RecordError;
use core::sync::atomic::Ordering;
use std::io;

/// Messages and parts of puts and gets that one poll takes from a peer, and as many completions.
pub(super) const BATCH: usize = 512;

/// Reports that are taken at once from behind the lock.
const SOME_REPORTS: usize = 32;

/// What a peer has not been told of goes to it by itself when it is more than this.
const TELL_BYTES: u64 = 64 << 10;

/// How far the frames went.
#[derive(PartialEq, Eq)]
enum Went {
    /// To the end of what was read.
    Dry,
    /// To the bound of a poll.
    Bound,
}

pub(super) struct Visit<'a, S: ?Sized> {
    pub(super) core: &'a Core,
    pub(super) peer: &'a Peer,
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

    pub(super) fn outbound(&self) -> parking_lot::MutexGuard<'_, Outbound> {
        self.peer.outbound.lock()
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
