//! How long payloads may be.

use core::ffi::c_int;

use argonet_am::{Delivery, MAX_ARGS, MessageClass};
use argonet_conduit::{Conduit, DESCRIPTORS, Limits};
use argonet_engine::EndpointState;

use crate::am::arguments::{LEAST, LEAST_ALLOC};
use crate::am::endpoints::{check_there, state_there};
use crate::am::local::AnyLocal;
use crate::am::token::{Token, delivery};
use crate::export::export;
use crate::job::{Job, Receiver, Team, fatal, find, job, team, with_job};

/// Bytes of a long: the greatest `int` of C, as clients keep lengths there.
const LONGEST: usize = c_int::MAX as usize;

/// Bytes of a long that is written in the library's memory.
pub(crate) const ALLOCATED: usize = 1 << 20;

/// The most bytes of a medium.
pub(crate) fn largest_medium(job: &Job, class: MessageClass) -> usize {
    medium(&job.joined.engine.conduit().limits(), class)
}

fn medium(limits: &Limits, class: MessageClass) -> usize {
    match class {
        MessageClass::Request => limits.medium_request,
        MessageClass::Reply => limits.medium_reply,
    }
}

/// The most bytes of a long.
#[inline]
pub(crate) fn longest(job: &Job) -> usize {
    job.joined.engine.conduit().limits().long.min(LONGEST)
}

/// Limits of every message of the job, or, before there is one, of every conduit that it may have.
fn limits() -> Limits {
    match find() {
        Some(job) => job.joined.engine.conduit().limits(),
        None => of_all(),
    }
}

/// The least of each, over all conduits.
fn of_all() -> Limits {
    let least = |limit: fn(&Limits) -> usize| {
        let all = DESCRIPTORS.iter().map(|one| limit(&(one.limits)()));
        all.min().unwrap_or(0)
    };
    Limits {
        args: least(|limits| limits.args),
        medium_request: least(|limits| limits.medium_request),
        medium_reply: least(|limits| limits.medium_reply),
        long: least(|limits| limits.long),
    }
}

/// The most bytes of a long for which there is a buffer.
pub(crate) fn longest_allocated(job: &Job) -> usize {
    longest(job).min(ALLOCATED)
}

fn check(flags: u32, nargs: u32, function: &str) {
    if flags & LEAST == LEAST {
        fatal(
            function,
            "GEX_FLAG_AM_PREPARE_LEAST_CLIENT and GEX_FLAG_AM_PREPARE_LEAST_ALLOC exclude each other",
        );
    }
    if nargs as usize > MAX_ARGS {
        fatal(
            function,
            &format!("numargs is {nargs}; at most {MAX_ARGS} are allowed"),
        );
    }
}

/// Checks what a question names.
///
/// Answers are the same for all ranks and numbers of arguments.
///
/// # Safety
/// A team of ours, or null.
unsafe fn check_peer(
    tm: *const Team,
    other: u32,
    flags: u32,
    nargs: u32,
    function: &str,
) -> &'static Job {
    // SAFETY: this function's contract.
    let team = unsafe { team(tm, function) };
    team.has_messages(function);
    let size = team.size();
    if other >= size && other != u32::MAX {
        fatal(
            function,
            &format!(
                "rank is {other}; the team has {size} ranks, from 0, and GEX_RANK_INVALID stands for all"
            ),
        );
    }
    check(flags, nargs, function);
    let job = job(function);
    if job.debug {
        check_capable(team, other, function);
    }
    job
}

/// In debug builds: the endpoint at the other side has messages, or, where all are meant, one at
/// least does (GASNet-EX, `gex_AM_Max*`, 2c and 3d).
#[cold]
fn check_capable(team: &Team, other: u32, function: &str) {
    with_job(function, |job, ctx| {
        if other != u32::MAX {
            return check_there(job, ctx, team.receiver(other, function), function);
        }
        // Its own process knows without being asked, and one is enough.
        let (size, own) = (team.size(), team.rank());
        let others = (0..size).map(|step| team.receiver((own + step) % size, function));
        let capable = |to: Receiver| {
            let state = state_there(job, ctx, to, function);
            state.is_none_or(|state| state == EndpointState::Open)
        };
        if !others.into_iter().any(capable) {
            fatal(
                function,
                &format!(
                    "none of the {size} endpoints that tm leads to was created with GEX_EP_CAPABILITY_AM; rank is GEX_RANK_INVALID, which asks for the least of those that were"
                ),
            );
        }
    });
}

/// In debug builds, ends the job if the token of a reply is asked for the limits of replies.
fn check_may_reply(job: &Job, delivery: &Delivery<'_>, function: &str) {
    if job.debug && delivery.class() == MessageClass::Reply {
        let (rank, from) = (delivery.rank(), delivery.source());
        fatal(
            function,
            &format!(
                "the token is that of a reply (from rank {from} to rank {rank}), which cannot be replied to; ask in the handler of a request"
            ),
        );
    }
}

fn long(job: &Job, flags: u32) -> usize {
    if flags & LEAST_ALLOC == 0 {
        longest(job)
    } else {
        longest_allocated(job)
    }
}

export! {
    fn gex_AM_MaxRequestMedium(tm: *const Team, other: u32, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        lc_opt.ignore();
        // SAFETY: a team of ours, or null.
        let job = unsafe { check_peer(tm, other, flags, nargs, "gex_AM_MaxRequestMedium") };
        largest_medium(job, MessageClass::Request)
    }

    fn gex_AM_MaxReplyMedium(tm: *const Team, other: u32, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        lc_opt.ignore();
        // SAFETY: a team of ours, or null.
        let job = unsafe { check_peer(tm, other, flags, nargs, "gex_AM_MaxReplyMedium") };
        largest_medium(job, MessageClass::Reply)
    }

    fn gex_AM_MaxRequestLong(tm: *const Team, other: u32, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        lc_opt.ignore();
        // SAFETY: a team of ours, or null.
        let job = unsafe { check_peer(tm, other, flags, nargs, "gex_AM_MaxRequestLong") };
        long(job, flags)
    }

    fn gex_AM_MaxReplyLong(tm: *const Team, other: u32, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        lc_opt.ignore();
        // SAFETY: a team of ours, or null.
        let job = unsafe { check_peer(tm, other, flags, nargs, "gex_AM_MaxReplyLong") };
        long(job, flags)
    }

    fn gex_Token_MaxReplyMedium(token: *mut Token, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        const FUNCTION: &str = "gex_Token_MaxReplyMedium";
        lc_opt.ignore();
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        check(flags, nargs, FUNCTION);
        let job = job(FUNCTION);
        check_may_reply(job, delivery, FUNCTION);
        largest_medium(job, MessageClass::Reply)
    }

    fn gex_Token_MaxReplyLong(token: *mut Token, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        const FUNCTION: &str = "gex_Token_MaxReplyLong";
        lc_opt.ignore();
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        check(flags, nargs, FUNCTION);
        let job = job(FUNCTION);
        check_may_reply(job, delivery, FUNCTION);
        long(job, flags)
    }

    fn gex_AM_LUBRequestMedium() -> usize {
        medium(&limits(), MessageClass::Request)
    }

    fn gex_AM_LUBReplyMedium() -> usize {
        medium(&limits(), MessageClass::Reply)
    }

    fn gex_AM_LUBRequestLong() -> usize {
        limits().long.min(LONGEST)
    }

    fn gex_AM_LUBReplyLong() -> usize {
        limits().long.min(LONGEST)
    }
}
