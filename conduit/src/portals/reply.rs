//! Replies on their way out: into the chunk that the request came from.

use super::chunks::Sent;
use super::config::HELD_TICKETS;
use super::core::{Again, Portals};
use super::peer::{Hold, Open, Peer};
use super::roles;
use super::send::{Keeps, LIMITS, Reserved, Shape, parts};
use super::wire::Kind;
use argonet_am::credit::PushedBack;
use argonet_am::{AmError, Message, Payload, Registered, ReplyPort};
use argonet_base::{HandlerIndex, JobRank};
use argonet_nic::portals::{NicError, Portals as Interface};
use core::sync::atomic::Ordering;

/// The handler that a message without one names.
const NO_HANDLER: HandlerIndex = HandlerIndex(0);

/// The message of a reply that only says that there is none.
fn nothing<'a>() -> Message<'a> {
    Message {
        handler: NO_HANDLER,
        args: &[],
        payload: Payload::None,
    }
}

impl<N: Interface> Portals<N> {
    /// Refuses a reply that cannot be sent as it is.
    pub(super) fn check_reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        let (category, len) = (message.payload.category(), message.payload.len());
        LIMITS.check(self.rank, to, category, message.args.len(), len)?;
        if let Payload::Long(_, offset) = message.payload {
            self.check_place(to, offset, len)?;
        }
        Ok(())
    }

    /// Replies to a request; all that is needed is in hand.
    // spec P6: replies go into the originating chunk.
    pub(super) fn answer(
        &self,
        peer: &Peer,
        open: Open,
        message: &Message<'_>,
        shape: &Shape,
    ) -> Result<(), AmError> {
        let (bytes, offset) = parts(&message.payload);
        let mut state = peer.state.lock();
        let credits = self.give_back(&mut state, peer.rank, open.debt);
        let lid = if shape.kind.is_split() {
            state.lids.draw()
        } else {
            0
        };
        drop(state);
        let Hold { chunk, slot } = open.hold;
        let is_large = shape.kind == Kind::LargeMedium && !bytes.is_empty();
        let temporary = shape.kind == Kind::SplitLong && self.needs_temporary(&bytes, Keeps::Call);
        let mut tickets = HELD_TICKETS - 1;
        if !is_large {
            self.reply_slots.give(slot);
        }
        if !temporary {
            self.temporaries.give(1);
        }
        let mut failed = None;
        let mut sent = (message, shape);
        if shape.kind.is_split() {
            let reserved = Reserved {
                chunk,
                slot: is_large.then(|| self.slots.of_reply(slot)),
                temporary,
                credits,
                lid,
            };
            let half = self.half(peer.rank, shape.kind, &reserved, &bytes, offset, None, true);
            match half {
                Ok(None) => {}
                Ok(Some(half)) => {
                    tickets -= 1;
                    if is_large {
                        self.reply_halves.fetch_add(1, Ordering::Relaxed);
                    }
                    failed = self.start(half).err();
                }
                Err(error) => {
                    if temporary {
                        self.temporaries.give(1);
                    }
                    failed = Some(error);
                }
            }
        }
        let (nothing, empty) = (nothing(), self.shape_as(Kind::Empty, 0, 0));
        if failed.is_some() {
            // The requester gets its own resources back, and would wait for the data forever.
            sent = (&nothing, &empty);
        }
        let (message, shape) = sent;
        self.tickets.give(tickets);
        self.fill(&self.reply_chunks, chunk, shape, message);
        // All ranks have chunks of one size.
        let to = (
            peer.rank,
            roles::REPLIES,
            self.send_chunks.offset(open.chunk),
        );
        let sent = shape.sent(message, to, (open.chunk, lid, credits));
        self.send_reply(chunk, sent);
        match failed {
            None => Ok(()),
            Some(error) => Err(self.refuses(peer.rank, &error)),
        }
    }

    /// Sends the contents of a chunk of RplSB.
    ///
    /// The requester waits for them, so an interface that refuses is asked again.
    fn send_reply(&self, chunk: u32, sent: Sent) {
        self.reply_chunks.note(chunk, sent);
        if self.put_reply(chunk, &sent).is_err() {
            self.send_once_more(Again::Reply(chunk));
        }
    }

    /// The credit tag of a reply.
    fn give_back(
        &self,
        state: &mut super::peer::State,
        rank: JobRank,
        debt: Option<argonet_am::credit::Debt>,
    ) -> u8 {
        match (&mut state.credit, &self.bank, debt) {
            (Some(credit), Some(bank), Some(debt)) => {
                let tag = credit.reply(debt, rank.0, bank);
                self.show(state);
                self.sizes.rules.form.pack(tag) as u8
            }
            _ => 0,
        }
    }

    /// Puts the reply that was recorded for a chunk of RplSB.
    ///
    /// Chunk and ticket go back when the interface has done it.
    #[inline]
    pub(super) fn put_reply(&self, chunk: u32, sent: &Sent) -> Result<(), NicError> {
        let at = self.reply_chunks.offset(chunk);
        let put = self.put_chunk(self.reply_chunks.descriptor, at, self.ack(), sent);
        if self.synchronous && put.is_ok() {
            self.replied(chunk);
        }
        put
    }

    /// A reply has left.
    pub(super) fn replied(&self, chunk: u32) {
        self.reply_chunks.free.give(chunk);
        self.tickets.give(1);
    }

    /// A request whose handler has not replied gets a reply all the same.
    // spec P6: automatic empty replies.
    pub(super) fn answer_nothing(&self, peer: &Peer, open: Open) -> Result<(), AmError> {
        let shape = self.shape_as(Kind::Empty, 0, 0);
        self.answer(peer, open, &nothing(), &shape)
    }

    /// Sends a request back that found no room: its sender pays again and sends it again.
    // spec P8: a request that falls into the catch-basin is pushed back.
    #[cold]
    pub(super) fn push_back(
        &self,
        to: JobRank,
        chunk: u32,
        back: PushedBack,
        held: &mut Option<Hold>,
    ) {
        // No request is looked at without.
        let Some(hold) = held.take() else { return };
        self.reply_slots.give(hold.slot);
        self.temporaries.give(1);
        self.tickets.give(HELD_TICKETS - 1);
        let to = (to, roles::REPLIES, self.send_chunks.offset(chunk));
        let shape = self.shape_as(Kind::Refused, 0, 0);
        let sent = Sent {
            header: u64::from(back.loan) << 16 | u64::from(back.count),
            ..shape.sent(&nothing(), to, (chunk, 0, 0))
        };
        self.send_reply(hold.chunk, sent);
    }
}

impl<N: Interface + Send + Sync> ReplyPort for Portals<N> {
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        self.check_reply(to, message)?;
        let (bytes, offset) = parts(&message.payload);
        let category = message.payload.category();
        let shape = self.shape(category, message.args.len(), bytes.len(), offset);
        let peer = self.peer(to);
        let open = peer.state.lock().open.pop();
        match open {
            Some(open) => self.answer(peer, open, message, &shape),
            // Cannot happen: each handler that runs has one, and replies once.
            None => Err(AmError::Full {
                from: self.rank,
                to,
            }),
        }
    }

    fn rank(&self) -> JobRank {
        self.rank
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}
