//! Handling of a frame that has come.

use super::peer::Inbound;
use super::peer_poll::PeerPoll;
use crate::channel::frame::{Fields, Frame, HEADER_BYTES, HeadBytes, Kind, LONGEST_HEAD};
use crate::channel::operations::Data;
use crate::channel::rail::Rails;
use crate::channel::stream::{Body, Extent, PAYLOAD_ALIGN, Parked};
use crate::conduit::{Completion, Sink};
use argonet_am::record::RecordError;
use argonet_am::{AmError, Category, Delivery, MAX_CARRIED, MessageClass};
use argonet_base::{HandlerIndex, SegmentOffset};
use argonet_segment::{SharedBytes, SharedBytesMut, bulk};
use core::ptr::NonNull;

/// Data of gets up to this length is copied; longer data is sent from where it lies.
const COPIED_DATA: usize = 16 << 10;

/// The payload behind a head, moved over the head's last bytes to where it is aligned.
///
/// Frames have any length, as padding would be sent.
#[inline]
fn aligned(bytes: &mut [u8], head_len: usize) -> &mut [u8] {
    let beyond = bytes[head_len..].as_ptr().addr() % PAYLOAD_ALIGN;
    if beyond == 0 || head_len == bytes.len() {
        return &mut bytes[head_len..];
    }
    let (start, len) = (head_len - beyond, bytes.len() - head_len);
    bytes.copy_within(head_len.., start);
    &mut bytes[start..start + len]
}

// A head has the bytes over which its payload is moved.
static_assertions::const_assert!(HEADER_BYTES >= PAYLOAD_ALIGN);

impl<R: Rails, S: Sink + ?Sized> PeerPoll<'_, R, S> {
    /// Whether the largest reply has room.
    pub(super) fn accepts(&mut self) -> bool {
        match self.accepts {
            Some(accepts) => accepts,
            None => {
                let accepts = self.outbound().has_reply_room(&self.core.sizes);
                self.accepts = Some(accepts);
                accepts
            }
        }
    }

    /// Where the payload of a frame goes that has a place of its own; `None` where that must not be
    /// written.
    pub(super) fn place_of(&self, frame: &Frame) -> Result<Option<NonNull<u8>>, RecordError> {
        let (offset, len) = (frame.fields.offset, frame.length as u64);
        match frame.kind {
            Kind::Got => match self.outbound().operations.data(frame)? {
                Data::Place(place) => Ok(NonNull::new(place.as_ptr())),
                Data::Drop => Ok(None),
            },
            // Without bytes any place will do.
            Kind::LongRequest | Kind::LongReply if len == 0 => Ok(Some(NonNull::dangling())),
            Kind::Put if frame.fields.rest < len || len == 0 => {
                let (len, max) = (len, frame.fields.rest);
                Err(RecordError::Payload { len, max })
            }
            // All of it is looked at before the first part is written.
            Kind::Put => Ok(self.core.own(offset, frame.fields.rest)),
            _ => Ok(self.core.own(offset, len)),
        }
    }

    /// A frame that is here with all its bytes.
    pub(super) fn whole(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
    ) -> Result<(), RecordError> {
        match frame.kind {
            Kind::Control => {
                self.moved = true;
                // Bytes that the peer has taken have made room.
                self.accepts = None;
                let said = (frame.epoch, &frame.fields);
                if let Some(window) = self.core.control(self.peer, said)? {
                    inbound.parked.set_window(window);
                }
                return Ok(());
            }
            Kind::System => {
                self.moved = true;
                let (parked, word) = (&inbound.parked, frame.fields.offset);
                if let Some(window) = self.core.system(self.peer, parked, word)? {
                    inbound.parked.set_window(window);
                }
                return Ok(());
            }
            Kind::Close | Kind::Closed if !self.core.rails.reopens() => {
                return Err(RecordError::Kind(frame.kind as u8));
            }
            Kind::Close | Kind::Closed => {
                self.moved = true;
                inbound.heard_close = Some(frame.kind);
                return Ok(());
            }
            Kind::Refused => {
                self.moved = true;
                self.cut_op(inbound, frame.fields.op)?;
                let mut outbound = self.outbound();
                outbound.operations.refused(&frame.fields)?;
                outbound.errors.push(AmError::OutsideSegment {
                    offset: frame.fields.offset,
                    len: frame.fields.rest as usize,
                    segment: frame.fields.segment,
                    from: self.core.rank,
                    to: self.peer.rank,
                });
                return Ok(());
            }
            _ if frame.beside => return self.beside(inbound, frame),
            Kind::Body => return self.whole_body(inbound, frame),
            kind if kind.is_placed() => {
                let Some(place) = self.place_of(frame)? else {
                    return self.nowhere(inbound, frame);
                };
                let payload = inbound.receive_stream.bytes()[frame.head_len()..].as_ptr();
                // SAFETY: the frame is here with its payload, and `place_of` has checked the place.
                unsafe { bulk::copy(place.as_ptr(), payload, frame.length) };
            }
            _ => {}
        }
        self.budget -= 1;
        if frame.kind.is_request() {
            let charge = frame.charge();
            inbound.parked.arrive(charge)?;
            let bytes = inbound.receive_stream.bytes();
            if self.must_wait(&inbound.parked, frame) {
                inbound.parked.park(&bytes[..charge]);
                return Ok(());
            }
            self.request(frame, &mut bytes[..frame.len()])?;
            inbound.parked.handle(charge);
            return Ok(());
        }
        match frame.kind {
            Kind::Put => self.taken += 1,
            Kind::Got => self.got(inbound, frame)?,
            _ => {
                let bytes = inbound.receive_stream.bytes();
                if self.serves_only {
                    inbound.replies.push(&bytes[..frame.kept()]);
                } else {
                    self.deliver(frame, &mut bytes[..frame.len()])?;
                }
            }
        }
        Ok(())
    }

    /// Whether a request must be set aside.
    ///
    /// Nothing is promised between gets and messages.
    fn must_wait(&mut self, parked: &Parked, frame: &Frame) -> bool {
        let is_message = frame.kind != Kind::Get;
        (is_message && (self.serves_only || !parked.is_empty())) || !self.accepts()
    }

    /// A frame whose payload is at its place.
    pub(super) fn placed(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
    ) -> Result<(), RecordError> {
        self.budget -= 1;
        match frame.kind {
            Kind::Put => self.taken += 1,
            Kind::Got => self.got(inbound, frame)?,
            _ => {
                let mut head = [0; LONGEST_HEAD];
                let head = &mut head[..frame.head_len()];
                head.copy_from_slice(inbound.receive_stream.placed_head());
                if !frame.kind.is_request() {
                    if self.serves_only {
                        inbound.replies.push(head);
                        return Ok(());
                    }
                    return self.deliver(frame, head);
                }
                let charge = frame.charge();
                inbound.parked.arrive(charge)?;
                if self.must_wait(&inbound.parked, frame) {
                    inbound.parked.park(head);
                } else {
                    self.request(frame, head)?;
                    inbound.parked.handle(charge);
                }
            }
        }
        Ok(())
    }

    /// A frame whose payload must not be written.
    #[cold]
    pub(super) fn nowhere(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
    ) -> Result<(), RecordError> {
        self.nowhere_at(inbound, frame, inbound.receive_stream.taken())
    }

    /// The same for one that began at a position of the peer's stream.
    #[cold]
    pub(super) fn nowhere_at(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
        position: u64,
    ) -> Result<(), RecordError> {
        let segment = self.core.own_bytes();
        self.moved = true;
        match frame.kind {
            Kind::Got => {
                self.outbound()
                    .operations
                    .answered(frame.fields.op, frame.length)?;
                return Ok(());
            }
            // The request said where the reply should go.
            Kind::LongReply => {
                let len = frame.fields.offset.saturating_add(frame.length as u64);
                return Err(RecordError::Payload { len, max: segment });
            }
            Kind::LongRequest => {
                inbound.parked.arrive(frame.charge())?;
                inbound.parked.handle(frame.charge());
            }
            _ => {}
        }
        self.refuse(frame, position, frame.length)
    }

    /// Refuses a frame, which began at a position of the peer's stream, as it is not for this
    /// rank's segment.
    fn refuse(&mut self, frame: &Frame, position: u64, len: usize) -> Result<(), RecordError> {
        let fields = Fields {
            offset: frame.fields.offset,
            rest: len as u64,
            segment: self.core.own_bytes(),
            position,
            op: if frame.kind == Kind::Get {
                frame.fields.op
            } else {
                0
            },
            wanted: 0,
        };
        self.accepts = None;
        self.outbound().refuse(&fields, &self.core.sizes)
    }

    /// A request whose reply has room.
    pub(super) fn request(&mut self, frame: &Frame, bytes: &mut [u8]) -> Result<(), RecordError> {
        if frame.kind == Kind::Get {
            self.serve_get(frame)
        } else {
            self.deliver(frame, bytes)
        }
    }

    /// Runs a handler.
    ///
    /// `bytes` are those of the frame, without the payload of a long.
    #[inline]
    pub(super) fn deliver(&mut self, frame: &Frame, bytes: &mut [u8]) -> Result<(), RecordError> {
        let Some((class, category)) = frame.kind.message() else {
            return Err(RecordError::Kind(frame.kind.into()));
        };
        let mut room = [0; MAX_CARRIED];
        let args = frame.args(bytes, &mut room);
        let payload = match category {
            Category::Short => None,
            Category::Medium => Some(SharedBytesMut::from_slice(aligned(bytes, frame.head_len()))),
            Category::Long if frame.length == 0 => None,
            Category::Long => {
                let place = self.core.own(frame.fields.offset, frame.length as u64);
                // The segment has been given up meanwhile.
                let place = place.ok_or(RecordError::Payload {
                    len: frame.fields.offset.saturating_add(frame.length as u64),
                    max: self.core.own_bytes(),
                })?;
                // SAFETY: the directory has checked that the bytes lie in this rank's own segment,
                // which stays mapped as long as the directory.
                Some(unsafe { SharedBytesMut::from_raw(place, frame.length) })
            }
        };
        let mut delivery = Delivery::new(
            self.peer.rank,
            class,
            category,
            HandlerIndex(frame.handler),
            args,
            payload,
            SegmentOffset(frame.fields.offset),
            self.core,
        );
        self.sink.deliver(&mut delivery);
        if class == MessageClass::Request && delivery.has_replied() {
            self.accepts = None;
        }
        self.taken += 1;
        Ok(())
    }

    /// Data of a get is at its place.
    ///
    /// # Errors
    /// The get is complete by that, and the peer is about to write more there.
    pub(super) fn got(
        &mut self,
        inbound: &mut Inbound<R>,
        frame: &Frame,
    ) -> Result<(), RecordError> {
        let complete = self
            .outbound()
            .operations
            .answered(frame.fields.op, frame.length)?;
        if let Some(op) = complete {
            self.cut_op(inbound, frame.fields.op)?;
            self.sink.completed(op, Completion::Remote);
            self.taken += 1;
        }
        Ok(())
    }

    /// Answers a part of a get.
    fn serve_get(&mut self, frame: &Frame) -> Result<(), RecordError> {
        let Fields {
            offset,
            rest,
            op,
            wanted,
            ..
        } = frame.fields;
        let len = wanted as usize;
        let too_long = len > Kind::Got.most(0) || u64::from(wanted) > rest;
        if len == 0 || op == 0 || too_long {
            return Err(RecordError::Kind(Kind::Get.into()));
        }
        self.taken += 1;
        self.accepts = None;
        let Some(place) = self.core.own(offset, rest) else {
            // No put is taken for it.
            return self.refuse(frame, u64::MAX, len);
        };
        let fields = Fields {
            offset,
            op,
            ..Fields::default()
        };
        let body = if len <= COPIED_DATA.min(self.core.sizes.eager_bytes) {
            // SAFETY: the directory has checked the place.
            Body::Copy(unsafe { SharedBytes::from_raw(place, len) })
        } else {
            Body::Move(Extent::Segment(place, len), Kind::Got, fields)
        };
        let head = HeadBytes::new(Kind::Got, 0, &[], len, &fields);
        let mut outbound = self.outbound();
        outbound.send_stream.push(head, body, false);
        Ok(())
    }
}
