//! Requests on their way out.

use super::chunks::Sent;
use super::config::HELD_TICKETS;
use super::core::{Again, Portals};
use super::peer::{Peer, State};
use super::roles;
use super::wire::{Body, HEADER_ARGS, Head, Kind, MOST_PACKED_OFFSET, header};
use crate::conduit::{Injected, Limits, OpToken, SendError};
use argonet_am::credit::{Attempt, PushedBack};
use argonet_am::{Category, MAX_CARRIED, MAX_MEDIUM, Message, Payload};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Ack, DescriptorHandle, NicError, Part, PortalIndex, Portals as Interface, Target,
};
use argonet_segment::SharedBytes;

/// How a message travels, and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) body: Body,
    /// Credits of a request.
    pub(super) cost: u16,
}

impl Shape {
    /// How a message is put to a place of a portal, with the requester's chunk, the number of a
    /// long, and credits.
    #[inline]
    pub(super) fn sent(
        &self,
        message: &Message<'_>,
        (to, portal, place): (JobRank, PortalIndex, u64),
        (chunk, lid, credits): (u32, u32, u8),
    ) -> Sent {
        let (bytes, offset) = parts(&message.payload);
        let head = Head {
            handler: message.handler,
            nargs: message.args.len(),
            kind: self.kind,
            chunk,
            lid,
            credits,
        };
        Sent {
            to,
            portal,
            offset: place,
            len: self.body.len() as u64,
            bits: head.bits(),
            header: header(self.kind, message.args, bytes.len(), offset),
        }
    }
}

/// Resources that a message has taken before it leaves.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) chunk: u32,
    /// Of the data half.
    pub(super) slot: Option<u32>,
    pub(super) temporary: bool,
    pub(super) credits: u8,
    pub(super) lid: u32,
}

/// For how long a payload stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeps {
    /// For the call.
    Call,
    /// Until local completion of this.
    Until(OpToken),
}

/// Limits of the conduit.
pub const LIMITS: Limits = Limits {
    args: MAX_CARRIED,
    medium_request: MAX_MEDIUM,
    medium_reply: MAX_MEDIUM,
    long: usize::MAX / 2,
};

/// Credits fit the byte of the text's form, which `Rules::check` sees to.
const NO_CREDITS: u8 = 0;

impl<N: Interface> Portals<N> {
    /// How a message of that many arguments and bytes travels.
    #[inline]
    pub(super) fn shape(&self, category: Category, nargs: usize, len: usize, offset: u64) -> Shape {
        let fits = |kind| Body::of(kind, nargs, len).len() <= self.packed_bytes;
        let packs =
            || self.sizes.packed_longs && offset <= MOST_PACKED_OFFSET && fits(Kind::PackedLong);
        let kind = match category {
            Category::Short => Kind::Short,
            Category::Medium if fits(Kind::Medium) => Kind::Medium,
            Category::Medium => Kind::LargeMedium,
            Category::Long if packs() => Kind::PackedLong,
            Category::Long => Kind::SplitLong,
        };
        self.shape_as(kind, nargs, len)
    }

    #[inline]
    pub(super) fn shape_as(&self, kind: Kind, nargs: usize, len: usize) -> Shape {
        let body = Body::of(kind, nargs, if kind.is_split() { 0 } else { len });
        let costs = &self.sizes.rules.costs;
        let cost = match kind {
            Kind::LargeMedium | Kind::SplitLong => costs.long(),
            Kind::Medium | Kind::PackedLong => {
                // No more than a chunk, as it was chosen.
                (body.len() as u32).div_ceil(costs.granularity).max(1) as u16
            }
            _ => costs.short(),
        };
        Shape { kind, body, cost }
    }

    /// Takes all that a request needs, or nothing.
    pub(super) fn reserve(
        &self,
        state: &mut State,
        shape: &Shape,
        temporary: bool,
    ) -> Result<Reserved, SendError> {
        // Data that may have found no room would be overtaken; the next poll knows.
        if state.slots > 0 {
            return Err(SendError::Full);
        }
        let is_large = shape.kind == Kind::LargeMedium;
        let tickets = 1 + u32::from(shape.kind.is_split());
        let Some(chunk) = self.send_chunks.free.take_fairly(state.chunks) else {
            return Err(SendError::Full);
        };
        let slot = match is_large {
            true => self.request_slots.take(),
            false => None,
        };
        let has_temporary = !temporary || self.temporaries.take(1);
        // Data that finds no room holds its ticket until its target polls: polls for requests here
        // must not wait for that.
        let has_tickets = has_temporary && self.tickets.take_leaving(tickets, HELD_TICKETS);
        let credits = match has_tickets && slot.is_some() == is_large {
            true => self.pay(state, shape.cost),
            false => None,
        };
        let Some(credits) = credits else {
            self.send_chunks.free.give(chunk);
            if let Some(slot) = slot {
                self.request_slots.give(slot);
            }
            if has_tickets {
                self.tickets.give(tickets);
            }
            if temporary && has_temporary {
                self.temporaries.give(1);
            }
            return Err(SendError::Full);
        };
        state.chunks += 1;
        state.slots += u32::from(slot.is_some());
        state.sent += 1;
        self.begins();
        Ok(Reserved {
            chunk,
            slot,
            temporary,
            credits,
            lid: if shape.kind.is_split() {
                state.lids.draw()
            } else {
                0
            },
        })
    }

    /// The credit byte of a request; `None` if it must wait.
    #[inline]
    pub(super) fn pay(&self, state: &mut State, cost: u16) -> Option<u8> {
        let (Some(credit), Some(bank)) = (&mut state.credit, &self.bank) else {
            return Some(NO_CREDITS);
        };
        let waited = state.attempt.has_stalled();
        match credit.request(cost, &mut state.attempt, bank) {
            Some(tag) => {
                state.attempt = Attempt::default();
                Some(self.sizes.rules.form.pack(tag) as u8)
            }
            None => {
                state.stalls += u64::from(!waited);
                self.show(state);
                None
            }
        }
    }

    /// Sends a request.
    #[inline]
    pub(super) fn send_request(
        &self,
        to: JobRank,
        message: &Message<'_>,
        keeps: Keeps,
    ) -> Result<Injected, SendError> {
        let (category, nargs) = (message.payload.category(), message.args.len());
        let (bytes, offset) = parts(&message.payload);
        LIMITS.check(self.rank, to, category, nargs, bytes.len())?;
        if let Payload::Long(bytes, offset) = message.payload {
            self.check_place(to, offset, bytes.len())?;
        }
        let shape = self.shape(category, nargs, bytes.len(), offset);
        let temporary = shape.kind == Kind::SplitLong && self.needs_temporary(&bytes, keeps);
        let peer = self.peer(to);
        let reserved = self.reserve(&mut peer.state.lock(), &shape, temporary)?;
        self.launch(peer, &shape, reserved, message, keeps)
    }

    /// Whether a payload cannot be sent out of the segment.
    pub(super) fn needs_temporary(&self, bytes: &SharedBytes<'_>, keeps: Keeps) -> bool {
        let stays = self.reads_at_once(bytes.len()) || matches!(keeps, Keeps::Until(_));
        let found = || self.segment.find(bytes.as_ptr(), bytes.len()).is_some();
        !(bytes.is_empty() || stays && found())
    }

    /// Sends a request that has all it needs.
    pub(super) fn launch(
        &self,
        peer: &Peer,
        shape: &Shape,
        reserved: Reserved,
        message: &Message<'_>,
        keeps: Keeps,
    ) -> Result<Injected, SendError> {
        let (bytes, offset) = parts(&message.payload);
        let mut injected = Injected::Complete;
        let mut half_sent = false;
        if shape.kind.is_split() {
            let local = match keeps {
                Keeps::Until(token)
                    if shape.kind == Kind::SplitLong && !self.reads_at_once(bytes.len()) =>
                {
                    Some(token)
                }
                _ => None,
            };
            let to = peer.rank;
            let half = self.half(to, shape.kind, &reserved, &bytes, offset, local, false);
            let sent = match half {
                Ok(Some(half)) => self.start(half).map(|()| true),
                nothing => {
                    self.return_half(peer, &reserved);
                    nothing.map(|_| false)
                }
            };
            match sent {
                Ok(is_sent) => half_sent = is_sent,
                Err(error) => {
                    self.abandon(peer, reserved.chunk, shape.cost);
                    return Err(self.refuses(to, &error).into());
                }
            }
            if half_sent && local.is_some() {
                injected = Injected::Pending;
            }
        }
        let (chunk, credits) = (reserved.chunk, reserved.credits);
        self.fill(&self.send_chunks, chunk, shape, message);
        let to = (peer.rank, roles::REQUESTS, 0);
        let sent = shape.sent(message, to, (chunk, reserved.lid, credits));
        self.send_chunks.note(chunk, sent);
        match self.put_request(chunk, &sent) {
            Ok(()) => Ok(injected),
            // Its data waits for it at the target.
            Err(_) if half_sent => {
                self.send_once_more(Again::Request(chunk));
                Ok(injected)
            }
            Err(error) => {
                self.abandon(peer, chunk, shape.cost);
                Err(self.refuses(peer.rank, &error).into())
            }
        }
    }

    /// Writes a message's bytes into its chunk.
    #[inline]
    pub(super) fn fill(
        &self,
        chunks: &super::chunks::Chunks,
        chunk: u32,
        shape: &Shape,
        message: &Message<'_>,
    ) {
        let body = &shape.body;
        let (bytes, _) = parts(&message.payload);
        if shape.kind == Kind::SplitLong {
            let len = (bytes.len() as u64).to_le_bytes();
            // SAFETY: the chunk is the caller's, the source an array.
            unsafe { chunks.write(chunk, 0, len.as_ptr(), len.len()) };
        }
        if body.args > 0 {
            let first = if shape.kind == Kind::Short {
                HEADER_ARGS
            } else {
                0
            };
            let args = &message.args[first..];
            // SAFETY: as above.
            unsafe { chunks.write(chunk, body.before, args.as_ptr().cast(), args.len() * 4) };
        }
        if body.payload > 0 {
            // SAFETY: the chunk is the caller's, the payload readable.
            unsafe { chunks.write(chunk, body.payload_at(), bytes.as_ptr(), body.payload) };
        }
    }

    /// Puts the request that was recorded for a chunk of ReqSB.
    ///
    /// The ticket goes back when the interface has done it.
    #[inline]
    pub(super) fn put_request(&self, chunk: u32, sent: &Sent) -> Result<(), NicError> {
        let ack = self.ack();
        self.put_chunk(
            self.send_chunks.descriptor,
            self.send_chunks.offset(chunk),
            ack,
            sent,
        )?;
        if self.synchronous {
            self.tickets.give(1);
        }
        Ok(())
    }

    /// How messages are acknowledged whose answer does not say that they have arrived.
    #[inline]
    pub(super) fn ack(&self) -> Ack {
        if self.synchronous {
            Ack::None
        } else {
            Ack::Event
        }
    }

    #[inline]
    pub(super) fn put_chunk(
        &self,
        descriptor: DescriptorHandle,
        at: u64,
        ack: Ack,
        sent: &Sent,
    ) -> Result<(), NicError> {
        let part = Part {
            offset_bytes: at,
            len_bytes: sent.len,
        };
        let target = Target {
            rank: sent.to,
            portal: sent.portal,
            bits: sent.bits,
            offset_bytes: sent.offset,
        };
        self.nic
            .put_region(descriptor, part, ack, target, sent.header)
    }

    /// Gives back the resources that a data half would have needed.
    pub(super) fn return_half(&self, peer: &Peer, reserved: &Reserved) {
        self.tickets.give(1);
        if reserved.temporary {
            self.temporaries.give(1);
        }
        if let Some(slot) = reserved.slot {
            self.request_slots.give(slot);
            peer.state.lock().slots -= 1;
        }
    }

    /// A request that its interface refuses: it was not sent.
    #[cold]
    pub(super) fn abandon(&self, peer: &Peer, chunk: u32, cost: u16) {
        self.send_chunks.answered(chunk, peer.rank);
        self.tickets.give(1);
        self.send_chunks.free.give(chunk);
        let mut state = peer.state.lock();
        state.chunks -= 1;
        state.sent -= 1;
        if let Some(credit) = &mut state.credit {
            // As if a lender with a sufficient loan had refused it. At least `cost` credits are in
            // use.
            let back = PushedBack {
                count: cost,
                loan: u16::MAX,
            };
            let _ = credit.pushed_back(back);
        }
        self.show(&mut state);
        drop(state);
        self.ends();
    }
}

/// Payload and offset of a message.
#[inline]
pub(super) fn parts<'a>(payload: &Payload<'a>) -> (SharedBytes<'a>, u64) {
    match *payload {
        Payload::None => (SharedBytes::from_slice(&[]), 0),
        Payload::Medium(bytes) => (bytes, 0),
        Payload::Long(bytes, offset) => (bytes, offset.0),
    }
}
