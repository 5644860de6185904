//! Threads that sleep until their rank's interface has an event for them.
//!
//! An interface has a sleep word: 0, nobody sleeps; 1, somebody does or is about to. It is set, and looked at by those who post events, under the
//! interface's lock. So either a sleeper finds the event in its queue, or who posts it finds the word. Who posts and dies before it has woken anybody leaves
//! the word as it is, for the next.

use super::shared::Shared;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use rustix::thread::futex;

const AWAKE: u32 = 0;
const SLEEPS: u32 = 1;

impl Shared {
    /// Whether a thread of the rank at `place` sleeps or is about to. The caller holds that interface's lock.
    #[inline(always)]
    pub(super) fn sleeps(&self, place: u32) -> bool {
        self.region.sleep_word(place).load(Ordering::Relaxed) != AWAKE
    }

    /// Wakes all threads of the rank at `place`.
    #[cold]
    pub(super) fn wake(&self, place: u32) {
        let word = self.region.sleep_word(place);
        if word.swap(AWAKE, Ordering::AcqRel) != AWAKE {
            // The word is shared with other processes, so the futex is not a private one.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Wakes the threads of this rank, as an event does.
    pub(super) fn rouse(&self) {
        let mut section = self.section(self.place);
        section.rings = true;
    }

    /// Sleeps unless `has_event`, asked under the lock, or `come`, asked afterwards, says no.
    pub(super) fn sleep(
        &self,
        timeout: Option<Duration>,
        has_event: impl Fn() -> bool,
        come: &dyn Fn() -> bool,
    ) {
        let word = self.region.sleep_word(self.place);
        let section = self.section(self.place);
        if has_event() {
            return;
        }
        word.store(SLEEPS, Ordering::Relaxed);
        drop(section);
        // Who makes `come` true and rouses then has the lock either before us, and we see what it did, or after us, and it sees the word.
        if !come() {
            wait(word, timeout);
        }
        // Another thread of the process may sleep on the word, too; it is woken at worst for nothing.
        self.wake(self.place);
    }
}

fn wait(word: &AtomicU32, timeout: Option<Duration>) {
    let timeout = timeout.map(|time| futex::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    // Every outcome means the same: look again.
    let _ = futex::wait(word, futex::Flags::empty(), SLEEPS, timeout.as_ref());
}
