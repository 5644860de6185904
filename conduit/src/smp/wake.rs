//! Sleeping and waking: the sleeper pays for the fence, not the sender.
//!
//! Each rank has a word of its own, alone on its cache line, that senders read after every
//! message: 0, nobody sleeps; 1, somebody does. A sleeper stores 1, makes every running thread of
//! the host execute a full barrier (membarrier `GLOBAL_EXPEDITED`), looks at all its lanes once
//! more, and only then sleeps on the word. A sender publishes its record and then loads the word.
//! Either the sender's load sees 1, or its record was visible before the sleeper's last look: the
//! barrier is between them on the sender's processor. Where a rank could not register for the
//! barrier, all ranks of the neighbourhood use a SeqCst fence on both sides instead.
//!
//! loom models the second form (`tests/loom.rs`); the first differs only in who executes the
//! sender's fence, and a stress test with two processes covers it.

use argonet_base::sync::atomic::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
const SLEEPS: u32 = 1;

/// Who executes the barrier between a sender's store and its look at the sleep word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// The sleeper, for everybody, by membarrier.
    Sleeper,
    /// Every sender, for itself.
    Sender,
}

/// What the two sides need of the system; replaced in the loom model.
pub(crate) trait Kernel {
    /// A full barrier on every running thread of every registered process.
    fn barrier_everywhere(&self);
    /// Sleeps while the word holds `value`, at most for `timeout`.
    fn wait(&self, word: &AtomicU32, value: u32, timeout: Option<core::time::Duration>);
    /// Wakes all who sleep on the word.
    fn wake_all(&self, word: &AtomicU32);
}

/// After a record for the owner of `word` was published: wakes it if it sleeps.
#[inline(always)]
pub(crate) fn ring(word: &AtomicU32, barrier: Barrier, kernel: &impl Kernel) {
    ring_all(core::iter::once(word), barrier, kernel);
}

/// As [`ring`], after something that the owners of several words may wait for: one fence does for all.
#[inline(always)]
pub(crate) fn ring_all<'w>(
    words: impl Iterator<Item = &'w AtomicU32>,
    barrier: Barrier,
    kernel: &impl Kernel,
) {
    if barrier == Barrier::Sender {
        fence(Ordering::SeqCst);
    }
    for word in words {
        if word.load(Ordering::Relaxed) != AWAKE {
            wake(word, kernel);
        }
    }
}

#[cold]
#[inline(never)]
fn wake(word: &AtomicU32, kernel: &impl Kernel) {
    if word.swap(AWAKE, Ordering::AcqRel) != AWAKE {
        kernel.wake_all(word);
    }
}

/// Sleeps until somebody rings, `timeout` passes, or a signal comes, unless `has_work` after the
/// announcement. Returns whether it slept.
pub(crate) fn sleep(
    word: &AtomicU32,
    barrier: Barrier,
    kernel: &impl Kernel,
    timeout: Option<core::time::Duration>,
    has_work: impl Fn() -> bool,
) -> bool {
    word.store(SLEEPS, Ordering::Relaxed);
    match barrier {
        Barrier::Sleeper => kernel.barrier_everywhere(),
        Barrier::Sender => fence(Ordering::SeqCst),
    }
    let slept = if has_work() {
        false
    } else {
        kernel.wait(word, SLEEPS, timeout);
        true
    };
    // Another thread of the process may sleep on the word too; it is woken at worst for nothing.
    if word.swap(AWAKE, Ordering::AcqRel) != AWAKE {
        kernel.wake_all(word);
    }
    slept
}

/// The real thing.
#[cfg(not(loom))]
pub(crate) struct Linux;

#[cfg(not(loom))]
impl Linux {
    /// Asks that barriers of other processes reach this one. False where the system refuses.
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

    fn wait(&self, word: &AtomicU32, value: u32, timeout: Option<core::time::Duration>) {
        use rustix::thread::futex;
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        // Every outcome means the same: look again. The word is shared with other processes, so
        // the futex is not a private one.
        let _ = futex::wait(word, futex::Flags::empty(), value, timeout.as_ref());
    }

    fn wake_all(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(
            word,
            rustix::thread::futex::Flags::empty(),
            i32::MAX as u32,
        );
    }
}
