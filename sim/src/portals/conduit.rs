//! The conduit of a rank, whose calls take virtual time and whose sleep lets others run.
#![allow(unsafe_code)]

use crate::clock::Place;
use crate::cluster::Cluster;
use crate::config::SimConfig;
use crate::fiber::Fiber;
use crate::job::{Seat, Simulated, StartError};
use argonet_am::{Message, Registered};
use argonet_base::{HandlerIndex, JobRank, SegmentOffset};
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_conduit::smp::ThreadMode;
use argonet_conduit::{
    Capabilities, Conduit, Injected, Limits, OpToken, PeerLedger, PrepareRequest, Prepared,
    SendError, Sink,
};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile};
use core::time::Duration;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

/// Processor time of a poll and of an injection.
const CALL_NS: u64 = 100;

/// The longest sleep: interfaces that hold something back go on with calls alone.
const NAP: Duration = Duration::from_micros(5);

/// One rank's way to the others.
pub struct PortalsNode {
    conduit: Portals<Software>,
    place: Place,
}

/// What all ranks of a job have in common.
pub(super) struct Host {
    sizes: PortalsSizes,
    faults: FaultRules,
    segment_bytes: u64,
    segments: OwnedFd,
    interfaces: OwnedFd,
    software: SoftwareConfig,
}

/// What an interface or its conduit refuses.
fn refused(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StartError {
    StartError::Interface(error.into())
}

impl Host {
    pub(super) fn new(
        sim: &SimConfig,
        sizes: PortalsSizes,
        faults: FaultRules,
    ) -> Result<Self, StartError> {
        let segment_bytes = sim.segment_bytes.next_multiple_of(4096);
        let segments = SegmentFile::create(sim.ranks, segment_bytes, PageKind::Normal)?;
        let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).map_err(refused)?;
        let software = software_config(&sizes, JobRank(0), sim.ranks).map_err(refused)?;
        Ok(Self {
            sizes,
            faults,
            segment_bytes,
            segments: segments.into_fd(),
            interfaces,
            software,
        })
    }

    /// The file of all segments.
    fn file(&self) -> Result<SegmentFile, StartError> {
        let fd = self.segments.try_clone().map_err(refused)?;
        let ranks = self.software.ranks;
        let file = SegmentFile::from_fd(fd, ranks, self.segment_bytes, PageKind::Normal)?;
        Ok(file)
    }

    pub(super) fn seat(
        &self,
        cluster: &Cluster,
        rank: u32,
        registered: Registered,
        fiber: Arc<Fiber>,
    ) -> Result<Seat<PortalsNode>, StartError> {
        let rank = JobRank(rank);
        // No rank has a neighbor; only interfaces reach all memory.
        let near = rank.0..rank.0 + 1;
        let ranks = self.software.ranks;
        let directory = Directory::of_neighborhood(self.file()?, rank, ranks, near)?;
        let segment = OwnSegment::attach(&directory, self.segment_bytes)?;
        let reached = Directory::of_all(self.file()?)?;
        let faults = FaultRules {
            seed: self.faults.seed ^ u64::from(rank.0) << 32,
            ..self.faults
        };
        let resolver = Resolver::new(Arc::clone(&reached));
        let nic = Software::new(
            self.interfaces.as_fd(),
            self.software,
            rank,
            Some(resolver),
            faults,
        );
        let bytes = self.segment_bytes;
        let config = PortalsConfig {
            rank,
            ranks,
            mode: ThreadMode::Seq,
            sizes: self.sizes,
            reached,
            directory,
            registered,
            segment_len: Arc::new(move |_| bytes),
        };
        let conduit = Portals::over_software(nic.map_err(refused)?, config);
        let place = Place {
            clock: Arc::clone(cluster.clock()),
            rank: rank.0,
            fiber: Some(fiber),
        };
        Ok(Seat {
            conduit: PortalsNode {
                conduit: conduit.map_err(refused)?,
                place: place.clone(),
            },
            segment,
            place,
        })
    }
}

impl PortalsNode {
    /// The conduit itself.
    #[must_use]
    pub fn portals(&self) -> &Portals<Software> {
        &self.conduit
    }
}

impl Simulated for PortalsNode {
    /// What matches nothing, or finds no room, is sent again.
    const IS_ORDERED: bool = false;

    fn compute(&self, time: Duration) {
        self.place.spend(time.as_nanos() as u64);
    }

    fn is_delivered(&self) -> bool {
        self.conduit.in_use().is_nothing()
    }

    fn under_way(&self) -> Vec<String> {
        vec![format!("in use: {}", self.conduit.in_use())]
    }
}

impl Conduit for PortalsNode {
    fn name(&self) -> &'static str {
        self.conduit.name()
    }

    fn limits(&self) -> Limits {
        self.conduit.limits()
    }

    fn capabilities(&self) -> Capabilities {
        self.conduit.capabilities()
    }

    fn request(&self, to: JobRank, message: &Message<'_>) -> Result<(), SendError> {
        self.place.spend(CALL_NS);
        self.conduit.request(to, message)
    }

    unsafe fn request_in_place(
        &self,
        to: JobRank,
        message: &Message<'_>,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.place.spend(CALL_NS);
        // SAFETY: the caller's promise.
        unsafe { self.conduit.request_in_place(to, message, op) }
    }

    fn prepare(&self, want: &PrepareRequest) -> Result<Prepared, SendError> {
        self.conduit.prepare(want)
    }

    fn commit(&self, prepared: Prepared, handler: HandlerIndex, args: &[u32], len: usize) {
        self.place.spend(CALL_NS);
        self.conduit.commit(prepared, handler, args, len);
    }

    fn cancel(&self, prepared: Prepared) {
        self.conduit.cancel(prepared);
    }

    unsafe fn put(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.place.spend(CALL_NS);
        // SAFETY: the caller's promise.
        unsafe { self.conduit.put(to, offset, src, len, op) }
    }

    unsafe fn get(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
        op: OpToken,
    ) -> Result<Injected, SendError> {
        self.place.spend(CALL_NS);
        // SAFETY: the caller's promise.
        unsafe { self.conduit.get(from, offset, dst, len, op) }
    }

    fn poll(&self, sink: &mut dyn Sink) -> usize {
        self.place.spend(CALL_NS);
        self.conduit.poll(sink)
    }

    fn has_work(&self) -> bool {
        self.conduit.has_work()
    }

    fn is_quiescent(&self) -> bool {
        self.conduit.is_quiescent()
    }

    fn yield_now(&self) {
        self.place.spend(CALL_NS);
    }

    fn epoch(&self) -> u32 {
        self.conduit.epoch()
    }

    fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        if self.epoch() != seen || self.has_work() {
            return;
        }
        let time = timeout.map_or(NAP, |timeout| timeout.min(NAP));
        let now_ns = self.place.clock.now_ns();
        self.place.park(Some(now_ns + time.as_nanos() as u64));
    }

    fn ledger(&self, peer: JobRank) -> Option<PeerLedger> {
        self.conduit.ledger(peer)
    }
}
