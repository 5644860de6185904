//! The interface of a rank.

use super::config::NetworkedConfig;
use super::core::{Core, State};
use super::record::REQUEST_BYTES;
use super::service;
use crate::datagram::{DatagramQueue as _, Faulty, Port, Udp, Whereabouts};
use crate::portals::slots::Slots;
use crate::portals::software::{ATOMIC_BYTES, Software};
use crate::portals::{NicError, Part, Portals};
use crate::reliable::{Counts, Endpoint};
use argonet_base::JobRank;
use rustix::event::{EventfdFlags, eventfd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a rank that ends waits for the lock of its interface, to say so, where it has no more
/// time for anything else.
const LOCK: Duration = Duration::from_millis(10);

/// Largest element of an atomic operation.
const ELEMENT_BYTES: u64 = 8;

/// The interface of a rank, in shared memory for ranks of its host and over UDP for all others.
pub struct Networked {
    pub(super) core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

/// Traffic between this rank and other hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Datagrams.
    pub datagrams: Counts,
    /// Datagrams that the system did not send; they are sent again.
    pub refused: u64,
    /// Records of peers that mean nothing, which were dropped.
    pub bad_records: u64,
    /// Batches of datagrams that callers have read while they looked or slept for events; the
    /// thread of the interface reads the others.
    pub read_by_callers: u64,
}

impl Networked {
    /// The interface of the rank that `software` is of.
    ///
    /// `peers` are the ports of all ranks, by rank; ranks of the host are never reached by theirs.
    ///
    /// All ranks have tables of the same sizes.
    ///
    /// Call it behind `fork`: it has a thread.
    ///
    /// # Errors
    /// [`NicError::Invalid`] if `peers` are not as many as ranks, or do not have `port` at this
    /// rank; [`NicError::BadRank`] if the job has no such rank; [`NicError::Link`] for sizes and
    /// times that contradict each other; [`NicError::Os`].
    pub fn new(
        mut software: Software,
        port: Port,
        peers: &[Whereabouts],
        config: &NetworkedConfig,
    ) -> Result<Self, NicError> {
        let (rank, ranks) = (software.rank(), config.ranks);
        let invalid = |what| NicError::Invalid { rank, what };
        if peers.len() as u64 != u64::from(ranks) {
            return Err(invalid(
                "whereabouts of more or fewer ranks than the job has",
            ));
        }
        let own = peers.get(rank.0 as usize).ok_or(NicError::BadRank {
            rank,
            peer: rank,
            ranks,
        })?;
        let incarnation = own.incarnation;
        if incarnation != port.whereabouts().incarnation {
            return Err(invalid("whereabouts that have another port at this rank"));
        }
        let seal = config.seal.clone();
        let mut endpoint = Endpoint::new(config.link, rank, incarnation.get(), seal, ranks)
            .map_err(NicError::Link)?;
        for (peer, whereabouts) in (0..).map(JobRank).zip(peers) {
            if !software.shares_memory(peer) {
                endpoint
                    .know(peer, whereabouts.incarnation.get())
                    .map_err(NicError::Link)?;
            }
        }
        // One record holds an atomic operation, and its answer.
        let room = (endpoint.record_bytes() - REQUEST_BYTES) as u64;
        let atomic_bytes = ATOMIC_BYTES.min(room / ELEMENT_BYTES * ELEMENT_BYTES);
        let state = State {
            endpoint,
            lanes: (0..ranks).map(|_| None).collect(),
            operations: Slots::new(rank, "operation under way", config.operations),
            bad_records: 0,
            has_left: false,
            stopping: false,
        };
        let os = |action| move |source: std::io::Error| NicError::Os { action, source };
        let addresses = peers.iter().map(|peer| peer.address).collect();
        let socket = Udp::new(port.into_socket(), addresses);
        let socket = socket.map_err(os("prepare a socket for datagrams"))?;
        let wire = Faulty::new(socket, config.faults, config.arriving_faults);
        let wakeup = |action| {
            let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            wakeup.map_err(|error| os(action)(error.into()))
        };
        software.reach(ranks);
        software.set_wakeup(wakeup("make an eventfd for threads that sleep")?);
        let own = wakeup("make an eventfd for the thread of the interface")?;
        let core = Core::new(software, wire, state, config, atomic_bytes, own);
        let core = Arc::new(core);
        let served = core.clone();
        let thread = argonet_base::threads::spawn("argonet-nic", move || service::run(&served))
            .map_err(os("start the thread of the interface"))?;
        Ok(Self {
            core,
            thread: Some(thread),
        })
    }

    /// The interface in shared memory, with its buffers and counts.
    #[must_use]
    pub fn software(&self) -> &Software {
        &self.core.software
    }

    /// Traffic between this rank and other hosts.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let locked = self.core.lock();
        Traffic {
            datagrams: locked.state.endpoint.counts(),
            refused: self.core.wire.refused(),
            bad_records: locked.state.bad_records,
            read_by_callers: self.core.reading.by_callers(),
        }
    }

    /// Waits until all messages have arrived and all that came are answered, except for peers that
    /// have left; the thread does the work.
    ///
    /// Then says to all peers that this rank leaves, whether it has waited long enough or not.
    pub(super) fn leave(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        // Acknowledgements that are due need not wait for company.
        if let Some(mut locked) = self.core.try_lock_until(end) {
            locked.state.endpoint.flush();
            locked.transmit();
        }
        let drained = self.wait_until_drained(end);
        if let Some(mut locked) = self.core.try_lock_until(end.max(Instant::now() + LOCK)) {
            locked.state.has_left = true;
            locked.state.endpoint.leave();
            locked.transmit();
        }
        drained
    }

    fn wait_until_drained(&self, end: Instant) -> bool {
        const LOOK_EVERY: Duration = Duration::from_micros(200);
        loop {
            // A lock that is held for long is that of a thread that will not go on.
            if self
                .core
                .state
                .try_lock()
                .is_some_and(|state| state.is_drained())
            {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(super) fn whole(
        &self,
        descriptor: crate::portals::DescriptorHandle,
    ) -> Result<Part, NicError> {
        self.core.software.whole(descriptor)
    }
}

impl Drop for Networked {
    /// Waits until all messages have arrived, for [`NetworkedConfig::exit_grace`] at most, unless
    /// it has left before.
    fn drop(&mut self) {
        let has_left = self.core.lock().state.has_left;
        if !has_left {
            self.leave(self.core.exit_grace);
        }
        self.core.lock().state.stopping = true;
        self.core.wake();
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it had there would be nothing to do.
            let _ = thread.join();
        }
    }
}
