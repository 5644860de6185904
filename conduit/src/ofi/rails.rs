//! The rails of a rank.

use super::shared::Shared;
use super::{MessageRail, MessageRailsConfig, NAME};
use crate::attendant::{Attendant, ring, sleep_of_rank};
use crate::channel::rail::{Look, Made, Rail, RailId, Rails, Ready};
use crate::connections::GateCounts;
use argonet_base::JobRank;
use argonet_nic::rdm::MessageQueue;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io;
use std::sync::Arc;

/// The rails of a rank over a queue of messages.
pub struct MessageRails<Q: MessageQueue> {
    pub(super) shared: Arc<Shared<Q>>,
    /// Ends when it is dropped.
    _attendant: Attendant<Shared<Q>>,
}

impl<Q: MessageQueue> MessageRails<Q> {
    /// Those of the rank that `config` says.
    ///
    /// Peers are there from the first byte on.
    ///
    /// # Errors
    /// A rank that the job does not have, as [`io::ErrorKind::InvalidInput`]; or what the system
    /// says of descriptors and of the thread.
    pub fn new(config: MessageRailsConfig<Q>) -> io::Result<Self> {
        let exit_grace = config.exit_grace;
        let shared = Arc::new(Shared::new(config)?);
        Ok(Self {
            _attendant: Attendant::start(Arc::clone(&shared), exit_grace)?,
            shared,
        })
    }
}

impl<Q: MessageQueue> Rails for MessageRails<Q> {
    type Rail = MessageRail<Q>;

    fn name(&self) -> &'static str {
        NAME
    }

    fn most(&self) -> u16 {
        1
    }

    fn want(&self, id: RailId) {
        if id.number == 0 {
            self.shared.lock().want(id.peer);
        }
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<MessageRail<Q>>> {
        self.shared.lock().news(&self.shared)
    }

    fn open(&self, id: RailId, _rail: &MessageRail<Q>) -> io::Result<()> {
        self.shared.lock().set_open(id.peer, true);
        // A thread that sleeps already did not know of what was unread.
        self.wake();
        Ok(())
    }

    fn close(&self, id: RailId, rail: &MessageRail<Q>) {
        self.shared.lock().set_open(id.peer, false);
        rail.shut();
    }

    fn forget(&self, peer: JobRank) {
        self.shared.lock().forget(peer);
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        self.shared.count_poll();
        Look {
            first: None,
            all: true,
        }
    }

    fn polls(&self) -> u32 {
        self.shared.polls()
    }

    fn ready(&self, found: &mut Ready) {
        let mut locked = self.shared.lock();
        locked.attend();
        locked.ready(found);
    }

    fn has_ready(&self) -> bool {
        let mut locked = self.shared.lock();
        locked.attend();
        locked.has_ready()
    }

    fn wait_for_room(&self, id: RailId, _rail: &MessageRail<Q>, waits: bool) {
        // The thread that sleeps looks at it, too, from now on.
        if self.shared.lock().wait_for_room(id.peer, waits) {
            self.wake();
        }
    }

    fn sleep(&self, timeout: Option<Duration>) {
        let shared = &*self.shared;
        shared.sleepers.fetch_add(1, Ordering::SeqCst);
        // Whatever it was, the caller looks again.
        if !shared.lock().has_work() {
            sleep_of_rank(shared, timeout);
        }
        shared.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        ring(&self.shared.wakeup);
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.shared.wakeup, &mut [0; 8]);
    }

    fn came(&self) -> u64 {
        self.shared.strangers()
    }

    /// Messages of strangers.
    fn callers(&self) -> Option<GateCounts> {
        let strangers = self.shared.strangers();
        Some(GateCounts {
            seen: strangers,
            no_proof: strangers,
            ..GateCounts::default()
        })
    }
}
