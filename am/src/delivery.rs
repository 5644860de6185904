//! A message on its way into a handler, and the token with which the handler replies.

use crate::endpoints::{Back, Endpoints};
use crate::error::AmError;
use crate::limits::{MAX_ARGS, MAX_MEDIUM};
use crate::message::{Category, Message, MessageClass};
use crate::table::Registered;
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{SharedBytes, SharedBytesMut};

/// The reply has been sent.
const REPLIED: u8 = 1;
/// The payload lies at an address outside of the segment.
const OUTSIDE: u8 = 2;
/// It has come inside another message.
const INSIDE: u8 = 4;
/// One of its endpoints at least is a further one; the way for replies knows which.
const ENDPOINT_AM: u8 = 8;

/// Where replies go: the conduit that the request came over.
///
/// Room for the largest reply was reserved before the request was accepted, so a reply never
/// waits and never fails for lack of room.
pub trait ReplyPort {
    /// Sends the one reply to `to`.
    ///
    /// # Errors
    /// The error of the message itself.
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError>;

    /// The rank that replies.
    fn rank(&self) -> JobRank;

    /// Handlers that a reply may name.
    fn registered(&self) -> &Registered;

    /// The endpoints of the message that is replied to.
    fn endpoints(&self) -> Endpoints {
        Endpoints::PRIMORDIAL
    }
}

/// One message, seen by its handler.
///
/// It doubles as the token of GASNet: valid until the handler returns, good for one reply if the
/// message is a request.
pub struct Delivery<'a> {
    source: JobRank,
    class: MessageClass,
    category: Category,
    handler: HandlerIndex,
    /// [`REPLIED`], [`OUTSIDE`], [`INSIDE`] and [`ENDPOINT_AM`]; one byte, so that the others cost
    /// no store.
    marks: u8,
    args: &'a [u32],
    payload: Option<SharedBytesMut<'a>>,
    offset: SegmentOffset,
    port: &'a dyn ReplyPort,
}

impl<'a> Delivery<'a> {
    /// A message as the conduit took it off the wire.
    #[inline(always)]
    #[allow(
        clippy::too_many_arguments,
        reason = "one call site a conduit; a builder would cost stores"
    )]
    pub fn new(
        source: JobRank,
        class: MessageClass,
        category: Category,
        handler: HandlerIndex,
        args: &'a [u32],
        payload: Option<SharedBytesMut<'a>>,
        offset: SegmentOffset,
        port: &'a dyn ReplyPort,
    ) -> Self {
        Self {
            source,
            class,
            category,
            handler,
            marks: 0,
            args,
            payload,
            offset,
            port,
        }
    }

    /// Gives `run` a long that has come inside this message: from the same sender, with this
    /// message's arguments and, if `class` is that of requests, its right to reply.
    ///
    /// `address` is where its sender said that its payload goes, in this process and outside of the
    /// segment.
    pub fn unwrap_long(
        &mut self,
        class: MessageClass,
        handler: HandlerIndex,
        payload: Option<SharedBytesMut<'_>>,
        address: u64,
        run: impl FnOnce(&mut Delivery<'_>),
    ) {
        let mut inner = Delivery {
            source: self.source,
            class,
            category: Category::Long,
            handler,
            marks: self.marks | OUTSIDE,
            args: self.args,
            payload,
            offset: SegmentOffset(address),
            port: self.port,
        };
        run(&mut inner);
        self.marks |= inner.marks & REPLIED;
    }

    /// Gives `run` this message with another way for replies, made from the one that it has.
    ///
    /// Its payload is `run`'s.
    pub fn through<P: ReplyPort>(
        &mut self,
        wrap: impl FnOnce(&'a dyn ReplyPort) -> P,
        run: impl FnOnce(&mut Delivery<'_>),
    ) {
        let port = wrap(self.port);
        let mut inner = Delivery {
            source: self.source,
            class: self.class,
            category: self.category,
            handler: self.handler,
            marks: self.marks,
            args: self.args,
            payload: self.payload.take(),
            offset: self.offset,
            port: &port,
        };
        run(&mut inner);
        self.marks = inner.marks;
    }

    /// Gives `run` the message that this one is in fact: from one endpoint to another, for a
    /// client's handler, with the arguments from `first_arg` on, and with this message's right to
    /// reply.
    ///
    /// Replies travel as messages of the library's handler `carrier`.
    pub fn unwrap_endpoint_am(
        &mut self,
        ends: Endpoints,
        handler: HandlerIndex,
        first_arg: usize,
        carrier: HandlerIndex,
        run: impl FnOnce(&mut Delivery<'_>),
    ) {
        let port = Back {
            port: self.port,
            carrier,
            ends,
        };
        let mut inner = Delivery {
            source: self.source,
            class: self.class,
            category: self.category,
            handler,
            marks: self.marks | INSIDE | ENDPOINT_AM,
            args: self.args.get(first_arg..).unwrap_or(&[]),
            payload: self.payload.take(),
            offset: self.offset,
            port: &port,
        };
        run(&mut inner);
        self.marks |= inner.marks & REPLIED;
    }

    /// Gives `run` a medium without arguments that this message is in fact: from the same sender,
    /// with the same payload, between these endpoints.
    ///
    /// The right to reply stays with this message.
    pub fn unwrap_medium(
        &mut self,
        class: MessageClass,
        ends: Endpoints,
        handler: HandlerIndex,
        run: impl FnOnce(&mut Delivery<'_>),
    ) {
        // Nothing is sent by it.
        let between = Back {
            port: self.port,
            carrier: self.handler,
            ends,
        };
        let (port, mark): (&dyn ReplyPort, _) = match ends.are_primordial() {
            true => (self.port, 0),
            false => (&between, ENDPOINT_AM),
        };
        let mut inner = Delivery {
            source: self.source,
            class,
            category: Category::Medium,
            handler,
            marks: REPLIED | INSIDE | mark,
            args: &[],
            payload: self.payload.take(),
            offset: SegmentOffset(0),
            port,
        };
        run(&mut inner);
    }

    /// Whether it came inside another message; see [`unwrap_long`](Self::unwrap_long),
    /// [`unwrap_medium`](Self::unwrap_medium) and [`unwrap_endpoint_am`](Self::unwrap_endpoint_am).
    #[must_use]
    pub fn came_inside(&self) -> bool {
        self.marks & (OUTSIDE | INSIDE) != 0
    }

    /// The endpoint that sent it, and the one whose handler runs.
    #[inline]
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        if self.marks & ENDPOINT_AM == 0 {
            return Endpoints::PRIMORDIAL;
        }
        self.port.endpoints()
    }

    /// The rank that sent it.
    #[inline(always)]
    #[must_use]
    pub fn source(&self) -> JobRank {
        self.source
    }

    /// The rank whose handler runs.
    #[must_use]
    pub fn rank(&self) -> JobRank {
        self.port.rank()
    }

    /// Request or reply.
    #[inline]
    #[must_use]
    pub fn class(&self) -> MessageClass {
        self.class
    }

    /// Category.
    #[inline]
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// The handler it names.
    #[inline(always)]
    #[must_use]
    pub fn handler(&self) -> HandlerIndex {
        self.handler
    }

    /// Its arguments.
    #[inline(always)]
    #[must_use]
    pub fn args(&self) -> &'a [u32] {
        self.args
    }

    /// Argument `i`, or 0 where the sender gave fewer.
    #[inline(always)]
    #[must_use]
    pub fn arg(&self, i: usize) -> u32 {
        self.args.get(i).copied().unwrap_or(0)
    }

    /// Payload of a medium or long; empty for a short.
    ///
    /// Peers may write a long's bytes meanwhile.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> SharedBytes<'_> {
        match &self.payload {
            Some(bytes) => bytes.as_shared(),
            None => SharedBytes::from_slice(&[]),
        }
    }

    /// The payload for changing it in place: a medium's is the handler's to overwrite.
    #[inline]
    pub fn payload_mut(&mut self) -> Option<&mut SharedBytesMut<'a>> {
        self.payload.as_mut()
    }

    /// Where in this rank's segment a long's payload lies; 0 for one that lies elsewhere.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> SegmentOffset {
        if self.marks & OUTSIDE != 0 {
            return SegmentOffset(0);
        }
        self.offset
    }

    /// Address of the payload in this process.
    ///
    /// Of a long outside of the segment it is the one that its sender gave, even where there are no
    /// bytes. `None` where there is no address: for a short, and for a long of no bytes into the
    /// segment, which has an [`offset`](Self::offset).
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        if self.marks & OUTSIDE != 0 {
            return Some(self.offset.0);
        }
        let payload = self.payload.as_ref()?;
        Some(payload.as_shared().as_ptr().addr() as u64)
    }

    /// Whether the reply has been sent.
    #[must_use]
    pub fn has_replied(&self) -> bool {
        self.marks & REPLIED != 0
    }

    /// Sends the one reply of a request.
    ///
    /// Its payload may be the request's own.
    ///
    /// # Errors
    /// [`AmError::ReplyToReply`], [`AmError::RepliedTwice`], or the error of the message. A reply
    /// that was refused may be tried again.
    #[inline]
    pub fn reply(&mut self, message: &Message<'_>) -> Result<(), AmError> {
        self.may_reply(message)?;
        self.port.reply(self.source, message)?;
        self.marks |= REPLIED;
        Ok(())
    }

    /// Uses up the right to reply, for a reply that is sent by other means.
    ///
    /// # Errors
    /// As [`reply`](Self::reply) with as many arguments and no payload.
    pub fn reply_by_other_means(
        &mut self,
        handler: HandlerIndex,
        args: &[u32],
    ) -> Result<(), AmError> {
        self.may_reply(&Message {
            handler,
            args,
            payload: crate::Payload::None,
        })?;
        self.marks |= REPLIED;
        Ok(())
    }

    /// Replies with a medium whose payload is the payload of this message.
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    pub fn echo(&mut self, handler: HandlerIndex, args: &[u32]) -> Result<(), AmError> {
        let message = Message {
            handler,
            args,
            payload: crate::Payload::Medium(self.payload()),
        };
        self.may_reply(&message)?;
        self.port.reply(self.source, &message)?;
        self.marks |= REPLIED;
        Ok(())
    }

    #[inline]
    fn may_reply(&self, message: &Message<'_>) -> Result<(), AmError> {
        let too_long =
            message.payload.category() == Category::Medium && message.payload.len() > MAX_MEDIUM;
        if self.class == MessageClass::Reply
            || self.has_replied()
            || message.args.len() > MAX_ARGS
            || too_long
            || !self.port.registered().contains(message.handler)
        {
            return Err(self.why_not(message));
        }
        Ok(())
    }

    #[cold]
    fn why_not(&self, message: &Message<'_>) -> AmError {
        let (from, to) = (self.port.rank(), self.source);
        if self.class == MessageClass::Reply {
            AmError::ReplyToReply { rank: from, to }
        } else if self.has_replied() {
            AmError::RepliedTwice { rank: from, to }
        } else if message.args.len() > MAX_ARGS {
            AmError::TooManyArgs {
                count: message.args.len(),
                from,
                to,
            }
        } else if !self.port.registered().contains(message.handler) {
            AmError::Unregistered {
                index: message.handler,
                from,
                to,
            }
        } else {
            let (category, len) = (message.payload.category(), message.payload.len());
            AmError::TooLong {
                category,
                len,
                max: MAX_MEDIUM,
                from,
                to,
            }
        }
    }
}

#[cfg(test)]
mod tests;
