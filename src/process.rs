//! The one module with process-wide state: the calling thread's context, and whether this process
//! has joined a job.

use crate::engine::ThreadCtx;
use argonet_base::Rank;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static CONTEXT: ThreadCtx = const { ThreadCtx::of_process(retire_at_exit) };
    static RETIRE: Retire = const { Retire };
    static CALLER: Cell<Option<Rank>> = const { Cell::new(None) };
}

/// Dropped when its thread ends, if the thread has touched it.
struct Retire;

impl Drop for Retire {
    fn drop(&mut self) {
        CONTEXT.with(ThreadCtx::retire);
    }
}

fn retire_at_exit() {
    RETIRE.with(|_| {});
}

/// A process joins one job once: its rank there, or one of the two below.
static JOINED: AtomicU64 = AtomicU64::new(NOT_JOINED);

const NOT_JOINED: u64 = u64::MAX;

/// Some thread is about to join.
const JOINING: u64 = u64::MAX - 1;

/// Calls `f` with the calling thread's context.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&ThreadCtx) -> R) -> R {
    CONTEXT.with(f)
}

/// The process's one chance to join a job, given back when it is dropped unused.
pub(crate) struct Chance(());

/// Takes the one chance, or returns the rank that the process has or had (0 while it is joining).
pub(crate) fn join() -> Result<Chance, Rank> {
    let free = JOINED.compare_exchange(NOT_JOINED, JOINING, Ordering::AcqRel, Ordering::Acquire);
    match free {
        Ok(_) => Ok(Chance(())),
        Err(rank) => Err(Rank(u32::try_from(rank).unwrap_or(0))),
    }
}

impl Chance {
    /// The process is now a rank of its job, for good.
    pub(crate) fn used(self, rank: Rank) {
        JOINED.store(rank.0.into(), Ordering::Release);
        core::mem::forget(self);
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        JOINED.store(NOT_JOINED, Ordering::Release);
    }
}

/// Runs `f` with `rank` as the caller of the remote procedure that it runs.
pub(crate) fn called_by<R>(rank: Rank, f: impl FnOnce() -> R) -> R {
    let before = CALLER.replace(Some(rank));
    let result = f();
    CALLER.set(before);
    result
}

/// Who called the remote procedure that runs on this thread.
pub(crate) fn caller() -> Option<Rank> {
    CALLER.get()
}

/// Ends the job with `code`, of which the system keeps the lowest eight bits: 0 is allowed, and a
/// job that ends so has ended well. Any rank may call it at any time, from any thread, before it
/// has a world or after, inside a handler, in a signal handler.
///
/// Where all ranks call it at about the same time, or have finalised, the job just ends. Otherwise
/// the ranks that have not called it are made to end within `GASNET_EXITTIMEOUT` seconds (1.1 to 5
/// by default, more with more ranks), as soon as they wait in a call of this library; and one line
/// on standard error says which rank it was. Of several codes the first counts.
///
/// Exit handlers run and standard output is flushed on every rank that calls this or waits in this
/// library, but no destructor is run. In a signal handler no exit handler runs either, and
/// only C's streams are flushed.
///
/// In a process that is not a rank it is [`std::process::exit`].
///
/// ```
/// let world = argonet::World::init().unwrap();
/// if world.rank().0 == 0 {
///     argonet::exit(0);
/// }
/// ```
pub fn exit(code: i32) -> ! {
    argonet_boot::exit(code)
}
