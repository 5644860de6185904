//! One rank's part of the conduit.

use super::again::Pending;
use super::arrivals::{Arrivals, Returns};
use super::chunks::Chunks;
use super::config::{
    Buffers, CHUNK_BYTES, LARGE_ALIGN, PortalsConfig, PortalsSizes, SHORTEST_MESSAGE,
};
use super::negotiated::Reserve;
use super::operations::Table;
use super::peer::Peer;
use super::resources::{Pieces, Tickets};
use super::segment::Segment;
use super::setup;
use super::slots::Slots;
use crate::SegmentLen;
use crate::datagrams::DatagramGauge;
use crate::exit::Exits;
use crate::keyed::Keyed;
use crate::owned::Owned;
use crate::peers::Peers;
use crate::prepared_buffers::PreparedBuffers;
use crate::shown_bank::ShownBank;
use crate::sleepers::Sleepers;
use crate::threads::ThreadMode;
use argonet_am::credit::{Bank, PlanError};
use argonet_am::record::RecordError;
use argonet_am::{AmError, Registered};
use argonet_base::kept::Kept;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::portals::{DescriptorHandle, NicError, Portals as Interface, Queue};
use argonet_segment::Directory;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use memmap2::MmapMut;
use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::gettid;
use std::sync::Arc;

/// Why a rank cannot use its interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortalsError {
    /// There is no such rank.
    #[error("portals: rank {rank} is none of the {ranks} ranks of the job")]
    Rank {
        /// Which rank.
        rank: JobRank,
        /// Ranks of the job.
        ranks: u32,
    },
    /// Numbers that do not fit each other.
    #[error("rank {rank}: {cause}")]
    Plan {
        /// Which rank.
        rank: JobRank,
        /// The sizes that do not fit.
        cause: PlanError,
    },
    /// The interface refuses.
    #[error(transparent)]
    Interface(#[from] NicError),
    /// The system gives no memory that shows credits to others.
    #[error(
        "rank {rank} cannot make the memory file that shows its credits or its datagrams: {cause}"
    )]
    Gauges {
        /// Which rank.
        rank: JobRank,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Too little memory for buffers.
    #[error(
        "rank {rank} has {got} bytes of memory for buffers that peers can reach, but its settings need {needed}; lower them, or set GASNET_PORTAL_AMRECV_SPACE"
    )]
    Buffers {
        /// Which rank.
        rank: JobRank,
        /// Bytes that there are.
        got: u64,
        /// Bytes that are needed.
        needed: u64,
    },
    /// No memory for buffers.
    #[error(
        "rank {rank} cannot have {len_bytes} bytes of memory for buffers: {cause}; set less, or GASNET_PORTAL_AMRECV_SPACE"
    )]
    NoMemory {
        /// Which rank.
        rank: JobRank,
        /// Bytes that are needed.
        len_bytes: u64,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// An interface whose messages are shorter than the conduit's longest that cannot be divided.
    #[error(
        "rank {rank}: the interface carries messages of {got} bytes at most, and messages with all their arguments need {needed}; raise its limit (ARGONET_PORTALS_MESSAGE, of a library of Portals 4)"
    )]
    Messages {
        /// Which rank.
        rank: JobRank,
        /// Bytes that it carries.
        got: u64,
        /// Bytes that are needed.
        needed: u64,
    },
}

/// Something of each event queue of a rank.
// spec P2: SAFE, AM and SYS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Three<T> {
    pub(super) system: T,
    pub(super) safe: T,
    pub(super) requests: T,
}

impl<T> Three<T> {
    pub(super) fn map<U, E>(self, mut f: impl FnMut(T) -> Result<U, E>) -> Result<Three<U>, E> {
        Ok(Three {
            system: f(self.system)?,
            safe: f(self.safe)?,
            requests: f(self.requests)?,
        })
    }
}

/// The event queues of a rank.
pub(super) type Queues = Three<Queue>;

/// Something that a later poll does.
#[derive(Debug)]
pub(super) enum Again {
    /// A request that found no room at its target, from this chunk; it is paid for anew.
    Refused(u32),
    /// A request, a reply, an operation or a system message that matched nothing.
    Request(u32),
    Reply(u32),
    Operation(u32),
    System(JobRank, u64),
    /// Buffers that the interface would not take back.
    Buffers,
    /// A temporary descriptor that the interface has not released, with its memory where that is
    /// the conduit's.
    Release(DescriptorHandle, Option<Kept<u8>>),
    /// An error that is reported.
    Report(AmError),
}

/// The conduit over a matching interface.
pub struct Portals<N: Interface> {
    pub(super) nic: N,
    pub(super) rank: JobRank,
    pub(super) ranks: u32,
    pub(super) mode: ThreadMode,
    /// The thread that made it: in SEQ the one that calls.
    maker: Pid,
    pub(super) sizes: PortalsSizes,
    /// Whether the interface has done its part when a call returns.
    pub(super) synchronous: bool,
    /// Whether another try costs as much where it finds no room.
    pub(super) remote: bool,
    /// The longest put or get; whole lines, so that parts begin on them.
    pub(super) message_bytes: u64,
    /// The longest message that has its payload with it.
    pub(super) packed_bytes: usize,
    pub(super) directory: Arc<Directory>,
    pub(super) registered: Registered,
    pub(super) segment_len: SegmentLen,
    pub(super) queues: Queues,
    pub(super) segment: Segment,
    pub(super) send_chunks: Chunks,
    /// ReqSB as it bounces data of puts and gets.
    pub(super) bounce: [DescriptorHandle; 2],
    pub(super) reply_chunks: Chunks,
    pub(super) slots: Slots,
    pub(super) request_slots: Pieces,
    pub(super) reply_slots: Pieces,
    pub(super) system: DescriptorHandle,
    pub(super) tickets: Tickets,
    pub(super) temporaries: Tickets,
    pub(super) table: Table,
    /// Credits that are not lent; `None` without flow control.
    pub(super) bank: Option<ShownBank>,
    pub(super) peers: Peers<Peer>,
    /// The turns to take requests, and to take events of the safe queue: one thread at a time, so
    /// that messages of a rank are handled in their order.
    pub(super) turns: [Owned<()>; 2],
    pub(super) arrivals: Owned<Arrivals>,
    pub(super) returns: Owned<Returns>,
    pub(super) again: Mutex<Vec<Pending>>,
    /// How many of them there are.
    pub(super) agains: AtomicU32,
    /// Ticks when they were tried last.
    ///
    /// A hint.
    pub(super) tried_at: AtomicU64,
    /// How often the time between two tries has doubled.
    ///
    /// A hint.
    pub(super) doublings: AtomicU32,
    /// Payloads of large replies that are not acknowledged.
    pub(super) reply_halves: AtomicU32,
    /// Requests and operations that are not complete.
    pub(super) under_way: AtomicU32,
    pub(super) sleepers: Sleepers,
    /// Counts events that polls have returned and not given to sinks.
    ///
    /// Written by polling threads, read by those that look whether this rank can go on; Relaxed, as
    /// it orders nothing else.
    pub(super) kept_from_sinks: AtomicU64,
    pub(super) prepared: PreparedBuffers<Reserve>,
    /// The buffers, where they are not the interface's.
    ///
    /// Fields are dropped in their order: the interface, the first, no longer reaches them.
    pub(super) memory: Option<MmapMut>,
    pub(super) exits: Exits,
}

impl<N: Interface> Portals<N> {
    /// Sets up everything that peers may reach (spec P14): they may begin when all ranks have
    /// returned from this, which a barrier of the job must ensure.
    ///
    /// # Safety
    /// The memory of `buffers` stays mapped as long as the value lives, and is used by nothing else
    /// but through the interface.
    ///
    /// # Errors
    /// Sizes that do not fit each other or the buffers; errors of the interface.
    pub unsafe fn new(
        nic: N,
        buffers: Buffers,
        config: PortalsConfig,
    ) -> Result<Self, PortalsError> {
        let (rank, ranks) = (config.rank, config.ranks);
        if rank.0 >= ranks {
            return Err(PortalsError::Rank { rank, ranks });
        }
        let plan = config.sizes.plan(ranks);
        let plan = plan.map_err(|cause| PortalsError::Plan { rank, cause })?;
        let (got, needed) = (nic.limits().message_bytes, SHORTEST_MESSAGE);
        if got < needed {
            return Err(PortalsError::Messages { rank, got, needed });
        }
        let message_bytes = got - got % LARGE_ALIGN as u64;
        // SAFETY: the caller's promise.
        let parts = unsafe { setup::set_up(&nic, buffers, &config, &plan, message_bytes)? };
        let (sizes, mode) = (config.sizes, config.mode);
        // No rank has this number: a rank may ask itself for credits as it asks others.
        let bank = || ShownBank::new(Bank::new(ranks, plan, sizes.rules), rank, ranks);
        let bank = sizes.flow_control.then(bank).transpose();
        let no_gauges = |cause| PortalsError::Gauges { rank, cause };
        let bank = bank.map_err(no_gauges)?;
        if nic.dropped().is_some() {
            let gauge = DatagramGauge::new(rank.0, ranks).map_err(no_gauges)?;
            nic.on_dropped(Box::new(move |dropped| gauge.show(dropped)));
        }
        let portals = Self {
            rank,
            ranks,
            mode,
            maker: gettid(),
            sizes,
            synchronous: nic.features().synchronous,
            remote: nic.features().remote,
            message_bytes,
            packed_bytes: message_bytes.min(CHUNK_BYTES as u64) as usize,
            queues: parts.queues,
            segment: Segment::new(&config, parts.queues.requests, parts.queues.safe),
            directory: config.directory,
            registered: config.registered,
            segment_len: config.segment_len,
            send_chunks: parts.send_chunks,
            bounce: parts.bounce,
            reply_chunks: parts.reply_chunks,
            slots: parts.slots,
            request_slots: Pieces::new(mode, sizes.large_slots),
            reply_slots: Pieces::new(mode, sizes.large_slots),
            system: parts.system,
            tickets: Tickets::new(mode, sizes.messages),
            temporaries: Tickets::new(mode, sizes.temporaries),
            table: Owned::new(mode, Keyed::with_room(sizes.messages as usize)),
            bank,
            peers: Peers::new(ranks),
            turns: [Owned::new(mode, ()), Owned::new(mode, ())],
            arrivals: Owned::new(mode, parts.arrivals),
            returns: Owned::new(mode, parts.returns),
            again: Mutex::default(),
            agains: AtomicU32::new(0),
            tried_at: AtomicU64::new(0),
            doublings: AtomicU32::new(0),
            reply_halves: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            sleepers: Sleepers::default(),
            kept_from_sinks: AtomicU64::new(0),
            prepared: PreparedBuffers::default(),
            memory: None,
            exits: Exits::new(rank, ranks),
            nic,
        };
        portals.segment.follow(&portals.nic)?;
        Ok(portals)
    }

    /// Whether the calling thread may use values in [`Owned`]: in SEQ nothing locks it.
    ///
    /// For calls that come from any thread, an exit above all.
    pub(super) fn may_enter(&self) -> bool {
        self.mode.locks() || self.maker == gettid()
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &N {
        &self.nic
    }

    /// The state of a peer.
    #[inline]
    pub(super) fn peer(&self, rank: JobRank) -> &Peer {
        match self.peers.used(rank.0) {
            Some(peer) => peer,
            None => self.first_use(rank),
        }
    }

    #[cold]
    fn first_use(&self, rank: JobRank) -> &Peer {
        let make = || {
            let peer = Peer::new(rank, self.mode, self.bank.as_deref());
            self.show(&mut peer.state.lock());
            Box::new(peer)
        };
        self.peers.get_or_init(rank, make).0
    }

    /// Whether the interface has read so many bytes when the call returns that moves them.
    #[inline]
    pub(super) fn reads_at_once(&self, len: usize) -> bool {
        self.synchronous && len as u64 <= self.message_bytes
    }

    /// Where bytes of this rank's own segment lie.
    pub(super) fn own(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        self.directory
            .resolve(self.rank, SegmentOffset(offset), len)
    }

    /// Attached bytes of this rank's own segment.
    pub(super) fn own_bytes(&self) -> u64 {
        self.directory.attached_bytes(self.rank)
    }

    /// Refuses a place outside of a segment.
    #[inline]
    pub(super) fn check_place(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<(), AmError> {
        if len == 0 {
            return Ok(());
        }
        AmError::unless_inside(self.rank, to, offset, len, (self.segment_len)(to))
    }

    /// The error of a peer that sends an unusable message.
    #[cold]
    pub(super) fn broken(&self, from: JobRank, cause: RecordError) -> AmError {
        let at = self.rank;
        AmError::Broken { at, from, cause }
    }

    /// The error of an interface that refuses a call that it should take.
    ///
    /// Where it has lost the peer, its own reason has advice to the user.
    #[cold]
    pub(super) fn refuses(&self, peer: JobRank, why: &impl core::fmt::Display) -> AmError {
        let at = self.rank;
        let why = match self.nic.lost(peer) {
            Some(lost) => lost.to_string(),
            None => {
                let why = why.to_string();
                // Errors of the interface name this rank themselves.
                let own = format!("rank {at}: ");
                let why = why.strip_prefix(&own).unwrap_or(&why);
                format!("rank {at} over portals with rank {peer}: {why}")
            }
        };
        AmError::Unreachable { at, peer, why }
    }

    /// Buffers are offered to the interface again if it has not taken them.
    #[inline]
    pub(super) fn unless_linked(&self, linked: &Result<(), NicError>) {
        if linked.is_err() {
            self.send_once_more(Again::Buffers);
        }
    }

    #[inline]
    fn count_under_way(&self, change: u32) {
        if self.mode.locks() {
            self.under_way.fetch_add(change, Ordering::Release);
        } else {
            // No other thread changes it meanwhile.
            let held = self.under_way.load(Ordering::Relaxed);
            self.under_way
                .store(held.wrapping_add(change), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn begins(&self) {
        self.count_under_way(1);
    }

    #[inline]
    pub(super) fn ends(&self) {
        self.count_under_way(u32::MAX);
    }
}

impl<N: Interface> Drop for Portals<N> {
    /// Peers that go on find no rank here.
    fn drop(&mut self) {
        self.nic.retire();
    }
}
