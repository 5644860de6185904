//! Sizes and times of a simulated cluster.

use crate::wire::FaultPlan;
use argonet_conduit::channel::ChannelSizes;
use core::time::Duration;

/// Sizes and times of a rank's conduit and its connections.
///
/// Every size can be at its smallest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The channel.
    pub channel: ChannelSizes,
    /// Bytes that were written to a connection and not read, at most.
    pub pipe_bytes: usize,
    /// A rank that does not answer so long is given up.
    pub dead_after_ns: u64,
    /// Processor time of a poll.
    pub poll_ns: u64,
    /// Processor time of an injection.
    pub inject_ns: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            channel: ChannelSizes {
                // Gathered bytes leave at once.
                gather_time: Duration::ZERO,
                silent_time: Duration::from_millis(50),
                idle_buffers: Duration::ZERO,
                ..ChannelSizes::default()
            },
            pipe_bytes: 256 << 10,
            dead_after_ns: 1_000_000_000,
            poll_ns: 100,
            inject_ns: 100,
        }
    }
}

impl Sizes {
    /// Every buffer at the smallest that still has to work.
    #[must_use]
    pub fn smallest() -> Self {
        let usual = Self::default();
        Self {
            channel: ChannelSizes {
                gather_time: usual.channel.gather_time,
                silent_time: usual.channel.silent_time,
                idle_buffers: usual.channel.idle_buffers,
                ..ChannelSizes::smallest()
            },
            pipe_bytes: 200,
            ..usual
        }
    }

    /// Messages gather until there are enough, or until the rank polls.
    ///
    /// The processor's clock decides nothing here either.
    #[must_use]
    pub fn gathering(self) -> Self {
        let channel = ChannelSizes {
            gather_time: Duration::from_secs(1),
            burst_ticks: u64::MAX,
            ..self.channel
        };
        Self { channel, ..self }
    }

    /// Checks that every size is possible.
    ///
    /// # Panics
    /// If one is not; it is named.
    pub(crate) fn check(&self) {
        if let Err(error) = self.channel.check() {
            panic!("{error}");
        }
        let least = [
            ("pipe_bytes", self.pipe_bytes as u64),
            ("dead_after_ns", self.dead_after_ns),
            ("poll_ns", self.poll_ns),
        ];
        for (name, value) in least {
            assert!(value > 0, "{name} is 0");
        }
    }
}

/// A simulated cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimConfig {
    /// Ranks.
    pub ranks: u32,
    /// Where all chance comes from.
    pub seed: u64,
    /// Bytes of each rank's segment, rounded up to pages.
    pub segment_bytes: u64,
    /// Sizes and times of the conduit.
    pub sizes: Sizes,
    /// Faults of the run.
    pub faults: FaultPlan,
}

impl SimConfig {
    /// A cluster without faults.
    #[must_use]
    pub fn new(ranks: u32, seed: u64) -> Self {
        Self {
            ranks,
            seed,
            segment_bytes: 256 * 1024,
            sizes: Sizes::default(),
            faults: FaultPlan::none(),
        }
    }
}
