//! Ranks of one process over the rails of Unix sockets.

#[path = "../rails/unix.rs"]
mod rail;
#[path = "sockets.rs"]
mod sockets;

use argonet_base::JobRank;
use argonet_conduit::channel::rail::RailId;
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::{Capabilities, ThreadMode};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use rail::{Hub, Pipes};
use sockets::{GARBAGE, raise_descriptors, send_garbage};
use std::sync::Arc;
use std::time::Duration;

/// The thread mode, and rails between two ranks.
pub(crate) struct UnixRig(ThreadMode, u16);

impl UnixRig {
    /// Each thread mode with one rail; two rails, of which messages use the first and payloads of
    /// large transfers both.
    pub(crate) fn all() -> Vec<Self> {
        let modes = [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par];
        let mut all: Vec<Self> = modes.map(|mode| Self(mode, 1)).into();
        all.extend([ThreadMode::Seq, ThreadMode::Par].map(|mode| Self(mode, 2)));
        all
    }

    fn sizes(&self, buffers: Buffers) -> ChannelSizes {
        let sizes = match buffers {
            Buffers::Default => ChannelSizes::default(),
            Buffers::Minimum => ChannelSizes::smallest(),
        };
        ChannelSizes {
            rails: self.1,
            ..sizes
        }
    }
}

pub(crate) struct UnixJob {
    endpoints: Vec<Option<Channel<Pipes>>>,
    segments: Vec<OwnSegment>,
    hub: Arc<Hub>,
}

impl Rig for UnixRig {
    type Job = UnixJob;

    fn name(&self) -> String {
        let Self(mode, rails) = self;
        let name = format!("unix {mode:?}").to_lowercase();
        match rails {
            1 => name,
            rails => format!("{name} rails {rails}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = self.sizes(Buffers::Default);
        Promises {
            capabilities: Capabilities::default(),
            remote: true,
            knows_segments: true,
            // A socket takes as much from a sender that has nothing else under way.
            alone_bytes: 64 << 10,
            ordered: true,
            quiescent_is_handled: true,
            threads: self.0,
            sleeps: true,
            outlives_sender: false,
            garbage: GARBAGE.len(),
            most_ranks: 16,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![64, 4096, 16 << 10, sizes.eager_bytes, 128 << 10],
            // Gathered bytes leave after 50 us at the latest, and the system may be busy.
            idle_rounds: 5000,
            patience: Duration::from_secs(10),
        }
    }

    fn start(&self, setup: &Setup) -> UnixJob {
        let (ranks, bytes) = (setup.ranks, setup.segment_bytes);
        raise_descriptors();
        let hub = Hub::new(ranks);
        for (a, b) in (0..ranks).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (peer, number) = (JobRank(b), 0);
            hub.join(JobRank(a), RailId { peer, number });
        }
        let mut job = UnixJob {
            endpoints: Vec::new(),
            segments: Vec::new(),
            hub,
        };
        for rank in (0..ranks).map(JobRank) {
            // A file of its own, as on another host.
            let file = SegmentFile::create(1, bytes, PageKind::Normal).expect("segment");
            let directory = Directory::of_job(file.starting_at(rank), rank, ranks);
            let directory = directory.expect("directory");
            let segment = OwnSegment::attach(&directory, bytes);
            job.segments.push(segment.expect("segment"));
            let config = ChannelConfig {
                rank,
                ranks,
                mode: self.0,
                sizes: self.sizes(setup.buffers),
                directory,
                registered: setup.registered,
                segment_len: Arc::new(move |_| bytes),
            };
            let rails = Pipes::new(rank, Arc::clone(&job.hub));
            let channel = Channel::over(rails, config).expect("endpoint");
            job.endpoints.push(Some(channel));
        }
        job
    }
}

impl Job for UnixJob {
    type Conduit = Channel<Pipes>;

    fn endpoint(&self, rank: JobRank) -> &Channel<Pipes> {
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

    fn corrupt(&self, reader: JobRank, writer: JobRank, kind: usize) {
        send_garbage(self.hub.socket(writer, reader), kind);
    }
}
