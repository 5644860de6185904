//! Ranks whose interfaces are in one file, in one process: each endpoint has mappings of its own.

use argonet_base::JobRank;
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::gni::{DESCRIPTOR, MailboxRails, MailboxRailsConfig, software_config};
use argonet_conduit::{Conduit as _, ThreadMode};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_nic::gni::software::{FaultRules, Software};
use argonet_nic::gni::{Credentials, NicAddress, Shape};
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;
use std::time::Duration;

/// How ranks are set up.
pub(crate) struct GniRig {
    mode: ThreadMode,
    /// Of the faults of interfaces, if there are any.
    seed: Option<u64>,
}

pub(crate) struct GniJob {
    endpoints: Vec<Option<Channel<MailboxRails<Software>>>>,
    segments: Vec<OwnSegment>,
}

impl GniRig {
    /// Without and with threads; then faults, by several seeds.
    pub(crate) fn all(seeds: u64) -> Vec<Self> {
        let usual = |mode| Self { mode, seed: None };
        let modes = [ThreadMode::Seq, ThreadMode::Par].map(usual);
        let faulty = (1..=seeds).map(|seed| Self {
            mode: ThreadMode::Par,
            seed: Some(seed),
        });
        modes.into_iter().chain(faulty).collect()
    }

    fn shape(buffers: Buffers) -> Shape {
        match buffers {
            Buffers::Default => Shape {
                messages: 8,
                message_bytes: 4096,
            },
            Buffers::Minimum => Shape {
                messages: 2,
                message_bytes: 256,
            },
        }
    }

    fn sizes(buffers: Buffers) -> ChannelSizes {
        let sizes = match buffers {
            Buffers::Default => ChannelSizes::default(),
            Buffers::Minimum => ChannelSizes::smallest(),
        };
        ChannelSizes { rails: 1, ..sizes }
    }

    fn faults(&self, rank: JobRank, calm: bool) -> FaultRules {
        match self.seed.filter(|_| !calm) {
            Some(seed) => FaultRules {
                seed: seed << 32 | u64::from(rank.0),
                transient: 20_000,
                overrun: 20_000,
                no_credit: 20_000,
                late: 20_000,
                late_calls: 8,
                ..FaultRules::default()
            },
            None => FaultRules::default(),
        }
    }
}

impl Rig for GniRig {
    type Job = GniJob;

    fn name(&self) -> String {
        let mode = format!("gni {:?}", self.mode).to_lowercase();
        match self.seed {
            None => mode,
            Some(seed) => format!("{mode} faults {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = Self::sizes(Buffers::Default);
        Promises {
            capabilities: DESCRIPTOR.capabilities,
            remote: true,
            knows_segments: true,
            // A mailbox; more may wait for the peer to read, and the sender for a poll.
            alone_bytes: 4096,
            ordered: true,
            quiescent_is_handled: true,
            threads: self.mode,
            // Posts that are held back go on with calls alone.
            sleeps: self.seed.is_none(),
            // One that has not connected yet takes its messages along.
            outlives_sender: false,
            // The unit tests write garbage into mailboxes.
            garbage: 0,
            most_ranks: 64,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![48, 64, 1024, 4096, 16 << 10, sizes.eager_bytes, 128 << 10],
            // A first message waits until its sender's thread has connected, for which there is
            // the patience.
            idle_rounds: 500,
            patience: Duration::from_secs(10),
        }
    }

    fn start(&self, setup: &Setup) -> GniJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        let segments = SegmentFile::create(ranks, bytes, PageKind::Normal).expect("segments");
        let segments = segments.into_fd();
        let interfaces = memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("interfaces");
        let shape = Self::shape(setup.buffers);
        let peers = (JobRank(0), ranks);
        let software = software_config(peers, shape).expect("sizes that fit");
        let mut job = GniJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
        };
        for rank in (0..ranks).map(JobRank) {
            let fd = segments.try_clone().expect("descriptor");
            let file = SegmentFile::from_fd(fd, ranks, bytes, PageKind::Normal).expect("segments");
            let directory = Directory::new(file, rank).expect("directory");
            let segment = OwnSegment::attach(&directory, bytes).expect("segment");
            job.segments.push(segment);
            let nic = Software::new(
                interfaces.as_fd(),
                software,
                NicAddress { rank, nic: 0 },
                Credentials { ptag: 1, cookie: 0 },
                Some(Resolver::new(Arc::clone(&directory))),
                self.faults(rank, setup.calm),
            );
            let rails = MailboxRails::new(MailboxRailsConfig {
                rank,
                peers,
                nic: nic.expect("interface"),
                shape,
                secret: b"of the suite".to_vec(),
                directory: Arc::clone(&directory),
                reached: Arc::clone(&directory),
                silence: Duration::from_secs(20),
            });
            let config = ChannelConfig {
                rank,
                ranks,
                mode: self.mode,
                sizes: Self::sizes(setup.buffers),
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            let channel = Channel::over(rails.expect("rails"), config).expect("endpoint");
            channel.segment_grown().expect("the segment is registered");
            job.endpoints.push(Some(channel));
        }
        job
    }
}

impl Job for GniJob {
    type Conduit = Channel<MailboxRails<Software>>;

    fn endpoint(&self, rank: JobRank) -> &Self::Conduit {
        let endpoint = self.endpoints[rank.index()].as_ref();
        endpoint.expect("the rank has not ended")
    }

    fn end(&mut self, rank: JobRank) {
        self.endpoints[rank.index()] = None;
    }

    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.segments[rank.index()]
    }

    fn advance(&self) {
        std::thread::yield_now();
    }
}
