//! The smp conduit: its parts, and the trait over them.

use super::cells::SharedCells;
use super::layout::MOST_RANKS;
use super::lost::Lost;
use super::peer::Peer;
use super::region::Region;
use super::ring::{Reader, Ring, Writer, publish};
use super::wake::{self, Barrier, Linux};
use crate::conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared, SegmentLen,
    SendError, Sink,
};
use crate::ledger::{ClassLedger, Held, PeerLedger};
use crate::threads::ThreadMode;
use argonet_am::record::{self, Head, Short};
use argonet_am::{
    AmError, Category, MAX_CARRIED, MAX_MEDIUM, Message, MessageClass, Registered, ReplyPort,
};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_segment::{Directory, bulk};
use argonet_settings::SMP_ROW;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use rustix::fd::BorrowedFd;
use std::sync::Arc;

/// How an [`Smp`] is set up.
pub struct SmpConfig {
    /// This rank.
    pub rank: JobRank,
    /// The lowest rank of the neighborhood, whose ranks are consecutive.
    pub first: JobRank,
    /// Ranks of the neighborhood.
    pub ranks: u32,
    /// Threads that will call.
    pub mode: ThreadMode,
    /// The side that executes the barrier of a sleep; the same on all ranks.
    pub barrier: Barrier,
    /// Segments of the neighborhood.
    pub directory: Arc<Directory>,
    /// Handlers that exist, the same on all ranks.
    pub registered: Registered,
    /// Attached bytes of a rank's segment, as that rank publishes them.
    pub segment_len: SegmentLen,
}

/// Numbers of a neighborhood that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SmpConfigError {
    /// The rank shares no memory with those that do.
    #[error("smp: rank {rank} is none of the {ranks} ranks from {first} on that share memory")]
    Rank {
        /// This rank.
        rank: JobRank,
        /// The lowest of the neighborhood.
        first: JobRank,
        /// Ranks of the neighborhood.
        ranks: u32,
    },
    /// No memory is as large as those would need, or their numbers are no numbers of ranks.
    #[error(
        "smp: {ranks} ranks from {first} on cannot share memory: at most {MOST_RANKS}, with numbers below 2^32"
    )]
    Ranks {
        /// The lowest of the neighborhood.
        first: JobRank,
        /// Ranks of the neighborhood.
        ranks: u32,
    },
}

impl SmpConfig {
    /// Checks all that offsets into the region are made of.
    fn check(&self) -> Result<(), SmpConfigError> {
        let &Self {
            rank, first, ranks, ..
        } = self;
        if ranks > MOST_RANKS || first.0.checked_add(ranks).is_none() {
            return Err(SmpConfigError::Ranks { first, ranks });
        }
        if rank.0.wrapping_sub(first.0) >= ranks {
            return Err(SmpConfigError::Rank { rank, first, ranks });
        }
        Ok(())
    }
}

/// The conduit of ranks that share memory.
pub struct Smp {
    pub(super) rank: JobRank,
    pub(super) first: JobRank,
    pub(super) ranks: u32,
    pub(super) mode: ThreadMode,
    pub(super) barrier: Barrier,
    pub(super) region: Region,
    pub(super) peers: Box<[Peer]>,
    pub(super) directory: Arc<Directory>,
    pub(super) registered: Registered,
    pub(super) segment_len: SegmentLen,
    pub(super) cursor: AtomicU32,
    /// Neighbors that are lost.
    pub(super) lost: Lost,
    /// Polls of this process that took something, in PAR mode.
    ///
    /// Acquire loads of waiting threads pair with the Release increment of the thread that polled:
    /// a thread that sees the number sees the stores of the handlers.
    pub(super) epoch: AtomicU32,
}

impl Smp {
    /// Name as in `--conduit`.
    pub const NAME: &'static str = SMP_ROW.name;

    /// Limits of every neighborhood.
    pub const LIMITS: Limits = Limits {
        args: MAX_CARRIED,
        medium_request: MAX_MEDIUM,
        medium_reply: MAX_MEDIUM,
        long: usize::MAX / 2,
    };

    /// Operations that it does itself.
    pub const CAPABILITIES: Capabilities = Capabilities {
        put: true,
        get: true,
        atomics: true,
        completes_at_injection: true,
    };

    /// Asks the system for barriers that reach this process; the result is this rank's choice.
    ///
    /// All ranks must agree on [`Barrier::Sleeper`] before any uses it.
    #[must_use]
    pub fn register_barrier() -> Barrier {
        if Linux::register() {
            Barrier::Sleeper
        } else {
            Barrier::Sender
        }
    }

    /// Maps the shared region in `file`, which all ranks of the neighborhood share.
    ///
    /// # Errors
    /// [`SmpConfigError`] as [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the rank is none
    /// of the ranks, or those are too many; or the system's error for the mapping.
    pub fn new(file: BorrowedFd<'_>, config: SmpConfig) -> std::io::Result<Self> {
        let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error);
        config.check().map_err(invalid)?;
        let region = Region::map(file, config.first, config.ranks)?;
        Ok(Self {
            rank: config.rank,
            first: config.first,
            ranks: config.ranks,
            mode: config.mode,
            barrier: config.barrier,
            region,
            peers: (0..config.ranks).map(|_| Peer::default()).collect(),
            directory: config.directory,
            registered: config.registered,
            segment_len: config.segment_len,
            cursor: AtomicU32::new(0),
            lost: Lost::default(),
            epoch: AtomicU32::new(0),
        })
    }

    /// Ranks of the neighborhood.
    #[must_use]
    pub fn neighbors(&self) -> core::ops::Range<u32> {
        self.first.0..self.first.0 + self.ranks
    }

    /// Wakes threads of this rank that sleep, as a sender to it does; outlives the conduit.
    pub(crate) fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let (region, rank, barrier) = (self.region.clone(), self.rank, self.barrier);
        Box::new(move || wake::wake_rank(region.sleep_word(rank), barrier, &Linux))
    }

    fn members(&self) -> impl Iterator<Item = JobRank> {
        self.neighbors().map(JobRank)
    }

    #[inline(always)]
    pub(super) fn peer(&self, rank: JobRank) -> &Peer {
        &self.peers[self.region.place(rank)]
    }

    /// The ring of a prepared message that takes at least `least_units`, and where the message
    /// lies.
    ///
    /// # Panics
    /// If another conduit prepared it: that conduit may have other ranks, or rings of another
    /// length.
    fn prepared_place(&self, prepared: &Prepared, least_units: u32) -> (Ring<'_>, usize, u32) {
        const WHERE: &str = "a message is committed or canceled where it was prepared";
        let to = prepared.to();
        assert!(self.region.place(to) < self.peers.len(), "{WHERE}");
        let ring = self.region.ring(to, self.rank, prepared.class());
        let (at, units) = prepared.place();
        let (unit, total) = (at / 2, ring.units as usize);
        let is_inside = at.is_multiple_of(2) && unit < total && units as usize <= total - unit;
        assert!(is_inside && units >= least_units.max(1), "{WHERE}");
        (ring, at, units)
    }

    #[inline(always)]
    pub(super) fn wake_sleepers(&self, to: JobRank) {
        wake::wake_rank(self.region.sleep_word(to), self.barrier, &Linux);
    }
}

impl ReplyPort for Smp {
    #[inline]
    fn reply(&self, to: JobRank, message: &Message<'_>) -> Result<(), AmError> {
        match self.write(to, MessageClass::Reply, &self.peer(to).out_reply, message) {
            Ok(()) => Ok(()),
            Err(SendError::Message(error)) => Err(error),
            // Cannot happen: room was reserved when the request was accepted, and a lost peer has
            // its own error.
            Err(SendError::Full) => Err(AmError::Full {
                from: self.rank,
                to,
            }),
        }
    }

    fn rank(&self) -> JobRank {
        self.rank
    }

    fn registered(&self) -> &Registered {
        &self.registered
    }
}

impl Conduit for Smp {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn limits(&self) -> Limits {
        Self::LIMITS
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    #[inline(always)]
    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        let peer = self.peer(to);
        let _guard = peer.out_request_lock.lock(self.mode);
        self.write(to, MessageClass::Request, &peer.out_request, message)
    }

    #[inline(always)]
    fn request_short(&self, to: JobRank, short: Short) -> bool {
        let peer = self.peer(to);
        let _guard = peer.out_request_lock.lock(self.mode);
        let ring = self.region.ring(to, self.rank, MessageClass::Request);
        let Some(at) = peer.out_request.reserve_one(&ring) else {
            return false;
        };
        ring.words.store(at + 1, short.rest, Ordering::Relaxed);
        publish(&ring, at, short.head);
        self.wake_sleepers(to);
        true
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        let PrepareRequest {
            to,
            class,
            nargs,
            least,
            most,
            offset,
        } = *want;
        Self::LIMITS.check(self.rank, to, want.category(), nargs, least)?;
        let is_peer = self.region.place(to) < self.peers.len();
        assert!(is_peer, "a rank of the neighborhood");
        let ring = self.region.ring(to, self.rank, class);
        let _guard = (class == MessageClass::Request)
            .then(|| self.peer(to).out_request_lock.lock(self.mode));
        let writer = self.class_writer(to, class);
        if let Some(offset) = offset {
            let place = if most == 0 {
                core::ptr::null_mut()
            } else {
                self.reach(to, offset, most)?.as_ptr()
            };
            let units = record::record_units(Category::Long, nargs, 0);
            let at = writer.reserve(&ring, units);
            let at = at.ok_or_else(|| self.no_room(to))?;
            // SAFETY: the directory has checked the bytes, and they stay mapped as long as it.
            return Ok(unsafe { Prepared::new(*want, place, most, at, units) });
        }
        for capacity in [most.min(MAX_MEDIUM), least.min(MAX_MEDIUM)] {
            let units = record::record_units(Category::Medium, nargs, capacity);
            if let Some(at) = writer.reserve(&ring, units) {
                let payload_at = at + record::header_units(Category::Medium, nargs) * 2;
                let buffer = ring.words.bytes(payload_at, capacity).as_ptr();
                // SAFETY: the units are this writer's until they are published.
                return Ok(unsafe { Prepared::new(*want, buffer, capacity, at, units) });
            }
        }
        Err(self.no_room(to))
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        prepared.check(args, len);
        let (category, offset) = match prepared.offset() {
            Some(offset) => (Category::Long, offset.0),
            None => (Category::Medium, 0),
        };
        let carried = match category {
            Category::Medium => len,
            _ => 0,
        };
        let least_units = record::record_units(category, args.len(), carried);
        let (ring, at, units) = self.prepared_place(&prepared, least_units);
        self.publish_packed(&ring, at, units, handler, category, args, len, offset);
        self.wake_sleepers(prepared.to());
    }

    fn cancel(&self, prepared: Prepared) {
        let (ring, at, units) = self.prepared_place(&prepared, 1);
        publish(&ring, at, Head::skip(units));
        self.wake_sleepers(prepared.to());
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        _op: OpToken,
    ) -> Result<Injected, SendError> {
        self.place(to, offset, src, len)?;
        Ok(Injected::Complete)
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        _op: OpToken,
    ) -> Result<Injected, SendError> {
        if len > 0 {
            let src = self.reach(from, offset, len)?;
            // SAFETY: the directory has checked the source, the caller promises the target.
            unsafe { bulk::copy(dst, src.as_ptr(), len) };
        }
        Ok(Injected::Complete)
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.take(sink)
    }

    #[inline]
    fn poll_with<S: Sink>(&self, sink: &mut S) -> usize {
        self.take(sink)
    }

    fn poll_own<S: Sink>(&self, sink: &mut S) -> usize {
        self.take_own(sink)
    }

    fn lose(&self, peer: JobRank, _sink: &mut dyn Sink) -> bool {
        self.lose_neighbor(peer);
        true
    }

    fn outlives_peers(&self) -> bool {
        true
    }

    fn has_work(&self) -> bool {
        self.members().any(|from| {
            let peer = self.peer(from);
            [MessageClass::Reply, MessageClass::Request]
                .into_iter()
                .any(|class| {
                    let position = peer.reader(class).position();
                    self.region.first_word(self.rank, from, class, position) != 0
                })
        })
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    fn wake(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
        self.wake_sleepers(self.rank);
    }

    fn wake_rank(&self, rank: JobRank) {
        if self.neighbors().contains(&rank.0) {
            self.wake_sleepers(rank);
        }
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.sleep_unless(timeout, seen, &|| false);
    }

    fn sleep_unless(&self, timeout: Option<Duration>, seen: u32, come: &dyn Fn() -> bool) {
        let word = self.region.sleep_word(self.rank);
        // A poll counts before it rings, as a sender publishes before it rings.
        let alone = (word, self.mode != ThreadMode::Par);
        wake::sleep(alone, self.barrier, &Linux, timeout, || {
            self.has_work() || self.epoch() != seen || come()
        });
    }

    #[inline(always)]
    fn shared_cells(&self) -> Option<SharedCells<'_>> {
        Some(SharedCells::new(&self.region, self.rank, self.barrier))
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        let class = |class, writer: &Writer, reader: &Reader| {
            let (out, inward) = (
                self.region.ring(peer, self.rank, class),
                self.region.ring(self.rank, peer, class),
            );
            ClassLedger {
                sent: writer.position().into(),
                taken: out.read_position.load(Ordering::Relaxed).into(),
                handled: reader.position().into(),
                waiting: reader.peek(&inward).is_some(),
            }
        };
        let known = self.peers.get(self.region.place(peer))?;
        let requests = class(MessageClass::Request, &known.out_request, &known.in_request);
        let replies = class(MessageClass::Reply, &known.out_reply, &known.in_reply);
        let used = [requests, replies] != [ClassLedger::default(); 2];
        used.then_some(PeerLedger {
            unit: "units of 16 bytes",
            requests,
            replies,
            held: Held::default(),
            rails: None,
        })
    }
}
