//! Ranks that share memory, in one process: each endpoint has mappings of its own.

use argonet_am::record::{Head, UNIT};
use argonet_am::{Category, MAX_CARRIED, MessageClass};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::smp::{Barrier, Layout, Smp, SmpConfig};
use argonet_conduit::{Capabilities, ThreadMode};
use argonet_conformance::{Job, Promises, Rig, Setup};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;
use std::time::Duration;

/// Thread mode, and the executor of the barrier.
pub(crate) struct SmpRig {
    mode: ThreadMode,
    barrier: Barrier,
}

pub(crate) struct SmpJob {
    endpoints: Vec<Option<Smp>>,
    segments: Vec<OwnSegment>,
    rings: OwnedFd,
    layout: Layout,
}

impl SmpRig {
    /// Each thread mode, with the sleeper's barrier where the system has it; then the sender's.
    pub(crate) fn all() -> Vec<Self> {
        let best = Smp::register_barrier();
        let modes = [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par];
        let mut rigs: Vec<Self> = modes
            .map(|mode| Self {
                mode,
                barrier: best,
            })
            .into();
        if best != Barrier::Sender {
            rigs.push(Self {
                mode: ThreadMode::Par,
                barrier: Barrier::Sender,
            });
        }
        rigs
    }
}

impl Rig for SmpRig {
    type Job = SmpJob;

    fn name(&self) -> String {
        let mode = format!("smp {:?}", self.mode).to_lowercase();
        match self.barrier {
            Barrier::Sleeper => mode,
            Barrier::Sender => mode + " sender",
        }
    }

    fn promises(&self) -> Promises {
        Promises {
            capabilities: Capabilities {
                put: true,
                get: true,
                atomics: true,
                completes_at_injection: true,
            },
            remote: true,
            knows_segments: true,
            alone_bytes: usize::MAX,
            ordered: true,
            quiescent_is_handled: false,
            threads: self.mode,
            sleeps: true,
            outlives_sender: true,
            garbage: GARBAGE.len(),
            most_ranks: 64,
            // 64 of each class.
            poll_per_peer: 128,
            thresholds: vec![UNIT, 64, 4096, 1 << 16],
            // A ring rests for some 130 ns after it was read; a round takes longer than 10.
            idle_rounds: 1000,
            patience: Duration::ZERO,
        }
    }

    /// Rings have one size, which is the smallest that takes any record.
    ///
    /// Segments of neighbors are mapped at first use.
    fn start(&self, setup: &Setup) -> SmpJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        let segments = SegmentFile::create(ranks, bytes, PageKind::Normal).expect("segments");
        let segments = segments.into_fd();
        let rings = memfd_create("rings", MemfdFlags::CLOEXEC).expect("rings");
        let mut job = SmpJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            layout: Layout::new(JobRank(0), ranks),
            rings,
        };
        for rank in (0..ranks).map(JobRank) {
            let fd = segments.try_clone().expect("descriptor");
            let file = SegmentFile::from_fd(fd, ranks, bytes, PageKind::Normal).expect("segments");
            let directory = Directory::new(file, rank).expect("directory");
            job.segments
                .push(OwnSegment::attach(&directory, bytes).expect("segment"));
            let config = SmpConfig {
                rank,
                first: JobRank(0),
                ranks,
                mode: self.mode,
                barrier: self.barrier,
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            job.endpoints
                .push(Some(Smp::new(job.rings.as_fd(), config).expect("endpoint")));
        }
        job
    }
}

/// First words of records that are wrong.
const GARBAGE: [Head; 8] = [
    Head(0x0007),
    Head::message(Category::Short, HandlerIndex(128), MAX_CARRIED + 1, 0, 6),
    Head::message(Category::Short, HandlerIndex(128), 9, 0, 1),
    Head::message(Category::Medium, HandlerIndex(128), 0, 0, 2),
    Head::message(Category::Long, HandlerIndex(128), 0, 0, 2),
    Head::message(Category::Short, HandlerIndex(128), 0, 0, u16::MAX as u32),
    Head::skip(0),
    Head::skip(u16::MAX as u32),
];

impl Job for SmpJob {
    type Conduit = Smp;

    fn endpoint(&self, rank: JobRank) -> &Smp {
        self.endpoints[rank.index()]
            .as_ref()
            .expect("the rank has not ended")
    }

    fn end(&mut self, rank: JobRank) {
        self.endpoints[rank.index()] = None;
    }

    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.segments[rank.index()]
    }

    fn advance(&self) {}

    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        let mut bytes = vec![0xff; 64];
        bytes[..8].copy_from_slice(&GARBAGE[kind].0.to_ne_bytes());
        let at = self.layout.ring(reader, writer, MessageClass::Request).1;
        rustix::io::pwrite(&self.rings, &bytes, at as u64).expect("rings");
    }
}
