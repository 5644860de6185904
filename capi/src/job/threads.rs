//! Threads of the client that call: how many may be live, and in debug builds whether they exclude
//! each other where they have promised it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use argonet_conduit::ThreadMode;
use argonet_engine::ThreadCtx;
use argonet_start::expect_threads;
use rustix::thread::gettid;

use crate::am;
use crate::hsl;
use crate::job::fatal;

/// The promise of the client's thread mode, and the checks of it.
pub(crate) struct Threads {
    mode: ThreadMode,
    /// The result of `gex_System_QueryMaxThreads`.
    most: u64,
    /// In debug builds for `GASNET_PARSYNC`.
    serial: Option<Serial>,
}

impl Threads {
    /// `most` is the limit that the settings name.
    pub(crate) fn new(mode: ThreadMode, most: u64, debug: bool) -> Self {
        Self {
            mode,
            most: most_threads(mode, most),
            serial: (debug && mode == ThreadMode::Parsync).then(Serial::default),
        }
    }

    /// The result of `gex_System_QueryMaxThreads`.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Counts threads from now on, up to the limit.
    ///
    /// Not in a release build for `GASNET_SEQ`: a program whose threads call one after the other
    /// worked with other implementations, too.
    pub(crate) fn expect(&self, debug: bool) {
        let counted = debug || self.mode != ThreadMode::Seq;
        let most = if counted { self.most } else { u64::MAX };
        // SAFETY: `left` looks what the thread has left over, and changes nothing of its context.
        unsafe { expect_threads(most, left) };
    }

    /// Why a thread may not call.
    pub(crate) fn too_many(&self, limit: u64) -> String {
        match self.mode {
            ThreadMode::Seq => {
                "called by a second thread; a client that is compiled with GASNET_SEQ has one: compile and link it with GASNET_PAR, or GASNET_PARSYNC if its threads exclude each other".to_owned()
            }
            ThreadMode::Parsync | ThreadMode::Par => format!(
                "this would be live thread {} that calls the library; GASNET_MAX_THREADS allows {limit} (gex_System_QueryMaxThreads): set it higher, or end threads first",
                limit.saturating_add(1)
            ),
        }
    }

    /// The calling thread is in the library until the result is dropped.
    ///
    /// Ends the job if another one is, too, and must not.
    #[inline(always)]
    pub(crate) fn enter(&self, function: &str) -> Option<Inside<'_>> {
        match &self.serial {
            None => None,
            Some(serial) => serial.enter(function),
        }
    }
}

/// How many threads may call, if the settings allow `most`.
pub(crate) fn most_threads(mode: ThreadMode, most: u64) -> u64 {
    match mode {
        ThreadMode::Seq => 1,
        ThreadMode::Parsync | ThreadMode::Par => most,
    }
}

/// Cleans up after a thread that ends.
fn left(ctx: &ThreadCtx) {
    const FUNCTION: &str = "the end of a thread";
    let locks = hsl::held();
    if locks > 0 {
        fatal(
            FUNCTION,
            &format!("it holds {locks} handler-safe locks; unlock them before the thread ends"),
        );
    }
    am::thread_ends(ctx, FUNCTION);
}

/// The thread that is in the library, by its number; 0 for none.
///
/// Written by that thread.
#[derive(Default)]
struct Serial(AtomicU32);

/// Until it is dropped the thread is in the library.
pub(crate) struct Inside<'a>(&'a Serial);

thread_local! {
    static ME: Cell<u32> = const { Cell::new(0) };
}

/// The system's number of the calling thread.
fn me() -> u32 {
    let known = ME.get();
    if known != 0 {
        return known;
    }
    let found = gettid().as_raw_nonzero().get().cast_unsigned();
    ME.set(found);
    found
}

impl Serial {
    /// `None` for a call inside another one of the same thread, as handlers make.
    #[cold]
    #[inline(never)]
    fn enter(&self, function: &str) -> Option<Inside<'_>> {
        let me = me();
        // Relaxed: threads that exclude each other are ordered by what excludes them, and of those
        // that do not a number is all that is wanted.
        match self
            .0
            .compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => Some(Inside(self)),
            Err(other) if other == me => None,
            Err(other) => fatal(
                function,
                &format!(
                    "thread {me} calls while thread {other} is in a call; the threads of a client that is compiled with GASNET_PARSYNC exclude each other: lock around calls, or use GASNET_PAR"
                ),
            ),
        }
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Relaxed);
    }
}
