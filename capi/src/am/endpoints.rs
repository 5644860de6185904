//! Further endpoints of other processes, as debug builds ask for them.

use argonet_engine::{EndpointState, ThreadCtx};

use crate::context::done;
use crate::hsl;
use crate::job::{Job, Receiver, fatal};

/// In debug builds, ends the job if the endpoint that `to` names does not exist, or cannot have
/// messages.
///
/// A process that was not asked before is; where that is not allowed nothing is checked, and a
/// message is refused where it comes to.
#[cold]
#[inline(never)]
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
