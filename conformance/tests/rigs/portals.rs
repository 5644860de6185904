//! Ranks whose interfaces are in one file, in one process: each endpoint has mappings of its own.

use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_conduit::portals::{
    CAPABILITIES, CHUNK_BYTES, Portals, PortalsConfig, PortalsSizes, portals4_config,
    software_config,
};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_nic::portals::portals4::Narrow;
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::portals::{Ack, Descriptor, Part, PortalIndex, Portals as Interface, Target};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile};
use core::ptr::NonNull;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;
use std::time::Duration;

/// How ranks are set up.
pub(crate) struct PortalsRig<N> {
    mode: ThreadMode,
    variant: Variant,
    over: N,
}

/// The interface under the conduit.
pub(crate) trait Over: Copy + Send + Sync + 'static {
    type Nic: Interface + Send + Sync;

    /// Behind the conduit's name.
    fn name(self) -> &'static str;

    /// The longest put or get at which something changes.
    fn message_bytes(self) -> Option<usize>;

    /// How large an interface is.
    fn software(self, sizes: &PortalsSizes, ranks: u32) -> SoftwareConfig {
        software_config(sizes, JobRank(0), ranks).expect("sizes that fit")
    }

    fn endpoint(self, nic: Software, config: PortalsConfig) -> Portals<Self::Nic>;
}

/// The interface in software as it is.
#[derive(Clone, Copy)]
pub(crate) struct Whole;

impl Over for Whole {
    type Nic = Software;

    fn name(self) -> &'static str {
        ""
    }

    fn message_bytes(self) -> Option<usize> {
        None
    }

    fn endpoint(self, nic: Software, config: PortalsConfig) -> Portals<Software> {
        Portals::over_software(nic, config).expect("endpoint")
    }
}

/// The abilities of a library of Portals 4, with messages of at most so many bytes.
#[derive(Clone, Copy)]
pub(crate) struct Limited(usize);

/// One in which the longest medium fits, and one in which not even a chunk does.
pub(crate) const LONG: Limited = Limited(64 << 10);
pub(crate) const SHORT: Limited = Limited(896);

impl Over for Limited {
    type Nic = Narrow;

    fn name(self) -> &'static str {
        if self.0 < CHUNK_BYTES {
            " narrow short"
        } else {
            " narrow"
        }
    }

    fn message_bytes(self) -> Option<usize> {
        Some(self.0)
    }

    fn software(self, sizes: &PortalsSizes, ranks: u32) -> SoftwareConfig {
        SoftwareConfig {
            queue_events: portals4_config(sizes, ranks)
                .expect("sizes that fit")
                .queue_events,
            ..Whole.software(sizes, ranks)
        }
    }

    fn endpoint(self, nic: Software, config: PortalsConfig) -> Portals<Narrow> {
        let (start, len_bytes) = nic.buffers();
        let buffers = argonet_conduit::portals::Buffers { start, len_bytes };
        // More often than a rank has buffers.
        let nic = Narrow::new(nic, self.0 as u64).reluctant(100);
        // SAFETY: the buffers are mapped as long as the interface, which the conduit owns, and
        // nothing else uses them.
        unsafe { Portals::new(nic, buffers, config) }.expect("endpoint")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    /// As users have it.
    Usual,
    /// Nothing is paid for; overflows are pushed back.
    Unpaid,
    /// Longs are never packed.
    Unpacked,
    /// Events of an interface come late, out of turn, and twice.
    Faulty(u64),
}

pub(crate) struct PortalsJob<N: Over> {
    endpoints: Vec<Option<Portals<N::Nic>>>,
    segments: Vec<OwnSegment>,
    interfaces: OwnedFd,
}

impl<N: Over> PortalsRig<N> {
    /// Each thread mode; then other settings; then faults, by several seeds.
    pub(crate) fn all(over: N, seeds: u64) -> Vec<Self> {
        let with = |mode, variant| Self {
            mode,
            variant,
            over,
        };
        let usual = |mode| with(mode, Variant::Usual);
        let modes = [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par].map(usual);
        let others = [Variant::Unpaid, Variant::Unpacked];
        let others = others.map(|variant| with(ThreadMode::Par, variant));
        let faulty = (1..=seeds).map(|seed| with(ThreadMode::Par, Variant::Faulty(seed)));
        modes.into_iter().chain(others).chain(faulty).collect()
    }

    pub(crate) fn is_par(&self) -> bool {
        self.mode == ThreadMode::Par
    }

    pub(crate) fn is_usual(&self) -> bool {
        self.variant == Variant::Usual
    }

    fn sizes(&self, buffers: Buffers) -> PortalsSizes {
        let sizes = match buffers {
            Buffers::Default => PortalsSizes::default(),
            Buffers::Minimum => PortalsSizes::smallest(),
        };
        PortalsSizes {
            // More than the receive buffers hold, so that requests fall into the catch-basin.
            send_chunks: match (self.variant, buffers) {
                (Variant::Unpaid, Buffers::Minimum) => 512,
                _ => sizes.send_chunks,
            },
            flow_control: self.variant != Variant::Unpaid,
            packed_longs: self.variant != Variant::Unpacked,
            ..sizes
        }
    }

    fn faults(&self, rank: u32) -> FaultRules {
        match self.variant {
            Variant::Faulty(seed) => FaultRules {
                seed: seed << 32 | u64::from(rank),
                delay: 20_000,
                reorder: 20_000,
                slow_target: 20_000,
                late_calls: 8,
                no_match: 5_000,
                ..FaultRules::default()
            },
            _ => FaultRules::default(),
        }
    }
}

impl<N: Over> Rig for PortalsRig<N> {
    type Job = PortalsJob<N>;

    fn name(&self) -> String {
        let mode = format!("portals{} {:?}", self.over.name(), self.mode).to_lowercase();
        match self.variant {
            Variant::Usual => mode,
            Variant::Unpaid => mode + " unpaid",
            Variant::Unpacked => mode + " unpacked",
            Variant::Faulty(seed) => format!("{mode} faults {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let faulty = matches!(self.variant, Variant::Faulty(_));
        Promises {
            capabilities: CAPABILITIES,
            remote: true,
            knows_segments: true,
            // Credits come back with replies, which the sender must take; parts behind the first
            // wait for its polls, too.
            alone_bytes: match self.over.message_bytes() {
                Some(bytes) if bytes < CHUNK_BYTES => bytes - ARGUMENT_BYTES,
                _ => 64 << 10,
            },
            // A message that matches nothing, or finds no room, is sent again.
            ordered: false,
            quiescent_is_handled: true,
            threads: self.mode,
            // Late events go on with calls alone.
            sleeps: !faulty,
            outlives_sender: !faulty,
            garbage: if faulty { 0 } else { GARBAGE.len() },
            most_ranks: 64,
            poll_per_peer: 8192,
            thresholds: vec![
                64,
                256,
                CHUNK_BYTES - ARGUMENT_BYTES,
                CHUNK_BYTES - 8,
                CHUNK_BYTES,
                4096,
            ]
            .into_iter()
            .chain(self.over.message_bytes())
            .collect(),
            // A message that finds no room is tried again after 20 us.
            idle_rounds: if faulty { 200 } else { 2000 },
            patience: Duration::ZERO,
        }
    }

    fn start(&self, setup: &Setup) -> PortalsJob<N> {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        let segments = SegmentFile::create(ranks, bytes, PageKind::Normal).expect("segments");
        let segments = segments.into_fd();
        let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("interfaces");
        let sizes = self.sizes(setup.buffers);
        let software = self.over.software(&sizes, ranks);
        let mut job = PortalsJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            interfaces,
        };
        for rank in (0..ranks).map(JobRank) {
            let fd = segments.try_clone().expect("descriptor");
            let file = SegmentFile::from_fd(fd, ranks, bytes, PageKind::Normal).expect("segments");
            let directory = Directory::new(file, rank).expect("directory");
            job.segments
                .push(OwnSegment::attach(&directory, bytes).expect("segment"));
            let faults = match setup.calm {
                true => FaultRules::default(),
                false => self.faults(rank.0),
            };
            let resolver = Resolver::new(Arc::clone(&directory));
            let nic = Software::new(
                job.interfaces.as_fd(),
                software,
                rank,
                Some(resolver),
                faults,
            );
            let nic = nic.expect("interface");
            let config = PortalsConfig {
                rank,
                ranks,
                mode: self.mode,
                sizes,
                reached: Arc::clone(&directory),
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            job.endpoints.push(Some(self.over.endpoint(nic, config)));
        }
        job
    }
}

/// Bytes of the most arguments of a test's message.
const ARGUMENT_BYTES: usize = 72;

/// Portal, match bits and immediate data of messages without bytes that no rank sends.
const GARBAGE: [(u32, u64, u64); 10] = [
    // A request of no kind, one with 31 arguments, a medium and a short that are longer than the
    // bytes that came.
    (1, 0, 0),
    (1, 0x3f00, 0),
    (1, 2 << 13 | 0x80, 100),
    (1, 1 << 13 | 5 << 8 | 0x80, 0),
    // One that is no request; a medium of more than there can be.
    (1, 6 << 13, 0),
    (1, 3 << 13 | 0x80, 1 << 20),
    // More credits than were lent are given back by a reply that no request waits for; a reply of
    // no kind.
    (4, 6 << 13 | 15 << 56, 0),
    (4, 0, 0),
    // No system message; an answer without a question that gives 9 back.
    (7, 0, 0xff << 56),
    (7, 0, 0x82 << 56 | 9),
];

impl<N: Over> Job for PortalsJob<N> {
    type Conduit = Portals<N::Nic>;

    fn endpoint(&self, rank: JobRank) -> &Portals<N::Nic> {
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
        let nic = self.endpoint(writer).interface();
        let (portal, bits, header) = GARBAGE[kind];
        // SAFETY: of no bytes nothing is accessed.
        let nothing = unsafe { nic.bind(NonNull::dangling(), 0, Descriptor::SILENT) };
        let part = Part {
            offset_bytes: 0,
            len_bytes: 0,
        };
        let target = Target {
            rank: reader,
            portal: PortalIndex(portal),
            bits,
            offset_bytes: 0,
        };
        let sent = nic.put_region(nothing.expect("room"), part, Ack::None, target, header);
        sent.expect("it goes out");
    }
}
