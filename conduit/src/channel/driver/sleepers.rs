//! Threads that sleep until a rail has something, and their other wakeups.

use crate::channel::rail::Rails;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// The sleeping threads of a rank.
///
/// A sleeper counts itself, then looks whether there is anything for it, then sleeps; a thread that
/// brings something raises the epoch, then looks whether any thread sleeps, and wakes it by the
/// rails. Both in one order (SeqCst).
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// Threads that sleep or are about to.
    count: AtomicU32,
    /// Polls that took something, if only what made room.
    ///
    /// Written by polling threads, read by waiting threads (Acquire): acquire loads pair with the
    /// increment in `moved`, so that the stores of handlers are seen.
    epoch: AtomicU32,
}

impl Sleepers {
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// A poll has moved something.
    #[inline]
    pub(super) fn moved(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Wakes the threads that sleep.
    #[inline]
    pub(super) fn wake(&self, rails: &impl Rails) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            rails.wake();
        }
    }

    /// Whether any thread sleeps or is about to.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts the calling thread as one that sleeps, until the result is dropped.
    pub(super) fn enter<'a, R: Rails>(&'a self, rails: &'a R) -> Sleeper<'a, R> {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            // Those of the past were for threads that are gone. If another thread comes meanwhile
            // and its wakeup is forgotten here, this thread finds what it was for and, when it
            // leaves, wakes again.
            rails.forget_wakeups();
        }
        Sleeper(self, rails)
    }
}

/// A thread that sleeps.
pub(super) struct Sleeper<'a, R: Rails>(&'a Sleepers, &'a R);

impl<R: Rails> Drop for Sleeper<'_, R> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) > 1 {
            self.1.wake();
        }
    }
}
