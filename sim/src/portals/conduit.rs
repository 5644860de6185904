//! The conduit of a rank over its interface in software.

use crate::clock::Place;
use crate::cluster::Cluster;
use crate::config::SimConfig;
use crate::fiber::Fiber;
use crate::job::{Seat, Simulated, StartError};
use crate::timed::Timed;
use argonet_am::Registered;
use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
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

/// The conduit of one rank.
pub type PortalsNode = Timed<Portals<Software>>;

/// State that all ranks of a job have in common.
pub(super) struct Host {
    sizes: PortalsSizes,
    faults: FaultRules,
    segment_bytes: u64,
    segments: OwnedFd,
    interfaces: OwnedFd,
    software: SoftwareConfig,
}

/// The error of an interface or its conduit.
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
            conduit: Timed::new(
                conduit.map_err(refused)?,
                place.clone(),
                [CALL_NS; 2],
                Some(NAP),
            ),
            segment,
            place,
        })
    }
}

impl Simulated for PortalsNode {
    /// A message that matches nothing, or finds no room, is sent again.
    const IS_ORDERED: bool = false;

    fn compute(&self, time: Duration) {
        self.spend(time);
    }

    fn is_delivered(&self) -> bool {
        self.in_use().is_nothing()
    }

    fn under_way(&self) -> Vec<String> {
        vec![format!("{:?}", self.in_use())]
    }
}
