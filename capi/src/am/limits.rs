//! How long payloads may be.

use core::ffi::c_int;

use argonet_am::{Lane, MAX_ARGS};
use argonet_conduit::Conduit;

use crate::am::arguments::LEAST;
use crate::am::local::AnyLocal;
use crate::am::token::{Token, delivery};
use crate::export::export;
use crate::job::{Job, Team, fatal, job, team};

/// `GEX_FLAG_AM_PREPARE_LEAST_ALLOC`.
const LEAST_ALLOC: u32 = 0x20000;

/// Bytes of a long: what C's `int` holds, as clients keep lengths there.
const LONGEST: usize = c_int::MAX as usize;

/// Bytes of a long that is written in the library's memory.
pub(crate) const ALLOCATED: usize = 1 << 20;

/// The most bytes of a medium.
pub(crate) fn largest_medium(job: &Job, lane: Lane) -> usize {
    let limits = job.joined.engine.conduit().limits();
    match lane {
        Lane::Request => limits.medium_request,
        Lane::Reply => limits.medium_reply,
    }
}

/// The most bytes of a long.
#[inline]
pub(crate) fn longest(job: &Job) -> usize {
    job.joined.engine.conduit().limits().long.min(LONGEST)
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

/// Checks what a question names. Answers are the same for all ranks and numbers of arguments.
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
    job(function)
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
        largest_medium(job, Lane::Request)
    }

    fn gex_AM_MaxReplyMedium(tm: *const Team, other: u32, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        lc_opt.ignore();
        // SAFETY: a team of ours, or null.
        let job = unsafe { check_peer(tm, other, flags, nargs, "gex_AM_MaxReplyMedium") };
        largest_medium(job, Lane::Reply)
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
        unsafe { delivery(token, FUNCTION) };
        check(flags, nargs, FUNCTION);
        largest_medium(job(FUNCTION), Lane::Reply)
    }

    fn gex_Token_MaxReplyLong(token: *mut Token, lc_opt: AnyLocal, flags: u32, nargs: u32) -> usize {
        const FUNCTION: &str = "gex_Token_MaxReplyLong";
        lc_opt.ignore();
        // SAFETY: the token of a handler that runs, or null.
        unsafe { delivery(token, FUNCTION) };
        check(flags, nargs, FUNCTION);
        long(job(FUNCTION), flags)
    }

    fn gex_AM_LUBRequestMedium() -> usize {
        largest_medium(job("gex_AM_LUBRequestMedium"), Lane::Request)
    }

    fn gex_AM_LUBReplyMedium() -> usize {
        largest_medium(job("gex_AM_LUBReplyMedium"), Lane::Reply)
    }

    fn gex_AM_LUBRequestLong() -> usize {
        longest(job("gex_AM_LUBRequestLong"))
    }

    fn gex_AM_LUBReplyLong() -> usize {
        longest(job("gex_AM_LUBReplyLong"))
    }
}
