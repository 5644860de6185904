//! Making teams, and their end.

use core::ffi::{c_int, c_void};
use core::slice;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_engine::{self as engine, Choice, TeamError, Terms};
use argonet_settings::Letter;
use argonet_trace::note_with;

use crate::am::failed;
use crate::context::{AfterLoss, communicating, done};
use crate::export::export;
use crate::flags::RANK_IS_JOBRANK;
use crate::job::endpoint::Location;
use crate::job::team::scratch::{
    GLOBAL, KINDS, LOCAL, NO_SCRATCH, SEG_OFFSET, SIZES, SYMMETRIC, scratch, size_asked_for,
};
use crate::job::team::{Made, Team, member, team};
use crate::job::{Endpoint, Job, fatal, job};
use crate::job_tools::Piece;

/// `GEX_FLAG_GLOBALLY_QUIESCED`.
const GLOBALLY_QUIESCED: u32 = number32("GEX_FLAG_GLOBALLY_QUIESCED");

fn check_flags(flags: u32, known: u32, what: &str, function: &str) {
    if flags & !known != 0 {
        fatal(
            function,
            &format!("flags are {flags:#x}; only {what} are known"),
        );
    }
}

/// The engine's result, or none after a loss; another error ends the job.
fn made<T: AfterLoss>(function: &str, outcome: Result<T, TeamError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(TeamError::Op(error)) => done(function, Err(error)),
        Err(error) => fatal(function, &error.to_string()),
    }
}

/// Ends the job if a team without bytes of scratch memory is asked for where it should have some.
fn check_size(size: usize, flags: u32, function: &str) {
    if size == 0 && flags & NO_SCRATCH == 0 {
        fatal(
            function,
            "scratch_size is 0; give what the query with GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED returns, or pass GEX_FLAG_TM_NO_SCRATCH",
        );
    }
}

/// Arguments that all members must give alike.
fn terms(size: usize, flags: u32) -> Terms {
    let scratch = if flags & NO_SCRATCH == 0 { size } else { 0 };
    Terms {
        scratch: scratch as u64,
        flags: flags & (KINDS | SEG_OFFSET | RANK_IS_JOBRANK),
    }
}

/// The handle of a new team.
fn handle(
    job: &Job,
    endpoint: &'static Endpoint,
    team: Arc<engine::Team>,
    flags: u32,
    scratch: Option<(usize, usize)>,
    function: &str,
) -> *const Team {
    note_with(Letter::Object, || {
        let (rank, size) = (team.rank, team.size());
        format!("{function}: rank {rank} of {size}, {:?}", team.key)
    });
    let made = Made {
        team,
        flags,
        scratch,
    };
    let near = |rank: JobRank| job.neighbors.binary_search(&rank.0).is_ok();
    job.teams.add(Team::made(endpoint, made, near))
}

/// A list of a client's, which it gives with [`gex_TM_Create`].
struct List<'a> {
    function: &'static str,
    parent: &'a Team,
    args: &'a [Location],
    flags: u32,
}

impl List<'_> {
    /// The process of each member, and its endpoint.
    fn members(&self) -> Vec<(JobRank, u32)> {
        let Self {
            function, parent, ..
        } = *self;
        let process = |rank| match self.flags & RANK_IS_JOBRANK {
            // The engine finds out whether it exists.
            0 => parent.job_rank(member(parent, rank, function, "gex_rank of args")),
            _ => rank,
        };
        let place = |arg: &Location| (JobRank(process(arg.rank)), arg.endpoint.into());
        self.args.iter().map(place).collect()
    }

    /// The endpoints of this process that are members, with their ranks in the team.
    fn local(&self, job: &Job, members: &[(JobRank, u32)]) -> Vec<(u32, &'static Endpoint)> {
        let own = job.joined.engine.rank();
        let endpoints = job.endpoints.lock();
        let mut local = Vec::new();
        for (rank, &(process, index)) in (0..).zip(members) {
            if process != own {
                continue;
            }
            let Some(&endpoint) = endpoints.get(index as usize) else {
                fatal(
                    self.function,
                    &format!(
                        "args names endpoint {index} of this process, rank {own} of the job, which has {} endpoints",
                        endpoints.len()
                    ),
                )
            };
            local.push((rank, endpoint));
        }
        local
    }

    /// The scratch memory of each local member, if they are to have any.
    ///
    /// # Safety
    /// `addresses` is null, or as many as the flags say can be read there.
    unsafe fn scratch(
        &self,
        job: &Job,
        local: &[(u32, &'static Endpoint)],
        addresses: *const *mut c_void,
        size: usize,
    ) -> Vec<Option<(usize, usize)>> {
        let Self {
            function, flags, ..
        } = *self;
        if flags & NO_SCRATCH != 0 {
            return vec![None; local.len()];
        }
        if addresses.is_null() && !local.is_empty() {
            fatal(
                function,
                "scratch_addrs is null; pass GEX_FLAG_TM_NO_SCRATCH if the team is to have no scratch memory",
            );
        }
        let one = |(place, &(rank, endpoint)): (usize, &(u32, &'static Endpoint))| {
            let at = match flags & KINDS {
                GLOBAL => rank as usize,
                LOCAL => place,
                _ => 0,
            };
            // SAFETY: this function's contract.
            let given = unsafe { *addresses.add(at) }.addr();
            Some(scratch(job, endpoint, given, size, flags, function))
        };
        local.iter().enumerate().map(one).collect()
    }
}

/// Ends the job if something of the client's still uses a team that it destroys: a domain, which
/// would lead to memory that is given back, or, in debug builds, a collective operation, which
/// would go on all the same.
fn unused(job: &Job, team: &Team, made: &Made, function: &str) {
    let domains = team.domains.load(Ordering::Relaxed);
    if domains > 0 {
        fatal(
            function,
            &format!(
                "tm still has {domains} domain(s) of remote atomic operations; call gex_AD_Destroy for each before"
            ),
        );
    }
    if !job.debug {
        return;
    }
    let calls = job.joined.engine.collectives_under_way(&made.team);
    if calls > 0 {
        fatal(
            function,
            &format!(
                "tm still has {calls} collective operation(s) under way at rank {} of {}; wait for their events before",
                team.rank(),
                team.size()
            ),
        );
    }
}

export! {
    fn gex_TM_Split(new: *mut *const Team, parent: *const Team, color: c_int, key: c_int, scratch_addr: *mut c_void, scratch_size: usize, flags: u32) -> usize {
        const FUNCTION: &str = "gex_TM_Split";
        const KNOWN: &str = "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED, GEX_FLAG_TM_SCRATCH_SIZE_MIN and GEX_FLAG_TM_NO_SCRATCH";
        // SAFETY: a team of ours, or null.
        let parent = unsafe { team(parent, FUNCTION) }.no_pair(FUNCTION);
        check_flags(flags, SIZES | NO_SCRATCH, KNOWN, FUNCTION);
        let color = (!new.is_null()).then(|| match u32::try_from(color) {
            Ok(color) => color,
            Err(_) => fatal(FUNCTION, &format!("color is {color}; it must not be negative")),
        });
        communicating(FUNCTION, |job, ctx| {
            if let Some(size) = size_asked_for(job, flags, color.is_some(), FUNCTION) {
                return size;
            }
            let mut memory = None;
            if color.is_some() && flags & NO_SCRATCH == 0 {
                check_size(scratch_size, flags, FUNCTION);
                memory = Some(scratch(job, parent.endpoint(), scratch_addr.addr(), scratch_size, flags, FUNCTION));
            }
            let choice = color.map(|color| Choice { color, key });
            let terms = terms(scratch_size, flags);
            let engine = &job.joined.engine;
            let outcome = engine.team_split(ctx, parent.of_engine(job), choice, terms);
            if let Some(team) = made(FUNCTION, outcome) {
                let handle = handle(job, parent.endpoint(), team, flags, memory, FUNCTION);
                // SAFETY: not null, as there is a color, and the caller's to write, as the header
                // asks.
                unsafe { *new = handle };
            }
            0
        })
    }

    fn gex_TM_Create(new: *mut *const Team, count: usize, parent: *const Team, args: *mut Location, nargs: usize, scratch_addrs: *mut *mut c_void, scratch_size: usize, flags: u32) -> usize {
        const FUNCTION: &str = "gex_TM_Create";
        const KNOWN: &str = "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED, GEX_FLAG_TM_SCRATCH_SIZE_MIN, GEX_FLAG_TM_*_SCRATCH, GEX_FLAG_SCRATCH_SEG_OFFSET and GEX_FLAG_RANK_IS_JOBRANK";
        // SAFETY: a team of ours, or null.
        let parent = unsafe { team(parent, FUNCTION) }.no_pair(FUNCTION);
        check_flags(flags, SIZES | KINDS | SEG_OFFSET | RANK_IS_JOBRANK, KNOWN, FUNCTION);
        if flags & KINDS != 0 && !(flags & KINDS).is_power_of_two() {
            fatal(FUNCTION, &format!("flags are {flags:#x}; GEX_FLAG_TM_GLOBAL_SCRATCH, LOCAL, SYMMETRIC and NO_SCRATCH exclude each other"));
        }
        communicating(FUNCTION, |job, ctx| {
            if let Some(size) = size_asked_for(job, flags, nargs > 0, FUNCTION) {
                return size;
            }
            let engine = &job.joined.engine;
            if nargs == 0 {
                made(FUNCTION, engine.team_create(ctx, parent.of_engine(job), &[], Terms::default()));
                return 0;
            }
            if flags & KINDS == 0 {
                fatal(FUNCTION, &format!("flags are {flags:#x}; one of GEX_FLAG_TM_GLOBAL_SCRATCH, LOCAL, SYMMETRIC and NO_SCRATCH must be given"));
            }
            check_size(scratch_size, flags, FUNCTION);
            if args.is_null() {
                fatal(FUNCTION, &format!("args is null, and numargs {nargs}"));
            }
            // SAFETY: the caller says that there are so many.
            let args = unsafe { slice::from_raw_parts(args, nargs) };
            let list = List { function: FUNCTION, parent, args, flags };
            let members = list.members();
            let local = list.local(job, &members);
            if local.len() != count || (new.is_null() && count > 0) {
                fatal(FUNCTION, &format!("num_new_tms is {count} and new_tms {new:p}; args names {} endpoints of this process, and there must be a place for each", local.len()));
            }
            // SAFETY: the caller says that there are as many as its flags say.
            let memories = unsafe { list.scratch(job, &local, scratch_addrs, scratch_size) };
            let terms = terms(scratch_size, flags);
            let teams = made(FUNCTION, engine.team_create(ctx, parent.of_engine(job), &members, terms));
            for (place, ((team, (_, endpoint)), memory)) in teams.into_iter().zip(local).zip(memories).enumerate() {
                let handle = handle(job, endpoint, team, flags, memory, FUNCTION);
                // SAFETY: there is a place for each, as was just checked, and the caller's to
                // write, as the header asks.
                unsafe { *new.add(place) = handle };
            }
            0
        })
    }

    fn argonet_TM_Survivors(new: *mut *const Team, flags: u32) {
        const FUNCTION: &str = "argonet_TM_Survivors";
        if flags != 0 {
            fatal(FUNCTION, &format!("flags are {flags:#x}; they must be 0"));
        }
        if new.is_null() {
            fatal(FUNCTION, "new_tm is null");
        }
        communicating(FUNCTION, |job, ctx| {
            let survivors = job.joined.engine.survivors(ctx);
            let team = survivors.unwrap_or_else(|error| failed(FUNCTION, &error));
            let handle = handle(job, job.world.endpoint(), team, NO_SCRATCH, None, FUNCTION);
            // SAFETY: not null, and the caller's to write, as the header asks.
            unsafe { *new = handle };
        });
    }

    fn gex_TM_Destroy(tm: *const Team, scratch: *mut Piece, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_TM_Destroy";
        // SAFETY: a team of ours, or null.
        let team = unsafe { team(tm, FUNCTION) }.no_pair(FUNCTION);
        check_flags(flags, GLOBALLY_QUIESCED | SEG_OFFSET, "GEX_FLAG_GLOBALLY_QUIESCED and GEX_FLAG_SCRATCH_SEG_OFFSET", FUNCTION);
        let (given, place) = communicating(FUNCTION, |job, ctx| {
            let Some(made) = team.as_made() else {
                fatal(FUNCTION, "tm is the primordial team, which cannot be destroyed");
            };
            unused(job, team, made, FUNCTION);
            let quiesced = flags & GLOBALLY_QUIESCED != 0;
            done(FUNCTION, job.joined.engine.team_leave(ctx, &made.team, quiesced));
            let given = made.scratch.filter(|_| !scratch.is_null());
            if let Some((address, bytes)) = given {
                let base = team.endpoint().segment().map_or(0, |segment| segment.base().addr());
                let address = if flags & SEG_OFFSET == 0 { address } else { address.wrapping_sub(base) };
                // SAFETY: not null, and the caller's to write, as the header asks.
                unsafe { *scratch = Piece { address: core::ptr::with_exposed_provenance_mut(address), bytes } };
            }
            note_with(Letter::Object, || format!("{FUNCTION}: {:?}", made.team.key));
            (given, (made.team.key, made.team.rank))
        });
        job(FUNCTION).teams.remove(place, job(FUNCTION).debug);
        c_int::from(given.is_some())
    }
}

const _: () = assert!(SYMMETRIC == KINDS & !(GLOBAL | LOCAL | NO_SCRATCH));
