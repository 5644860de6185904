//! Barriers and broadcasts.

use core::ffi::{c_int, c_void};

use argonet::JobRank;
use argonet::engine::{Call, Kind, Name, NamedError, Verdict};
use argonet_event::Event;

use crate::export::export;
use crate::job::{
    BAD_ARG, BARRIER_MISMATCH, NOT_READY, OK, Team, fatal, known_as, refuse, team, with_job,
};

const ANONYMOUS: c_int = 1;
const MISMATCH: c_int = 2;
const UNNAMED: c_int = 5;

/// What a barrier is called, or what is wrong with its flags.
fn name(id: c_int, flags: c_int, function: &str) -> Name {
    match flags {
        0 => Name::Id(id),
        ANONYMOUS => Name::Anonymous,
        UNNAMED => Name::Unnamed,
        // Whatever else is said.
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
        Verdict::Mismatch => BARRIER_MISMATCH,
    }
}

/// The outcome of a call, or the end of the job.
fn done<T>(function: &str, outcome: Result<T, NamedError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => fatal(function, &error.to_string()),
    }
}

fn no_flags(function: &str, flags: u32) {
    if flags != 0 {
        fatal(function, &format!("flags are {flags:#x}; they must be 0"));
    }
}

/// Memory that a collective operation uses.
fn memory(function: &str, what: &str, at: *const c_void, bytes: usize) {
    if at.is_null() && bytes > 0 {
        fatal(
            function,
            &format!("{what} is null, and there are {bytes} bytes"),
        );
    }
}

export! {
    fn gex_Coll_BarrierNB(tm: *const Team, flags: u32) -> Event {
        const FUNCTION: &str = "gex_Coll_BarrierNB";
        no_flags(FUNCTION, flags);
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        with_job(FUNCTION, |job, ctx| {
            let engine = &job.joined.engine;
            let started = match team.as_made() {
                None => engine.barrier_start(ctx),
                // SAFETY: a barrier touches no memory.
                Some(made) => unsafe { engine.collective_start(ctx, &made.team, Call::barrier(Kind::Barrier)) },
            };
            match started {
                Ok(event) => event,
                Err(error) => fatal(FUNCTION, &error.to_string()),
            }
        })
    }

    fn gasnet_barrier_notify(id: c_int, flags: c_int) {
        const FUNCTION: &str = "gasnet_barrier_notify";
        let name = name(id, flags, FUNCTION);
        with_job(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.named_notify(ctx, name)));
    }

    fn gasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_barrier_wait";
        let name = name(id, flags, FUNCTION);
        with_job(FUNCTION, |job, ctx| code(done(FUNCTION, job.joined.engine.named_wait(ctx, name))))
    }

    fn gasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_barrier_try";
        let name = name(id, flags, FUNCTION);
        with_job(FUNCTION, |job, ctx| {
            let verdict = done(FUNCTION, job.joined.engine.named_try(ctx, name));
            verdict.map_or(NOT_READY, code)
        })
    }

    fn gasnet_barrier(id: c_int, flags: c_int) -> c_int {
        const FUNCTION: &str = "gasnet_barrier";
        let name = name(id, flags, FUNCTION);
        with_job(FUNCTION, |job, ctx| {
            let engine = &job.joined.engine;
            let notified = engine.named_notify(ctx, name);
            code(done(FUNCTION, notified.and_then(|()| engine.named_wait(ctx, name))))
        })
    }

    fn gasnet_barrier_result(id: *mut c_int) -> c_int {
        const FUNCTION: &str = "gasnet_barrier_result";
        if id.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the place for the id must not be null");
        }
        with_job(FUNCTION, |job, _| match job.joined.engine.named_result() {
            Some(name) => {
                // SAFETY: not null, and the caller's to write, as the header asks.
                unsafe { *id = name };
                OK
            }
            // No rank gave a name; the result is not to be looked at.
            None => 1,
        })
    }

    /// What `gex_Coll_BroadcastNB` calls.
    fn argonet_broadcast(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, bytes: usize, flags: u32) -> Event {
        const FUNCTION: &str = "gex_Coll_BroadcastNB";
        no_flags(FUNCTION, flags);
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        let to = JobRank(known_as(team, root, FUNCTION, "root"));
        with_job(FUNCTION, |job, ctx| {
            let engine = &job.joined.engine;
            memory(FUNCTION, "dst", dst, bytes);
            if engine.rank() == to {
                memory(FUNCTION, "src", src, bytes);
            }
            let (src, dst) = (src.cast(), dst.cast());
            // SAFETY: the caller keeps the memory until the event is complete, as the specification asks.
            let started = unsafe {
                match team.as_made() {
                    None => engine.broadcast_start(ctx, to, dst, src, bytes),
                    Some(made) => {
                        let call = Call { kind: Kind::Broadcast, root, unit: 1, count: bytes, src, dst, folding: None };
                        engine.collective_start(ctx, &made.team, call)
                    }
                }
            };
            match started {
                Ok(event) => event,
                Err(error) => fatal(FUNCTION, &error.to_string()),
            }
        })
    }
}
