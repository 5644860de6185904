//! Work under the lock of an interface: messages leave, records arrive, peers are lost.

use super::core::{Core, Pending, State};
use super::lane::{Data, Incoming, Lane, Outgoing, Then};
use super::record::Head;
use crate::Dropped;
use crate::datagram::DatagramQueue as _;
use crate::portals::software::{ATOMIC_BYTES, Arrival, Asked, Away, Opened, Request};
use crate::portals::{NicError, Outcome};
use crate::reliable::{Channel, PeerUnreachable, ReliableError};
use argonet_base::JobRank;
use argonet_segment::bulk;
use core::ptr::NonNull;
use core::time::Duration;
use parking_lot::MutexGuard;

/// The channel of all records: messages between two ranks stay in order.
const CHANNEL: Channel = Channel::Data;

/// The lock, held.
pub(super) struct Locked<'a> {
    pub(super) core: &'a Core,
    pub(super) state: MutexGuard<'a, State>,
    pub(super) now: Duration,
}

/// The number of an operation, as the wire has it.
fn id_of((index, generation): (u32, u32)) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

fn place_of(id: u64) -> (u32, u32) {
    (id as u32, (id >> 32) as u32)
}

/// A record that the peer should not have sent; it is dropped.
struct Bad;

impl Locked<'_> {
    fn lane(&mut self, peer: JobRank) -> Option<&mut Lane> {
        let place = self.state.lanes.get_mut(peer.0 as usize)?;
        Some(place.get_or_insert_default())
    }

    /// Has the link ask after the peer while that owes something.
    fn watch(&mut self, peer: JobRank) {
        let now = self.now;
        if let Some(waits) = self.lane(peer).map(|lane| lane.waits()) {
            self.state.endpoint.watch(now, peer, waits);
        }
    }

    fn check(&self, peer: JobRank) -> Result<(), NicError> {
        match self.state.endpoint.check(peer) {
            Ok(()) => self.state.operations.room(),
            Err(ReliableError::Lost(lost)) => Err(self.core.unreachable(lost)),
            Err(error) => Err(NicError::Link(error)),
        }
    }

    /// The error of a peer that was lost.
    pub(super) fn lost(&self, peer: JobRank) -> Option<NicError> {
        match self.state.endpoint.check(peer) {
            Err(ReliableError::Lost(lost)) => Some(self.core.unreachable(lost)),
            _ => None,
        }
    }

    pub(super) fn dropped(&self) -> Dropped {
        self.state.endpoint.counts().dropped(self.state.bad_records)
    }

    #[cold]
    pub(super) fn report_dropped(&self) {
        if let Some(report) = self.core.on_dropped.get() {
            report(self.dropped());
        }
    }

    /// Begins an operation of this rank.
    pub(super) fn begin(&mut self, peer: JobRank, away: Away) -> Result<(), NicError> {
        if let Err(error) = self.check(peer) {
            self.core.software.abandon_away(&away);
            return Err(error);
        }
        let (request, asks) = (away.request(), away.is_answered());
        let (data, len) = match away.source() {
            Some(memory) => (Data::Memory(memory), request.len),
            None => (Data::None, 0),
        };
        let gone = false;
        let pending = Pending { peer, away, gone };
        let id = id_of(self.state.operations.insert(pending));
        let head = Head::Request { request, asks, id };
        let message = Outgoing::new(head, data, len, Then::Gone(id));
        if let Some(lane) = self.lane(peer) {
            lane.ask(message);
        }
        if asks {
            self.watch(peer);
        }
        self.pump(peer);
        Ok(())
    }

    /// Gives the link the records that it takes for a peer, and the wire the datagrams that the
    /// link sends.
    pub(super) fn pump(&mut self, peer: JobRank) {
        while self.pump_one(peer) {}
        self.transmit();
    }

    fn pump_one(&mut self, peer: JobRank) -> bool {
        let state = &mut *self.state;
        let lane = state.lanes.get_mut(peer.0 as usize);
        let Some(lane) = lane.and_then(|lane| lane.as_deref_mut()) else {
            return false;
        };
        let Some(message) = lane.next(self.core.answers) else {
            return false;
        };
        if !state.endpoint.room(peer, CHANNEL) {
            return false;
        }
        let (head, len) = message.next(state.endpoint.record_bytes());
        let fill = |record: &mut [u8]| message.write(&head, record);
        let submitted = state
            .endpoint
            .submit(self.now, peer, CHANNEL, head.bytes() + len, fill);
        if submitted.is_err() {
            // The peer was lost; an event reports that.
            return false;
        }
        let is_answer = message.is_answer();
        match lane.went(is_answer, len) {
            None | Some(Then::Nothing) => {}
            Some(Then::Gone(id)) => self.request_is_gone(id),
            Some(Then::Close(opened)) => {
                self.core.software.close(opened, Outcome::Done);
            }
        }
        true
    }

    /// All of a request was given to the link: its operation ends if no answer is due.
    fn request_is_gone(&mut self, id: u64) {
        let (index, generation) = place_of(id);
        let Ok(pending) = self.state.operations.get_mut(index, generation) else {
            return;
        };
        pending.gone = true;
        let moved = pending.away.request().len;
        if !pending.away.is_answered() {
            self.finish(
                id,
                Arrival {
                    outcome: Outcome::Done,
                    moved,
                    acknowledged: false,
                },
            );
        }
    }

    pub(super) fn transmit(&mut self) {
        while let Some(transmit) = self.state.endpoint.poll_transmit(self.now) {
            self.core.wire.send(transmit.peer.0, transmit.bytes);
        }
    }

    /// A datagram has arrived.
    ///
    /// The caller sends the answers later, with those to others of its batch.
    pub(super) fn arrive(&mut self, datagram: &mut [u8]) {
        let state = &mut *self.state;
        let takes = !state.stopping;
        let arrived = state.endpoint.handle_recv(self.now, datagram, |_, _| takes);
        let Some(arrived) = arrived else {
            self.report_dropped();
            return;
        };
        let peer = arrived.peer;
        if let Some(record) = arrived.record {
            self.take_record(peer, datagram.get(record).unwrap_or_default());
        }
        while takes && let Some(record) = self.state.endpoint.take(self.now, peer, CHANNEL) {
            self.take_record(peer, record.bytes());
            self.state.endpoint.recycle(record);
        }
        while self.pump_one(peer) {}
    }

    fn take_record(&mut self, peer: JobRank, record: &[u8]) {
        let taken = match Head::read(record) {
            Some((Head::Request { request, asks, id }, data)) => {
                self.take_request(peer, request, asks, id, data)
            }
            Some((Head::Answer { arrival, id }, data)) => self.take_answer(peer, arrival, id, data),
            Some((Head::More { at }, data)) => self.take_more(peer, at, data),
            None => Err(Bad),
        };
        if taken.is_err() {
            self.state.bad_records += 1;
            self.report_dropped();
        }
    }

    /// Nothing else may come before all of a message has.
    fn is_between_messages(&mut self, peer: JobRank) -> Result<(), Bad> {
        match self.lane(peer).map(|lane| &lane.incoming) {
            Some(Incoming::None) => Ok(()),
            _ => Err(Bad),
        }
    }

    fn set_incoming(&mut self, peer: JobRank, incoming: Incoming) {
        if let Some(lane) = self.lane(peer) {
            lane.incoming = incoming;
        }
        self.watch(peer);
    }

    fn take_request(
        &mut self,
        peer: JobRank,
        request: Request,
        asks: bool,
        id: u64,
        data: &[u8],
    ) -> Result<(), Bad> {
        self.is_between_messages(peer)?;
        let most_answers = self.core.answers;
        let is_answered = asks || matches!(request.asked, Asked::Get | Asked::Fetch { .. });
        let has_room = |lane: &mut Lane| lane.has_room_for_answer(most_answers);
        if is_answered && !self.lane(peer).is_some_and(has_room) {
            return Err(Bad);
        }
        let come = data.len() as u64;
        match request.asked {
            Asked::Get if come == 0 => {
                self.begin_get(peer, &request, id);
                Ok(())
            }
            Asked::Put if come < request.len => {
                let place = self.core.software.open(&request, peer);
                if let Ok(opened) = &place {
                    put_piece(opened, 0, data);
                }
                self.set_incoming(
                    peer,
                    Incoming::Put {
                        request,
                        asks,
                        id,
                        place,
                        come,
                    },
                );
                Ok(())
            }
            Asked::Put if come == request.len => {
                self.carry(peer, &request, asks, id, data);
                Ok(())
            }
            Asked::Atomic { op, kind } | Asked::Fetch { op, kind, .. } => {
                let fetches = matches!(request.asked, Asked::Fetch { .. });
                let objection =
                    kind.objection(op, request.len, request.offset, fetches, ATOMIC_BYTES);
                if objection.is_some() || come != request.len {
                    return Err(Bad);
                }
                self.carry(peer, &request, asks, id, data);
                Ok(())
            }
            Asked::Get | Asked::Put => Err(Bad),
        }
    }

    /// Carries an operation that is all here: a put, or an atomic operation of no more than
    /// `ATOMIC_BYTES`.
    fn carry(&mut self, peer: JobRank, request: &Request, asks: bool, id: u64, data: &[u8]) {
        let mut found = [0_u8; ATOMIC_BYTES as usize];
        let from = NonNull::from(data).cast();
        let fetched = NonNull::from(&mut found).cast();
        // SAFETY: the data has the request's length, as both callers have seen, and is read only;
        // an atomic operation writes at most the length of the array, which is nowhere else, and
        // other operations write nothing there.
        let arrival = unsafe { self.core.software.arrive(request, peer, from, fetched) };
        let data = match request.asked {
            Asked::Fetch { .. } => found.get(..arrival.moved as usize).unwrap_or_default(),
            _ => &[],
        };
        if asks {
            self.answer(peer, id, arrival, data);
        }
    }

    fn answer(&mut self, peer: JobRank, id: u64, arrival: Arrival, found: &[u8]) {
        let mut word = [0; 8];
        let data = match word.get_mut(..found.len()) {
            Some(place) => {
                place.copy_from_slice(found);
                Data::Word(word)
            }
            None => Data::Kept(found.into()),
        };
        let head = Head::Answer { arrival, id };
        self.queue_answer(
            peer,
            Outgoing::new(head, data, found.len() as u64, Then::Nothing),
        );
    }

    fn queue_answer(&mut self, peer: JobRank, answer: Outgoing) {
        if let Some(lane) = self.lane(peer) {
            lane.answer(answer);
        }
    }

    fn begin_get(&mut self, peer: JobRank, request: &Request, id: u64) {
        match self.core.software.open(request, peer) {
            Err(arrival) => self.answer(peer, id, arrival, &[]),
            Ok(opened) => {
                let arrival = Arrival {
                    outcome: Outcome::Done,
                    moved: opened.moved,
                    acknowledged: true,
                };
                let head = Head::Answer { arrival, id };
                let data = Data::Memory(opened.memory);
                let answer = Outgoing::new(head, data, opened.moved, Then::Close(opened));
                self.queue_answer(peer, answer);
            }
        }
    }

    /// An operation of this rank for a peer, all of whose request has gone.
    fn pending(&self, peer: JobRank, id: u64) -> Result<&Away, Bad> {
        let (index, generation) = place_of(id);
        let pending = self.state.operations.get(index, generation);
        let pending = pending.ok().filter(|p| p.peer == peer && p.gone);
        pending.map(|p| &p.away).ok_or(Bad)
    }

    fn take_answer(
        &mut self,
        peer: JobRank,
        arrival: Arrival,
        id: u64,
        data: &[u8],
    ) -> Result<(), Bad> {
        self.is_between_messages(peer)?;
        let away = self.pending(peer, id)?;
        let come = data.len() as u64;
        let wanted = away
            .destination()
            .filter(|_| arrival.outcome == Outcome::Done)
            .map_or(0, |_| arrival.moved);
        if arrival.moved > away.request().len || come > wanted {
            self.finish(id, Arrival::failed(Outcome::Corrupt));
            return Err(Bad);
        }
        get_piece(away, 0, data);
        if come == wanted {
            self.finish(id, arrival);
        } else {
            self.set_incoming(peer, Incoming::Answer { id, arrival, come });
        }
        Ok(())
    }

    fn take_more(&mut self, peer: JobRank, at: u64, data: &[u8]) -> Result<(), Bad> {
        let more = data.len() as u64;
        let incoming = match self.lane(peer) {
            Some(lane) => core::mem::replace(&mut lane.incoming, Incoming::None),
            None => return Err(Bad),
        };
        let (next, good) = match incoming {
            Incoming::Put {
                request,
                asks,
                id,
                place,
                come,
            } if at == come && more <= request.len - come => {
                if let Ok(opened) = &place {
                    put_piece(opened, come, data);
                }
                let come = come + more;
                if come == request.len {
                    let close = |opened| self.core.software.close(opened, Outcome::Done);
                    let arrival = place.map_or_else(|failed| failed, close);
                    if asks {
                        self.answer(peer, id, arrival, &[]);
                    }
                    (Incoming::None, true)
                } else {
                    let put = Incoming::Put {
                        request,
                        asks,
                        id,
                        place,
                        come,
                    };
                    (put, true)
                }
            }
            Incoming::Answer { id, arrival, come }
                if at == come && more <= arrival.moved - come =>
            {
                if let Ok(away) = self.pending(peer, id) {
                    get_piece(away, come, data);
                }
                let come = come + more;
                if come == arrival.moved {
                    self.finish(id, arrival);
                    (Incoming::None, true)
                } else {
                    (Incoming::Answer { id, arrival, come }, true)
                }
            }
            other => (other, false),
        };
        self.set_incoming(peer, next);
        if good { Ok(()) } else { Err(Bad) }
    }

    /// Ends an operation of this rank.
    fn finish(&mut self, id: u64, arrival: Arrival) {
        let (index, generation) = place_of(id);
        let Some(pending) = self.state.operations.remove(index, generation) else {
            return;
        };
        if pending.away.is_answered() {
            if let Some(lane) = self.lane(pending.peer) {
                lane.answered();
            }
            self.watch(pending.peer);
        }
        self.core.software.end_away(&pending.away, arrival);
    }

    /// Handles timers that are due.
    pub(super) fn handle_timeout(&mut self) {
        self.state.endpoint.handle_timeout(self.now);
        while let Some(lost) = self.state.endpoint.poll_event() {
            self.lose(&lost);
        }
        self.transmit();
    }

    /// A peer was lost: operations under way to it and from it end.
    fn lose(&mut self, lost: &PeerUnreachable) {
        let place = self.state.lanes.get_mut(lost.peer.0 as usize);
        if let Some(lane) = place.and_then(Option::take) {
            for opened in lane.into_opened() {
                self.core.software.close(opened, Outcome::PeerDied);
            }
        }
        let operations = self.state.operations.entries();
        let theirs = operations.filter(|(_, _, pending)| pending.peer == lost.peer);
        let theirs: Vec<u64> = theirs.map(|(i, g, _)| id_of((i, g))).collect();
        for id in theirs {
            self.finish(id, Arrival::failed(Outcome::PeerDied));
        }
    }
}

/// Puts a piece of a message to its place; bytes beyond the entry are dropped.
fn put_piece(opened: &Opened, at: u64, data: &[u8]) {
    let room = opened.moved.saturating_sub(at).min(data.len() as u64);
    // SAFETY: at + room <= moved, which the entry has from `memory` on; it stays until it is
    // closed. `at` is within it wherever room is not 0.
    unsafe {
        if room != 0 {
            let to = opened.memory.as_ptr().add(at as usize);
            bulk::copy(to, data.as_ptr(), room as usize);
        }
    }
}

/// Puts a piece of an answer to its place.
fn get_piece(away: &Away, at: u64, data: &[u8]) {
    let room = away.request().len.saturating_sub(at);
    if let Some(to) = away.destination()
        && data.len() as u64 <= room
    {
        // SAFETY: at + the piece is within the operation's part of a descriptor, which stays until
        // the operation has ended.
        unsafe { bulk::copy(to.as_ptr().add(at as usize), data.as_ptr(), data.len()) };
    }
}
