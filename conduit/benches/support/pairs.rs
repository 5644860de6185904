//! Two ranks of one process whose segments are in one file.

use argonet_am::Registered;
use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_conduit::smp::{Smp, SmpConfig};
use argonet_nic::portals::software::{FaultRules, Software};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

const RANKS: u32 = 2;
const SEGMENT_BYTES: u64 = 8 << 20;

/// The conduits of both, and their segments.
pub(crate) struct Pair<C> {
    pub(crate) ends: [C; 2],
    _segments: Vec<OwnSegment>,
}

fn memory(name: &str) -> OwnedFd {
    memfd_create(name, MemfdFlags::CLOEXEC).expect("memory")
}

/// `make` makes the conduit of one.
fn pair<C>(make: impl Fn(JobRank, Arc<Directory>) -> C) -> Pair<C> {
    let kind = PageKind::Normal;
    let file = SegmentFile::create(RANKS, SEGMENT_BYTES, kind).expect("segments");
    let file = file.into_fd();
    let mut segments = Vec::new();
    let ends = [0, 1].map(|rank| {
        let fd = file.try_clone().expect("descriptor");
        let file = SegmentFile::from_fd(fd, RANKS, SEGMENT_BYTES, kind).expect("segments");
        let directory = Directory::new(file, JobRank(rank)).expect("directory");
        segments.push(OwnSegment::attach(&directory, SEGMENT_BYTES).expect("segment"));
        make(JobRank(rank), directory)
    });
    Pair {
        ends,
        _segments: segments,
    }
}

/// Over interfaces in software.
pub(crate) fn over_portals(registered: Registered) -> Pair<Portals<Software>> {
    let interfaces = memory("interfaces");
    let sizes = PortalsSizes::default();
    let software = software_config(&sizes, JobRank(0), RANKS).expect("sizes that fit");
    pair(|rank, directory| {
        let resolver = Some(Resolver::new(Arc::clone(&directory)));
        let faults = FaultRules::default();
        let nic = Software::new(interfaces.as_fd(), software, rank, resolver, faults);
        let config = PortalsConfig {
            rank,
            ranks: RANKS,
            mode: ThreadMode::Seq,
            sizes,
            reached: Arc::clone(&directory),
            directory,
            registered,
            segment_len: Arc::new(|_| SEGMENT_BYTES),
        };
        Portals::over_software(nic.expect("interface"), config).expect("endpoint")
    })
}

/// Through shared memory.
pub(crate) fn over_smp(registered: Registered) -> Pair<Smp> {
    let rings = memory("rings");
    pair(|rank, directory| {
        let config = SmpConfig {
            rank,
            first: JobRank(0),
            ranks: RANKS,
            mode: ThreadMode::Seq,
            barrier: Smp::register_barrier(),
            directory,
            registered,
            segment_len: Arc::new(|_| SEGMENT_BYTES),
        };
        Smp::new(rings.as_fd(), config).expect("endpoint")
    })
}
