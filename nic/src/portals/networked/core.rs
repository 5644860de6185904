//! State that the threads of an interface share.

use super::lane::Lane;
use super::locked::Locked;
use super::reading::Reading;
use crate::datagram::HostNames;
use crate::datagram::{DatagramQueue as _, Faulty, Udp};
use crate::portals::slots::Slots;
use crate::portals::software::{Away, Software};
use crate::portals::{NicError, ReportDropped};
use crate::reliable::{Endpoint, IDLE_PEER_BYTES, PeerUnreachable};
use argonet_base::JobRank;
use core::net::SocketAddr;
use core::time::Duration;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// An operation for another host that has not ended.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) peer: JobRank,
    pub(super) away: Away,
    /// Whether all of its request was given to the link, so that nothing reads its source any more.
    pub(super) gone: bool,
}

/// Most bytes of a peer of another host that was never used: its link, its address and its lane.
const MOST_IDLE_BYTES: usize = 64;

static_assertions::const_assert!(
    IDLE_PEER_BYTES + size_of::<SocketAddr>() + size_of::<Option<Box<Lane>>>() <= MOST_IDLE_BYTES
);

/// State under the lock of an interface.
pub(super) struct State {
    pub(super) endpoint: Endpoint,
    /// By rank, from the first message on.
    pub(super) lanes: Box<[Option<Box<Lane>>]>,
    pub(super) operations: Slots<Pending>,
    /// Records of peers that mean nothing.
    pub(super) bad_records: u64,
    /// Whether it has waited for operations under way, and has announced to peers that it leaves.
    pub(super) has_left: bool,
    /// Whether the interface is being dropped: nothing new is taken, and the thread ends.
    pub(super) stopping: bool,
}

impl State {
    /// Whether all has arrived that was sent, and nothing waits to be, but for peers that have
    /// left.
    pub(super) fn is_drained(&self) -> bool {
        let has_gone = |(peer, lane): (u32, &Option<Box<Lane>>)| {
            let is_empty = lane.as_ref().is_none_or(|lane| lane.is_empty());
            is_empty || self.endpoint.has_left(JobRank(peer))
        };
        self.endpoint.is_drained() && (0..).zip(&self.lanes).all(has_gone)
    }
}

pub(super) struct Core {
    pub(super) software: Software,
    pub(super) wire: Faulty<Udp>,
    pub(super) reading: Reading,
    pub(super) state: Mutex<State>,
    /// Answers that a lane keeps at most.
    pub(super) answers: u32,
    /// How long the drop of an interface waits that has not left.
    pub(super) exit_grace: Duration,
    /// Longest atomic operation.
    pub(super) atomic_bytes: u64,
    pub(super) ranks: u32,
    /// Names of hosts, for errors.
    hosts: HostNames,
    begun: Instant,
    /// When the thread will look at its timers, in nanoseconds; `u64::MAX`: not by itself.
    ///
    /// Written by the thread under the lock before it sleeps, and by one that wakes it earlier; 0
    /// while it is awake and will look anyway.
    pub(super) sleeps_until: AtomicU64,
    /// Wakes the thread.
    pub(super) wakeup: OwnedFd,
    /// Publishes counts of dropped datagrams.
    ///
    /// Set once by the owner, read under the lock.
    pub(super) on_dropped: OnceLock<ReportDropped>,
}

/// When a timer is due, as `sleeps_until` has it.
pub(super) fn nanoseconds(at: Option<Duration>) -> u64 {
    at.map_or(u64::MAX, |at| {
        u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
    })
}

impl Core {
    pub(super) fn new(
        software: Software,
        wire: Faulty<Udp>,
        state: State,
        config: &super::NetworkedConfig,
        atomic_bytes: u64,
        wakeup: OwnedFd,
    ) -> Self {
        Self {
            software,
            reading: Reading::new(wire.receive_buffers()),
            wire,
            state: Mutex::new(state),
            answers: config.answers.max(1),
            exit_grace: config.exit_grace,
            atomic_bytes,
            ranks: config.ranks,
            hosts: config.hosts.clone(),
            begun: Instant::now(),
            sleeps_until: AtomicU64::new(0),
            wakeup,
            on_dropped: OnceLock::new(),
        }
    }

    /// The error of a peer that was lost, with where it was.
    pub(super) fn unreachable(&self, lost: PeerUnreachable) -> NicError {
        NicError::Unreachable {
            host: self.hosts.of(lost.peer),
            address: self.wire.address(lost.peer.0),
            lost,
        }
    }

    /// Takes the lock.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            core: self,
            state: self.state.lock(),
            now: self.now(),
        }
    }

    /// Takes the lock if it is free by then.
    pub(super) fn try_lock_until(&self, end: Instant) -> Option<Locked<'_>> {
        let state = self.state.try_lock_until(end)?;
        let (core, now) = (self, self.now());
        Some(Locked { core, state, now })
    }

    /// The time since it began.
    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn wake(&self) {
        // It fails only after 2^64 wakeups.
        let _ = rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes());
    }

    /// Begins an operation that the software interface has prepared.
    pub(super) fn begin(&self, peer: JobRank, away: Away) -> Result<(), NicError> {
        let mut locked = self.lock();
        locked.begin(peer, away)?;
        self.wake_for_timers(locked);
        Ok(())
    }

    /// Wakes the thread if a timer is earlier than those that it sleeps for.
    pub(super) fn wake_for_timers(&self, locked: Locked<'_>) {
        let due = nanoseconds(locked.state.endpoint.poll_timeout());
        self.wake_before(locked, due);
    }

    /// Wakes the thread if it would sleep beyond a time; the lock orders this with its going to
    /// sleep.
    pub(super) fn wake_before(&self, locked: Locked<'_>, due: u64) {
        if due < self.sleeps_until.load(Ordering::Relaxed) {
            self.sleeps_until.store(due, Ordering::Relaxed);
            drop(locked);
            self.wake();
        }
    }
}
