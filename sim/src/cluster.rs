//! A cluster without engines: conduits that a test drives itself.

use crate::clock::{Clock, Place, Trace};
use crate::config::SimConfig;
use crate::fiber::Fiber;
use crate::job::{Simulated, StartError};
use crate::rails::SimRails;
use crate::timed::Timed;
use argonet_am::Registered;
use argonet_base::JobRank;
use argonet_conduit::channel::{Channel, ChannelConfig};
use argonet_conduit::{Conduit, ThreadMode};
use argonet_segment::{Directory, OwnSegment, PageKind, SegmentFile};
use core::time::Duration;
use std::sync::Arc;

/// The conduit of one rank: the channel over connections of the simulated wire.
pub type ChannelNode = Timed<Channel<SimRails>>;

impl Simulated for ChannelNode {
    const IS_ORDERED: bool = true;

    fn compute(&self, time: Duration) {
        self.spend(time);
    }

    fn is_delivered(&self) -> bool {
        // A channel is quiescent when all that it sent is acknowledged. A peer that has a part of a
        // control frame waits for the rest.
        self.is_written()
    }

    /// One line for each peer.
    fn under_way(&self) -> Vec<String> {
        let ranks = self.connections().map_or(0, |all| all.ranks);
        let ledgers = (0..ranks).map(|peer| (peer, self.ledger(JobRank(peer))));
        let used = ledgers.filter_map(|(peer, ledger)| Some((peer, ledger?)));
        used.map(|(peer, ledger)| format!("rank {peer}: {ledger:?}"))
            .collect()
    }
}

/// One rank of a cluster: its conduit and its segment.
pub struct Node {
    /// The conduit.
    pub conduit: ChannelNode,
    /// The rank's segment; the conduit serves puts and gets from it.
    ///
    /// Its directory knows no other rank's.
    pub segment: OwnSegment,
}

/// A cluster whose ranks are driven by the code that made it.
///
/// Everything happens inside calls: a poll takes what has arrived at its rank, and
/// [`step`](Self::step) lets time pass until some rank has something to poll for. A conduit's
/// `sleep` lets time pass, too, until something arrives for its rank.
///
/// ```
/// use argonet_am::{Category, Delivery, HandlerTable, Message, Payload};
/// use argonet_base::{HandlerIndex, JobRank};
/// use argonet_conduit::{Conduit, OpToken, Completion, Sink};
/// use argonet_sim::{Cluster, SimConfig};
///
/// struct Count(u32);
/// impl Sink for Count {
///     fn deliver(&mut self, delivery: &mut Delivery<'_>) { self.0 += delivery.arg(0); }
///     fn completed(&mut self, _: OpToken, _: Completion) {}
///     fn on_error(&mut self, error: argonet_am::AmError) { panic!("{error}"); }
/// }
///
/// let cluster = Cluster::new(SimConfig::new(2, 1));
/// let mut handlers = HandlerTable::default();
/// handlers.register_at(HandlerIndex(128), "count", Box::new(|_| {})).unwrap();
/// let nodes = cluster.nodes(handlers.registered()).unwrap();
/// let message = Message { handler: HandlerIndex(128), args: &[7], payload: Payload::None };
/// nodes[0].conduit.request(JobRank(1), &message).unwrap();
/// let mut sinks = [Count(0), Count(0)];
/// while sinks[1].0 == 0 {
///     assert!(cluster.step(), "nothing is under way");
///     for (node, sink) in nodes.iter().zip(&mut sinks) {
///         node.conduit.poll(sink);
///     }
/// }
/// assert_eq!(sinks[1].0, 7);
/// ```
pub struct Cluster {
    config: SimConfig,
    clock: Arc<Clock>,
}

impl Cluster {
    /// A cluster in which nothing has happened.
    ///
    /// # Panics
    /// If a size is impossible; it is named.
    #[must_use]
    pub fn new(config: SimConfig) -> Self {
        config.sizes.check();
        assert!(config.ranks > 0, "a cluster has ranks");
        let clock = Clock::new(&config);
        Self {
            config,
            clock: Arc::new(clock),
        }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Conduits and segments of all ranks, for handlers at these indices; each rank is connected
    /// with each.
    ///
    /// Called once.
    ///
    /// # Errors
    /// The error of the system for the segments' memory.
    pub fn nodes(&self, registered: Registered) -> Result<Vec<Node>, StartError> {
        self.clock
            .with(|state| state.wire(|streams, _, now_ns| streams.join_all(now_ns)));
        (0..self.config.ranks)
            .map(|rank| self.node(rank, registered, None))
            .collect()
    }

    pub(crate) fn node(
        &self,
        rank: u32,
        registered: Registered,
        fiber: Option<Arc<Fiber>>,
    ) -> Result<Node, StartError> {
        let SimConfig {
            ranks,
            segment_bytes,
            ..
        } = self.config;
        // A file of its own: no rank can see another's memory.
        let stride = segment_bytes.next_multiple_of(4096).max(4096);
        let file = SegmentFile::create(ranks, stride, PageKind::Normal)?;
        let directory = Directory::new(file, JobRank(rank))?;
        let segment = OwnSegment::attach(&directory, segment_bytes)?;
        let place = Place {
            clock: Arc::clone(&self.clock),
            rank,
            fiber,
        };
        let sizes = self.config.sizes;
        let config = ChannelConfig {
            rank: JobRank(rank),
            ranks,
            mode: ThreadMode::Seq,
            sizes: sizes.channel,
            directory,
            registered,
            segment_len: Arc::new(move |_| segment_bytes),
        };
        let channel = Channel::over(SimRails::new(place.clone()), config);
        let channel = channel.map_err(|error| StartError::Interface(error.into()))?;
        let times = [sizes.poll_ns, sizes.inject_ns];
        let conduit = Timed::new(channel, place, times, None);
        Ok(Node { conduit, segment })
    }

    /// Lets time pass until something waits for some rank's poll; at once if that is so already.
    ///
    /// False if nothing is under way and nothing ever comes.
    pub fn step(&self) -> bool {
        self.clock.with(|state| state.run_to_work())
    }

    /// Virtual time since the beginning.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now_ns())
    }

    /// A number that is the same for the same course of events.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.clock.digest()
    }

    /// Connections that were made, and those that broke.
    #[must_use]
    pub fn connections(&self) -> (u64, u64) {
        self.clock.with(|state| state.connections())
    }

    /// Writes a line for each thing that happens from now on.
    pub fn trace(&self, trace: Trace) {
        self.clock.set_trace(trace);
    }

    pub(crate) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }
}
