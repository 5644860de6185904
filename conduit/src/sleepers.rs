//! Threads that sleep until something comes for their rank, and their other wakeups.

use core::sync::atomic::{AtomicU32, Ordering, fence};

/// The sleeping threads of a rank.
///
/// A sleeper counts itself, then looks whether there is anything for it, then sleeps; a thread that
/// brings something raises the epoch, then looks whether any thread sleeps, and wakes it. Both in
/// one order (SeqCst).
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    /// Threads that sleep or are about to.
    count: AtomicU32,
    /// Polls that have taken something, also only an acknowledgement that made room.
    ///
    /// Written by polling threads, read by waiting threads (Acquire): acquire loads pair with the
    /// increment in `moved`, so that the stores of handlers are seen.
    epoch: AtomicU32,
}

impl Sleepers {
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether a poll has moved something since the epoch was `seen`.
    ///
    /// For a thread that has counted itself.
    #[inline]
    pub(crate) fn has_moved_since(&self, seen: u32) -> bool {
        self.epoch.load(Ordering::SeqCst) != seen
    }

    /// A poll has moved something.
    #[inline]
    pub(crate) fn moved(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// A poll has moved something: wakes the threads that sleep.
    ///
    /// `is_alone`: the rank is in SEQ mode, so that no other thread polls or loads the epoch.
    #[inline]
    pub(crate) fn moved_and_wake(&self, is_alone: bool, wake: impl FnOnce()) {
        if is_alone && self.count.load(Ordering::Relaxed) == 0 {
            // No other thread looks at the epoch meanwhile.
            let epoch = self.epoch.load(Ordering::Relaxed);
            self.epoch.store(epoch.wrapping_add(1), Ordering::Relaxed);
            return;
        }
        self.moved();
        if self.any() {
            wake();
        }
    }

    /// Wakes the threads that sleep, for something that the caller has stored.
    #[inline]
    pub(crate) fn wake(&self, wake: impl FnOnce()) {
        fence(Ordering::SeqCst);
        if self.any() {
            wake();
        }
    }

    /// Whether any thread sleeps or is about to.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts the calling thread as one that sleeps, until the result is dropped.
    ///
    /// `first` is called if no other is; `pass_on` when this one leaves others behind, which may
    /// sleep on although it has taken their wakeup.
    pub(crate) fn enter<W: FnMut()>(&self, first: impl FnOnce(), pass_on: W) -> Sleeper<'_, W> {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            first();
        }
        Sleeper(self, pass_on)
    }
}

/// A thread that sleeps.
pub(crate) struct Sleeper<'a, W: FnMut()>(&'a Sleepers, W);

impl<W: FnMut()> Drop for Sleeper<'_, W> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) > 1 {
            (self.1)();
        }
    }
}
