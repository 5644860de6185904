//! Arrivals by the queue that is always safe to poll: replies, acknowledgements, answers to gets.

use super::arrivals::{Half, Parsed, Reply, Returns};
use super::core::{Again, Portals};
use super::large::Lies;
use super::operations::{Operation, Source, Then};
use super::peer::Peer;
use super::requests::long_half;
use super::roles::{self, Role};
use super::wire::{Head, Kind, handle_of, lid_of};
use crate::conduit::{Completion, Sink};
use argonet_am::credit::PushedBack;
use argonet_am::record::RecordError;
use argonet_am::{AmError, MessageClass};
use argonet_base::JobRank;
use argonet_base::kept::Kept;
use argonet_nic::portals::{
    DescriptorHandle, Event, EventKind, NicError, Outcome, Portals as Interface,
};
use argonet_segment::bulk;
use core::sync::atomic::Ordering;

impl<N: Interface + Send + Sync> Portals<N> {
    /// Takes up to the limit of events; how many of them have moved something.
    pub(super) fn take_safe<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let queue = self.queues.safe;
        let Some(_turn) = self.turns[1].try_lock() else {
            return 0;
        };
        // Puts of which one event completes both parts.
        let mut both = 0;
        let (mut taken, mut in_vain) = (0, 0);
        while self.goes_on(self.sizes.safe_events, taken) {
            let (event, half) = {
                let mut returns = self.returns.lock();
                match self.nic.queue_get(queue) {
                    Ok(Some(event)) => (event, self.follow_buffers(&mut returns, &event)),
                    Ok(None) => break,
                    Err(error) => {
                        sink.on_error(self.refuses(self.rank, &error));
                        break;
                    }
                }
            };
            taken += 1;
            in_vain += usize::from(self.is_lost(&event));
            let done = half.and_then(|half| match half {
                Some(half) => self.reply_half(event.peer, lid_of(event.bits), half, sink),
                None => self.safe_event(&event, &mut both, sink),
            });
            if let Err(error) = done {
                sink.on_error(error);
            }
        }
        if taken > 0 {
            self.tried(in_vain > 0);
        }
        taken + both - in_vain
    }

    /// Whether an event says that something has to be sent again.
    fn is_lost(&self, event: &Event) -> bool {
        let large = [roles::LARGE_REQUESTS, roles::LARGE_REPLIES];
        // The source of others may be gone when the interface is synchronous; nothing was reported
        // complete then, and the peer is lost. No portal has flow control: a rank that disables one
        // has ended.
        event.outcome == Outcome::NoMatch && (!self.synchronous || large.contains(&event.portal))
    }

    /// Follows the buffers of large mediums by an event; its data if that is in one of them.
    fn follow_buffers(
        &self,
        returns: &mut Returns,
        event: &Event,
    ) -> Result<Option<Half>, AmError> {
        match Role::of(event.user) {
            Some((Role::LargeReply, buffer)) => {
                self.follow_large(&mut returns.large, buffer, event)
            }
            _ => Ok(None),
        }
    }

    fn safe_event<S: Sink + ?Sized>(
        &self,
        event: &Event,
        both: &mut usize,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let done = event.outcome == Outcome::Done;
        let lost = self.is_lost(event);
        match (event.kind, Role::of(event.user)) {
            (EventKind::PutEnd, Some((Role::Reply, _))) if done => self.reply_came(event, sink),
            (EventKind::PutEnd, Some((Role::LongReply, _))) if done => {
                self.reply_half(event.peer, lid_of(event.bits), long_half(event), sink)
            }
            (EventKind::Ack | EventKind::ReplyEnd, Some((Role::Operation, _))) => {
                self.operation_ends(event, both, sink)
            }
            (EventKind::Ack, Some((Role::SentRequest, _))) => {
                match self.send_chunks.at(event.offset_bytes) {
                    Some(chunk) if lost => self.send_again(Again::Request(chunk)),
                    _ => self.tickets.give(1),
                }
                self.unless_undelivered(event, "a request")
            }
            (EventKind::Ack, Some((Role::SentReply, _))) => {
                match self.reply_chunks.at(event.offset_bytes) {
                    Some(chunk) if lost => self.send_again(Again::Reply(chunk)),
                    Some(chunk) => self.replied(chunk),
                    None => {}
                }
                self.unless_undelivered(event, "a reply")
            }
            _ => Ok(()),
        }
    }

    /// Reports a message that has not arrived, is not sent again, and was not for a rank that has
    /// ended.
    fn unless_undelivered(&self, event: &Event, what: &str) -> Result<(), AmError> {
        if self.is_lost(event)
            || matches!(
                event.outcome,
                Outcome::Done | Outcome::Refused | Outcome::Disabled
            )
        {
            return Ok(());
        }
        let why = format_args!("{what} ended with {:?}", event.outcome);
        Err(self.refuses(event.peer, &why))
    }

    /// A reply is in its request's chunk.
    #[inline]
    fn reply_came<S: Sink + ?Sized>(&self, event: &Event, sink: &mut S) -> Result<(), AmError> {
        let from = event.peer;
        let broken = |cause| self.broken(from, cause);
        let head = Head::of(event.bits).map_err(broken)?;
        let chunk = self.send_chunks.at(event.offset_bytes);
        let chunk = chunk.filter(|chunk| *chunk == head.chunk);
        let not_asked = || broken(RecordError::Kind(head.kind.into()));
        let chunk = chunk.ok_or_else(not_asked)?;
        if head.kind == Kind::Refused {
            let known = self.send_chunks.sent(chunk);
            known.filter(|sent| sent.to == from).ok_or_else(not_asked)?;
            return self.refused(from, chunk, event.header);
        }
        let memory = self.send_chunks.memory(chunk);
        // SAFETY: the interface has moved so many bytes there, in a chunk of this rank.
        let parsed = unsafe { Parsed::read(head, event.header, memory, event.moved_bytes) };
        let parsed = parsed.map_err(broken)?;
        let answered = self.send_chunks.answered(chunk, from);
        answered.ok_or_else(not_asked)?;
        let peer = self.peer(from);
        if let Some(bank) = &self.bank {
            let mut state = peer.state.lock();
            if let Some(credit) = &mut state.credit {
                let tag = self.sizes.rules.form.unpack(head.credits.into());
                let back = tag.and_then(|tag| credit.replied(tag, bank));
                back.map_err(|error| broken(error.into()))?;
                self.show(&mut state);
            }
        }
        let reply = Reply { parsed, chunk };
        if !parsed.has_half() {
            return self.run_reply(peer, &reply, None, sink);
        }
        let kept = self.returns.lock().halves.header(from.0, head.lid, reply);
        match kept {
            Ok(Some((reply, half))) => self.run_reply(peer, &reply, Some(half), sink),
            Ok(None) => Ok(()),
            Err(error) => Err(self.refuses(from, &error)),
        }
    }

    /// A request found no room at its target.
    #[cold]
    fn refused(&self, from: JobRank, chunk: u32, header: u64) -> Result<(), AmError> {
        let back = PushedBack {
            count: header as u16,
            loan: (header >> 16) as u16,
        };
        let mut state = self.peer(from).state.lock();
        if let Some(credit) = &mut state.credit {
            let refunded = credit.pushed_back(back);
            refunded.map_err(|error| self.broken(from, error.into()))?;
            self.show(&mut state);
        }
        drop(state);
        self.send_again(Again::Refused(chunk));
        Ok(())
    }

    /// The data of a reply is here.
    fn reply_half<S: Sink + ?Sized>(
        &self,
        from: JobRank,
        lid: u32,
        half: Half,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let kept = self.returns.lock().halves.data(from.0, lid, half);
        match kept {
            Ok(Some((reply, half))) => self.run_reply(self.peer(from), &reply, Some(half), sink),
            Ok(None) => Ok(()),
            Err(error) => {
                self.leave_reply(half.place);
                Err(self.refuses(from, &error))
            }
        }
    }

    /// Runs the handler of a reply that is all here; its chunk is free then.
    fn run_reply<S: Sink + ?Sized>(
        &self,
        peer: &Peer,
        reply: &Reply,
        half: Option<Half>,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let parsed = &reply.parsed;
        let large = half.and_then(|half| half.place);
        let memory = || match large {
            Some(large) => self.returns.lock().large.memory(large),
            None => self.send_chunks.memory(reply.chunk),
        };
        let result = match parsed.head.kind {
            Kind::Empty => Ok(()),
            _ => self.deliver(peer.rank, MessageClass::Reply, parsed, half, memory, sink),
        };
        self.leave_reply(large);
        {
            let mut state = peer.state.lock();
            state.chunks -= 1;
            state.answered += 1;
        }
        self.send_chunks.free.give(reply.chunk);
        self.ends();
        result
    }

    fn leave_reply(&self, large: Option<Lies>) {
        if let Some(place) = large {
            let handled = self.returns.lock().large.handled(&self.nic, place);
            self.unless_linked(&handled);
        }
    }

    /// A put, a get or the data half of a message is acknowledged.
    // spec P3: ACK and REPLY complete operations.
    fn operation_ends<S: Sink + ?Sized>(
        &self,
        event: &Event,
        both: &mut usize,
        sink: &mut S,
    ) -> Result<(), AmError> {
        let handle = handle_of(event.bits);
        if self.is_lost(event) {
            self.send_again(Again::Operation(handle));
            return Ok(());
        }
        let Some(mut operation) = self.table.lock().remove(handle) else {
            return Ok(());
        };
        let part = operation.transfer.part(self.message_bytes);
        let is_here = event.outcome == Outcome::Done && event.moved_bytes == part;
        if is_here && let Some(rest) = operation.transfer.rest(part) {
            operation.transfer = rest;
            let started = self.start(operation);
            self.ends();
            return started.map_err(|error| self.refuses(rest.to, &error));
        }
        let Operation {
            transfer,
            source,
            then,
        } = operation;
        if is_here {
            match then {
                Then::Put(token, local) => {
                    if local {
                        *both += 1;
                        sink.completed(token, Completion::Local);
                    }
                    sink.completed(token, Completion::Remote);
                }
                Then::Get(token, place) => {
                    if let Source::Bounce(chunk) = source {
                        let from = self.send_chunks.memory(chunk);
                        // SAFETY: the client keeps the place until this operation is complete; the
                        // chunk is this operation's.
                        unsafe { bulk::copy(place.as_ptr(), from.as_ptr(), place.len()) };
                    }
                    sink.completed(token, Completion::Remote);
                }
                Then::Half(Some(token)) => sink.completed(token, Completion::Local),
                Then::Half(None) => {}
            }
        }
        self.operation_is_over(transfer.to, source);
        match is_here {
            true => Ok(()),
            false => {
                let what = format_args!(
                    "{} of {} bytes at offset {} ended with {:?} after {} bytes at portal {}",
                    if transfer.gets { "a get" } else { "a put" },
                    transfer.len,
                    transfer.offset,
                    event.outcome,
                    event.moved_bytes,
                    transfer.portal.0
                );
                Err(self.refuses(transfer.to, &what))
            }
        }
    }
}

impl<N: Interface> Portals<N> {
    /// Gives back an operation's memory, and its ticket.
    pub(super) fn operation_is_over(&self, to: JobRank, source: Source) {
        self.leave_source(to, source);
        self.tickets.give(1);
        self.ends();
    }

    /// Gives back the memory that an operation moved its bytes from or to.
    pub(super) fn leave_source(&self, to: JobRank, source: Source) {
        match source {
            Source::Segment => {}
            Source::Bounce(chunk) => self.send_chunks.free.give(chunk),
            Source::Slot(slot) => match self.slots.as_reply(slot) {
                Some(number) => {
                    self.reply_halves.fetch_sub(1, Ordering::Relaxed);
                    self.reply_slots.give(number);
                }
                None => {
                    self.peer(to).state.lock().slots -= 1;
                    self.request_slots.give(slot);
                }
            },
            Source::Temporary(descriptor, memory) => self.release(descriptor, memory),
        }
    }

    /// Releases a temporary descriptor, whose one operation is over.
    ///
    /// While the interface does not it is kept, with its memory.
    pub(super) fn release(&self, descriptor: DescriptorHandle, memory: Option<Kept<u8>>) {
        match self.nic.release(descriptor) {
            Ok(()) | Err(NicError::BadHandle { .. }) => self.temporaries.give(1),
            Err(_) => {
                self.send_again(Again::Release(descriptor, memory));
            }
        }
    }
}
