//! Contexts in which calls may not communicate, and reports of the engine's refusals.

use argonet_am::AmError;
use argonet_engine::{BoundMemory, EndpointState, LocalCompletion, OpError, Team, ThreadCtx};
use argonet_event::{Event, EventError};
use std::sync::Arc;

use crate::am::failed;
use crate::hsl;
use crate::job::{Job, fatal, with_job};

/// Ends the job if the calling thread must not communicate now: inside a handler, between prepare
/// and commit, or, as far as a debug build knows, while it holds handler-safe locks.
#[inline]
pub(crate) fn may_communicate(function: &str, job: &Job, ctx: &ThreadCtx) {
    if let Err(error) = ctx.permit("it", job.joined.engine.rank()) {
        not_here(function, &error);
    }
    if job.debug {
        holds_nothing(function);
    }
}

/// Ends the job if the calling thread holds handler-safe locks, which is known in debug builds.
pub(crate) fn holds_nothing(function: &str) {
    let held = hsl::held();
    if held > 0 {
        fatal(
            function,
            &format!("called while this thread holds {held} handler-safe locks"),
        );
    }
}

#[cold]
#[inline(never)]
fn not_here(function: &str, error: &AmError) -> ! {
    let place = match error {
        AmError::TooManyThreads { .. } => failed(function, error),
        AmError::Preparing { .. } => "between gex_AM_Prepare* and gex_AM_Commit* or gex_AM_Cancel*",
        _ => "in a handler or the function of a reduction",
    };
    fatal(
        function,
        &format!("called {place}, where it is not allowed"),
    )
}

/// Calls `f` with the job and the calling thread, which may communicate.
#[inline(always)]
pub(crate) fn communicating<R>(function: &str, f: impl FnOnce(&'static Job, &ThreadCtx) -> R) -> R {
    with_job(function, |job, ctx| {
        may_communicate(function, job, ctx);
        f(job, ctx)
    })
}

/// Calls `f` with the job and the calling thread, which may communicate, or is in a handler and has
/// nothing to wait for, as `is_over` finds: there a release build gives `over`.
///
/// Clients rely on that; a debug build reports it.
pub(crate) fn waiting<R>(
    function: &str,
    over: R,
    is_over: impl FnOnce(&Job, &ThreadCtx) -> bool,
    f: impl FnOnce(&'static Job, &ThreadCtx) -> R,
) -> R {
    with_job(function, |job, ctx| {
        let rank = job.joined.engine.rank();
        match ctx.permit("it", rank) {
            Ok(()) => may_communicate(function, job, ctx),
            Err(AmError::Restricted { .. }) if !job.debug && is_over(job, ctx) => return over,
            Err(error) => not_here(function, &error),
        }
        f(job, ctx)
    })
}

/// What a call gives that cannot be done because a rank is lost.
///
/// Only a client with a handler for lost ranks gets there: without one a loss ends the job.
/// `argonet_QueryLostPeers` lists the loss by now.
pub(crate) trait AfterLoss {
    fn after_loss() -> Self;
}

impl AfterLoss for () {
    fn after_loss() -> Self {}
}

/// How many messages a poll has handled.
impl AfterLoss for usize {
    fn after_loss() -> Self {
        0
    }
}

/// The operation is complete.
impl AfterLoss for bool {
    fn after_loss() -> Self {
        true
    }
}

impl AfterLoss for Event {
    fn after_loss() -> Self {
        Self::DONE
    }
}

impl AfterLoss for LocalCompletion {
    fn after_loss() -> Self {
        Self::Done
    }
}

/// Nothing is found to be wrong there.
impl AfterLoss for EndpointState {
    fn after_loss() -> Self {
        Self::Open
    }
}

impl AfterLoss for BoundMemory {
    fn after_loss() -> Self {
        Self::default()
    }
}

impl AfterLoss for Option<Arc<Team>> {
    fn after_loss() -> Self {
        None
    }
}

impl AfterLoss for Vec<Arc<Team>> {
    fn after_loss() -> Self {
        Self::new()
    }
}

/// The engine's result, or what takes its place after a loss; another error ends the job.
#[inline]
pub(crate) fn done<T: AfterLoss>(function: &str, outcome: Result<T, OpError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => lost(function, &error),
    }
}

/// What a call gives after a loss; another error ends the job.
#[cold]
#[inline(never)]
pub(crate) fn lost<T: AfterLoss>(function: &str, error: &OpError) -> T {
    match error {
        OpError::Am(AmError::PeerLost { .. }) => T::after_loss(),
        _ => refused(function, error),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn refused(function: &str, error: &OpError) -> ! {
    if let OpError::Event(EventError::WrongKind(Event::NO_OP)) = error {
        fatal(
            function,
            "event is GEX_EVENT_NO_OP, which stands for an operation that was not started",
        );
    }
    if let OpError::Am(error) = error {
        failed(function, error);
    }
    fatal(function, &error.to_string())
}
