//! How headers pass a handler's index and its arguments.

use argonet_am::{AmError, CLIENT_BASE, Category, MAX_ARGS, MessageClass};
use argonet_base::HandlerIndex;
use argonet_base::gasnet::number32;

use crate::am::entry::Entry;
use crate::context::holds_nothing;
use crate::flags::{COPY, IMMEDIATE, PEER_DISPOSITION, SELF_DISPOSITION};
use crate::job::{Job, fatal, job};

/// An index in the low eight bits, and a number of arguments above them: `ARGONET_AM_WHAT` of the
/// header.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct What(u32);

impl What {
    pub(crate) const fn new(index: u8, nargs: u8) -> Self {
        Self(index as u32 | (nargs as u32) << 8)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn handler(self) -> HandlerIndex {
        HandlerIndex(self.0 as u8)
    }

    #[inline(always)]
    pub(crate) fn nargs(self) -> usize {
        (self.0 >> 8) as usize
    }
}

/// The arguments of a message.
///
/// # Safety
/// `args` leads to as many arguments as `what` says, which stay for as long as the result is used.
#[inline(always)]
pub(crate) unsafe fn arguments<'a>(args: *const i32, what: What, function: &str) -> &'a [u32] {
    let nargs = what.nargs();
    if nargs == 0 {
        return &[];
    }
    if nargs > MAX_ARGS {
        too_many(nargs, function);
    }
    // SAFETY: this function's contract; an argument is 32 bits, signed or not.
    unsafe { core::slice::from_raw_parts(args.cast(), nargs) }
}

#[cold]
fn too_many(nargs: usize, function: &str) -> ! {
    fatal(
        function,
        &format!("numargs is {nargs}; at most {MAX_ARGS} are allowed"),
    )
}

/// Ends the job if a message cannot be for this index of an endpoint.
///
/// Only the target knows the handler of the index; in debug builds a sender that has one for it too
/// compares.
#[inline]
pub(crate) fn check_handler(
    job: &Job,
    (endpoint, handler): (u8, HandlerIndex),
    category: Category,
    class: MessageClass,
    nargs: usize,
    function: &str,
) {
    if handler < CLIENT_BASE {
        not_the_clients(job, handler, function);
    }
    if job.debug
        && let Some(entry) = own_entry(job, endpoint, handler)
        && let Some(why) = entry.mismatch(category, class, nargs)
    {
        fatal(function, &why);
    }
}

/// The handler of this process's endpoint of that index, if one is registered.
fn own_entry(job: &Job, endpoint: u8, handler: HandlerIndex) -> Option<&'static Entry> {
    if endpoint == 0 {
        return job.handlers.entry(handler.0);
    }
    let endpoint = job.endpoints.lock().get(usize::from(endpoint)).copied();
    endpoint?.handlers()?.entry(handler.0)
}

#[cold]
fn not_the_clients(job: &Job, handler: HandlerIndex, function: &str) -> ! {
    let rank = job.joined.engine.rank();
    fatal(
        function,
        &format!(
            "rank {rank}: handler index {handler} is not a client's; those are {CLIENT_BASE} to 255"
        ),
    )
}

/// Flags that a message may have, one `SEG` flag for each side.
const KNOWN: u32 = IMMEDIATE | SELF_DISPOSITION | PEER_DISPOSITION | COPY;

/// `GEX_FLAG_AM_PREPARE_LEAST_*`, which mean nothing to prepares.
pub(crate) const LEAST: u32 = number32("GEX_FLAG_AM_PREPARE_LEAST_CLIENT") | LEAST_ALLOC;
pub(crate) const LEAST_ALLOC: u32 = number32("GEX_FLAG_AM_PREPARE_LEAST_ALLOC");

const _: () = assert!(LEAST & KNOWN == 0);

/// In debug builds, ends the job if the thread holds locks, or the flags are not those of a message
/// or exclude each other.
#[inline]
pub(crate) fn check_flags(job: &Job, flags: u32, ignored: u32, function: &str) {
    if !job.debug {
        return;
    }
    holds_nothing(function);
    let unknown = flags & !(KNOWN | ignored);
    if unknown != 0 {
        fatal(
            function,
            &format!("flags are {flags:#x}; this call does not take {unknown:#x}"),
        );
    }
    for group in [SELF_DISPOSITION, PEER_DISPOSITION, COPY] {
        if (flags & group).count_ones() > 1 {
            fatal(
                function,
                &format!("flags are {flags:#x}; those in {group:#x} exclude each other"),
            );
        }
    }
}

/// Ends the job for an error of the engine's.
#[cold]
pub(crate) fn failed(function: &str, error: &AmError) -> ! {
    let argument = match error {
        AmError::TooManyThreads { limit, .. } => {
            fatal(function, &job(function).threads.too_many(*limit))
        }
        AmError::TooLong { .. } => "nbytes: ",
        AmError::NoSuchRank { .. } => "rank: ",
        AmError::TooManyArgs { .. } => "numargs: ",
        _ => "",
    };
    fatal(function, &format!("{argument}{error}"))
}
