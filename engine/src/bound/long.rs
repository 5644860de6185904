//! Long active messages whose payload goes to bound memory.
//!
//! A short payload travels in one medium, behind a prefix that names its place and its handler; a
//! longer one is put first, and the prefix travels alone. A longer reply goes in parts
//! ([`owed`](super::owed)).
//!
//! ```text
//! 0         8     16         20        21      22     23   24
//! | address | len | endpoint | handler | flags | from | to | payload
//!
//! from, to: the endpoints between which the message goes; endpoint: the one whose memory it goes into
//! ```

use super::super::core::{Engine, Injection};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::location::{PeerAddress, Target};
use super::super::thread::ThreadCtx;
use super::super::traced::{reply_sent, request_sent, span};
use super::super::transfer::{Side, Transfer};
use super::BoundPlace;
use super::serve::Wrong;
use super::wire::Range;
use argonet_am::{AmError, CLIENT_BASE, Delivery, Endpoints, Message, MessageClass, Payload};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::{Conduit, PrepareRequest};
use argonet_segment::registration::Access;
use argonet_segment::{SharedBytes, SharedBytesMut, bulk};
use argonet_trace::Kind;
use core::ptr::NonNull;

/// The header before the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    pub(super) range: Range,
    pub(super) handler: HandlerIndex,
    /// Whether the range's address is an offset in the bound memory.
    pub(super) is_offset: bool,
    /// Between which endpoints it goes.
    pub(super) ends: Endpoints,
}

impl Prefix {
    pub(super) const BYTES: usize = 24;
    /// The only flag.
    const OFFSET: u8 = 1;

    pub(super) fn pack(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.range.address.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.range.len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.range.endpoint.to_le_bytes());
        let flags = if self.is_offset { Self::OFFSET } else { 0 };
        let Endpoints { from, to } = self.ends;
        bytes[20..].copy_from_slice(&[self.handler.0, flags, from, to]);
        bytes
    }

    pub(super) fn unpack(payload: &SharedBytes<'_>) -> Option<Self> {
        let [handler, flags, from, to] = payload.read(20).ok()?;
        let ends = Endpoints { from, to };
        let known = flags & !Self::OFFSET == 0 && ends.can_exist();
        known.then_some(Self {
            range: Range {
                address: u64::from_le_bytes(payload.read(0).ok()?),
                len: u64::from_le_bytes(payload.read(8).ok()?),
                endpoint: u32::from_le_bytes(payload.read(16).ok()?),
            },
            handler: HandlerIndex(handler),
            is_offset: flags & Self::OFFSET != 0,
            ends,
        })
    }

    pub(super) fn check_handler(self) -> Result<(), Wrong> {
        if self.handler < CLIENT_BASE {
            return Err("it names a handler of the library");
        }
        Ok(())
    }
}

/// A long message of a client, without its place.
#[derive(Clone, Copy, Debug)]
pub struct Long<'a> {
    /// Index of the handler that runs at the target.
    pub handler: HandlerIndex,
    /// Its arguments.
    pub args: &'a [u32],
    /// The payload.
    pub bytes: SharedBytes<'a>,
}

impl<'a> Long<'a> {
    /// The message into an attached segment.
    fn to_segment(self, offset: SegmentOffset) -> Message<'a> {
        Message {
            handler: self.handler,
            args: self.args,
            payload: Payload::Long(self.bytes, offset),
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Sends a long request of a client between endpoints, into the memory that
    /// [`locate`](Self::locate) has found.
    ///
    /// The source may be reused when this returns.
    ///
    /// # Errors
    /// As [`request_endpoint`](Self::request_endpoint), and the errors of a put if the payload goes
    /// to bound memory and does not fit one message.
    pub fn request_long(
        &self,
        ctx: &ThreadCtx,
        ends: Endpoints,
        target: Target,
        long: &Long<'_>,
        injection: Injection,
    ) -> Result<(), OpError> {
        match target {
            Target::Segment { rank, offset } => {
                let message = long.to_segment(offset);
                Ok(self.request_endpoint(ctx, rank, ends, &message, injection)?)
            }
            Target::Bound(place) => self.bound_long_request(ctx, place, ends, long, injection),
        }
    }

    /// Sends a long request whose payload goes to bound memory: its handler runs there as for any
    /// long, and gets the address from [`Delivery::address`].
    ///
    /// With no bytes the address is handed on unchecked. Other ranges that the target has not bound
    /// end the job.
    fn bound_long_request(
        &self,
        ctx: &ThreadCtx,
        place: BoundPlace,
        ends: Endpoints,
        long: &Long<'_>,
        mut injection: Injection,
    ) -> Result<(), OpError> {
        let Long {
            handler,
            args,
            bytes,
        } = *long;
        let (src, len) = (bytes.as_ptr(), bytes.len());
        ctx.permit("a request", self.rank)?;
        let mut span = span(ctx, Kind::RequestLong);
        if let Some(span) = &mut span {
            span.describe(request_sent(place.rank, handler, args, len, src));
        }
        let envelope = Message {
            handler: match ends.are_primordial() {
                true => handler,
                false => internal::ENDPOINT_AM,
            },
            args,
            payload: Payload::None,
        };
        self.check(place.rank, &envelope)?;
        self.check_client(handler, ends, place.rank)?;
        let most = self.conduit.limits().medium_request;
        let fits = len <= most.saturating_sub(Prefix::BYTES);
        let carried = if fits { len } else { 0 };
        if !fits {
            let put = Transfer {
                target: Target::Bound(place),
                side: Side::Put(src),
                len,
            };
            // SAFETY: the view is readable, and the wait ends after completion, or ends the job.
            let event = unsafe { self.start(ctx, put, injection) }?;
            self.wait_or_end(ctx, event)?;
            injection = Injection::Blocking;
        }
        let prefix = Prefix {
            range: Range {
                endpoint: place.endpoint,
                address: place.address,
                len: len as u64,
            },
            handler,
            is_offset: false,
            ends,
        };
        // SAFETY: the view is readable.
        unsafe { self.send_prefixed(ctx, place.rank, prefix, args, (src, carried), injection) }
    }

    /// Sends a long request to a segment whose payload is above the conduit's limit of longs
    /// ([`Limits::long`](argonet_conduit::Limits::long)): the payload is put first, and a message
    /// behind it runs the handler.
    ///
    /// The source may be reused when this returns.
    ///
    /// # Errors
    /// As [`request`](Self::request), and the errors of a put.
    pub fn long_request_in_parts(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        handler: HandlerIndex,
        args: &[u32],
        bytes: SharedBytes<'_>,
        offset: SegmentOffset,
    ) -> Result<(), OpError> {
        ctx.permit("a request", self.rank)?;
        let envelope = Message {
            handler,
            args,
            payload: Payload::None,
        };
        self.check(to, &envelope)?;
        let ends = Endpoints::PRIMORDIAL;
        self.check_client(handler, ends, to)?;
        let (src, len) = (bytes.as_ptr(), bytes.len());
        let put = Transfer {
            target: Target::Segment { rank: to, offset },
            side: Side::Put(src),
            len,
        };
        // SAFETY: the view is readable, and the transfer ends before this returns.
        unsafe { self.transfer(ctx, put) }?;
        let prefix = Prefix {
            range: Range {
                endpoint: Range::FIRST,
                address: offset.0,
                len: len as u64,
            },
            handler,
            is_offset: true,
            ends,
        };
        // SAFETY: nothing is read.
        unsafe { self.send_prefixed(ctx, to, prefix, args, (src, 0), Injection::Blocking) }
    }

    /// Sends a prefix, with so many bytes of its payload at `src` behind it.
    ///
    /// # Safety
    /// `src` is readable for `carried` bytes during the call.
    unsafe fn send_prefixed(
        &self,
        ctx: &ThreadCtx,
        to: JobRank,
        prefix: Prefix,
        args: &[u32],
        (src, carried): (*const u8, usize),
        injection: Injection,
    ) -> Result<(), OpError> {
        let bytes = Prefix::BYTES + carried;
        let want = PrepareRequest {
            to,
            class: MessageClass::Request,
            nargs: args.len(),
            least: bytes,
            most: bytes,
            offset: None,
        };
        let mut prepared = self.prepare(ctx, &want, injection)?;
        assert!(
            prepared.capacity() >= bytes,
            "a conduit prepares at least the bytes asked for"
        );
        // SAFETY: the conduit is this engine's; the buffer has room for both, as was just checked;
        // the source is readable by the caller's promise, and another place than the buffer.
        unsafe {
            let buffer = prepared.buffer().as_mut_ptr();
            bulk::copy(buffer, prefix.pack().as_ptr(), Prefix::BYTES);
            bulk::copy(buffer.add(Prefix::BYTES), src, carried);
        }
        self.commit(ctx, prepared, internal::BOUND_LONG, args, bytes)?;
        Ok(())
    }

    /// Replies with a long of a client into memory of the requester, whatever rank `at` names.
    ///
    /// Its payload may be the request's own, and may be reused when this returns.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`]; as [`Delivery::reply`].
    pub fn reply_long(
        &self,
        delivery: &mut Delivery<'_>,
        at: PeerAddress,
        long: &Long<'_>,
    ) -> Result<(), AmError> {
        let at = PeerAddress {
            rank: delivery.source(),
            ..at
        };
        match self.locate_known(at, long.bytes.len())? {
            Some(Target::Segment { offset, .. }) => delivery.reply(&long.to_segment(offset)),
            _ => self.bound_long_reply(delivery, at, long),
        }
    }

    /// Replies with a long whose payload goes to bound memory of the requester.
    ///
    /// A reply that does not fit one message (see
    /// [`bound_long_reply_at_once`](Self::bound_long_reply_at_once)) is kept until polls of this
    /// rank have sent it.
    pub(super) fn bound_long_reply(
        &self,
        delivery: &mut Delivery<'_>,
        at: PeerAddress,
        long: &Long<'_>,
    ) -> Result<(), AmError> {
        let Long {
            handler,
            args,
            bytes,
        } = *long;
        let ends = delivery.endpoints().reversed();
        self.check_client(handler, ends, delivery.source())?;
        let len = bytes.len();
        reply_sent(delivery.source(), handler, args, len, bytes.as_ptr());
        let prefix = Prefix {
            range: Range {
                endpoint: at.endpoint,
                address: at.address,
                len: len as u64,
            },
            handler,
            is_offset: at.is_offset,
            ends,
        };
        let mut carried = len;
        if len > self.bound_long_reply_at_once() {
            // A rank that can write the payload there needs no copy, and only sends the prefix.
            if prefix.is_offset || !self.cross_reply(delivery.source(), prefix.range, bytes) {
                return self.owe(delivery, prefix, args, bytes);
            }
            carried = 0;
        }
        let mut message = Vec::with_capacity(Prefix::BYTES + carried);
        message.extend_from_slice(&prefix.pack());
        message.resize(Prefix::BYTES + carried, 0);
        // SAFETY: the vector has that many bytes from there on; the view is readable and covers no
        // memory of the vector.
        unsafe {
            bulk::copy(
                message[Prefix::BYTES..].as_mut_ptr(),
                bytes.as_ptr(),
                carried,
            )
        };
        delivery.reply(&Message {
            handler: internal::BOUND_LONG,
            args,
            payload: Payload::Medium(SharedBytes::from_slice(&message)),
        })
    }

    /// Bytes that a long reply to bound memory sends at most without keeping a copy.
    pub fn bound_long_reply_at_once(&self) -> usize {
        let most = self.conduit.limits().medium_reply;
        most.saturating_sub(Prefix::BYTES)
    }

    /// Refuses to name handlers that do not exist or are the library's own, and endpoints that are
    /// known not to exist.
    fn check_client(
        &self,
        index: HandlerIndex,
        ends: Endpoints,
        to: JobRank,
    ) -> Result<(), AmError> {
        if !ends.are_primordial() {
            return self.check_ends(to, ends, index);
        }
        let from = self.rank;
        if index < CLIENT_BASE {
            return Err(AmError::NotForClients { index, from, to });
        }
        if !self.registered.contains(index) {
            return Err(AmError::Unregistered { index, from, to });
        }
        Ok(())
    }

    /// A client's long has arrived: its payload goes to its place, and the client's handler runs.
    pub(super) fn serve_long(&self, delivery: &mut Delivery<'_>) -> Result<(), Wrong> {
        let message = delivery.payload();
        let prefix = Prefix::unpack(&message).ok_or("it is shorter than such a message is")?;
        prefix.check_handler()?;
        let range = self.absolute(prefix);
        let carried = message.len() - Prefix::BYTES;
        if carried > 0 && carried as u64 != range.len {
            return Err("it carries another number of bytes than it says");
        }
        let place = match range.len {
            0 => None,
            _ => match self.own(range, Access::ReadWrite) {
                Ok(place) => Some(place),
                Err(outside) => {
                    self.refuse(delivery, range, outside);
                    return Ok(());
                }
            },
        };
        if let Some(place) = place
            && carried > 0
        {
            // SAFETY: all of the range lies in memory bound here, and the client that bound it
            // promised that it is writable; the carried bytes have the range's length and begin
            // behind the prefix, in other memory.
            unsafe {
                let bytes = message.as_ptr().add(Prefix::BYTES);
                bulk::copy(place.as_ptr(), bytes, carried);
            }
        }
        self.run_long(delivery, delivery.class(), prefix, range, place);
        Ok(())
    }

    /// The range of a long, with its address.
    pub(super) fn absolute(&self, prefix: Prefix) -> Range {
        let mut range = prefix.range;
        if prefix.is_offset {
            // Where nothing is bound, any address is refused.
            let base = match self.bound.regions.lookup(range.endpoint) {
                None if range.endpoint == Range::FIRST => (self.segment_base)(self.rank),
                bound => bound.map_or(0, |(address, _)| address),
            };
            range.address = range.address.wrapping_add(base);
        }
        range
    }

    /// Runs the client's handler of a long whose payload lies at `place`, which is that of `range`.
    pub(super) fn run_long(
        &self,
        delivery: &mut Delivery<'_>,
        class: MessageClass,
        prefix: Prefix,
        range: Range,
        place: Option<NonNull<u8>>,
    ) {
        // SAFETY: all of the range lies in memory bound here, and the client that bound it promised
        // that it is readable and writable.
        let payload =
            place.map(|place| unsafe { SharedBytesMut::from_raw(place, range.len as usize) });
        let Prefix { handler, ends, .. } = prefix;
        delivery.unwrap_long(class, handler, payload, range.address, |inner| {
            if !ends.are_primordial() {
                self.run_endpoint_am(inner, ends, handler, 0);
            } else if !self.handlers.dispatch(inner) {
                self.fatal_am(AmError::Unregistered {
                    index: handler,
                    from: inner.source(),
                    to: self.rank,
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_back() {
        let prefix = Prefix {
            range: Range {
                endpoint: 1 << 31,
                address: 0xfedc_ba98_7654_3210,
                len: 3,
            },
            handler: HandlerIndex(200),
            is_offset: false,
            ends: Endpoints { from: 31, to: 2 },
        };
        let bytes = prefix.pack();
        for (is_offset, from) in [(true, 0), (false, 0), (true, 7)] {
            let prefix = Prefix {
                is_offset,
                ends: Endpoints { from, to: 2 },
                ..prefix
            };
            let bytes = prefix.pack();
            let back = Prefix::unpack(&SharedBytes::from_slice(&bytes));
            assert_eq!(back, Some(prefix));
        }
        let cut = SharedBytes::from_slice(&bytes[..23]);
        assert_eq!(Prefix::unpack(&cut), None);
        for (at, wrong) in [(21, 2), (22, 32), (23, 32)] {
            let mut bytes = bytes;
            bytes[at] = wrong;
            let wrong = SharedBytes::from_slice(&bytes);
            assert_eq!(Prefix::unpack(&wrong), None, "byte {at}");
        }
    }
}
