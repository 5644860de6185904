//! Threads that sleep until their rank's interface has an event for them.
//!
//! An interface has a sleep word: even, no thread sleeps; odd, a thread does or is about to. It is
//! made odd, and read by threads that post events, under the interface's lock; a thread that wakes
//! makes it the next even number. So either a sleeper finds the
//! event in its queue, or the thread that posts it finds the word. A thread that posts and dies
//! before it has woken any sleeper leaves the word as it is, for the next. Threads that sleep count
//! themselves, and the last that wakes makes the word even: if each did, it would have to wake the
//! others, which would do the same in turn forever. As the word counts, a thread that is about to
//! sleep finds that it was woken, even if another thread has gone to sleep since.
//!
//! Threads sleep on the word, as a futex; one of a rank that shares its file with no other may
//! sleep on file descriptors instead, of which one is an eventfd. A thread that wakes the rank
//! writes that, too.

use super::interface::Software;
use super::shared::Shared;
use crate::host_file::{SLEEPS, sleep_on, wake_sleepers};
use crate::portals::{NicError, Queue};
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// How a thread that has set the word sleeps.
pub(in crate::portals) enum Rest<'a> {
    /// On the word, up to a time.
    Word(Option<Duration>),
    /// By a call that returns when the eventfd is written; one thread at a time.
    Bell(&'a mut dyn FnMut()),
}

impl Shared {
    /// Whether a thread of the rank at `place` sleeps or is about to.
    ///
    /// The caller holds that interface's lock.
    #[inline(always)]
    pub(super) fn sleeps(&self, place: u32) -> bool {
        self.region.sleep_word(place).load(Ordering::Relaxed) & SLEEPS != 0
    }

    /// Wakes all threads of the rank at `place`.
    #[cold]
    pub(super) fn wake(&self, place: u32) {
        if wake_sleepers(self.region.sleep_word(place))
            && place == self.place
            && let Some(wakeup) = &self.wakeup
        {
            // It fails only after 2^64 wakeups.
            let _ = rustix::io::write(wakeup, &1_u64.to_ne_bytes());
        }
    }

    /// Wakes the threads of this rank, as an event does.
    pub(super) fn wake_all(&self) {
        let mut transaction = self.transaction(self.place);
        transaction.rings = true;
    }

    /// Sleeps unless `has_event`, asked under the lock, or `come`, asked afterwards, says yes.
    pub(super) fn sleep(
        &self,
        rest: Rest<'_>,
        has_event: impl Fn() -> bool,
        come: &dyn Fn() -> bool,
    ) {
        let word = self.region.sleep_word(self.place);
        let transaction = self.transaction(self.place);
        if has_event() {
            return;
        }
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let announced = word.fetch_or(SLEEPS, Ordering::Relaxed) | SLEEPS;
        drop(transaction);
        // A thread that makes `come` true and then wakes has the lock either before us, and we see
        // its stores, or after us, and it sees the word.
        let has_come = come();
        match rest {
            _ if has_come => {}
            Rest::Word(timeout) => sleep_on(word, announced, timeout),
            Rest::Bell(sleep) => sleep(),
        }
        let transaction = self.transaction(self.place);
        if self.sleepers.fetch_sub(1, Ordering::Relaxed) == 1 {
            word.fetch_and(!SLEEPS, Ordering::Relaxed);
        }
        drop(transaction);
    }
}

impl Software {
    /// Has a thread of this rank woken that sleeps on file descriptors, if no other rank could
    /// have to.
    pub(in crate::portals) fn set_wakeup(&mut self, wakeup: OwnedFd) {
        if self.shared.ranks() == 1 {
            self.shared.wakeup = Some(wakeup);
        }
    }

    /// The descriptor that is written when threads of this rank are woken, if there is one.
    pub(in crate::portals) fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        self.shared.wakeup.as_ref().map(AsFd::as_fd)
    }

    /// Whether a thread of this rank sleeps or is about to.
    #[cfg(test)]
    pub(in crate::portals) fn is_slept_for(&self) -> bool {
        self.shared.sleeps(self.shared.place)
    }

    /// [`queue_wait`](crate::portals::Portals::queue_wait), asleep as the caller says.
    pub(in crate::portals) fn wait(
        &self,
        queues: &[Queue],
        rest: Rest<'_>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        for queue in queues {
            self.shared.is_empty(*queue)?;
        }
        // One that goes meanwhile is for the caller to find.
        let has_event = || {
            let mut queues = queues.iter();
            queues.any(|queue| !matches!(self.shared.is_empty(*queue), Ok(true)))
        };
        if self.shared.faults.is_active() {
            // Operations held back go on with calls alone.
            self.progress();
            std::thread::yield_now();
        } else if !has_event() && !come() {
            self.shared.sleep(rest, has_event, come);
        }
        Ok(())
    }
}
