//! Threads that sleep until their interface has something for them.
//!
//! An interface has a sleep word: even, no thread sleeps; odd, a thread does or is about to. A
//! thread that is about to makes it odd, and then looks once more; one that posts makes what it
//! posts visible, and then looks at the word. All four are in one order (`SeqCst`), so either the
//! sleeper finds what was posted or the poster finds the word, which it makes the next even number.
//! A thread that posts and dies before it has woken any sleeper leaves the word as it is, for the
//! next.
//!
//! Threads of a process that sleep count themselves under a lock of the process, and the last that
//! wakes makes the word even.

use super::shared::Shared;
use crate::host_file::{SLEEPS, sleep_on, wake_sleepers};
use core::sync::atomic::Ordering;
use core::time::Duration;

impl Shared {
    /// Wakes the threads of the interface at `place`, if there are any.
    ///
    /// What they are woken for was made visible by a `SeqCst` operation that changed it.
    #[inline(always)]
    pub(super) fn wake_place(&self, place: u32) {
        let word = self.region.sleep_word(place);
        if word.load(Ordering::SeqCst) & SLEEPS != 0 {
            self.step();
            wake_sleepers(word);
        }
    }

    /// Sleeps unless there is something to do already.
    pub(super) fn sleep(
        &self,
        has_event: &dyn Fn() -> bool,
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) {
        let is_ready = || has_event() || self.has_datagram();
        if is_ready() || come() {
            return;
        }
        let word = self.region.sleep_word(self.place);
        let announced = {
            let mut sleepers = self.sleepers.lock();
            *sleepers += 1;
            self.step();
            word.fetch_or(SLEEPS, Ordering::SeqCst) | SLEEPS
        };
        if !is_ready() && !come() {
            sleep_on(word, announced, timeout);
        }
        let mut sleepers = self.sleepers.lock();
        *sleepers -= 1;
        if *sleepers == 0 {
            self.step();
            word.fetch_and(!SLEEPS, Ordering::SeqCst);
        }
    }
}
