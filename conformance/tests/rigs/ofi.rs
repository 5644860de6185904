//! Ranks of one process over rails of messages, which go through a provider of libfabric.

use argonet_base::JobRank;
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::ofi::{MessageRails, MessageRailsConfig};
use argonet_conduit::{Capabilities, ThreadMode};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_nic::fabric::{FabricAddress, Library};
use argonet_nic::rdm::{Rdm, RdmPort};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// The library, and which of its providers carries messages.
pub(crate) struct OfiRig(Library, String);

impl OfiRig {
    pub(crate) fn new(library: Library, provider: &str) -> Self {
        Self(library, provider.to_owned())
    }

    fn sizes(buffers: Buffers) -> ChannelSizes {
        match buffers {
            Buffers::Default => ChannelSizes::default(),
            Buffers::Minimum => ChannelSizes::smallest(),
        }
    }
}

pub(crate) struct OfiJob {
    endpoints: Vec<Option<Channel<MessageRails<Rdm>>>>,
    segments: Vec<OwnSegment>,
}

impl Rig for OfiRig {
    type Job = OfiJob;

    fn name(&self) -> String {
        let Self(_, provider) = self;
        format!("ofi {provider} par")
    }

    fn promises(&self) -> Promises {
        let sizes = Self::sizes(Buffers::Default);
        Promises {
            capabilities: Capabilities::default(),
            remote: true,
            knows_segments: true,
            // A message; more may wait for the peer to read, and the sender for a poll.
            alone_bytes: 4096,
            ordered: true,
            quiescent_is_handled: true,
            threads: ThreadMode::Par,
            sleeps: true,
            outlives_sender: false,
            // Frames are those of tcp, and messages that are none are those of strangers, whom the
            // unit tests try.
            garbage: 0,
            most_ranks: 16,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![64, 1024, 16 << 10, sizes.eager_bytes, 128 << 10],
            // The provider loses nothing; the first message to a peer waits until it has
            // connected, for which there is the patience.
            idle_rounds: 500,
            patience: Duration::from_secs(10),
        }
    }

    fn start(&self, setup: &Setup) -> OfiJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        let at = Some(Ipv4Addr::LOCALHOST.into());
        let Self(library, provider) = self;
        let open = |_| RdmPort::open(library, Some(provider), at).expect("an endpoint");
        let ports: Vec<RdmPort> = (0..ranks).map(open).collect();
        let peers: Vec<FabricAddress> = ports.iter().map(|port| port.address().clone()).collect();
        let incarnations: Vec<NonZeroU64> = ports.iter().map(RdmPort::incarnation).collect();
        let mut job = OfiJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
        };
        for (rank, port) in (0..ranks).map(JobRank).zip(ports) {
            // A file of its own, as on another host.
            let file = SegmentFile::create(1, bytes, PageKind::Normal).expect("segment");
            let directory = Directory::of_job(file.starting_at(rank), rank, ranks);
            let directory = directory.expect("directory");
            let segment = OwnSegment::attach(&directory, bytes);
            job.segments.push(segment.expect("segment"));
            let (queue, sleep) = port.connect(&peers).expect("peers");
            let rails = MessageRails::new(MessageRailsConfig {
                rank,
                queue,
                sleep,
                incarnations: incarnations.clone(),
                secret: b"of the suite".to_vec(),
                silence: Duration::from_secs(20),
                warn: |_| {},
                exit_grace: Duration::from_millis(500),
            });
            let config = ChannelConfig {
                rank,
                ranks,
                mode: ThreadMode::Par,
                sizes: ChannelSizes {
                    rails: 1,
                    ..Self::sizes(setup.buffers)
                },
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            let channel = Channel::over(rails.expect("rails"), config).expect("endpoint");
            job.endpoints.push(Some(channel));
        }
        job
    }
}

impl Job for OfiJob {
    type Conduit = Channel<MessageRails<Rdm>>;

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
