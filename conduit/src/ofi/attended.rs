//! What the thread of the rank does: it takes what comes, and sends what waits, while the rank
//! makes no call.

use super::shared::Shared;
use crate::attendant::{Attended, sleep};
use argonet_nic::rdm::MessageQueue;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

impl<Q: MessageQueue> Attended for Shared<Q> {
    const THREAD: &'static str = "argonet-ofi";

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
        self.waits_at().as_fd()
    }

    fn arm(&self) -> bool {
        self.waits_at().arm(|| self.lock().may_sleep())
    }

    fn attend(&self) -> bool {
        self.lock().attend()
    }

    fn plan(&self, limit: Duration, leaves_timers: bool) -> (Duration, bool) {
        let mut locked = self.lock();
        let until = locked.plan(limit, leaves_timers);
        (until, locked.has_work())
    }

    /// Says that the rank ends, and waits until its peers have seen that.
    fn leave(&self, grace: Duration) {
        let end = Self::now(self) + grace;
        self.lock().leave();
        loop {
            let until = self.lock().plan(end, false);
            let now = Self::now(self);
            if self.lock().has_left() || now >= end {
                return;
            }
            sleep(self, true, until.saturating_sub(now));
            self.attend();
        }
    }
}
