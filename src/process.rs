//! The one module with process-wide state: the calling thread's context, and whether this process
//! has joined a job.

use crate::engine::ThreadCtx;
use argonet_base::Rank;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CONTEXT: ThreadCtx = const { ThreadCtx::new(retire_at_exit) };
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

/// A process joins one job once.
static JOINED: AtomicBool = AtomicBool::new(false);

/// Calls `f` with the calling thread's context.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&ThreadCtx) -> R) -> R {
    CONTEXT.with(f)
}

/// Takes the process's one chance to join; false if it is gone.
pub(crate) fn join() -> bool {
    !JOINED.swap(true, Ordering::AcqRel)
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
