//! Sizes and times of a simulated cluster.

use crate::link::LinkConfig;
use crate::wire::FaultPlan;
use argonet_am::{MAX_CARRIED, MAX_MEDIUM};
use argonet_conduit::SMALL_PUT;

/// Sizes and times of the simulated conduit. Every size can be at its smallest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Both classes' links; [`LinkConfig::message_bytes`] follows from the other sizes.
    pub link: LinkConfig,
    /// Requests, puts and gets to one peer that are not handled yet, at most. For each the landing
    /// room of the largest reply is kept.
    pub request_credits: u32,
    /// Longest medium payload.
    pub medium_bytes: usize,
    /// Longest payload of a long.
    pub long_bytes: usize,
    /// Puts and gets go in chunks of this many bytes.
    pub chunk_bytes: usize,
    /// Puts and gets under way, at most.
    pub operations: usize,
    /// Payloads up to this length are copied and locally complete at once; longer ones when the
    /// peer has acknowledged them.
    pub copy_bytes: usize,
    /// Bytes of requests and puts that are copied and not acknowledged, at most.
    pub replay_bytes: usize,
    /// Frames that have arrived and were not polled, at most; more are lost.
    pub nic_frames: usize,
    /// Frames that one poll takes.
    pub poll_frames: usize,
    /// Messages that one poll takes from one class of one peer.
    pub poll_messages: usize,
    /// Processor time of a poll.
    pub poll_ns: u64,
    /// Processor time of an injection.
    pub inject_ns: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            link: LinkConfig::default(),
            request_credits: 16,
            medium_bytes: 16 * 1024,
            long_bytes: 64 * 1024,
            chunk_bytes: 16 * 1024,
            operations: 64,
            copy_bytes: 4096,
            replay_bytes: 256 * 1024,
            nic_frames: 4096,
            poll_frames: 64,
            poll_messages: 16,
            poll_ns: 100,
            inject_ns: 100,
        }
    }
}

impl Sizes {
    /// Every buffer at the smallest that still has to work.
    #[must_use]
    pub fn smallest() -> Self {
        Self {
            link: LinkConfig::smallest(),
            request_credits: 1,
            medium_bytes: 512,
            long_bytes: 1024,
            chunk_bytes: 64,
            operations: 1,
            copy_bytes: 64,
            replay_bytes: 1024,
            nic_frames: 4,
            poll_frames: 1,
            poll_messages: 1,
            ..Self::default()
        }
    }

    /// The links' configuration: messages as long as the longest of this conduit.
    pub(crate) fn link(&self) -> LinkConfig {
        assert!(
            self.copy_bytes >= SMALL_PUT,
            "copy_bytes below {SMALL_PUT}, which small puts have"
        );
        let payload = self.medium_bytes.max(self.long_bytes).max(self.chunk_bytes);
        LinkConfig {
            message_bytes: crate::conduit::HEADER_BYTES + MAX_CARRIED * 4 + payload,
            ..self.link
        }
    }

    /// Checks that every size is possible.
    ///
    /// # Panics
    /// If one is not; it is named.
    pub(crate) fn check(&self) {
        if let Err(error) = self.link().check() {
            panic!("{error}");
        }
        let least = [
            ("request_credits", u64::from(self.request_credits)),
            ("chunk_bytes", self.chunk_bytes as u64),
            ("operations", self.operations as u64),
            ("nic_frames", self.nic_frames as u64),
            ("poll_frames", self.poll_frames as u64),
            ("poll_messages", self.poll_messages as u64),
            ("poll_ns", self.poll_ns),
        ];
        for (name, value) in least {
            assert!(value > 0, "{name} is 0");
        }
        assert!(
            self.medium_bytes <= MAX_MEDIUM,
            "medium_bytes over {MAX_MEDIUM}"
        );
        let payload = self.medium_bytes.max(self.long_bytes).max(self.copy_bytes);
        assert!(
            self.replay_bytes >= payload,
            "replay_bytes below the longest payload"
        );
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
    /// What goes wrong.
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
