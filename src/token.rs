//! Handlers of the raw layer: a fixed index, argument words, a token to reply with.
#![allow(unsafe_code)]

use crate::payload::Payload;
use argonet_am::{AmError, CLIENT_BASE, Delivery, HandlerFn, Message};
use argonet_base::{HandlerIndex, Rank, SegmentOffset};
use argonet_segment::{SharedBytes, SharedBytesMut};

/// The message of a handler registered with [`Builder::handler_at`](crate::Builder::handler_at).
///
/// It is valid until the handler returns, and good for one reply to a request.
pub struct Token<'t, 'm> {
    delivery: &'t mut Delivery<'m>,
}

impl<'m> Token<'_, 'm> {
    /// Wraps a function for the handler table.
    pub(crate) fn handler(
        run: impl Fn(&mut Token<'_, '_>) + Send + Sync + 'static,
    ) -> Box<HandlerFn> {
        Box::new(move |delivery| run(&mut Token { delivery }))
    }

    /// The sender.
    ///
    /// See the example of [`Builder::handler_at`](crate::Builder::handler_at).
    #[must_use]
    pub fn source(&self) -> Rank {
        Rank(self.delivery.source().0)
    }

    /// The arguments, as many as the sender gave.
    ///
    /// See the example of [`Builder::handler_at`](crate::Builder::handler_at).
    #[must_use]
    pub fn args(&self) -> &'m [u32] {
        self.delivery.args()
    }

    /// Payload of a medium or long; empty for a short.
    ///
    /// See the example of [`Builder::handler_at`](crate::Builder::handler_at).
    #[must_use]
    pub fn payload(&self) -> Payload<'_> {
        Payload(self.delivery.payload())
    }

    /// The payload for changing it in place: a medium's is the handler's to overwrite.
    ///
    /// `None` where there is none.
    #[must_use]
    pub fn payload_mut(&mut self) -> Option<&mut SharedBytesMut<'m>> {
        self.delivery.payload_mut()
    }

    /// Where in this rank's segment a long's payload lies; 0 for one that lies elsewhere.
    #[must_use]
    pub fn offset(&self) -> SegmentOffset {
        self.delivery.offset()
    }

    /// Sends the one reply of a request by index: short without a payload, medium with bytes, long
    /// with bytes and their place in the requester's segment.
    ///
    /// See the example of [`Builder::handler_at`](crate::Builder::handler_at).
    ///
    /// # Safety
    /// A long's destination is not held as a slice by its rank.
    ///
    /// # Errors
    /// [`AmError::RepliedTwice`], [`AmError::ReplyToReply`], an index that is not a client's or not
    /// registered, too many arguments or bytes, a destination outside the segment. A reply that was
    /// refused may be tried again.
    pub unsafe fn reply(
        &mut self,
        handler: HandlerIndex,
        args: &[u32],
        payload: Option<(&[u8], Option<SegmentOffset>)>,
    ) -> Result<(), AmError> {
        if handler < CLIENT_BASE {
            return Err(AmError::NotForClients {
                index: handler,
                from: self.delivery.rank(),
                to: self.delivery.source(),
            });
        }
        self.delivery.reply(&Message {
            handler,
            args,
            payload: payload_of(payload),
        })
    }
}

/// The payload of a raw message.
pub(crate) fn payload_of<'p>(
    payload: Option<(&'p [u8], Option<SegmentOffset>)>,
) -> argonet_am::Payload<'p> {
    match payload {
        None => argonet_am::Payload::None,
        Some((bytes, None)) => argonet_am::Payload::Medium(SharedBytes::from_slice(bytes)),
        Some((bytes, Some(to))) => argonet_am::Payload::Long(SharedBytes::from_slice(bytes), to),
    }
}
