//! Longs to memory that their target has bound without attaching it. The engine refuses them as it refuses what lies
//! outside of an attached segment, and they come here. A network would leave that to the target, who cannot hand them on.

use argonet::engine::{FarPlace, OpError, ReplyPlace, ThreadCtx};
use argonet_am::{AmError, Delivery, Message, Payload};
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::SharedBytes;

use crate::am::place::{PEER_OFFSET, refused};
use crate::am::request::outlook;
use crate::job::{Job, far_base};

/// Messages go to the primordial endpoint.
const ENDPOINT: u32 = 0;

/// Payload and destination of a refused message whose target has attached nothing, so that something else may be bound.
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

/// Why a long cannot go the way of those to attached segments, as far as this rank can know before it sends it: its
/// target has attached nothing that this rank knows of.
#[inline]
pub(crate) fn refusal(job: &Job, to: JobRank, message: &Message<'_>) -> Option<AmError> {
    let Payload::Long(bytes, offset) = &message.payload else {
        return None;
    };
    let engine = &job.joined.engine;
    // What is mapped here need not be asked for.
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
    to: JobRank,
    message: &Message<'_>,
    flags: u32,
    error: &AmError,
    function: &str,
) -> Result<(), OpError> {
    let Some((bytes, offset)) = far(job, to, message, error) else {
        refused(job, error, function);
    };
    let address = if flags & PEER_OFFSET == 0 {
        address(job, to, offset)
    } else {
        offset
            .0
            .wrapping_add(far_base(job, ctx, to, ENDPOINT, function))
    };
    let place = FarPlace {
        rank: to,
        endpoint: ENDPOINT,
        address,
    };
    let (args, source, len) = (message.args, bytes.as_ptr(), bytes.len());
    // SAFETY: the view is readable.
    unsafe {
        let engine = &job.joined.engine;
        engine.far_long_request(
            ctx,
            place,
            message.handler,
            args,
            source,
            len,
            outlook(flags),
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
        endpoint: ENDPOINT,
        address: if is_offset {
            offset.0
        } else {
            address(job, to, offset)
        },
        is_offset,
    };
    let engine = &job.joined.engine;
    let sent = engine.far_long_reply(delivery, place, message.handler, message.args, bytes);
    if let Err(error) = sent {
        refused(job, &error, function);
    }
}
