//! The barrier with names, of GASNet-1.

use core::ffi::c_int;
use std::sync::Arc;

use argonet_am::AmError;
use argonet_engine::{Name, NamedError, Verdict};

use argonet_base::gasnet::number32;

use crate::export::export;
use crate::job::{
    BAD_ARG, BARRIER_MISMATCH, Job, NOT_READY, OK, PEER_LOST, Team, fatal, refuse, with_job,
};

const ANONYMOUS: c_int = number32("GASNET_BARRIERFLAG_ANONYMOUS") as c_int;
const MISMATCH: c_int = number32("GASNET_BARRIERFLAG_MISMATCH") as c_int;
const UNNAMED: c_int = number32("GASNET_BARRIERFLAG_UNNAMED") as c_int;

/// The name of a barrier; ends the job if its flags are wrong.
fn name(id: c_int, flags: c_int, function: &str) -> Name {
    match flags {
        0 => Name::Id(id),
        ANONYMOUS => Name::Anonymous,
        UNNAMED => Name::Unnamed,
        // With or without the other flag.
        flags if flags & !(MISMATCH | UNNAMED) == 0 && flags & MISMATCH != 0 => Name::Mismatch,
        _ => fatal(
            function,
            &format!(
                "flags are {flags:#x}; only 0 and GASNET_BARRIERFLAG_ANONYMOUS, _MISMATCH and _UNNAMED are known"
            ),
        ),
    }
}

fn code(verdict: Verdict) -> c_int {
    match verdict {
        Verdict::Match => OK,
        Verdict::Mismatch => BARRIER_MISMATCH.number(),
    }
}

/// The outcome of a call, if the team has lost no member; another error ends the job.
fn unless_lost<T>(function: &str, outcome: Result<T, NamedError>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(NamedError::Am(AmError::PeerLost { .. })) => None,
        Err(error) => fatal(function, &error.to_string()),
    }
}

/// The team of a call: that of all ranks for the functions that name none.
fn of<'j>(job: &'j Job, team: Option<&'j Team>) -> &'j Arc<argonet_engine::Team> {
    match team {
        Some(team) => team.of_engine(job),
        None => job.joined.engine.world_team(),
    }
}

/// Enters the barrier with names, of a team or of all ranks.
pub(crate) fn notify(function: &str, team: Option<&Team>, id: c_int, flags: c_int) {
    let name = name(id, flags, function);
    with_job(function, |job, ctx| {
        let engine = &job.joined.engine;
        // That of a broken team has no end, as the next wait or try finds.
        let _ = unless_lost(function, engine.team_notify(ctx, of(job, team), name));
    });
}

/// Leaves it.
pub(crate) fn wait(function: &str, team: Option<&Team>, id: c_int, flags: c_int) -> c_int {
    let name = name(id, flags, function);
    with_job(function, |job, ctx| {
        let engine = &job.joined.engine;
        let verdict = unless_lost(function, engine.team_wait(ctx, of(job, team), name));
        verdict.map_or(PEER_LOST, code)
    })
}

/// Leaves it if all have come.
pub(crate) fn try_once(function: &str, team: Option<&Team>, id: c_int, flags: c_int) -> c_int {
    let name = name(id, flags, function);
    with_job(function, |job, ctx| {
        let engine = &job.joined.engine;
        match unless_lost(function, engine.team_try(ctx, of(job, team), name)) {
            Some(verdict) => verdict.map_or(NOT_READY.number(), code),
            None => PEER_LOST,
        }
    })
}

/// Writes the name of the last barrier to `id`.
///
/// # Safety
/// Null, or the caller's to write.
pub(crate) unsafe fn result(function: &str, team: Option<&Team>, id: *mut c_int) -> c_int {
    if id.is_null() {
        return refuse(function, BAD_ARG, "the place for the id must not be null");
    }
    with_job(function, |job, _| {
        match job.joined.engine.team_result(of(job, team)) {
            Some(name) => {
                // SAFETY: not null, and this function's contract.
                unsafe { *id = name };
                OK
            }
            // No rank gave a name; the result is not to be looked at.
            None => 1,
        }
    })
}

export! {
    fn gasnet_barrier_notify(id: c_int, flags: c_int) {
        notify("gasnet_barrier_notify", None, id, flags);
    }

    fn gasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
        wait("gasnet_barrier_wait", None, id, flags)
    }

    fn gasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
        try_once("gasnet_barrier_try", None, id, flags)
    }

    fn gasnet_barrier(id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_barrier";
        notify(FUNCTION, None, id, flags);
        wait(FUNCTION, None, id, flags)
    }

    fn gasnet_barrier_result(id: *mut c_int) -> c_int {
        // SAFETY: as the header asks.
        unsafe { result("gasnet_barrier_result", None, id) }
    }
}
