//! Sending of requests and replies, and the room that payloads in preparation take.

use super::config::REPLY_ROOM;
use super::core::Core;
use super::peer::{Lending, Outbound, Peer, Reserved};
use crate::channel::frame::{Fields, HeadBytes, Kind, LONGEST_HEAD, charge};
use crate::channel::rail::Rails;
use crate::channel::stream::{Body, Extent};
use crate::conduit::{Limits, OpToken, SendError};
use crate::wire::UserBytes;
use argonet_am::{
    AmError, Category, MAX_MEDIUM, Message, MessageClass, Payload, Registered, ReplyPort,
};
use argonet_base::{JobRank, SegmentOffset};
use core::ptr::NonNull;

/// Payloads that are copied are written first from this length on, so that the peer reads while
/// they are copied.
const LENT_BYTES: usize = 16 << 10;

// The room that is kept for replies is for any of them.
static_assertions::const_assert!(REPLY_ROOM >= LONGEST_HEAD + MAX_MEDIUM);

impl<R: Rails> Core<R> {
    pub(super) fn limits(&self) -> Limits {
        self.sizes.limits()
    }

    /// Whether a message keeps to the limits.
    #[inline]
    pub(super) fn check(
        &self,
        to: JobRank,
        category: Category,
        nargs: usize,
        len: usize,
    ) -> Result<(), AmError> {
        self.check_rank(to)?;
        self.limits().check(self.rank, to, category, nargs, len)
    }

    /// Whether there is such a rank.
    #[inline]
    pub(super) fn check_rank(&self, to: JobRank) -> Result<(), AmError> {
        let (from, size) = (self.rank, self.ranks);
        if to.0 >= size {
            return Err(AmError::NoSuchRank { to, size, from });
        }
        Ok(())
    }

    /// Whether the destination of a long lies in the target's segment, where its length is known
    /// here; else the target checks it.
    #[inline]
    pub(super) fn check_place(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<(), AmError> {
        match (self.segment_len)(to) {
            0 => Ok(()),
            segment => AmError::unless_inside(self.rank, to, offset, len, segment),
        }
    }

    /// Adds a request for which there may be room.
    ///
    /// `stays`: the operation to complete locally when the payload is not read any more.
    #[inline]
    pub(super) fn request(
        &self,
        to: JobRank,
        message: &Message<'_>,
        stays: Option<(OpToken, UserBytes)>,
    ) -> Result<(), SendError> {
        let (category, len) = (message.payload.category(), message.payload.len());
        let nargs = message.args.len();
        self.check(to, category, nargs, len)?;
        if let Payload::Long(_, offset) = message.payload {
            self.check_place(to, offset, len)?;
        }
        let kind = Kind::of(MessageClass::Request, category);
        let copied = if stays.is_some() { 0 } else { len };
        let (in_ring, owned) = if copied <= MAX_MEDIUM {
            (copied, 0)
        } else {
            (0, copied)
        };
        let need = Reserved {
            ring: LONGEST_HEAD + in_ring,
            charge: charge(kind, nargs, len),
            owned,
        };
        let peer = self.peer(to);
        // SAFETY: the payload is the caller's, and the caller waits for this call.
        let mut outbound = unsafe { Lending::new(peer.outbound.lock()) };
        self.admit(peer, &mut outbound, need)?;
        let unsent = outbound.send_stream.unsent();
        let begin = self.add(
            &mut outbound,
            MessageClass::Request,
            message,
            stays.map(|(_, bytes)| bytes),
        );
        outbound.grant.use_up(need.charge);
        if let Some((op, _)) = stays {
            let end = outbound.send_stream.head();
            outbound.operations.note(begin, end, op, true, false);
        }
        self.depart(peer, &mut outbound, unsent);
        Ok(())
    }

    /// Whether something can be sent.
    ///
    /// If not, gathered messages leave, so that room comes.
    #[inline]
    pub(super) fn admit(
        &self,
        peer: &Peer<R>,
        outbound: &mut Outbound<R>,
        need: Reserved,
    ) -> Result<(), SendError> {
        let admitted = outbound.admit(need, &self.sizes);
        if admitted.is_err() {
            self.lack_room(peer, outbound, need);
        }
        admitted
    }

    #[cold]
    fn lack_room(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, need: Reserved) {
        self.lack(peer, outbound, need.charge);
        if outbound.send_stream.wants_to_write() {
            if outbound.wire.is_none() {
                self.connect_for(peer, outbound);
                self.helper.gather();
            }
            self.flush(peer, outbound);
        }
    }

    /// Adds a message for which there is room; where it begins.
    ///
    /// The caller adds one that has a payload through [`Lending`].
    #[inline(always)]
    pub(super) fn add(
        &self,
        outbound: &mut Outbound<R>,
        class: MessageClass,
        message: &Message<'_>,
        stays: Option<UserBytes>,
    ) -> u64 {
        let (payload, offset) = match message.payload {
            Payload::None => (None, 0),
            Payload::Medium(bytes) => (Some(bytes), 0),
            Payload::Long(bytes, offset) => (Some(bytes), offset.0),
        };
        let kind = Kind::of(class, message.payload.category());
        let fields = Fields {
            offset,
            ..Fields::default()
        };
        let len = message.payload.len();
        let head = HeadBytes::new(kind, message.handler.0, message.args, len, &fields);
        let body = match (payload, stays) {
            (None, _) => Body::Empty,
            (_, Some(bytes)) => Body::Stay(Extent::User(bytes)),
            (Some(bytes), _) if bytes.is_empty() => Body::Empty,
            (Some(bytes), _) if (LENT_BYTES..=MAX_MEDIUM).contains(&bytes.len()) => {
                Body::Lend(bytes)
            }
            (Some(bytes), _) if bytes.len() <= MAX_MEDIUM => Body::Copy(bytes),
            (Some(bytes), _) => Body::Stay(Extent::Owned(
                bytes.to_vec().into_boxed_slice(),
                bytes.len(),
            )),
        };
        let is_short = class == MessageClass::Request && outbound.grant.is_short();
        outbound.send_stream.push(head, body, is_short)
    }

    /// Room for a put or get, of which `copied` bytes are copied.
    ///
    /// One of a single frame, which `is_whole` says, does not wait for a transfer that is under
    /// way.
    #[inline]
    pub(super) fn admit_operation(
        &self,
        peer: &Peer<R>,
        outbound: &mut Outbound<R>,
        copied: usize,
        is_whole: bool,
    ) -> Result<(), SendError> {
        let ring = LONGEST_HEAD + copied;
        let has_room = outbound.failed.is_none() && ring <= outbound.room(&self.sizes);
        if !has_room {
            let need = Reserved {
                ring,
                ..Reserved::default()
            };
            self.admit(peer, outbound, need)?;
        }
        match is_whole || outbound.operations.has_room() {
            true => Ok(()),
            false => Err(SendError::Full),
        }
    }

    /// A place in this rank's own segment.
    pub(super) fn own_place(
        &self,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, SendError> {
        self.own(offset.0, len as u64).ok_or_else(|| {
            SendError::Message(AmError::OutsideSegment {
                offset: offset.0,
                len,
                segment: self.own_bytes(),
                from: self.rank,
                to: self.rank,
            })
        })
    }

    /// Whether nothing is half way with any peer.
    pub(super) fn is_quiescent(&self) -> bool {
        self.all_used().all(|peer| {
            let inbound = peer.inbound.try_lock();
            let nothing_here = inbound.is_some_and(|inbound| !inbound.waits());
            nothing_here && peer.outbound.lock().is_quiescent()
        })
    }
}

impl<R: Rails> ReplyPort for Core<R> {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        let (category, len) = (message.payload.category(), message.payload.len());
        self.check(to, category, message.args.len(), len)?;
        if let Payload::Long(_, offset) = message.payload {
            self.check_place(to, offset, len)?;
        }
        // The request was taken only because there is room. It leaves at the end of the poll, or
        // at once where copying takes as long as a call of the system.
        let peer = self.peer(to);
        // SAFETY: the payload is the caller's, and the caller waits for this call.
        let mut outbound = unsafe { Lending::new(peer.outbound.lock()) };
        self.add(&mut outbound, MessageClass::Reply, message, None);
        if outbound.send_stream.is_lent() && to != self.rank {
            self.flush(peer, &mut outbound);
        }
        debug_assert!(
            outbound.send_stream.used() + outbound.reserved.ring <= self.sizes.replay_bytes
        );
        Ok(())
    }

    fn rank(&self) -> JobRank {
        self.rank
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}
