//! Long active messages whose payload goes to far memory. One that is short enough travels in one
//! medium, behind a prefix that says where it goes and whose it is; of a longer one the payload is
//! put first and the prefix travels alone. A longer reply goes in parts ([`owed`](super::owed)).
//!
//! ```text
//! 0         8     16         20        22      24
//! | address | len | endpoint | handler | flags | payload
//! ```

use super::super::core::{Engine, Outlook};
use super::super::events::OpError;
use super::super::limits::internal;
use super::super::thread::ThreadCtx;
use super::super::watch::{far_message, far_reply, span};
use super::serve::Wrong;
use super::wire::Range;
use super::{FarPlace, ReplyPlace};
use argonet_am::{AmError, CLIENT_BASE, Delivery, Lane, Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Conduit, PrepareRequest};
use argonet_segment::registration::Access;
use argonet_segment::{SharedBytes, SharedBytesMut, bulk};
use argonet_trace::Kind;
use core::ptr::NonNull;

/// What stands before the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    pub(super) range: Range,
    pub(super) handler: HandlerIndex,
    /// Whether the range's address is an offset in what is bound.
    pub(super) is_offset: bool,
}

impl Prefix {
    pub(super) const BYTES: usize = 24;
    /// The only flag.
    const OFFSET: u32 = 1 << 16;

    pub(super) fn pack(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.range.address.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.range.len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.range.endpoint.to_le_bytes());
        let flags = if self.is_offset { Self::OFFSET } else { 0 };
        let handler = u32::from(self.handler.0) | flags;
        bytes[20..].copy_from_slice(&handler.to_le_bytes());
        bytes
    }

    pub(super) fn unpack(payload: &SharedBytes<'_>) -> Option<Self> {
        let handler = u32::from_le_bytes(payload.read(20).ok()?);
        Some(Self {
            range: Range {
                address: u64::from_le_bytes(payload.read(0).ok()?),
                len: u64::from_le_bytes(payload.read(8).ok()?),
                endpoint: u32::from_le_bytes(payload.read(16).ok()?),
            },
            handler: HandlerIndex((handler & !Self::OFFSET).try_into().ok()?),
            is_offset: handler & Self::OFFSET != 0,
        })
    }

    pub(super) fn check_handler(self) -> Result<(), Wrong> {
        if self.handler < CLIENT_BASE {
            return Err("it is for a handler that is no client's");
        }
        Ok(())
    }
}

impl<C: Conduit> Engine<C> {
    /// Sends a long request whose payload goes to far memory: `handler` runs there as for any long,
    /// and gets the address from [`Delivery::address`]. The source may be reused when this returns.
    ///
    /// With no bytes the address is handed on as it is, whatever is bound. Other ranges that the
    /// target has not bound end the job.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes during the call.
    ///
    /// # Errors
    /// As [`request`](Self::request), and what a payload that does not fit one message can meet
    /// with as a put.
    #[allow(clippy::too_many_arguments, reason = "the fields of one message")]
    pub unsafe fn far_long_request(
        &self,
        ctx: &ThreadCtx,
        place: FarPlace,
        handler: HandlerIndex,
        args: &[u32],
        src: *const u8,
        len: usize,
        mut outlook: Outlook,
    ) -> Result<(), OpError> {
        ctx.permit("a request", self.rank)?;
        let mut span = span(ctx, Kind::RequestLong);
        if let Some(span) = &mut span {
            span.tell(far_message(place.rank, handler, args, len, src));
        }
        let envelope = Message {
            handler,
            args,
            payload: Payload::None,
        };
        self.check(place.rank, &envelope)?;
        self.check_client(handler, place.rank)?;
        let most = self.conduit.limits().medium_request;
        let fits = len <= most.saturating_sub(Prefix::BYTES);
        let carried = if fits { len } else { 0 };
        if !fits {
            // SAFETY: the caller's promise.
            let event = unsafe { self.far_put(ctx, place, src, len, outlook) }?;
            self.wait(ctx, event)?;
            outlook = Outlook::Wait;
        }
        let bytes = Prefix::BYTES + carried;
        let want = PrepareRequest {
            to: place.rank,
            lane: Lane::Request,
            nargs: args.len(),
            least: bytes,
            most: bytes,
            offset: None,
        };
        let mut prepared = self.prepare(ctx, &want, outlook)?;
        let prefix = Prefix {
            range: Range {
                endpoint: place.endpoint,
                address: place.address,
                len: len as u64,
            },
            handler,
            is_offset: false,
        };
        assert!(
            prepared.capacity() >= bytes,
            "a conduit prepares at least what was asked for"
        );
        // SAFETY: the conduit is this engine's; the buffer has room for both, as was just checked;
        // the source is readable by the caller's promise, and another place than the buffer.
        unsafe {
            let buffer = prepared.buffer().as_mut_ptr();
            bulk::copy(buffer, prefix.pack().as_ptr(), Prefix::BYTES);
            bulk::copy(buffer.add(Prefix::BYTES), src, carried);
        }
        self.commit(ctx, prepared, internal::FAR_LONG, args, bytes)?;
        Ok(())
    }

    /// Replies with a long whose payload goes to far memory of the requester. Its payload may be the
    /// request's own, and may be reused when this returns. One that does not fit one message, of
    /// which [`far_long_reply_at_once`](Self::far_long_reply_at_once) tells, is kept until polls of
    /// this rank have sent it.
    ///
    /// # Errors
    /// As [`Delivery::reply`].
    pub fn far_long_reply(
        &self,
        delivery: &mut Delivery<'_>,
        place: ReplyPlace,
        handler: HandlerIndex,
        args: &[u32],
        bytes: SharedBytes<'_>,
    ) -> Result<(), AmError> {
        self.check_client(handler, delivery.source())?;
        let len = bytes.len();
        far_reply(delivery.source(), handler, args, len, bytes.as_ptr());
        let prefix = Prefix {
            range: Range {
                endpoint: place.endpoint,
                address: place.address,
                len: len as u64,
            },
            handler,
            is_offset: place.is_offset,
        };
        let mut carried = len;
        if len > self.far_long_reply_at_once() {
            // Whoever can write it there needs no copy, and only says that it is there.
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
            handler: internal::FAR_LONG,
            args,
            payload: Payload::Medium(SharedBytes::from_slice(&message)),
        })
    }

    /// Bytes that [`far_long_reply`](Self::far_long_reply) sends at most without keeping a copy.
    pub fn far_long_reply_at_once(&self) -> usize {
        let most = self.conduit.limits().medium_reply;
        most.saturating_sub(Prefix::BYTES)
    }

    /// Refuses to name handlers that do not exist or are the library's own.
    fn check_client(&self, index: HandlerIndex, to: JobRank) -> Result<(), AmError> {
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
            // SAFETY: all of the range lies in what is bound here, and who bound that promised that
            // it is writable; what is carried has the range's length and begins behind the prefix,
            // in other memory.
            unsafe {
                let bytes = message.as_ptr().add(Prefix::BYTES);
                bulk::copy(place.as_ptr(), bytes, carried);
            }
        }
        self.run_long(delivery, delivery.lane(), prefix.handler, range, place);
        Ok(())
    }

    /// The range of a long, with its address.
    pub(super) fn absolute(&self, prefix: Prefix) -> Range {
        let mut range = prefix.range;
        if prefix.is_offset {
            // Where nothing is bound, any address is refused.
            let base = match self.far.regions.lookup(range.endpoint) {
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
        lane: Lane,
        handler: HandlerIndex,
        range: Range,
        place: Option<NonNull<u8>>,
    ) {
        // SAFETY: all of the range lies in what is bound here, and who bound that promised that it
        // is readable and writable.
        let payload =
            place.map(|place| unsafe { SharedBytesMut::from_raw(place, range.len as usize) });
        delivery.unwrap_long(lane, handler, payload, range.address, |inner| {
            if !self.handlers.dispatch(inner) {
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
        };
        let bytes = prefix.pack();
        for is_offset in [true, false] {
            let prefix = Prefix {
                is_offset,
                ..prefix
            };
            let bytes = prefix.pack();
            let back = Prefix::unpack(&SharedBytes::from_slice(&bytes));
            assert_eq!(back, Some(prefix));
        }
        let cut = SharedBytes::from_slice(&bytes[..23]);
        assert_eq!(Prefix::unpack(&cut), None);
    }
}
