//! Sleeping and waking: the sleeper pays for the fence, not the sender.
//!
//! Each rank has a word of its own, alone on its cache line, that senders read after every message:
//! even, no thread sleeps; odd, one does. A sleeper makes it odd, makes every running thread of the
//! host execute a full barrier (membarrier `GLOBAL_EXPEDITED`), looks at all its classes once more,
//! and only then sleeps on the word. A sender publishes its record and then loads the word. Either
//! the sender's load sees that it is odd, or its record was visible before the sleeper's last look:
//! the barrier is between them on the sender's processor. A sender that wakes makes the word the
//! next even number. Where a rank could not register for the barrier, all
//! ranks of the neighborhood use a SeqCst fence on both sides instead.
//!
//! Threads of one rank share the word. One that leaves does not touch it, as it would have to wake
//! the others, which would do the same in turn forever: the next sender wakes for nothing. As the
//! word counts, a thread that is about to sleep finds that it was woken, even if another thread has
//! gone to sleep since.
//!
//! Linux leaves processors out of that barrier at times, see [`VISIBLE`]: so the sleeper, if it
//! pays for the fence, looks once more after a while, when a sender's stores are visible without
//! one.
//!
//! loom models the second form (`tests/loom.rs`); the first differs only in the side that executes
//! the sender's fence, and a stress test with two processes covers it.

use argonet_base::sync::atomic::{AtomicU32, Ordering, fence};
use core::time::Duration;

/// No processor holds a store back for so long.
///
/// Linux chooses the processors that execute a barrier by its record of each: whether the process
/// that ran there last is registered. It forgets that when a thread of the process ends there, and
/// looks again only when another process has run there in between (`membarrier_switch_mm`; measured
/// with 6.18). Until then a sender there executes no barrier, may look at the word before its
/// record has left the processor, and find no thread asleep.
const VISIBLE: Duration = Duration::from_millis(1);

/// The bit of a word that is odd.
const SLEEPS: u32 = 1;

/// The side that executes the barrier between a sender's store and its look at the sleep word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// The sleeper, for everybody, by membarrier.
    Sleeper,
    /// Every sender, for itself.
    Sender,
}

/// System calls of the two sides; replaced in the loom model.
pub(crate) trait Kernel {
    /// A full barrier on every running thread of every registered process.
    fn barrier_everywhere(&self);
    /// Sleeps while the word holds `value`, at most for `timeout`.
    ///
    /// Whether that is over.
    fn wait(&self, word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool;
    /// Wakes all threads that sleep on the word.
    fn wake_all(&self, word: &AtomicU32);
}

/// After a record for the owner of `word` was published: wakes it if it sleeps.
#[inline(always)]
pub(crate) fn wake_rank(word: &AtomicU32, barrier: Barrier, kernel: &impl Kernel) {
    wake_all(core::iter::once(word), barrier, kernel);
}

/// As [`ring`], after something that the owners of several words may wait for: one fence does for
/// all.
#[inline(always)]
pub(crate) fn wake_all<'w>(
    words: impl Iterator<Item = &'w AtomicU32>,
    barrier: Barrier,
    kernel: &impl Kernel,
) {
    if barrier == Barrier::Sender {
        fence(Ordering::SeqCst);
    }
    for word in words {
        if word.load(Ordering::Relaxed) & SLEEPS != 0 {
            wake(word, kernel);
        }
    }
}

#[cold]
#[inline(never)]
fn wake(word: &AtomicU32, kernel: &impl Kernel) {
    let next = |word: u32| (word & SLEEPS != 0).then(|| word.wrapping_add(1));
    if word
        .fetch_update(Ordering::AcqRel, Ordering::Relaxed, next)
        .is_ok()
    {
        kernel.wake_all(word);
    }
}

/// Sleeps until a sender rings, `timeout` passes, or a signal comes, unless `has_work` after the
/// announcement.
///
/// `is_alone`: no other thread of the rank may sleep at the same time. Returns whether it slept.
pub(crate) fn sleep(
    (word, is_alone): (&AtomicU32, bool),
    barrier: Barrier,
    kernel: &impl Kernel,
    timeout: Option<Duration>,
    has_work: impl Fn() -> bool,
) -> bool {
    let announced = word.fetch_or(SLEEPS, Ordering::Relaxed) | SLEEPS;
    match barrier {
        Barrier::Sleeper => kernel.barrier_everywhere(),
        Barrier::Sender => fence(Ordering::SeqCst),
    }
    let slept = !has_work();
    if slept {
        let looks_again = barrier == Barrier::Sleeper && timeout.is_none_or(|t| t > VISIBLE);
        let first = if looks_again { Some(VISIBLE) } else { timeout };
        let is_over = kernel.wait(word, announced, first);
        if looks_again && is_over && !has_work() {
            kernel.wait(word, announced, timeout.map(|t| t - VISIBLE));
        }
    }
    if is_alone {
        word.fetch_and(!SLEEPS, Ordering::AcqRel);
    }
    slept
}

/// The real thing.
#[cfg(not(loom))]
pub(crate) struct Linux;

#[cfg(not(loom))]
impl Linux {
    /// Asks that barriers of other processes reach this one.
    ///
    /// False where the system refuses.
    pub(crate) fn register() -> bool {
        let query = membarrier(libc::MEMBARRIER_CMD_QUERY);
        let wanted =
            libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
        query >= 0
            && query & i64::from(wanted) == i64::from(wanted)
            && membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0
    }
}

#[cfg(not(loom))]
fn membarrier(command: libc::c_int) -> i64 {
    // SAFETY: membarrier takes two integers and touches no memory of the caller.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

#[cfg(not(loom))]
impl Kernel for Linux {
    fn barrier_everywhere(&self) {
        let result = membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        debug_assert_eq!(result, 0, "registered at start");
    }

    fn wait(&self, word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
        use rustix::thread::futex;
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        // The word is shared with other processes, so the futex is not a private one.
        let woken = futex::wait(word, futex::Flags::empty(), value, timeout.as_ref());
        woken == Err(rustix::io::Errno::TIMEDOUT)
    }

    fn wake_all(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(
            word,
            rustix::thread::futex::Flags::empty(),
            i32::MAX as u32,
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// Records how long it was asked to sleep, and returns whether all of it has passed.
    struct Script {
        barriers: Cell<u32>,
        waits: RefCell<Vec<Option<Duration>>>,
        passes: bool,
    }

    impl Kernel for Script {
        fn barrier_everywhere(&self) {
            self.barriers.set(self.barriers.get() + 1);
        }

        fn wait(&self, _: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
            assert_eq!(value, WOKEN | SLEEPS);
            self.waits.borrow_mut().push(timeout);
            self.passes
        }

        fn wake_all(&self, _: &AtomicU32) {}
    }

    /// The sleeps of a thread that finds something at a look, counted from 0, before that look.
    fn waits(
        barrier: Barrier,
        timeout: Option<Duration>,
        found_at: usize,
        passes: bool,
    ) -> Vec<Option<Duration>> {
        let (word, looks) = (AtomicU32::new(WOKEN), Cell::new(0));
        let script = Script {
            barriers: Cell::new(0),
            waits: RefCell::default(),
            passes,
        };
        let by_sleeper = u32::from(barrier == Barrier::Sleeper);
        let has_work = || {
            assert_eq!(word.load(Ordering::Relaxed), WOKEN | SLEEPS);
            assert_eq!(script.barriers.get(), by_sleeper);
            looks.replace(looks.get() + 1) >= found_at
        };
        let slept = sleep((&word, true), barrier, &script, timeout, has_work);
        let waits = script.waits.take();
        assert_eq!(slept, !waits.is_empty());
        assert_eq!(word.load(Ordering::Relaxed), WOKEN);
        waits
    }

    /// A word of a rank that was woken before.
    const WOKEN: u32 = 6;

    #[test]
    fn a_thread_that_wakes_leaves_the_others_asleep() {
        let script = Script {
            barriers: Cell::new(0),
            waits: RefCell::default(),
            passes: true,
        };
        // Another thread sleeps.
        let word = AtomicU32::new(WOKEN | SLEEPS);
        assert!(sleep(
            (&word, false),
            Barrier::Sender,
            &script,
            LONG,
            || false
        ));
        assert_eq!(word.load(Ordering::Relaxed), WOKEN | SLEEPS);
        // A sender wakes both, once.
        for _ in 0..2 {
            wake_rank(&word, Barrier::Sender, &script);
            assert_eq!(word.load(Ordering::Relaxed), WOKEN + 2);
        }
    }

    const LONG: Option<Duration> = Some(Duration::from_millis(500));

    #[test]
    fn a_store_missed_by_a_barrier_is_found_a_little_later() {
        for timeout in [None, LONG] {
            assert_eq!(waits(Barrier::Sleeper, timeout, 0, true), []);
            assert_eq!(waits(Barrier::Sleeper, timeout, 1, true), [Some(VISIBLE)]);
        }
    }

    #[test]
    fn a_sleeper_that_finds_nothing_sleeps_for_its_timeout() {
        let never = usize::MAX;
        let rest = LONG.map(|t| t - VISIBLE);
        let waits_of = |barrier, timeout| waits(barrier, timeout, never, true);
        assert_eq!(waits_of(Barrier::Sleeper, LONG), [Some(VISIBLE), rest]);
        assert_eq!(waits_of(Barrier::Sleeper, None), [Some(VISIBLE), None]);
        for timeout in [VISIBLE, VISIBLE / 2, Duration::ZERO] {
            assert_eq!(waits_of(Barrier::Sleeper, Some(timeout)), [Some(timeout)]);
        }
        // A fence in the sender leaves no processor out.
        assert_eq!(waits_of(Barrier::Sender, LONG), [LONG]);
        assert_eq!(waits_of(Barrier::Sender, None), [None]);
        // A sender rang, or a signal came.
        let waits = waits(Barrier::Sleeper, None, never, false);
        assert_eq!(waits, [Some(VISIBLE)]);
    }
}
