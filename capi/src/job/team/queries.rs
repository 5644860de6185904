//! Questions of a client about a team: its facts, and translations of ranks.

use core::ffi::c_void;

use argonet_am::ENDPOINTS;
use argonet_base::JobRank;

use crate::context::communicating;
use crate::export::export;
use crate::job::endpoint::Location;
use crate::job::team::{Team, known, team};
use crate::job::{Client, Endpoint, fatal, given, job};

/// In debug builds, ends the job where translations are not allowed, as they are free to
/// communicate: ours do not, so that other builds need not ask.
fn may_translate(function: &str) {
    if job(function).debug {
        communicating(function, |_, _| ());
    }
}

/// The pair of an endpoint and the remote ones of an index, or the end of the job if there can be
/// none of that index.
///
/// # Safety
/// As [`given`].
unsafe fn pair(ep: *const Endpoint, remote: u64) -> *const Team {
    const FUNCTION: &str = "gex_TM_Pair";
    // SAFETY: this function's contract.
    let endpoint: &'static Endpoint = unsafe { given(ep, FUNCTION, "ep") };
    let index = u32::try_from(remote).ok();
    match index.and_then(|index| endpoint.pair(index, job(FUNCTION))) {
        Some(pair) => pair,
        None => fatal(
            FUNCTION,
            &format!("the remote index is {remote}; a process has at most {ENDPOINTS} endpoints"),
        ),
    }
}

export! {
    /// Behind `gex_TM_QueryRank` in debug builds.
    fn argonet_tm_rank(tm: *const Team) -> u32 {
        const FUNCTION: &str = "gex_TM_QueryRank";
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION).prefix.rank
    }

    /// Behind `gex_TM_QuerySize` in debug builds.
    fn argonet_tm_size(tm: *const Team) -> u32 {
        const FUNCTION: &str = "gex_TM_QuerySize";
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION).size()
    }

    fn gex_TM_Pair(ep: *const Endpoint, remote: u16) -> *const Team {
        // SAFETY: an endpoint of ours, or null.
        unsafe { pair(ep, remote.into()) }
    }

    /// Behind the macro `gex_TM_Pair`: the index as the client has it, in any type.
    fn argonet_tm_pair(ep: *const Endpoint, remote: u64) -> *const Team {
        // SAFETY: an endpoint of ours, or null.
        unsafe { pair(ep, remote) }
    }

    fn gex_TM_QueryClient(tm: *const Team) -> *const Client {
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, "gex_TM_QueryClient") }.no_pair("gex_TM_QueryClient");
        &raw const job("gex_TM_QueryClient").client
    }

    fn gex_TM_QueryEP(tm: *const Team) -> *const Endpoint {
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, "gex_TM_QueryEP") }.no_pair("gex_TM_QueryEP").endpoint
    }

    fn gex_TM_QueryFlags(tm: *const Team) -> u32 {
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, "gex_TM_QueryFlags") }.no_pair("gex_TM_QueryFlags");
        // The primordial team is made without flags.
        team.as_made().map_or(0, |made| made.flags)
    }

    fn gex_TM_SetCData(tm: *const Team, value: *const c_void) {
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, "gex_TM_SetCData") }.no_pair("gex_TM_SetCData").cdata.set(value);
    }

    fn gex_TM_QueryCData(tm: *const Team) -> *mut c_void {
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, "gex_TM_QueryCData") }.no_pair("gex_TM_QueryCData").cdata.get()
    }

    fn gex_TM_TranslateRankToJobrank(tm: *const Team, rank: u32) -> u32 {
        const FUNCTION: &str = "gex_TM_TranslateRankToJobrank";
        may_translate(FUNCTION);
        // SAFETY: a team of ours, or null.
        known(unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION), rank, FUNCTION)
    }

    fn gex_TM_TranslateJobrankToRank(tm: *const Team, jobrank: u32) -> u32 {
        const FUNCTION: &str = "gex_TM_TranslateJobrankToRank";
        may_translate(FUNCTION);
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        team.rank_of(JobRank(jobrank)).unwrap_or(u32::MAX)
    }

    fn gex_TM_TranslateRankToEP(tm: *const Team, rank: u32, flags: u32) -> Location {
        const FUNCTION: &str = "gex_TM_TranslateRankToEP";
        may_translate(FUNCTION);
        if flags != 0 {
            fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
        }
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        Location { rank: known(team, rank, FUNCTION), endpoint: team.remote_endpoint(rank) as u16 }
    }
}
