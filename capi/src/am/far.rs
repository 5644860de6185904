//! Longs to memory that their target has bound without attaching it: to its primordial endpoint,
//! where the engine refuses them like every place outside of an attached segment, so that they come
//! here, and to further ones.
//!
//! A network would leave the refusal to the target, which cannot hand them on.

use argonet_am::{AmError, Delivery, Message, Payload};
use argonet_base::{JobRank, SegmentOffset};
use argonet_engine::{FarPlace, OpError, ReplyPlace, ThreadCtx};
use argonet_segment::SharedBytes;

use crate::am::place::refused;
use crate::am::request::injection;
use crate::flags::PEER_OFFSET;
use crate::job::{Job, Receiver, far_base};

/// The endpoint whose segment others have mapped, if it was attached.
const PRIMORDIAL: u32 = 0;

/// Payload and destination of a refused message whose target has attached nothing, so that
/// something else may be bound.
fn far<'a>(
    job: &Job,
    to: JobRank,
    message: &Message<'a>,
    error: &AmError,
) -> Option<(SharedBytes<'a>, SegmentOffset)> {
    let engine = &job.joined.engine;
    match (error, &message.payload) {
        (AmError::OutsideSegment { .. }, Payload::Long(bytes, offset))
            if engine.published_segment(to).1 == 0 =>
        {
            Some((*bytes, *offset))
        }
        _ => None,
    }
}

/// Why a long cannot go the way of those to attached segments, as far as this rank can know before
/// it sends it: its target has attached nothing that this rank knows of.
#[inline]
pub(crate) fn refusal(job: &Job, to: JobRank, message: &Message<'_>) -> Option<AmError> {
    let Payload::Long(bytes, offset) = &message.payload else {
        return None;
    };
    let engine = &job.joined.engine;
    // The owner of memory that is mapped here need not be asked.
    let unknown = to.0 < engine.size()
        && !bytes.is_empty()
        && engine.directory().attached_bytes(to) == 0
        && engine.published_segment(to).1 == 0;
    unknown.then(|| AmError::OutsideSegment {
        offset: offset.0,
        len: bytes.len(),
        segment: 0,
        from: engine.rank(),
        to,
    })
}

/// The address from which `destination` has made an offset.
fn address(job: &Job, to: JobRank, offset: SegmentOffset) -> u64 {
    let SegmentOffset(zero) = job.joined.engine.offset_of(to, 0);
    offset.0.wrapping_sub(zero)
}

/// Sends a request that the engine has refused another way, or ends the job.
#[cold]
pub(crate) fn request(
    job: &Job,
    ctx: &ThreadCtx,
    receiver: Receiver,
    message: &Message<'_>,
    flags: u32,
    error: &AmError,
    function: &str,
) -> Result<(), OpError> {
    let to = receiver.rank;
    let Some((bytes, offset)) = far(job, to, message, error) else {
        refused(job, error, function);
    };
    let address = if flags & PEER_OFFSET == 0 {
        address(job, to, offset)
    } else {
        offset
            .0
            .wrapping_add(far_base(job, ctx, to, PRIMORDIAL, function))
    };
    send(job, ctx, receiver, message, bytes, address, flags)
}

/// Sends a request to a further endpoint, into the segment bound there: bytes and, in place of an
/// offset, the caller's destination address.
pub(crate) fn to_further(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    message: &Message<'_>,
    (bytes, SegmentOffset(given)): (SharedBytes<'_>, SegmentOffset),
    flags: u32,
    function: &str,
) -> Result<(), OpError> {
    let address = if flags & PEER_OFFSET == 0 {
        given
    } else {
        let endpoint = to.ends.to.into();
        given.wrapping_add(far_base(job, ctx, to.rank, endpoint, function))
    };
    send(job, ctx, to, message, bytes, address, flags)
}

fn send(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    message: &Message<'_>,
    bytes: SharedBytes<'_>,
    address: u64,
    flags: u32,
) -> Result<(), OpError> {
    let place = FarPlace {
        rank: to.rank,
        endpoint: to.ends.to.into(),
        address,
    };
    let (args, source, len) = (message.args, bytes.as_ptr(), bytes.len());
    // SAFETY: the view is readable.
    unsafe {
        let engine = &job.joined.engine;
        engine.far_long_between(
            ctx,
            place,
            to.ends,
            message.handler,
            args,
            source,
            len,
            injection(flags),
        )
    }
}

/// Sends a reply that the engine has refused another way, or ends the job.
#[cold]
pub(crate) fn reply(
    job: &Job,
    delivery: &mut Delivery<'_>,
    message: &Message<'_>,
    flags: u32,
    error: &AmError,
    function: &str,
) {
    let to = delivery.source();
    let Some((bytes, offset)) = far(job, to, message, error) else {
        refused(job, error, function);
    };
    let is_offset = flags & PEER_OFFSET != 0;
    let place = ReplyPlace {
        endpoint: PRIMORDIAL,
        address: if is_offset {
            offset.0
        } else {
            address(job, to, offset)
        },
        is_offset,
    };
    send_reply(job, delivery, place, message, bytes, function);
}

/// Replies to a further endpoint, into what is bound there, as [`to_further`] requests.
#[cold]
pub(crate) fn reply_to_further(
    job: &Job,
    delivery: &mut Delivery<'_>,
    message: &Message<'_>,
    (bytes, SegmentOffset(given)): (SharedBytes<'_>, SegmentOffset),
    flags: u32,
    function: &str,
) {
    let place = ReplyPlace {
        endpoint: delivery.endpoints().from.into(),
        address: given,
        is_offset: flags & PEER_OFFSET != 0,
    };
    send_reply(job, delivery, place, message, bytes, function);
}

fn send_reply(
    job: &Job,
    delivery: &mut Delivery<'_>,
    place: ReplyPlace,
    message: &Message<'_>,
    bytes: SharedBytes<'_>,
    function: &str,
) {
    let engine = &job.joined.engine;
    let sent = engine.far_long_reply(delivery, place, message.handler, message.args, bytes);
    if let Err(error) = sent {
        refused(job, &error, function);
    }
}
