//! The one job that this process is a rank of.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use argonet_engine::ThreadCtx;
use argonet_segment::OwnSegment;
use argonet_start::{Joined, with_thread};
use parking_lot::Mutex;

use crate::am::Handlers;
use crate::job::threads::Threads;
use crate::job::{Client, Endpoint, Placed, Segment, SegmentMode, Teams, fatal};
use crate::legacy::{Permit, ValueGets};

/// A job, and the objects that C has of it.
///
/// Made once, never dropped: the process ends with its job.
pub(crate) struct Job {
    pub(crate) joined: Joined,
    /// Whether every call checks all that can be checked.
    pub(crate) debug: bool,
    pub(crate) client: Client,
    /// The team of all ranks.
    pub(crate) world: Placed,
    /// The teams that C has made.
    pub(crate) teams: Teams,
    /// Handlers of the primordial endpoint.
    pub(crate) handlers: &'static Handlers,
    /// Endpoints by index; the first is the primordial one.
    pub(crate) endpoints: Mutex<Vec<&'static Endpoint>>,
    /// The segment that `gex_Segment_Attach` made.
    pub(crate) attached: OnceLock<(OwnSegment, Segment)>,
    /// Memory of a process that others reach.
    pub(crate) segments: SegmentMode,
    /// Whether `gex_Segment_Attach` has been called, where that attaches nothing.
    pub(crate) was_attached: AtomicBool,
    /// Jobranks of the neighborhood: those whose segments are mapped here, or this one alone.
    pub(crate) neighbors: Box<[u32]>,
    /// Jobranks of the host.
    pub(crate) ranks: Box<[u32]>,
    pub(crate) threads: Threads,
    /// Whether the calls of GASNet-1 are allowed.
    pub(crate) gasnet1: Permit,
    pub(crate) value_gets: ValueGets,
}

impl Job {
    /// Whether others reach all memory of a process.
    pub(crate) fn is_everything(&self) -> bool {
        self.segments == SegmentMode::Everything
    }

    /// An endpoint that messages come to.
    #[cold]
    pub(crate) fn further_endpoint(&self, index: u8) -> &'static Endpoint {
        let endpoints = self.endpoints.lock();
        let endpoint = endpoints.get(usize::from(index)).copied();
        endpoint.unwrap_or(self.world.endpoint())
    }
}

static JOB: AtomicPtr<Job> = AtomicPtr::new(null_mut());

/// The job, if this process has joined one.
#[inline(always)]
pub(crate) fn find() -> Option<&'static Job> {
    // SAFETY: null, or what `set` leaked after it was complete (Release there, Acquire here).
    unsafe { JOB.load(Ordering::Acquire).as_ref() }
}

/// The job; ends the process if there is none yet.
#[inline(always)]
pub(crate) fn job(function: &str) -> &'static Job {
    match find() {
        Some(job) => job,
        None => too_early(function),
    }
}

#[cold]
#[inline(never)]
fn too_early(function: &str) -> ! {
    fatal(
        function,
        "called before gex_Client_Init or gasnet_init; call one of them first",
    )
}

/// Calls `f` with the job and the calling thread's context.
#[inline(always)]
pub(crate) fn with_job<R>(function: &str, f: impl FnOnce(&'static Job, &ThreadCtx) -> R) -> R {
    let job = job(function);
    let _inside = job.threads.enter(function);
    // SAFETY: the functions of this crate keep the engine's contract, or ask C for it: the threads
    // that call, and that a prepared payload is committed by its thread. They give the context to
    // calls of this job's engine alone, and retire no thread.
    unsafe { with_thread(|ctx| f(job, ctx)) }
}

/// The rank of this process, if it has one.
pub(crate) fn rank() -> Option<u32> {
    find().map(|job| job.joined.engine.rank().0)
}

/// The process is a rank of this job from now on.
pub(crate) fn set(job: Job) -> &'static Job {
    let job: &'static Job = Box::leak(Box::new(job));
    JOB.store(std::ptr::from_ref(job).cast_mut(), Ordering::Release);
    job
}
