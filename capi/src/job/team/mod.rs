//! Teams: the world, those that a client makes, and pairs of a local and a remote endpoint.

mod make;
mod queries;
mod receiver;
mod scratch;

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use argonet_base::JobRank;
use argonet_engine::{self as engine, MAPPED_NONE, MAPPED_TABLE, MappedPrefix};

use crate::job::endpoint::Location;
use crate::job::{CData, Endpoint, Job, fatal, given};

use crate::Prototype;

pub(crate) use receiver::Receiver;

/// All functions whose first argument is a team, or that give one.
pub(super) fn prototypes() -> Vec<Prototype> {
    [queries::PROTOTYPES, make::PROTOTYPES].concat()
}

/// Target of a `gex_TM_t`.
///
/// One that has a table is [`Placed`](crate::job::Placed).
#[repr(C)]
pub(crate) struct Team {
    /// Fields that headers use without a call.
    prefix: MappedPrefix,
    kind: Kind,
    endpoint: &'static Endpoint,
    cdata: CData,
    /// Domains of remote atomic operations that name it.
    domains: AtomicU32,
    /// Whether a debug build keeps it although `gex_TM_Destroy` was called.
    destroyed: AtomicBool,
}

/// The ranks of a team.
enum Kind {
    /// All ranks, by their primordial endpoints.
    World,
    /// All ranks, by their endpoints of this index; no team, but passed as one.
    Pair(u32),
    /// Those that a client has chosen.
    Made(Box<Made>),
}

/// A team that a client has made.
pub(crate) struct Made {
    pub(crate) team: Arc<engine::Team>,
    /// Flags of the client's call.
    pub(crate) flags: u32,
    /// Memory that the client gave for the team's lifetime: address and bytes.
    pub(crate) scratch: Option<(usize, usize)>,
}

impl Team {
    /// The team of all ranks.
    ///
    /// Ranks whose memory is reached by loads and stores are below `mapped_end`.
    pub(crate) fn world(
        endpoint: &'static Endpoint,
        rank: u32,
        size: u32,
        mapped_end: u32,
    ) -> Self {
        let prefix = MappedPrefix::new(rank, size, mapped_end);
        Self::new(Kind::World, endpoint, prefix)
    }

    pub(crate) fn pair(endpoint: &'static Endpoint, remote: u32, rank: u32, size: u32) -> Self {
        let prefix = MappedPrefix::new(rank, size, 0);
        Self::new(Kind::Pair(remote), endpoint, prefix)
    }

    /// A team in which `endpoint` is a member.
    ///
    /// `near` says whether loads and stores reach the memory of a process.
    pub(crate) fn made(
        endpoint: &'static Endpoint,
        made: Made,
        near: impl Fn(JobRank) -> bool,
    ) -> Self {
        let members = &made.team.members;
        let is_near = |&rank: &u32| members.endpoint(rank) == 0 && near(members.job_rank(rank));
        let last = (0..members.size()).rev().find(is_near);
        let prefix = MappedPrefix::new(
            made.team.rank,
            members.size(),
            last.map_or(0, |rank| rank + 1),
        );
        Self::new(Kind::Made(Box::new(made)), endpoint, prefix)
    }

    fn new(kind: Kind, endpoint: &'static Endpoint, prefix: MappedPrefix) -> Self {
        Self {
            prefix,
            kind,
            endpoint,
            cdata: CData::default(),
            domains: AtomicU32::new(0),
            destroyed: AtomicBool::new(false),
        }
    }

    pub(crate) fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }

    pub(crate) fn size(&self) -> u32 {
        self.prefix.size
    }

    /// This process's rank in it.
    pub(crate) fn rank(&self) -> u32 {
        self.prefix.rank
    }

    /// The rank of a process of the job, if it is a member.
    pub(crate) fn rank_of(&self, process: JobRank) -> Option<u32> {
        match self.as_made() {
            Some(made) => made.team.members.rank_of(process),
            None => (process.0 < self.size()).then_some(process.0),
        }
    }

    /// Ranks that its table has, from 0 on.
    pub(crate) fn mapped_len(&self) -> u32 {
        self.prefix.mapped_len
    }

    /// A team that a client has made, if it is one.
    pub(crate) fn as_made(&self) -> Option<&Made> {
        match &self.kind {
            Kind::Made(made) => Some(made),
            Kind::World | Kind::Pair(_) => None,
        }
    }

    /// The team as the engine has it; not of a pair.
    pub(crate) fn of_engine<'a>(&'a self, job: &'a Job) -> &'a Arc<engine::Team> {
        match &self.kind {
            Kind::Made(made) => &made.team,
            Kind::World | Kind::Pair(_) => job.joined.engine.world_team(),
        }
    }

    /// Whether it has all ranks of a job of `size`, each by its primordial endpoint.
    pub(crate) fn is_all_of(&self, size: u32) -> bool {
        let whole = |made: &Made| {
            let members = &made.team.members;
            members.size() == size && members.all_primordial()
        };
        self.as_made().is_none_or(whole)
    }

    /// The process of a rank that exists.
    #[inline]
    pub(crate) fn job_rank(&self, rank: u32) -> u32 {
        match &self.kind {
            Kind::World | Kind::Pair(_) => rank,
            Kind::Made(made) => made.team.job_rank(rank).0,
        }
    }

    /// Index of the endpoint of a rank that exists.
    #[inline]
    pub(crate) fn remote_endpoint(&self, rank: u32) -> u32 {
        match &self.kind {
            Kind::World => 0,
            Kind::Pair(remote) => *remote,
            Kind::Made(made) => made.team.members.endpoint(rank),
        }
    }

    /// Distances of the ranks in its table, from those of the job's ranks: a distance is added to
    /// an address of the rank's process.
    pub(crate) fn deltas(&self, of_job: &[Option<isize>]) -> Box<[Option<isize>]> {
        let delta = |rank| match self.remote_endpoint(rank) {
            0 => of_job.get(self.job_rank(rank) as usize).copied().flatten(),
            // Memory that further endpoints have bound is reached by its owner's help.
            _ => None,
        };
        (0..self.mapped_len()).map(delta).collect()
    }

    /// Ends the job if this is a pair, which `function` does not take.
    pub(crate) fn no_pair(&self, function: &str) -> &Self {
        if matches!(self.kind, Kind::Pair(_)) {
            fatal(
                function,
                "tm is a pair of endpoints; this call needs a team",
            );
        }
        self
    }

    /// A domain of remote atomic operations names it from now on.
    pub(crate) fn add_domain(&self) {
        self.domains.fetch_add(1, Ordering::Relaxed);
    }

    /// One does no more.
    pub(crate) fn remove_domain(&self) {
        self.domains.fetch_sub(1, Ordering::Relaxed);
    }

    /// Marks the team as destroyed: a later call that gets it ends the job.
    pub(crate) fn set_destroyed(&self) {
        self.destroyed.store(true, Ordering::Relaxed);
    }

    /// Ends the job if it was destroyed, as far as that is known: in a debug build, which keeps
    /// such teams a while.
    #[inline]
    fn exists(&self, function: &str) {
        if self.destroyed.load(Ordering::Relaxed) {
            used_after(function);
        }
    }
}

#[cold]
#[inline(never)]
fn used_after(function: &str) -> ! {
    fatal(
        function,
        "tm was destroyed by gex_TM_Destroy and cannot be used any more",
    )
}

/// The team of a handle.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn team<'a>(handle: *const Team, function: &str) -> &'a Team {
    // SAFETY: this function's contract.
    let team: &Team = unsafe { given(handle, function, "tm") };
    team.exists(function);
    team
}

/// The rank in the job of a rank of a team that exists, or the end of the job.
#[inline]
pub(crate) fn known(team: &Team, rank: u32, function: &str) -> u32 {
    known_as(team, rank, function, "rank")
}

/// The same for an argument of another name.
#[inline]
pub(crate) fn known_as(team: &Team, rank: u32, function: &str, argument: &str) -> u32 {
    team.job_rank(member(team, rank, function, argument))
}

/// A rank of a team that exists, or the end of the job.
#[inline]
pub(crate) fn member(team: &Team, rank: u32, function: &str, argument: &str) -> u32 {
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

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(struct argonet_mapped_team)", MAPPED_TABLE),
    ("sizeof(ptrdiff_t)", size_of::<isize>()),
    (
        "offsetof(struct argonet_mapped_team, magic)",
        offset_of!(MappedPrefix, magic),
    ),
    (
        "offsetof(struct argonet_mapped_team, version)",
        offset_of!(MappedPrefix, version),
    ),
    (
        "offsetof(struct argonet_mapped_team, mapped_len)",
        offset_of!(MappedPrefix, mapped_len),
    ),
    (
        "offsetof(struct argonet_mapped_team, rank)",
        offset_of!(MappedPrefix, rank),
    ),
    (
        "offsetof(struct argonet_mapped_team, size)",
        offset_of!(MappedPrefix, size),
    ),
    (
        "offsetof(struct argonet_mapped_team, reserved)",
        offset_of!(MappedPrefix, reserved),
    ),
    (
        "offsetof(struct argonet_mapped_team, library)",
        size_of::<MappedPrefix>(),
    ),
    ("(size_t)ARGONET_MAPPED_NONE", MAPPED_NONE as usize),
    ("sizeof(gex_EP_Location_t)", size_of::<Location>()),
    (
        "offsetof(gex_EP_Location_t, gex_ep_index)",
        offset_of!(Location, endpoint),
    ),
];
