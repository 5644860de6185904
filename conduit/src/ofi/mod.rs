//! Rails of messages: the stream to each peer over an endpoint that keeps their order.
//!
//! The endpoint ([`argonet_nic::rdm`]) sends messages that arrive once and in order. The bytes of a
//! rail are cut into such messages, each with a `header` that proves of which rank it is. A rank
//! has one rail to each peer, which is there from the first byte on.
//!
//! Each message has a number, by which those that the provider hands over out of turn wait for
//! their turn.
//!
//! A peer sends no more than its window until what it has sent was read: no rank keeps more of a
//! peer, nor does its provider. A message that the provider has no room for is kept, one to each
//! peer, and sent again by polls or by a thread, which also takes what comes while the rank makes
//! no call (`attended`).

mod attended;
mod descriptor;
mod header;
mod peer;
mod rail;
mod rails;
mod shared;
#[cfg(test)]
mod tests;

pub use descriptor::DESCRIPTOR;
pub use rail::MessageRail;
pub use rails::MessageRails;

use argonet_base::JobRank;
use argonet_nic::fabric::Sleep;
use argonet_nic::rdm::MessageQueue;
use argonet_settings::OFI_ROW;
use core::num::NonZeroU64;
use core::time::Duration;

/// Name of the conduit, as in `--conduit`.
pub const NAME: &str = OFI_ROW.name;

/// The number of the format of messages: ranks of one job have the same.
pub const FORMAT: u32 = 1;

/// How the [`MessageRails`] of a rank are set up.
pub struct MessageRailsConfig<Q: MessageQueue> {
    /// The rank.
    pub rank: JobRank,
    /// Where its messages go and come.
    pub queue: Q,
    /// Where its threads wait.
    pub sleep: Sleep,
    /// A number for each rank of the job that cannot be guessed and that no earlier process of that
    /// rank had.
    pub incarnations: Vec<NonZeroU64>,
    /// The secret of the job, by which messages prove of which rank they are.
    pub secret: Vec<u8>,
    /// How long a peer may answer nothing before it counts as lost.
    pub silence: Duration,
    /// Writes a warning for the user; the thread calls it.
    pub warn: fn(&str),
    /// How long a rank that ends goes on until all that it sent has arrived.
    pub exit_grace: Duration,
}
