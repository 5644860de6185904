//! The rails of a rank.

use super::shared::Shared;
use super::{MailboxRail, MailboxRailsConfig, NAME, OneSidedCounts};
use crate::channel::rail::{Look, Made, OneSided, RailId, Rails, Ready};
use crate::connections::GateCounts;
use argonet_base::JobRank;
use argonet_nic::gni::{Gni, GniError};
use core::time::Duration;
use std::io;
use std::sync::Arc;

/// The rails of a rank over an interface.
///
/// Its memory is not reached any more once they are dropped.
pub struct MailboxRails<N: Gni> {
    shared: Arc<Shared<N>>,
}

impl<N: Gni> MailboxRails<N> {
    /// Those of the rank that `config` says.
    ///
    /// # Errors
    /// What the interface says of its mailboxes and queues; [`GniError::BadPeer`] for a rank that
    /// is not among those that are reached.
    pub fn new(config: MailboxRailsConfig<N>) -> Result<Self, GniError> {
        Ok(Self {
            shared: Arc::new(Shared::new(config)?),
        })
    }

    /// Puts and gets so far that the interface has carried.
    #[must_use]
    pub fn counts(&self) -> OneSidedCounts {
        self.shared.one_sided.counts()
    }
}

impl<N: Gni> Drop for MailboxRails<N> {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl<N: Gni> Rails for MailboxRails<N> {
    type Rail = MailboxRail<N>;

    fn name(&self) -> &'static str {
        NAME
    }

    fn most(&self) -> u16 {
        1
    }

    fn want(&self, id: RailId) {
        if id.number == 0 {
            self.shared.want(id.peer);
        }
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<MailboxRail<N>>> {
        self.shared.next()
    }

    fn open(&self, id: RailId, _rail: &MailboxRail<N>) -> io::Result<()> {
        self.shared.set_open(id.peer, true);
        // A thread that sleeps already did not know of what was unread.
        self.wake();
        Ok(())
    }

    fn close(&self, id: RailId, rail: &MailboxRail<N>) {
        use crate::channel::rail::Rail;
        self.shared.set_open(id.peer, false);
        rail.shut();
    }

    fn forget(&self, peer: JobRank) {
        self.shared.forget(peer);
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        self.shared.begin_poll()
    }

    fn polls(&self) -> u32 {
        self.shared.polls()
    }

    fn heard(&self, peer: JobRank, _rail: &MailboxRail<N>, _asleep: &dyn Fn() -> bool) {
        self.shared.set_hot(Some(peer));
    }

    fn cool(&self, peer: JobRank) {
        self.shared.cool(peer);
    }

    fn ready(&self, found: &mut Ready) {
        self.shared.ready(found);
    }

    fn has_ready(&self) -> bool {
        self.shared.has_ready()
    }

    fn wait_for_room(&self, id: RailId, _rail: &MailboxRail<N>, waits: bool) {
        // A thread that sleeps looks at it, too, from now on.
        if self.shared.wait_for_room(id.peer, waits) {
            self.wake();
        }
    }

    fn sleep(&self, timeout: Option<Duration>) {
        self.shared.sleep(timeout);
    }

    fn wake(&self) {
        self.shared.wake();
    }

    fn forget_wakeups(&self) {
        self.shared.forget_wakeups();
    }

    fn came(&self) -> u64 {
        self.shared.strangers()
    }

    /// Datagrams of strangers.
    fn callers(&self) -> Option<GateCounts> {
        let strangers = self.shared.strangers();
        Some(GateCounts {
            seen: strangers,
            no_proof: strangers,
            ..GateCounts::default()
        })
    }

    fn one_sided(&self) -> Option<&dyn OneSided> {
        Some(&*self.shared)
    }
}
