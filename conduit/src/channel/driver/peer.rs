//! The state of a peer that a rank has used.

use super::config::{ChannelSizes, REPLY_ROOM};
use super::further_rails::{InboundRail, Striping};
use super::idle::{Closing, Idle};
use super::loans::Loans;
use super::silence::Silence;
use super::wire::Wire;
use crate::channel::CREDIT_BYTES;
use crate::channel::frame::{Fields, HeadBytes, Kind, LONGEST_HEAD, charge};
use crate::channel::operations::Operations;
use crate::channel::rail::Rails;
use crate::channel::stream::{Aside, Bodies, Body, Grant, Parked, ReceiveStream, SendStream};
use crate::conduit::{Completion, OpToken, PrepareRequest, SendError};
use crate::wire::UserPlace;
use argonet_am::credit::Bank;
use argonet_am::record::RecordError;
use argonet_am::system_queue::Slot;
use argonet_am::{AmError, MAX_MEDIUM, MessageClass};
use argonet_base::JobRank;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicU32;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;

// spec T6: a lock for each peer and direction, none over all peers.
/// A peer.
///
/// Of both locks that of `inbound` is taken first.
pub(crate) struct Peer<R: Rails> {
    pub(super) rank: JobRank,
    /// Held by the thread that reads and runs handlers.
    pub(crate) inbound: Mutex<Inbound<R>>,
    /// Held for short, by a thread that sends; never while a handler runs.
    pub(crate) outbound: Mutex<Outbound<R>>,
    /// Further rails that have something to read, a bit each.
    pub(super) ready_rails: AtomicU32,
}

/// The receiving half of a peer.
pub(crate) struct Inbound<R: Rails> {
    pub(super) receive_stream: ReceiveStream,
    pub(super) parked: Parked,
    /// Replies that came while the rank made no call.
    pub(super) replies: Aside,
    pub(super) wire: Option<Wire<R::Rail>>,
    /// The peer waits for an acknowledgement.
    pub(super) ack_requested: bool,
    /// The peer has sent this about the end of all rails, `Close` or `Closed`.
    pub(super) heard_close: Option<Kind>,
    pub(super) silence: Silence,
    pub(super) idle: Idle,
    /// Completions that are being reported to the sink.
    pub(super) completions: VecDeque<(OpToken, Completion, u32)>,
    /// Payloads that come beside the stream.
    pub(super) bodies: Bodies,
    pub(super) rails: Vec<InboundRail<R::Rail>>,
    /// Numbers of rails that have ended and must be asked for again, a bit each.
    pub(super) lost_rails: u32,
}

/// Room that is kept for payloads in preparation.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reserved {
    pub(super) ring: usize,
    pub(super) charge: usize,
    pub(super) owned: usize,
}

impl Reserved {
    /// The room that a payload of so many bytes takes, as it is prepared.
    pub(super) fn of(want: &PrepareRequest, capacity: usize) -> Self {
        if want.class == MessageClass::Reply {
            // It has the room of the largest reply.
            return Self::default();
        }
        let kind = Kind::of(want.class, want.category());
        let (ring, owned) = match capacity <= MAX_MEDIUM {
            true => (capacity, 0),
            false => (0, capacity),
        };
        Self {
            ring: LONGEST_HEAD + ring,
            charge: charge(kind, want.nargs, capacity),
            owned,
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.ring += more.ring;
        self.charge += more.charge;
        self.owned += more.owned;
    }

    pub(super) fn remove(&mut self, less: Self) {
        self.ring -= less.ring;
        self.charge -= less.charge;
        self.owned -= less.owned;
    }
}

/// The sending half of a peer.
pub(crate) struct Outbound<R: Rails> {
    pub(super) send_stream: SendStream,
    pub(super) grant: Grant,
    /// Credits lent in both directions; `None` without flow control.
    pub(super) loans: Option<Box<Loans>>,
    /// The system queue's, which is there without flow control, too.
    pub(super) slot: Slot,
    pub(super) reserved: Reserved,
    pub(super) operations: Operations,
    /// Completions and errors that were not reported to the sink.
    pub(super) reports: VecDeque<(OpToken, Completion, u32)>,
    pub(super) errors: Vec<AmError>,
    pub(super) wire: Option<Wire<R::Rail>>,
    /// Of the first rail; 0 before there was one.
    pub(super) incarnation: u64,
    /// Why nothing can be sent any more.
    pub(super) failed: Option<AmError>,
    /// Ticks when something last left.
    pub(super) left_at: u64,
    /// Ticks when the first gathered message was added.
    pub(super) gathered_at: u64,
    /// Polls since an acknowledgement is due.
    pub(super) patience: u32,
    /// A sleep ends when the first rail takes more.
    pub(super) waits_for_room: bool,
    pub(super) closing: Closing,
    /// Either of the two is so that a write to the first rail may change it.
    pub(super) is_watched: bool,
    /// The first rail has taken less than there was.
    pub(super) is_held_up: bool,
    pub(super) striping: Striping<R::Rail>,
}

/// The sending half while a payload may be lent to it, which is copied when this is dropped, also
/// by a panic between.
pub(super) struct Lending<'a, R: Rails>(MutexGuard<'a, Outbound<R>>);

impl<'a, R: Rails> Lending<'a, R> {
    /// # Safety
    /// A payload that is lent through this can be read until this is dropped.
    #[inline]
    pub(super) unsafe fn new(outbound: MutexGuard<'a, Outbound<R>>) -> Self {
        Self(outbound)
    }
}

impl<R: Rails> Deref for Lending<'_, R> {
    type Target = Outbound<R>;

    #[inline]
    fn deref(&self) -> &Outbound<R> {
        &self.0
    }
}

impl<R: Rails> DerefMut for Lending<'_, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Outbound<R> {
        &mut self.0
    }
}

impl<R: Rails> Drop for Lending<'_, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.send_stream.keep_lent() };
    }
}

impl<R: Rails> Peer<R> {
    pub(super) fn new(
        rank: JobRank,
        sizes: &ChannelSizes,
        bank: Option<&Bank>,
        sends_beside: bool,
    ) -> Self {
        let loans = bank.and_then(Loans::new);
        let window = bank
            .filter(|_| loans.is_some())
            .map_or(sizes.window_bytes, |bank| {
                usize::from(bank.plan().share()) * CREDIT_BYTES
            });
        Self {
            rank,
            inbound: Mutex::new(Inbound {
                receive_stream: ReceiveStream::new(sizes.long_bytes),
                parked: Parked::new(window),
                replies: Aside::default(),
                wire: None,
                ack_requested: false,
                heard_close: None,
                silence: Silence::default(),
                idle: Idle::default(),
                completions: VecDeque::new(),
                bodies: Bodies::default(),
                rails: Vec::new(),
                lost_rails: 0,
            }),
            outbound: Mutex::new(Outbound {
                send_stream: SendStream::new(),
                grant: Grant::new(window),
                loans,
                slot: Slot::default(),
                reserved: Reserved::default(),
                operations: Operations::default(),
                reports: VecDeque::new(),
                errors: Vec::new(),
                wire: None,
                incarnation: 0,
                failed: None,
                left_at: 0,
                gathered_at: 0,
                patience: 0,
                waits_for_room: false,
                closing: Closing::Not,
                is_watched: false,
                is_held_up: false,
                striping: Striping::new(sends_beside),
            }),
            ready_rails: AtomicU32::new(0),
        }
    }
}

impl<R: Rails> Inbound<R> {
    /// Whether something is here that was not taken, or not handled.
    pub(super) fn waits(&self) -> bool {
        let half_way = |rail: &InboundRail<R::Rail>| !rail.receive_stream.is_empty();
        !self.receive_stream.is_empty()
            || self.has_aside()
            || !self.completions.is_empty()
            || !self.bodies.is_empty()
            || self.rails.iter().any(half_way)
    }

    /// Up to where all of the peer's stream has come, with the payloads beside it.
    #[inline]
    pub(super) fn complete(&self) -> u64 {
        self.bodies.complete(self.receive_stream.taken())
    }

    /// Whether messages were set aside.
    pub(super) fn has_aside(&self) -> bool {
        !self.parked.is_empty() || !self.replies.is_empty()
    }
}

impl<R: Rails> Outbound<R> {
    /// Bytes of the ring that requests may still take.
    #[inline]
    pub(super) fn room(&self, sizes: &ChannelSizes) -> usize {
        let taken = self.send_stream.used() + self.reserved.ring + REPLY_ROOM;
        sizes.replay_bytes.saturating_sub(taken)
    }

    /// Whether a request can be sent now that takes so much.
    ///
    /// # Errors
    /// [`SendError::Full`], or why never.
    #[inline]
    pub(super) fn admit(&self, need: Reserved, sizes: &ChannelSizes) -> Result<(), SendError> {
        if let Some(error) = &self.failed {
            return Err(SendError::Message(error.clone()));
        }
        let owned = self.send_stream.owned_bytes() + self.reserved.owned;
        if need.ring > self.room(sizes)
            || !self.grant.allows(need.charge, self.reserved.charge)
            || (need.owned > 0 && owned > 0 && owned + need.owned > sizes.long_bytes)
        {
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// Whether the largest reply has room.
    pub(super) fn has_reply_room(&self, sizes: &ChannelSizes) -> bool {
        let used = self.send_stream.used() + self.reserved.ring + REPLY_ROOM;
        used <= sizes.replay_bytes && self.send_stream.owned_bytes() < 2 * sizes.long_bytes
    }

    /// Reports operations that are complete by the bytes that the peer has taken.
    ///
    /// Whether there is anything to report.
    pub(super) fn taken(&mut self) -> bool {
        let reports = &mut self.reports;
        let released = self.send_stream.released();
        self.operations.taken(released, |op, completion, count| {
            reports.push_back((op, completion, count));
        });
        self.has_reports()
    }

    /// Whether there is something to report to the sink.
    #[inline]
    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty() || !self.errors.is_empty()
    }

    /// Whether something is to be written.
    #[inline]
    pub(super) fn is_unsent(&self) -> bool {
        self.send_stream.unsent() > 0
            || self.wire.is_some() && self.send_stream.is_writing_control()
            || self.striping.is_writing()
            || self.send_stream.waits_for_rail()
    }

    /// Whether something that was written may be lost, as the peer was asked to close the rails.
    pub(super) fn may_be_lost(&mut self) -> bool {
        let positions = self.send_stream.positions();
        let (taken, rests) = (self.send_stream.released(), self.send_stream.rests());
        self.closing.look(positions, taken, rests)
    }

    /// Something may have become such that a write changes it, or such no more.
    pub(super) fn watch(&mut self) {
        self.is_watched = self.waits_for_room || matches!(self.closing, Closing::Asked(..));
    }

    /// Asks for all of a get in one frame, beside a transfer that is under way; false if the peer
    /// has no room for it.
    #[cold]
    pub(super) fn get_at_once(&mut self, place: UserPlace, offset: u64, op: OpToken) -> bool {
        let reserved = self.reserved.charge;
        let (send_stream, grant) = (&mut self.send_stream, &mut self.grant);
        self.operations
            .get_at_once((place, offset, op), send_stream, grant, reserved)
    }

    /// Sends more of an operation that has begun.
    pub(super) fn go_on(&mut self, sizes: &ChannelSizes) {
        let room = self.room(sizes);
        let reserved = self.reserved.charge;
        let (send_stream, grant) = (&mut self.send_stream, &mut self.grant);
        let fragment_bytes = self.striping.fragment_bytes(sizes);
        self.operations
            .go_on(send_stream, grant, reserved, room, fragment_bytes);
    }

    /// Refuses the frame that begins at a position of the peer's stream.
    ///
    /// # Errors
    /// There is no room even for that: the peer goes on although the failure was reported to it.
    pub(super) fn refuse(
        &mut self,
        fields: &Fields,
        sizes: &ChannelSizes,
    ) -> Result<(), RecordError> {
        let head = HeadBytes::new(Kind::Refused, 0, &[], 0, fields);
        let used = self.send_stream.used() + head.as_bytes().len();
        if used > sizes.replay_bytes {
            return Err(RecordError::Payload {
                len: fields.offset.saturating_add(fields.rest),
                max: fields.segment,
            });
        }
        self.send_stream.push(head, Body::Empty, false);
        self.send_stream.hold(fields.position);
        Ok(())
    }

    /// Whether everything that was sent has been handled, and nothing is half way.
    pub(super) fn is_quiescent(&self) -> bool {
        let (used, handled) = self.grant.totals();
        self.failed.is_some()
            || (used == handled
                && self.send_stream.is_quiescent()
                && self.operations.is_empty()
                && !self.has_reports())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::stream::Pieces;
    use crate::tcp::Sockets;
    use argonet_segment::SharedBytes;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_copies_lent_payloads() {
        const LEN: usize = 1 << 14;
        let peer = Peer::<Sockets>::new(JobRank(1), &ChannelSizes::default(), None, false);
        let mut payload = vec![7; LEN];
        let panics = AssertUnwindSafe(|| {
            // SAFETY: the payload outlives this.
            let mut outbound = unsafe { Lending::new(peer.outbound.lock()) };
            let body = Body::Lend(SharedBytes::from_slice(&payload));
            let head = HeadBytes::new(Kind::MediumRequest, 0, &[], LEN, &Fields::default());
            outbound.send_stream.push(head, body, false);
            assert!(outbound.send_stream.is_lent());
            std::panic::resume_unwind(Box::new(()));
        });
        catch_unwind(panics).expect_err("it unwinds");
        payload.fill(0xee);
        let mut outbound = peer.outbound.lock();
        assert!(!outbound.send_stream.is_lent());
        let mut pieces = Pieces::new();
        outbound.send_stream.next_burst(&mut pieces);
        let written: Vec<u8> = pieces
            .as_slice()
            .iter()
            // SAFETY: the send stream keeps its pieces.
            .flat_map(|piece| unsafe { core::slice::from_raw_parts(piece.at, piece.len) })
            .copied()
            .collect();
        let (_, sent) = written.split_at(written.len() - LEN);
        assert!(sent.iter().all(|&byte| byte == 7));
    }
}
