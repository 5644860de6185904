//! Requests from and to further endpoints.

use core::ffi::c_int;

use argonet::engine::{OpError, ThreadCtx};
use argonet_am::{AmError, Message, Payload};

use crate::am::arguments::failed;
use crate::am::far;
use crate::am::request::{IMMEDIATE, outlook, sent};
use crate::job::{Job, Receiver, fatal};

/// Sends a message whose handler has been checked; what C returns. A long for a further endpoint has in place of an offset what
/// its sender gave as its destination.
#[cold]
#[inline(never)]
pub(crate) fn send(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    message: &Message<'_>,
    flags: u32,
    function: &str,
) -> c_int {
    let outcome = match message.payload {
        Payload::Long(bytes, place) if to.ends.to != 0 => {
            far::to_further(job, ctx, to, message, (bytes, place), flags, function)
        }
        _ => to_primordial(job, ctx, to, message, flags, function),
    };
    let immediate = flags & IMMEDIATE != 0;
    match outcome {
        Ok(()) => sent(job, ctx, to.rank, function),
        Err(OpError::Am(AmError::Full { .. }) | OpError::NoHandle { .. }) if immediate => 1,
        Err(OpError::Am(error)) => failed(function, &error),
        Err(error) => fatal(function, &error.to_string()),
    }
}

/// Sends what carries its payload, or goes into an attached segment.
fn to_primordial(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    message: &Message<'_>,
    flags: u32,
    function: &str,
) -> Result<(), OpError> {
    let engine = &job.joined.engine;
    match engine.request_between(ctx, to.rank, to.ends, message, outlook(flags)) {
        Err(error @ AmError::OutsideSegment { .. }) => {
            far::request(job, ctx, to, message, flags, &error, function)
        }
        outcome => outcome.map_err(OpError::from),
    }
}
