//! Requests from and to further endpoints.

use core::ffi::c_int;

use argonet_am::{AmError, Message, Payload};
use argonet_engine::{EndpointState, OpError, ThreadCtx};

use crate::am::arguments::failed;
use crate::am::far;
use crate::am::request::{injection, sent};
use crate::context::done;
use crate::flags::IMMEDIATE;
use crate::hsl;
use crate::job::{Job, Receiver, fatal};

/// Sends a message whose handler has been checked; returns the code for C.
///
/// A long for a further endpoint has its sender's destination address in place of an offset.
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
    if flags & IMMEDIATE == 0 {
        check_there(job, ctx, to, function);
    }
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
    match engine.request_between(ctx, to.rank, to.ends, message, injection(flags)) {
        Err(error @ AmError::OutsideSegment { .. }) => {
            far::request(job, ctx, to, message, flags, &error, function)
        }
        outcome => outcome.map_err(OpError::from),
    }
}

/// In debug builds, ends the job if the endpoint that `to` names does not exist, or cannot have
/// messages.
///
/// A process that was not asked before is; where that is not allowed nothing is checked, and a
/// message is refused where it comes to.
pub(crate) fn check_there(job: &Job, ctx: &ThreadCtx, to: Receiver, function: &str) {
    if let Some(state) = state_there(job, ctx, to, function)
        && state != EndpointState::Open
    {
        refuse(job, to, state, function);
    }
}

/// The same for an endpoint whose handler learns of a put, which needs no such capability: handlers
/// of the primordial endpoint serve the others too.
pub(crate) fn check_exists(job: &Job, ctx: &ThreadCtx, to: Receiver, function: &str) {
    if state_there(job, ctx, to, function) == Some(EndpointState::Missing) {
        refuse(job, to, EndpointState::Missing, function);
    }
}

/// The state of the endpoint there, if it can be known now and there is something to check.
pub(crate) fn state_there(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    function: &str,
) -> Option<EndpointState> {
    let engine = &job.joined.engine;
    // A handler, or a thread that holds a lock that handlers take, cannot wait for an answer.
    let unknown = !job.debug
        || to.ends.to == 0
        || hsl::held() > 0
        || ctx
            .permit("a question about an endpoint", engine.rank())
            .is_err();
    (!unknown).then(|| done(function, engine.endpoint_state(ctx, to.rank, to.ends.to)))
}

#[cold]
fn refuse(job: &Job, to: Receiver, state: EndpointState, function: &str) -> ! {
    let why = match state {
        EndpointState::Mute => "it was created without GEX_EP_CAPABILITY_AM",
        _ => {
            "gex_EP_Create has not made it there yet; create it with GEX_EP_CAPABILITY_AM, and meet in a barrier before it is named"
        }
    };
    let (rank, from, index, here) = (to.rank, to.ends.from, to.ends.to, job.joined.engine.rank());
    fatal(
        function,
        &format!(
            "rank {rank} has no endpoint {index} for active messages: {why} (tm leads there from endpoint {from} of rank {here})"
        ),
    )
}
