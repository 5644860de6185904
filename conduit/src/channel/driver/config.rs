//! How a [`Channel`](super::Channel) is set up.

use crate::SegmentLen;
use crate::channel::ChannelCredits;
use crate::channel::frame::{LARGEST_CHARGE, LONGEST_HEAD, MAX_FRAGMENT};
use crate::channel::rail::MOST_RAILS;
use crate::conduit::{Limits, SMALL_PUT};
use crate::threads::ThreadMode;
use argonet_am::{MAX_CARRIED, MAX_MEDIUM, Registered};
use argonet_base::JobRank;
use argonet_base::cpu::SHORT_PAUSE_TICKS;
use argonet_segment::Directory;
use core::time::Duration;
use std::sync::Arc;

/// Bytes of a ring that are always kept free for the largest reply, and for refusals.
pub(super) const REPLY_ROOM: usize = LONGEST_HEAD + MAX_MEDIUM + 4096;

/// Sizes and times.
///
/// All ranks of a job have the same, but for eager bytes and fragments, by which the sender alone
/// goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelSizes {
    /// Payloads up to this length are copied, and locally complete at once; longer ones when the
    /// peer has taken them.
    pub eager_bytes: usize,
    /// Most bytes of frames and copied payloads that are kept for one peer until it has taken them.
    pub replay_bytes: usize,
    /// Requests of one peer that are kept here when their replies have no room, at most, where
    /// there are no credits; and replies that are kept until the rank makes a call.
    pub window_bytes: usize,
    /// How the receive space is dealt out to peers; `None` gives each
    /// [`window_bytes`](Self::window_bytes).
    pub credits: Option<ChannelCredits>,
    /// The longest payload of a long.
    pub long_bytes: usize,
    /// Gets, and puts that are not copied, go in fragments of this many bytes.
    pub fragment_bytes: usize,
    /// Gets from one peer under way, at most.
    pub gets: u32,
    /// So much is gathered in a burst before it is sent.
    pub gather_bytes: usize,
    /// Ticks of the processor's clock after which a message begins a burst, and leaves at once; one
    /// that leaves less than that after another joins the gathered messages.
    pub burst_ticks: u64,
    /// Gathered messages leave after this time at the latest; 0 sends everything at once.
    pub gather_time: Duration,
    /// Rails between two ranks, at most.
    ///
    /// Large transfers ask for those after the first.
    pub rails: u16,
    /// For how long a peer's host may acknowledge nothing before the rail is given up and another
    /// is asked for; 0 is forever, or as long as the system waits.
    ///
    /// A peer that makes no call has a host that acknowledges.
    pub silent_time: Duration,
    /// Where so many times [that after which the rail sends again](crate::channel::rail::Vital) are
    /// longer than `silent_time`, these.
    pub silent_tries: u32,
    /// After how long without anything under way, and nothing sent or received, the buffers of a
    /// peer are freed; 0 is never.
    pub idle_buffers: Duration,
    /// The same for the rails to a peer, which are closed at both ends and made again for the next
    /// message; 0 is never, and must be where no rail is made twice.
    pub idle_rails: Duration,
}

impl Default for ChannelSizes {
    fn default() -> Self {
        Self {
            // 64 KiB go without a copy as fast as a rail of TCP.
            eager_bytes: (64 << 10) - 1,
            replay_bytes: 1 << 20,
            window_bytes: 256 << 10,
            credits: Some(ChannelCredits::default()),
            long_bytes: 1 << 20,
            fragment_bytes: 512 << 10,
            gets: 4096,
            gather_bytes: 16 << 10,
            // 2 us or so.
            burst_ticks: 15 * SHORT_PAUSE_TICKS,
            gather_time: Duration::from_micros(50),
            rails: 2,
            // The system retransmits lost bytes four times until then.
            silent_time: Duration::from_secs(5),
            silent_tries: 0,
            idle_buffers: Duration::from_secs(10),
            idle_rails: Duration::ZERO,
        }
    }
}

/// A size that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} is {value}, allowed is {least} to {most}")]
pub struct ChannelSizeError {
    /// Which.
    pub field: &'static str,
    /// Its value.
    pub value: usize,
    /// The smallest that is allowed.
    pub least: usize,
    /// The largest.
    pub most: usize,
}

impl ChannelSizes {
    /// Limits of messages with these sizes.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        Limits {
            args: MAX_CARRIED,
            medium_request: MAX_MEDIUM,
            medium_reply: MAX_MEDIUM,
            long: self.long_bytes,
        }
    }

    /// Every buffer at the smallest that still works.
    #[must_use]
    pub fn smallest() -> Self {
        Self {
            eager_bytes: SMALL_PUT,
            replay_bytes: 2 * REPLY_ROOM,
            window_bytes: LARGEST_CHARGE,
            credits: Some(ChannelCredits::smallest()),
            long_bytes: 64 << 10,
            fragment_bytes: 512,
            gets: 1,
            ..Self::default()
        }
    }

    /// Checks that every size is possible.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ChannelSizeError> {
        const MOST: usize = 1 << 30;
        for (field, value, least, most) in [
            ("eager_bytes", self.eager_bytes, SMALL_PUT, MAX_MEDIUM),
            ("replay_bytes", self.replay_bytes, 2 * REPLY_ROOM, MOST),
            ("window_bytes", self.window_bytes, LARGEST_CHARGE, MOST),
            ("long_bytes", self.long_bytes, 512, MOST),
            ("fragment_bytes", self.fragment_bytes, 1, MAX_FRAGMENT),
            ("gets", self.gets as usize, 1, 1 << 16),
            ("gather_bytes", self.gather_bytes, 0, MOST),
            ("rails", self.rails.into(), 1, MOST_RAILS.into()),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ChannelSizeError {
                    field,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// How a [`Channel`](super::Channel) is set up, beside its rails.
pub struct ChannelConfig {
    /// This rank.
    pub rank: JobRank,
    /// Ranks of the job.
    pub ranks: u32,
    /// Threads that will call.
    pub mode: ThreadMode,
    /// Sizes and times.
    pub sizes: ChannelSizes,
    /// This rank's segment; the directory's own rank is this one.
    pub directory: Arc<Directory>,
    /// Handlers that exist, the same on all ranks.
    pub registered: Registered,
    /// Attached bytes of a rank's segment, 0 where they are not known: then the rank itself refuses
    /// a place outside.
    pub segment_len: SegmentLen,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sizes_are_named() {
        assert_eq!(ChannelSizes::default().check(), Ok(()));
        assert_eq!(ChannelSizes::smallest().check(), Ok(()));
        let sizes = ChannelSizes {
            eager_bytes: MAX_MEDIUM + 1,
            ..ChannelSizes::default()
        };
        let said = sizes.check().unwrap_err().to_string();
        assert_eq!(said, "eager_bytes is 65537, allowed is 64 to 65536");
    }
}
