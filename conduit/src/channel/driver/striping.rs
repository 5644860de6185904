//! Payloads beside the stream: which rail writes them, and where they go when they have come.

use super::core::Core;
use super::further_rails::InboundRail;
use super::peer::{Inbound, Outbound, Peer};
use super::peer_poll::{PeerPoll, Went};
use crate::channel::frame::{Frame, Kind};
use crate::channel::rail::{Rail, Rails};
use crate::channel::stream::{Claim, Link, Next, Pieces, ReceiveStream, Wanted, best};
use crate::conduit::Sink;
use argonet_am::record::RecordError;
use argonet_segment::bulk;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::io;

/// Reads of a further rail in one poll.
const READS: usize = 4;

impl<R: Rails> Core<R> {
    /// One rail or all: the bytes that large transfers have moved show which is better.
    pub(super) fn look_at_choice(&self, outbound: &mut Outbound<R>) {
        if outbound.striping.is_beside {
            return;
        }
        let now_ns = self.now_ns();
        let (moved, under_way) = (
            outbound.send_stream.moved(),
            outbound.send_stream.extents() > 0,
        );
        let fragment_bytes = self.sizes.fragment_bytes;
        let choice = &mut outbound.striping.choice;
        choice.look(now_ns, moved, fragment_bytes, under_way);
    }

    // spec T3: fragments of a long payload over several rails.
    /// Hands payloads out to the rails that have them there first, as far as these take them.
    #[cold]
    pub(super) fn stripe(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        self.look_at_choice(outbound);
        let (rails, all) = (
            outbound.striping.rails.len(),
            outbound.striping.leave_stream() && outbound.wire.is_some(),
        );
        outbound.send_stream.set_rails(rails, all);
        if outbound.striping.is_beside && all {
            outbound.send_stream.leave_stream();
        }
        for at in 0..rails {
            self.write_claim(peer, outbound, at);
        }
        while let Some((len, all)) = outbound.send_stream.next_to_stripe() {
            let Some(best) = self.best(outbound, len, all) else {
                return;
            };
            match best {
                // It is written behind the bytes before it.
                None if outbound.send_stream.keep_next() => {
                    self.flush_stream(peer, outbound);
                    if outbound.send_stream.committed() > 0 || outbound.wire.is_none() {
                        return;
                    }
                }
                None => return,
                Some(at) => {
                    let rail = &mut outbound.striping.rails[at];
                    rail.claim = outbound.send_stream.claim(rail.number);
                    self.write_claim(peer, outbound, at);
                }
            }
        }
    }

    /// Lets sleeps end when a further rail takes more of the payload that it has begun.
    ///
    /// Whether there is such a rail.
    #[cold]
    pub(super) fn wait_for_claims(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) -> bool {
        let mut any = false;
        for rail in &mut outbound.striping.rails {
            any |= rail.claim.is_some();
            if rail.claim.is_some() && !rail.waits_for_room {
                rail.waits_for_room = true;
                self.rails
                    .wait_for_room(rail.id(peer.rank), &rail.rail, true);
            }
        }
        any
    }

    /// The rail that takes the next payload: the stream's, or one of the others; `None` if
    /// none takes it now.
    fn best(&self, outbound: &mut Outbound<R>, len: usize, all: u64) -> Option<Option<usize>> {
        let now_ns = self.now_ns();
        // A payload that has left the stream cannot go back to it.
        let with_main = !outbound.striping.is_beside && !outbound.send_stream.waits_for_rail();
        let main_queued = outbound.wire.as_ref().map_or(0, |wire| wire.queued());
        let before = outbound.send_stream.committed();
        let striping = &mut outbound.striping;
        striping.main.look(now_ns, main_queued);
        let mut links = Vec::with_capacity(striping.rails.len() + 1);
        for rail in &mut striping.rails {
            rail.speed.look(now_ns, rail.rail.queued());
            let left = rail.claim.as_ref().map_or(0, Claim::left);
            links.push(Link {
                speed: rail.speed,
                before: left as u64,
            });
        }
        let rails = links.len();
        if with_main {
            let speed = striping.main;
            links.push(Link { speed, before });
        }
        let best = best(&links, len as u64, all)?;
        Some((best < rails).then_some(best))
    }

    /// Writes as much of a further rail's payload as the rail takes.
    fn write_claim(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, at: usize) {
        let rail = &mut outbound.striping.rails[at];
        while let Some(claim) = &mut rail.claim {
            let mut pieces = Pieces::new();
            claim.pieces(&mut pieces);
            // SAFETY: the send stream keeps the payload until it is written or the rail is
            // given up.
            match unsafe { rail.rail.write(&pieces) } {
                Ok(0) => return,
                Ok(bytes) => {
                    rail.speed.wrote(bytes);
                    if claim.wrote(bytes) {
                        let position = claim.position;
                        rail.claim = None;
                        outbound.send_stream.wrote_body(position);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // The thread that reads finds the end of it.
                    rail.rail.shut();
                    return;
                }
            }
        }
        if core::mem::take(&mut rail.waits_for_room) {
            self.rails
                .wait_for_room(rail.id(peer.rank), &rail.rail, false);
        }
    }
}

impl<R: Rails, S: Sink + ?Sized> PeerPoll<'_, R, S> {
    /// Reads further rails that have something.
    #[cold]
    pub(super) fn rails(&mut self, inbound: &mut Inbound<R>) -> Result<Went, RecordError> {
        let ready = self.peer.ready_rails.swap(0, Ordering::Relaxed);
        for number in (1..32).filter(|number| ready & 1 << number != 0) {
            let found = |rail: &InboundRail<R::Rail>| u32::from(rail.number) == number;
            let Some(at) = inbound.rails.iter().position(found) else {
                continue;
            };
            // Out of the way while others are looked at.
            let mut rail = inbound.rails.swap_remove(at);
            let went = self.rail(inbound, &mut rail);
            let number = rail.number;
            inbound.rails.push(rail);
            match went? {
                // Perhaps there is more.
                Took::All => self.again(number),
                Took::Nothing => {}
                Took::End => {
                    self.moved = true;
                    self.core.lost_rail(self.peer, inbound, number);
                }
            }
        }
        Ok(Went::Dry)
    }

    fn again(&self, number: u16) {
        let ready = &self.peer.ready_rails;
        ready.fetch_or(1 << number, Ordering::Relaxed);
        self.core.work.set(self.peer.rank.0);
    }

    fn rail(
        &mut self,
        inbound: &mut Inbound<R>,
        rail: &mut InboundRail<R::Rail>,
    ) -> Result<Took, RecordError> {
        for _ in 0..READS {
            let mut pieces = Pieces::new();
            rail.receive_stream.room(&mut pieces);
            // SAFETY: the receive stream's own memory, and the place of a payload, which its owner
            // keeps writable.
            match unsafe { rail.rail.read(&pieces) } {
                Ok(0) => return Ok(Took::End),
                Ok(bytes) => {
                    self.moved |= self.serves_only;
                    rail.receive_stream.filled(bytes);
                    self.bodies(inbound, rail)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Took::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Took::End),
            }
        }
        Ok(Took::All)
    }

    /// Takes the bodies that have come over a further rail, which carries nothing else.
    fn bodies(
        &mut self,
        inbound: &mut Inbound<R>,
        rail: &mut InboundRail<R::Rail>,
    ) -> Result<(), RecordError> {
        loop {
            match rail.receive_stream.next()? {
                Next::More => return Ok(()),
                Next::Whole(body) => {
                    self.only_bodies(&body)?;
                    let place = self.body_begins(inbound, rail.number, &body)?;
                    copy(&mut rail.receive_stream, &body, place);
                    rail.receive_stream.pass(&body);
                    self.body_here(inbound, &body, place.is_some())?;
                }
                Next::Begun(body) => {
                    self.only_bodies(&body)?;
                    match self.body_begins(inbound, rail.number, &body)? {
                        // SAFETY: a place in this rank's segment, which stays mapped as long as the
                        // conduit, or of a get, which is writable until its completion is reported:
                        // before that, or before another rail brings the same, this one is
                        // cut.
                        Some(place) => unsafe { rail.receive_stream.place(body, place) },
                        None => rail.receive_stream.skip(body),
                    }
                }
                Next::Placed(body) => {
                    rail.receive_stream.pass_behind();
                    self.body_here(inbound, &body, true)?;
                }
                Next::Skipped(body) => {
                    rail.receive_stream.pass_behind();
                    self.body_here(inbound, &body, false)?;
                }
            }
        }
    }

    fn only_bodies(&self, frame: &Frame) -> Result<(), RecordError> {
        let is_body = frame.kind == Kind::Body;
        is_body
            .then_some(())
            .ok_or(RecordError::Kind(frame.kind.into()))
    }

    /// A body begins on some rail: where it goes; `None` if it is thrown away.
    pub(super) fn body_begins(
        &mut self,
        inbound: &mut Inbound<R>,
        number: u16,
        body: &Frame,
    ) -> Result<Option<NonNull<u8>>, RecordError> {
        let (head, position) = (body.of_body()?, body.fields.position);
        let taken = inbound.receive_stream.taken();
        if inbound.bodies.wants(position, taken, &head)? == Wanted::No {
            return Ok(None);
        }
        // Its sender has given up the rail over which it was on its way.
        self.cut(inbound, number, |other| other.fields.position == position);
        self.place_of(&head)
    }

    /// A body is here: in its place, or it was thrown away.
    pub(super) fn body_here(
        &mut self,
        inbound: &mut Inbound<R>,
        body: &Frame,
        placed: bool,
    ) -> Result<(), RecordError> {
        let (head, position) = (body.of_body()?, body.fields.position);
        let taken = inbound.receive_stream.taken();
        self.moved = true;
        if inbound.bodies.wants(position, taken, &head)? == Wanted::No {
            return Ok(());
        }
        match inbound.bodies.body(position, &head, placed)? {
            Some(head) => self.matched(inbound, &head, position, placed),
            None => Ok(()),
        }
    }

    /// A body that is here with all its bytes, on the first rail.
    pub(super) fn whole_body(
        &mut self,
        inbound: &mut Inbound<R>,
        body: &Frame,
    ) -> Result<(), RecordError> {
        let place = self.body_begins(inbound, 0, body)?;
        copy(&mut inbound.receive_stream, body, place);
        self.body_here(inbound, body, place.is_some())
    }

    /// A head whose payload comes as a body.
    pub(super) fn beside(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
    ) -> Result<(), RecordError> {
        let position = inbound.receive_stream.taken();
        self.moved = true;
        match inbound.bodies.head(position, frame)? {
            Some(placed) => self.matched(inbound, frame, position, placed),
            None => Ok(()),
        }
    }

    /// A head and its body are both here.
    fn matched(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
        position: u64,
        placed: bool,
    ) -> Result<(), RecordError> {
        self.budget = self.budget.saturating_sub(1);
        // More than this is complete now.
        inbound.ack_requested |= frame.wants_ack;
        if !placed {
            return self.nowhere_at(inbound, frame, position);
        }
        match frame.kind {
            Kind::Got => self.got(inbound, frame)?,
            _ => self.taken += 1,
        }
        Ok(())
    }

    /// Before anything is acknowledged or reported: payloads that the stream has brought, and that
    /// further rails bring once more, are forgotten, and written no further.
    #[cold]
    pub(super) fn pass_bodies(&mut self, inbound: &mut Inbound<R>) {
        let taken = inbound.receive_stream.taken();
        inbound.bodies.pass(taken);
        let Inbound { rails, bodies, .. } = &*inbound;
        let is_past = |body: &Frame| bodies.is_past(body.fields.position, taken);
        let past = rails.iter().filter(|rail| {
            let placing = rail.receive_stream.placing();
            placing.is_some_and(is_past)
        });
        let past: Vec<u16> = past.map(|rail| rail.number).collect();
        for number in past {
            self.core.lost_rail(self.peer, inbound, number);
        }
    }

    /// Nothing more is written to where an operation's data goes: it is complete, or refused.
    ///
    /// # Errors
    /// The stream itself brings more data for it. A rank that keeps to the protocol sends each byte
    /// once, so all that its stream brings for a get is there before the get is complete.
    pub(super) fn cut_op(&mut self, inbound: &mut Inbound<R>, op: u32) -> Result<(), RecordError> {
        if op == 0 {
            return Ok(());
        }
        if inbound.receive_stream.is_placing_data(op) {
            return Err(RecordError::Kind(Kind::Got.into()));
        }
        self.cut(inbound, u16::MAX, |body| body.fields.op == op);
        Ok(())
    }

    // spec B9: a late payload must not be written after newer data.
    /// Ends all rails but one that are about to place such a body.
    fn cut(&mut self, inbound: &mut Inbound<R>, but: u16, such: impl Fn(&Frame) -> bool) {
        let such = |receive_stream: &ReceiveStream| receive_stream.placing().is_some_and(&such);
        if but != 0 && such(&inbound.receive_stream) {
            self.core.lost(self.peer, inbound);
            inbound.receive_stream.reset();
        }
        let rails = inbound.rails.iter();
        let cut = rails.filter(|rail| rail.number != but && such(&rail.receive_stream));
        let cut: Vec<u16> = cut.map(|rail| rail.number).collect();
        for number in cut {
            self.core.lost_rail(self.peer, inbound, number);
        }
    }
}

/// How far a rail was read.
enum Took {
    /// There may be more.
    All,
    Nothing,
    End,
}

/// Copies the payload of a body that is here with all its bytes.
fn copy(receive_stream: &mut ReceiveStream, body: &Frame, place: Option<NonNull<u8>>) {
    if let Some(place) = place {
        let payload = receive_stream.bytes()[body.head_len()..].as_ptr();
        // SAFETY: the body is here with its payload, and its place was checked.
        unsafe { bulk::copy(place.as_ptr(), payload, body.length) };
    }
}
