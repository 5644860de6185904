//! The one module with process-wide state: the calling thread's context, how many threads have one,
//! and whether this process has joined a job.
#![allow(unsafe_code)]

use argonet_base::Rank;
use argonet_engine::{Crowded, ThreadCtx};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

thread_local! {
    static CONTEXT: ThreadCtx = const { ThreadCtx::of_process(arrive) };
}

/// Live threads that have called, and how many may.
static THREADS: AtomicU64 = AtomicU64::new(0);
static MOST_THREADS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Called in addition when a thread that has called ends.
static AT_THREAD_END: OnceLock<fn(&ThreadCtx)> = OnceLock::new();

/// At most so many threads may call from now on, and `at_end` is called by each that has when it
/// ends.
///
/// Once a process; of several the first counts.
pub(crate) fn expect_threads(most: u64, at_end: fn(&ThreadCtx)) {
    if AT_THREAD_END.set(at_end).is_ok() {
        MOST_THREADS.store(most, Ordering::Relaxed);
    }
}

/// The calling thread calls for the first time, or anew after it was retired.
fn arrive() -> Result<(), Crowded> {
    let limit = MOST_THREADS.load(Ordering::Relaxed);
    // Acquire and Release: this thread may take the place of a thread that has left.
    let before = THREADS.fetch_add(1, Ordering::AcqRel);
    if before >= limit {
        THREADS.fetch_sub(1, Ordering::AcqRel);
        return Err(Crowded { limit });
    }
    retire_at_end();
    Ok(())
}

/// Has [`leave`] called when the calling thread ends.
///
/// Thread-specific data and not a thread-local value with drop code: destructors of those run
/// first, and a client's may call the library. Those of other thread-specific data may, too: the
/// system runs them again and again while there is something left, four times at least.
fn retire_at_end() {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a place to write, and a function that may run at the end of any thread.
        let result = unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) };
        assert_eq!(result, 0, "no key for thread-specific data is left");
        key
    });
    // SAFETY: a key of this process that is never deleted; the value is not null and never read.
    let result = unsafe { libc::pthread_setspecific(key, core::ptr::dangling()) };
    assert_eq!(result, 0, "no memory for thread-specific data");
}

/// The calling thread ends.
extern "C" fn leave(_: *mut c_void) {
    CONTEXT.with(|ctx| {
        if let Some(at_end) = AT_THREAD_END.get() {
            at_end(ctx);
        }
        ctx.retire();
    });
    THREADS.fetch_sub(1, Ordering::AcqRel);
}

/// A process joins one job once: its rank there, or one of the two below.
static JOINED: AtomicU64 = AtomicU64::new(NOT_JOINED);

const NOT_JOINED: u64 = u64::MAX;

/// Some thread is about to join.
const JOINING: u64 = u64::MAX - 1;

/// Called before the process ends in an orderly way.
static AT_END: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// `act` is called when the process ends where exit handlers may run.
///
/// Once a process.
pub(crate) fn at_end(act: Box<dyn Fn() + Send + Sync>) {
    let _ = AT_END.set(act);
}

/// Reports to other ranks over a network that this one ends the job; whether the calling thread
/// could.
type ReportExit = Box<dyn Fn(&argonet_conduit::ExitReport<'_>) -> bool + Send + Sync>;

static REPORT_EXIT: OnceLock<ReportExit> = OnceLock::new();

/// `report` is called when this rank ends the job, or forwards that another does.
///
/// Once a process.
pub(crate) fn report_exits_by(report: ReportExit) {
    if REPORT_EXIT.set(report).is_ok() {
        argonet_boot::report_exits_by(|code, limit, spares| {
            let exit = argonet_conduit::ExitReport {
                code,
                limit,
                spares,
            };
            REPORT_EXIT.get().is_none_or(|report| report(&exit))
        });
    }
}

/// The process ends; `orderly` is false where only async-signal-safe calls are allowed.
pub(crate) fn end(orderly: bool) {
    if let Some(act) = AT_END.get().filter(|_| orderly) {
        act();
    }
    argonet_trace::end(orderly);
}

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

/// Whether the process has the chance.
pub(crate) fn may_join() -> bool {
    JOINED.load(Ordering::Acquire) == NOT_JOINED
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
