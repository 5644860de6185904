//! Teams: the world, and pairs of a local and a remote endpoint.

use core::ffi::c_void;
use core::mem::offset_of;

use argonet::engine::{NEAR_MAGIC, NEAR_NONE, NEAR_TABLE, NEAR_VERSION, NearPrefix};

use crate::context::communicating;
use crate::export::export;
use crate::job::endpoint::{Location, MAX_ENDPOINTS};
use crate::job::{CData, Client, Endpoint, fatal, given, job};

/// What a `gex_TM_t` leads to. One that has a table is [`Placed`](crate::job::Placed).
#[repr(C)]
pub(crate) struct Team {
    /// What headers use without a call.
    prefix: NearPrefix,
    kind: Kind,
    endpoint: &'static Endpoint,
    cdata: CData,
}

/// Which ranks a team has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All ranks, by their primordial endpoints.
    World,
    /// All ranks, by their endpoints of this index; no team, but passed as one.
    Pair(u32),
}

impl Team {
    pub(crate) fn world(endpoint: &'static Endpoint, rank: u32, size: u32) -> Self {
        // All ranks of a job are neighbours as long as smp is the only conduit.
        let prefix = NearPrefix::new(rank, size, size);
        Self::new(Kind::World, endpoint, prefix)
    }

    pub(crate) fn pair(endpoint: &'static Endpoint, remote: u32, rank: u32, size: u32) -> Self {
        let prefix = NearPrefix::new(rank, size, 0);
        Self::new(Kind::Pair(remote), endpoint, prefix)
    }

    fn new(kind: Kind, endpoint: &'static Endpoint, prefix: NearPrefix) -> Self {
        Self {
            prefix,
            kind,
            endpoint,
            cdata: CData::default(),
        }
    }

    pub(crate) fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }

    pub(crate) fn size(&self) -> u32 {
        self.prefix.size
    }

    /// Ranks that its table has, from 0 on.
    pub(crate) fn near_len(&self) -> u32 {
        self.prefix.near_len
    }

    /// Index of the endpoints that its ranks stand for.
    #[inline]
    pub(crate) fn remote_endpoint(&self) -> u32 {
        match self.kind {
            Kind::World => 0,
            Kind::Pair(remote) => remote,
        }
    }

    /// Whether the endpoints on both sides are those that active messages go between.
    #[inline(always)]
    pub(crate) fn carries_messages(&self) -> bool {
        match self.kind {
            Kind::World => true,
            Kind::Pair(remote) => remote == 0 && self.endpoint.index() == 0,
        }
    }

    /// Ends the job if this is a pair, which `function` does not take.
    pub(crate) fn no_pair(&self, function: &str) -> &Self {
        if self.kind != Kind::World {
            fatal(
                function,
                "tm is a pair of endpoints; this call needs a team",
            );
        }
        self
    }
}

/// The team of a handle.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn team<'a>(handle: *const Team, function: &str) -> &'a Team {
    // SAFETY: this function's contract.
    unsafe { given(handle, function, "tm") }
}

/// A rank of a team that exists, or the end of the job.
#[inline]
pub(crate) fn known(team: &Team, rank: u32, function: &str) -> u32 {
    known_as(team, rank, function, "rank")
}

/// The same for an argument of another name.
#[inline]
pub(crate) fn known_as(team: &Team, rank: u32, function: &str, argument: &str) -> u32 {
    if rank >= team.size() {
        out_of_range(team, rank, function, argument)
    }
    rank
}

#[cold]
#[inline(never)]
fn out_of_range(team: &Team, rank: u32, function: &str, argument: &str) -> ! {
    let size = team.size();
    fatal(
        function,
        &format!("{argument} is {rank}; the team has {size} ranks, from 0"),
    )
}

/// In debug builds, ends the job where translations are not allowed, as they are free to communicate: ours do not, so that
/// other builds need not ask.
fn may_translate(function: &str) {
    if job(function).debug {
        communicating(function, |_, _| ());
    }
}

export! {
    /// What `gex_TM_QueryRank` calls in debug builds.
    fn argonet_tm_rank(tm: *const Team) -> u32 {
        const FUNCTION: &str = "gex_TM_QueryRank";
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION).prefix.rank
    }

    /// What `gex_TM_QuerySize` calls in debug builds.
    fn argonet_tm_size(tm: *const Team) -> u32 {
        const FUNCTION: &str = "gex_TM_QuerySize";
        // SAFETY: a team of ours, or null.
        unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION).size()
    }

    fn gex_TM_Pair(ep: *const Endpoint, remote: u32) -> *const Team {
        const FUNCTION: &str = "gex_TM_Pair";
        // SAFETY: an endpoint of ours, or null.
        let endpoint = unsafe { given(ep, FUNCTION, "ep") };
        match endpoint.pair(remote, job(FUNCTION)) {
            Some(pair) => pair,
            None => fatal(FUNCTION, &format!("the remote index is {remote}; a process has at most {MAX_ENDPOINTS} endpoints")),
        }
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
        unsafe { team(tm, "gex_TM_QueryFlags") }.no_pair("gex_TM_QueryFlags");
        // The primordial team is made without flags.
        0
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
        let size = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION).size();
        if jobrank < size { jobrank } else { u32::MAX }
    }

    fn gex_TM_TranslateRankToEP(tm: *const Team, rank: u32, flags: u32) -> Location {
        const FUNCTION: &str = "gex_TM_TranslateRankToEP";
        may_translate(FUNCTION);
        if flags != 0 {
            fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
        }
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        Location { rank: known(team, rank, FUNCTION), endpoint: team.remote_endpoint() }
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(struct argonet_near_team)", NEAR_TABLE),
    ("sizeof(ptrdiff_t)", size_of::<isize>()),
    (
        "offsetof(struct argonet_near_team, magic)",
        offset_of!(NearPrefix, magic),
    ),
    (
        "offsetof(struct argonet_near_team, version)",
        offset_of!(NearPrefix, version),
    ),
    (
        "offsetof(struct argonet_near_team, near_len)",
        offset_of!(NearPrefix, near_len),
    ),
    (
        "offsetof(struct argonet_near_team, rank)",
        offset_of!(NearPrefix, rank),
    ),
    (
        "offsetof(struct argonet_near_team, size)",
        offset_of!(NearPrefix, size),
    ),
    (
        "offsetof(struct argonet_near_team, reserved)",
        offset_of!(NearPrefix, reserved),
    ),
    (
        "offsetof(struct argonet_near_team, library)",
        size_of::<NearPrefix>(),
    ),
    ("ARGONET_NEAR_MAGIC", NEAR_MAGIC as usize),
    ("ARGONET_NEAR_VERSION", NEAR_VERSION as usize),
    ("(size_t)ARGONET_NEAR_NONE", NEAR_NONE as usize),
    ("sizeof(gex_EP_Location_t)", size_of::<Location>()),
    (
        "offsetof(gex_EP_Location_t, gex_ep_index)",
        offset_of!(Location, endpoint),
    ),
];
