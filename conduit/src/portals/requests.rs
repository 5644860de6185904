//! Requests that arrive.

use super::arrivals::{Arrivals, Half, Parsed, Request};
use super::core::Portals;
use super::large::Lies;
use super::peer::{Hold, Open, Peer};
use super::roles::Role;
use super::wire::{Head, Kind, lid_of};
use crate::conduit::Sink;
use argonet_am::credit::PushedBack;
use argonet_am::record::RecordError;
use argonet_am::recycling::Place;
use argonet_am::{AmError, Category, Delivery, MessageClass};
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::portals::{Event, EventKind, NicError, Outcome, Portals as Interface};
use argonet_segment::{SharedBytesMut, bulk};
use core::ptr::NonNull;

/// Meaning of an event of the queue of requests.
enum Came {
    /// A request in a buffer.
    Request(Place),
    /// One that found no buffer.
    Overflow,
    /// Data.
    Half(Half),
    /// Something that is dealt with.
    Done,
}

/// The error of a place that the interface names twice, or out of turn.
pub(super) const OUT_OF_TURN: RecordError = RecordError::Account {
    what: "a message lies outside of its buffer",
    got: 1,
    most: 0,
};

impl<N: Interface + Send + Sync> Portals<N> {
    /// Takes up to the limit of events of the queue of requests; how many that were.
    // spec P2
    pub(super) fn take_requests<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let queue = self.queues.requests;
        let Some(_turn) = self.turns[0].try_lock() else {
            return 0;
        };
        let mut held = None;
        let mut taken = 0;
        while self.goes_on(self.sizes.am_events, taken) && !self.is_empty(queue) {
            held = held.or_else(|| self.hold());
            if held.is_none() {
                break;
            }
            let (event, came) = {
                let mut arrivals = self.arrivals.lock();
                match self.nic.queue_get(queue) {
                    Ok(Some(event)) => (event, self.account_for(&mut arrivals, &event)),
                    Ok(None) => break,
                    Err(error) => {
                        sink.on_error(self.refuses(self.rank, &error));
                        break;
                    }
                }
            };
            taken += 1;
            let done = came.and_then(|came| match came {
                Came::Request(place) => self.request(&event, place, &mut held, sink),
                Came::Overflow => self.overflow(&event, &mut held),
                Came::Half(half) => self.request_half(&event, half, &mut held, sink),
                Came::Done => Ok(()),
            });
            if let Err(error) = done {
                sink.on_error(error);
            }
        }
        if let Some(hold) = held {
            self.let_go(hold);
        }
        taken
    }

    /// Follows the buffers by an event.
    ///
    /// The lock makes that one after the other.
    fn account_for(&self, arrivals: &mut Arrivals, event: &Event) -> Result<Came, AmError> {
        let linked = |result: Result<(), NicError>| {
            self.unless_linked(&result);
            Ok(Came::Done)
        };
        let role = Role::of(event.user);
        match (event.kind, role) {
            (EventKind::Unlink, Some((Role::RequestBuffer, buffer))) => {
                linked(arrivals.requests.unlinked(&self.nic, buffer))
            }
            (EventKind::PutEnd, Some((Role::RequestBuffer, buffer))) => {
                let place = arrivals.requests.arrived(buffer, event);
                let place = place.ok_or_else(|| self.broken(event.peer, OUT_OF_TURN))?;
                self.unless_died(event, Came::Request(place), || {
                    arrivals.requests.handled(&self.nic, place)
                })
            }
            (EventKind::PutEnd, Some((Role::CatchBasin, _))) => {
                self.unless_linked(&arrivals.requests.follow_basin(&self.nic));
                Ok(Came::Overflow)
            }
            (_, Some((Role::LargeRequest, buffer))) => {
                let half = self.follow_large(&mut arrivals.large, buffer, event)?;
                Ok(half.map_or(Came::Done, Came::Half))
            }
            (EventKind::PutEnd, Some((Role::LongRequest, _))) => {
                let half = long_half(event);
                self.unless_died(event, Came::Half(half), || Ok(()))
            }
            _ => Ok(Came::Done),
        }
    }

    /// A message that its sender did not end does not count as arrived.
    fn unless_died(
        &self,
        event: &Event,
        came: Came,
        forget: impl FnOnce() -> Result<(), NicError>,
    ) -> Result<Came, AmError> {
        if event.outcome == Outcome::Done {
            return Ok(came);
        }
        self.unless_linked(&forget());
        Ok(Came::Done)
    }

    /// A request is in a buffer.
    ///
    /// What is held for a reply is taken if there is one.
    #[inline]
    fn request<S: Sink + ?Sized>(
        &self,
        event: &Event,
        place: Place,
        held: &mut Option<Hold>,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let from = event.peer;
        let read = Head::of(event.bits).and_then(|head| {
            let memory = self.arrivals.lock().requests.memory(place);
            // SAFETY: the interface has moved so many bytes there, in a buffer of this rank.
            unsafe { Parsed::read(head, event.header, memory, event.moved_bytes) }
        });
        let read = read.and_then(|parsed| match parsed.head.kind {
            kind @ (Kind::Empty | Kind::Refused) => Err(RecordError::Kind(kind.into())),
            _ if from.0 >= self.ranks => Err(RecordError::Kind(0)),
            _ => Ok(parsed),
        });
        let parsed = read.map_err(|cause| {
            self.leave(Some(place), None);
            self.broken(from, cause)
        })?;
        // spec P7: a header that cannot be kept until its data comes is pushed back.
        let (lid, has_half) = (parsed.head.lid, parsed.has_half());
        if has_half && !self.arrivals.lock().halves.has_room(from.0, lid) {
            self.leave(Some(place), None);
            return self.overflow(event, held);
        }
        let peer = self.peer(from);
        let debt = match self.owe(peer, &parsed.head) {
            Ok(debt) => debt,
            Err(refused) => {
                self.leave(Some(place), None);
                self.push_back(from, parsed.head.chunk, refused?, held);
                return Ok(());
            }
        };
        let request = Request {
            parsed,
            debt,
            place,
        };
        if !has_half {
            return self.run_request(peer, request, None, held, sink);
        }
        let kept = self.arrivals.lock().halves.header(from.0, lid, request);
        match kept {
            Ok(Some((request, half))) => self.run_request(peer, request, Some(half), held, sink),
            Ok(None) => Ok(()),
            Err(error) => Err(self.refuses(from, &error)),
        }
    }

    /// Whether a request was paid for.
    #[allow(
        clippy::type_complexity,
        reason = "two ways to fail, distinguished by the caller"
    )]
    fn owe(
        &self,
        peer: &Peer,
        head: &Head,
    ) -> Result<Option<argonet_am::credit::Debt>, Result<PushedBack, AmError>> {
        let Some(bank) = &self.bank else {
            return Ok(None);
        };
        let tag = self.sizes.rules.form.unpack(head.credits.into());
        let tag = tag.map_err(|error| Err(self.broken(peer.rank, error.into())))?;
        let mut state = peer.state.lock();
        match &mut state.credit {
            Some(credit) => credit.arrived(tag, bank).map(Some).map_err(Ok),
            None => Ok(None),
        }
    }

    /// A request found no buffer: its body is lost, its sender has it.
    #[cold]
    fn overflow(&self, event: &Event, held: &mut Option<Hold>) -> Result<(), AmError> {
        let from = event.peer;
        let head = match Head::of(event.bits) {
            Ok(head) if from.0 < self.ranks => head,
            other => {
                let cause = other.err().unwrap_or(RecordError::Kind(0));
                return Err(self.broken(from, cause));
            }
        };
        let peer = self.peer(from);
        let back = match self.owe(peer, &head) {
            Ok(debt) => match (&mut peer.state.lock().credit, debt) {
                (Some(credit), Some(debt)) => credit.overflowed(debt),
                _ => PushedBack { count: 0, loan: 0 },
            },
            Err(refused) => refused?,
        };
        self.push_back(from, head.chunk, back, held);
        Ok(())
    }

    /// The data of a request is here.
    fn request_half<S: Sink + ?Sized>(
        &self,
        event: &Event,
        half: Half,
        held: &mut Option<Hold>,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let (from, lid) = (event.peer, lid_of(event.bits));
        let kept = self.arrivals.lock().halves.data(from.0, lid, half);
        match kept {
            Ok(Some((request, half))) => {
                self.run_request(self.peer(from), request, Some(half), held, sink)
            }
            Ok(None) => Ok(()),
            Err(error) => {
                self.leave(None, half.place);
                Err(self.refuses(from, &error))
            }
        }
    }

    /// Runs the handler of a request that is all here, and replies if it does not.
    fn run_request<S: Sink + ?Sized>(
        &self,
        peer: &Peer,
        request: Request,
        half: Option<Half>,
        held: &mut Option<Hold>,
        sink: &mut S,
    ) -> Result<(), AmError> {
        // No request is looked at without.
        let Some(hold) = held.take() else {
            return Ok(());
        };
        let Request {
            parsed,
            debt,
            place,
        } = request;
        let large = half.and_then(|half| half.place);
        let open = Open {
            chunk: parsed.head.chunk,
            debt,
            hold,
        };
        {
            let mut state = peer.state.lock();
            state.open.push(open);
            state.running += 1;
        }
        let memory = || {
            let arrivals = self.arrivals.lock();
            large.map_or_else(
                || arrivals.requests.memory(place),
                |large| arrivals.large.memory(large),
            )
        };
        let class = MessageClass::Request;
        let result = self.deliver(peer.rank, class, &parsed, half, memory, sink);
        let unanswered = {
            let mut state = peer.state.lock();
            state.running -= 1;
            state.handled += 1;
            // Others that run have one each.
            (state.open.len() > state.running)
                .then(|| state.open.pop())
                .flatten()
        };
        let answered = unanswered.map_or(Ok(()), |open| self.answer_nothing(peer, open));
        self.leave(Some(place), large);
        self.balance();
        result.and(answered)
    }

    /// Gives a message to its handler.
    ///
    /// `memory` is where the message lies, or the payload of a large medium.
    #[inline]
    pub(super) fn deliver<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        class: MessageClass,
        parsed: &Parsed,
        half: Option<Half>,
        memory: impl FnOnce() -> NonNull<u8>,
        sink: &mut S,
    ) -> Result<(), AmError> {
        if half.is_some_and(|half| !parsed.fits(&half)) {
            let kind = RecordError::Kind(parsed.head.kind.into());
            return Err(self.broken(from, kind));
        }
        let before = match half.and_then(|half| half.place) {
            Some(_) => 0,
            None => parsed.payload_at,
        };
        // SAFETY: the payload lies behind the arguments, in the bytes that have arrived.
        let memory = unsafe { memory().add(before) };
        let category = parsed.head.kind.category();
        let payload = match category {
            Category::Short => None,
            // SAFETY: the interface has moved at least so many bytes there, as was checked when it
            // was read or its half was found; they are this message's until its handler has run.
            Category::Medium => Some(unsafe { SharedBytesMut::from_raw(memory, parsed.len) }),
            Category::Long if parsed.len == 0 => None,
            Category::Long => {
                let place = self.own(parsed.offset, parsed.len);
                let outside = || RecordError::Payload {
                    len: parsed.offset.saturating_add(parsed.len as u64),
                    max: self.own_bytes(),
                };
                let place = place.ok_or_else(|| self.broken(from, outside()))?;
                if parsed.head.kind == Kind::PackedLong {
                    // SAFETY: the directory has checked the place; the source has come with the
                    // message, as was checked when it was read.
                    unsafe { bulk::copy(place.as_ptr(), memory.as_ptr(), parsed.len) };
                }
                // SAFETY: the directory has checked that the bytes lie in this rank's own segment,
                // which stays mapped as long as the directory.
                Some(unsafe { SharedBytesMut::from_raw(place, parsed.len) })
            }
        };
        let mut delivery = Delivery::new(
            from,
            class,
            category,
            parsed.head.handler,
            parsed.args(),
            payload,
            SegmentOffset(parsed.offset),
            self,
        );
        sink.deliver(&mut delivery);
        Ok(())
    }

    /// Memory of a request is free.
    fn leave(&self, request: Option<Place>, large: Option<Lies>) {
        let mut arrivals = self.arrivals.lock();
        if let Some(place) = request {
            self.unless_linked(&arrivals.requests.handled(&self.nic, place));
        }
        if let Some(place) = large {
            self.unless_linked(&arrivals.large.handled(&self.nic, place));
        }
    }
}

/// The half of a long whose data is in the segment: the bytes of this event, and the parts before
/// it, which made no event.
///
/// An impossible header yields a place that fits no message.
pub(super) fn long_half(event: &Event) -> Half {
    let before = event.header.saturating_sub(event.moved_bytes);
    Half {
        place: None,
        offset: event.offset_bytes.checked_sub(before).unwrap_or(u64::MAX),
        len: usize::try_from(event.header.max(event.moved_bytes)).unwrap_or(usize::MAX),
    }
}
