//! What the thread of the rank does: it takes what comes, and sends what waits, while the rank
//! makes no call.

use super::shared::Shared;
use crate::attendant::{Attended, sleep};
use argonet_nic::rdm::MessageQueue;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Peers of which a rank warns: where a host is cut off, there may be many.
const MOST_WARNINGS: u32 = 4;

/// How long a rank that ends waits for its last messages, which may be to peers that have ended.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// How many the thread may still give.
pub(super) struct Warnings {
    left: u32,
}

impl Default for Warnings {
    fn default() -> Self {
        Self {
            left: MOST_WARNINGS,
        }
    }
}

impl<Q: MessageQueue> Attended for Shared<Q> {
    const THREAD: &'static str = "argonet-ofi";

    type Own = Warnings;

    fn now(&self) -> Duration {
        Self::now(self)
    }

    fn polls(&self) -> u32 {
        Self::polls(self)
    }

    fn sleepers(&self) -> &AtomicU32 {
        &self.sleepers
    }

    fn wakeup(&self) -> &OwnedFd {
        &self.wakeup
    }

    fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    fn queue(&self) -> BorrowedFd<'_> {
        // A queue that is broken may be readable forever.
        match self.is_broken() {
            true => self.bell.as_fd(),
            false => self.waits_at().as_fd(),
        }
    }

    fn arm(&self) -> bool {
        self.is_broken() || self.waits_at().arm(|| self.lock().may_sleep())
    }

    fn attend(&self) -> bool {
        self.lock().attend()
    }

    fn see(&self, warnings: &mut Warnings) -> Option<Duration> {
        self.warn_of_silence(&mut warnings.left);
        None
    }

    fn plan(&self, limit: Duration, leaves_timers: bool) -> (Duration, bool) {
        let mut locked = self.lock();
        let until = locked.plan(limit, leaves_timers);
        (until, locked.has_work())
    }

    /// Says that the rank ends, and waits until its peers have seen that.
    fn leave(&self, grace: Duration) {
        let mut end = Self::now(self) + grace;
        self.lock().leave();
        loop {
            let until = self.lock().plan(end, false);
            let now = Self::now(self);
            let has_left = self.lock().has_left();
            if has_left {
                end = end.min(now + LINGER);
            }
            if now >= end || has_left && !self.lock().is_sending() {
                return;
            }
            sleep(self, true, until.saturating_sub(now));
            self.attend();
        }
    }
}
