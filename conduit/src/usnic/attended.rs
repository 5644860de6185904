//! What the thread of the rank does: it acknowledges and sends again while the rank makes no call.

use super::doubts::Doubts;
use super::shared::Shared;
use crate::attendant::{Attended, sleep};
use argonet_nic::datagram::DatagramQueue;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use rustix::fd::{BorrowedFd, OwnedFd};

impl<Q: DatagramQueue + 'static> Attended for Shared<Q> {
    const THREAD: &'static str = "argonet-usnic";

    type Own = Doubts;

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
        self.queue.as_fd()
    }

    fn arm(&self) -> bool {
        self.queue.arm()
    }

    fn attend(&self) -> bool {
        Self::attend(self, None)
    }

    fn see(&self, doubts: &mut Doubts) -> Option<Duration> {
        doubts.see(self);
        doubts.look_at()
    }

    fn plan(&self, limit: Duration, leaves_timers: bool) -> (Duration, bool) {
        self.lock().sleep_until(limit, leaves_timers)
    }

    /// Says at last that the rank ends.
    fn leave(&self, grace: Duration) {
        let end = Self::now(self) + grace;
        let mut locked = self.lock();
        locked.flush();
        locked.end();
        loop {
            let (until, _) = self.lock().sleep_until(end, false);
            // After that, which may have sent the last acknowledgement that was owed.
            let is_drained = self.lock().is_drained();
            let now = Self::now(self);
            if is_drained || now >= end {
                return self.lock().leave();
            }
            sleep(self, true, until.saturating_sub(now));
            Self::attend(self, None);
        }
    }
}
