//! Ranks over connections of a simulated wire, in virtual time.

use argonet_base::JobRank;
use argonet_conduit::{Capabilities, ThreadMode};
use argonet_conformance::{Buffers, Job, Promises, Rig, Setup};
use argonet_segment::OwnSegment;
use argonet_sim::{
    ChannelNode, Cluster, FaultPlan, Node, Quality, Random, SimConfig, Simulated, Sizes,
};
use std::time::Duration;

/// The faults of one seed; none without.
pub(crate) struct SimRig {
    seed: Option<u64>,
}

pub(crate) struct SimJob {
    cluster: Cluster,
    nodes: Vec<Option<Node>>,
}

/// Ranks that do not poll for long are not taken for dead: the suite's ranks often do not.
const NEVER_NS: u64 = u64::MAX / 8;

/// Time that passes when some rank has something to poll for and is not polled.
const WAIT: Duration = Duration::from_micros(50);

impl SimRig {
    /// One without faults and one for each seed.
    pub(crate) fn all(seeds: u64) -> Vec<Self> {
        let seeds = (1..=seeds).map(Some);
        std::iter::once(None)
            .chain(seeds)
            .map(|seed| Self { seed })
            .collect()
    }

    /// Odd seeds: bytes are held back and come in parts, forever.
    ///
    /// Even ones: the faults that the seed draws, with breaks, partitions and slow ranks, for a
    /// while. A rank that is never polled makes no other connection.
    fn faults(&self, ranks: u32) -> FaultPlan {
        let Some(seed) = self.seed else {
            return FaultPlan::none();
        };
        if seed % 2 == 0 {
            return FaultPlan::draw(&mut Random::new(seed), ranks);
        }
        let bad = Quality {
            jitter_ns: 1_000,
            hold_ppm: 100_000,
            hold_ns: 20_000,
            short_ppm: 200_000,
            ..Quality::CLEAN
        };
        FaultPlan {
            faulty: bad,
            healed: bad,
            ..FaultPlan::none()
        }
    }
}

impl Rig for SimRig {
    type Job = SimJob;

    fn name(&self) -> String {
        match self.seed {
            None => "sim".into(),
            Some(seed) => format!("sim seed {seed}"),
        }
    }

    fn promises(&self) -> Promises {
        let sizes = Sizes::default();
        Promises {
            capabilities: Capabilities::default(),
            remote: true,
            knows_segments: true,
            // Bytes that a connection takes from a sender that has nothing else under way.
            alone_bytes: 64 << 10,
            ordered: true,
            quiescent_is_handled: true,
            // A rank is a coroutine of one thread.
            threads: ThreadMode::Seq,
            sleeps: false,
            outlives_sender: false,
            garbage: 0,
            most_ranks: 64,
            // Messages, fragments of operations, completions.
            poll_per_peer: 4 * 512,
            thresholds: vec![64, 4096, 16 << 10, sizes.channel.eager_bytes, 128 << 10],
            idle_rounds: 4000,
            patience: Duration::ZERO,
        }
    }

    fn start(&self, setup: &Setup) -> SimJob {
        let mut sizes = match setup.buffers {
            Buffers::Default => Sizes::default(),
            Buffers::Minimum => Sizes::smallest(),
        };
        // The suite is about buffers, and its largest messages go through.
        sizes.pipe_bytes = sizes.pipe_bytes.max(16 << 10);
        sizes.dead_after_ns = NEVER_NS;
        let faults = if setup.calm {
            FaultPlan::none()
        } else {
            self.faults(setup.ranks)
        };
        let cluster = Cluster::new(SimConfig {
            segment_bytes: setup.segment_bytes,
            sizes,
            faults,
            ..SimConfig::new(setup.ranks, self.seed.unwrap_or(0))
        });
        let nodes = cluster.nodes(setup.registered).expect("segments");
        SimJob {
            cluster,
            nodes: nodes.into_iter().map(Some).collect(),
        }
    }
}

impl SimJob {
    fn node(&self, rank: JobRank) -> &Node {
        self.nodes[rank.index()]
            .as_ref()
            .expect("the rank has not ended")
    }
}

impl Job for SimJob {
    type Conduit = ChannelNode;

    fn endpoint(&self, rank: JobRank) -> &ChannelNode {
        &self.node(rank).conduit
    }

    fn end(&mut self, rank: JobRank) {
        self.nodes[rank.index()] = None;
    }

    fn segment(&self, rank: JobRank) -> &OwnSegment {
        &self.node(rank).segment
    }

    fn advance(&self) {
        let before = self.cluster.now();
        self.cluster.step();
        if self.cluster.now() == before
            && let Some(node) = self.nodes.iter().flatten().next()
        {
            node.conduit.compute(WAIT);
        }
    }
}
