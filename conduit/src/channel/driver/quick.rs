//! Frames that are served without a look at everything that they could be.

use super::peer::Inbound;
use super::peer_poll::PeerPoll;
use crate::channel::frame::{Kind, WholePut, WholeShort};
use crate::channel::rail::Rails;
use crate::conduit::Sink;
use argonet_am::record::RecordError;
use argonet_am::{Category, Delivery, MAX_CARRIED, MessageClass};
use argonet_base::{HandlerIndex, SegmentOffset};
use argonet_segment::bulk;

impl<R: Rails, S: Sink + ?Sized> PeerPoll<'_, R, S> {
    /// Serves the next frame if it is here with all its bytes and nothing about it is out of the
    /// ordinary; whether it was.
    #[inline]
    pub(super) fn quick(&mut self, inbound: &mut Inbound<R>) -> Result<bool, RecordError> {
        match inbound.receive_stream.next_kind() {
            Some(kind) if kind == Kind::Put as u8 => Ok(self.put(inbound)),
            Some(kind) if kind == Kind::ShortRequest as u8 => self.short(inbound),
            _ => Ok(false),
        }
    }

    #[inline]
    fn put(&mut self, inbound: &mut Inbound<R>) -> bool {
        let receive_stream = &mut inbound.receive_stream;
        let position = receive_stream.taken() as u32;
        let Some(put) = WholePut::read(receive_stream.bytes(), position) else {
            return false;
        };
        let Some(place) = self.core.own(put.offset, put.rest) else {
            return false;
        };
        let payload = receive_stream.bytes()[WholePut::HEAD..].as_ptr();
        // SAFETY: the payload is here, and the place was checked for all of the put, of which this
        // is a part.
        unsafe { bulk::copy(place.as_ptr(), payload, put.length) };
        receive_stream.pass_put(&put);
        inbound.ack_requested |= put.wants_ack;
        self.budget -= 1;
        self.taken += 1;
        true
    }

    #[inline]
    fn short(&mut self, inbound: &mut Inbound<R>) -> Result<bool, RecordError> {
        let receive_stream = &mut inbound.receive_stream;
        let position = receive_stream.taken() as u32;
        let Some(short) = WholeShort::read(receive_stream.bytes(), position) else {
            return Ok(false);
        };
        if self.serves_only || !inbound.parked.is_empty() || !self.accepts() {
            return Ok(false);
        }
        let charge = short.len();
        inbound.parked.arrive(charge)?;
        inbound.ack_requested |= short.wants_ack;
        self.budget -= 1;
        let mut room = [0; MAX_CARRIED];
        let mut delivery = Delivery::new(
            self.peer.rank,
            MessageClass::Request,
            Category::Short,
            HandlerIndex(short.handler),
            short.args(receive_stream.bytes(), &mut room),
            None,
            SegmentOffset(0),
            self.core,
        );
        self.sink.deliver(&mut delivery);
        if delivery.has_replied() {
            self.accepts = None;
        }
        inbound.parked.handle(charge);
        receive_stream.pass_short(&short);
        self.taken += 1;
        Ok(true)
    }
}
