//! The rails of a rank.

use super::peer::BESIDE;
use super::shared::Shared;
use super::{DatagramRail, DatagramRailsConfig, NAME, PathCheck};
use crate::attendant::{Attendant, begin_sleep_of_rank, ring, sleep_of_rank};
use crate::channel::rail::{Look, Made, RailId, Rails, Ready, Vital};
use crate::datagrams::Datagrams;
use crate::failover::Member;
use argonet_base::JobRank;
use argonet_nic::datagram::DatagramQueue;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;

/// The rails of a rank over a queue for datagrams.
pub struct DatagramRails<Q: DatagramQueue + 'static> {
    pub(super) shared: Arc<Shared<Q>>,
    /// Ends when it is dropped.
    attendant: Attendant<Shared<Q>>,
}

impl<Q: DatagramQueue + 'static> DatagramRails<Q> {
    /// Those of the rank that `config` says.
    ///
    /// Peers are there from the first byte on.
    ///
    /// # Errors
    /// Sizes or times that contradict each other, as [`io::ErrorKind::InvalidInput`]; or what the
    /// system says of descriptors and of the thread.
    pub fn new(config: DatagramRailsConfig<Q>) -> io::Result<Self> {
        let exit_grace = config.exit_grace;
        let shared = Arc::new(Shared::new(config)?);
        Ok(Self {
            attendant: Attendant::start(Arc::clone(&shared), exit_grace)?,
            shared,
        })
    }

    /// Begins to ask these peers whether datagrams pass, also such of the first length if `full`.
    ///
    /// They may not be there yet.
    #[must_use]
    pub fn check(&self, peers: Vec<JobRank>, full: bool) -> PathCheck<Q> {
        PathCheck::begin(Arc::clone(&self.shared), peers, full)
    }
}

impl<Q: DatagramQueue + 'static> Rails for DatagramRails<Q> {
    type Rail = DatagramRail<Q>;

    /// The stream has the channel of commands, which is sent first.
    fn sends_beside(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn most(&self) -> u16 {
        BESIDE + 1
    }

    fn want(&self, id: RailId) {
        if id.number < self.most() {
            let mut locked = self.shared.lock();
            locked.want(id);
            locked.end();
        }
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<DatagramRail<Q>>> {
        self.shared.lock().news(&self.shared)
    }

    fn open(&self, id: RailId, _rail: &DatagramRail<Q>) -> io::Result<()> {
        let mut locked = self.shared.lock();
        locked.set_open(id, true);
        locked.end();
        // A thread that sleeps already did not know of what was unread.
        self.wake();
        Ok(())
    }

    fn close(&self, id: RailId, rail: &DatagramRail<Q>) {
        let mut locked = self.shared.lock();
        locked.set_open(id, false);
        locked.end();
        crate::channel::rail::Rail::shut(rail);
    }

    fn forget(&self, peer: JobRank) {
        let mut locked = self.shared.lock();
        locked.forget(peer);
        locked.end();
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        // A read of that peer's rail copies what arrives to its place, and finds what the other
        // peers have sent.
        Look {
            first: self.shared.begin_poll(),
            all: true,
        }
    }

    fn polls(&self) -> u32 {
        self.shared.polls()
    }

    fn heard(&self, peer: JobRank, _rail: &DatagramRail<Q>, _asleep: &dyn Fn() -> bool) {
        self.shared.heard(peer);
    }

    fn cool(&self, peer: JobRank) {
        self.shared.cool(peer);
    }

    fn ready(&self, found: &mut Ready) {
        match self.shared.long_from() {
            // Its read takes what has come.
            Some(peer) => {
                let number = BESIDE;
                found.add(RailId { peer, number });
            }
            None => self.shared.attend_once(),
        }
        if !self.shared.is_pending() {
            return;
        }
        let mut locked = self.shared.lock();
        for _ in 0..locked.ready_count() {
            let Some(rail) = locked.next_ready() else {
                break;
            };
            // The next look finds it again, until all was read.
            locked.list(rail);
            if !found.add(rail) {
                break;
            }
        }
        if locked.has_news() {
            found.add_made();
        }
        locked.settle();
    }

    fn has_ready(&self) -> bool {
        self.shared.attend(None);
        self.shared.is_pending() && self.shared.lock().has_ready()
    }

    fn wait_for_room(&self, id: RailId, _rail: &DatagramRail<Q>, waits: bool) {
        // The thread that sleeps looks at it, too, from now on.
        if self.shared.lock().wait_for_room(id, waits) {
            self.wake();
        }
    }

    fn sleep(&self, timeout: Option<Duration>) {
        self.shared.sleep(timeout);
    }

    fn wake(&self) {
        ring(&self.shared.wakeup);
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.shared.wakeup, &mut [0; 8]);
    }

    fn datagrams(&self) -> Option<Datagrams> {
        Some(self.shared.lock().datagrams())
    }
}

impl<Q: DatagramQueue + 'static> Member for DatagramRails<Q> {
    fn lasts(&self) -> bool {
        true
    }

    fn begin_sleep<'a>(&'a self, wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        self.shared.sleepers.fetch_add(1, Ordering::SeqCst);
        self.shared.has_nothing_to_do() && begin_sleep_of_rank(&*self.shared, wakes)
    }

    fn begin_to_end(&self) {
        self.attendant.begin_to_end();
    }

    fn end_sleep(&self) {
        self.shared.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn address(&self, _rail: &DatagramRail<Q>) -> Option<IpAddr> {
        Some(self.shared.own_address()?.to_canonical())
    }

    fn silence(&self, peer: JobRank, _rail: &DatagramRail<Q>) -> Option<Vital> {
        self.shared.lock().silence(peer)
    }
}

impl<Q: DatagramQueue + 'static> Shared<Q> {
    /// Sleeps until something comes, a wakeup, or the time is over.
    pub(super) fn sleep(&self, timeout: Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        self.sleep_counted(timeout);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sleeps, once the thread knows that it must wake this one.
    fn sleep_counted(&self, timeout: Option<Duration>) {
        if self.has_nothing_to_do() {
            // Whatever it was, the caller looks again.
            sleep_of_rank(self, timeout);
        }
    }

    /// Whether a thread of the rank may sleep; timers are the other thread's then.
    fn has_nothing_to_do(&self) -> bool {
        let mut locked = self.lock();
        locked.take_timers_back();
        if locked.has_work() {
            return false;
        }
        locked.end();
        true
    }
}
