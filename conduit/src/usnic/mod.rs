//! Rails of datagrams: the stream to each peer over a reliable layer.
//!
//! The layer ([`argonet_nic::reliable`]) numbers datagrams, acknowledges them and sends again what
//! was lost, so that bytes arrive in order and once. [`DatagramRails`] are the rails of a rank over
//! one queue of an interface ([`DatagramQueue`]). There are two to a peer: the first has the
//! channel of commands and carries the stream, the second has that of data and carries the payloads
//! of long transfers beside it. Each is there from the first byte on. A thread acknowledges and
//! sends again while the rank makes no call (`attended`). [`PathCheck`] finds out whether datagrams
//! pass between the rank and others, before the first byte.

mod attended;
mod descriptor;
mod doubts;
mod peer;
mod rail;
mod rails;
mod shared;
mod taking;
#[cfg(test)]
mod tests;
mod together;

pub use descriptor::DESCRIPTOR;
pub use rail::DatagramRail;
pub use rails::DatagramRails;
pub use shared::PathCheck;

use argonet_base::JobRank;
use argonet_nic::datagram::{DatagramQueue, HostNames};
use argonet_nic::reliable::{ReliableConfig, Seal};
use argonet_settings::USNIC_ROW;
use core::num::NonZeroU64;
use core::time::Duration;

/// Name of the conduit, as in `--conduit`.
pub const NAME: &str = USNIC_ROW.name;

/// How the [`DatagramRails`] of a rank are set up.
pub struct DatagramRailsConfig<Q: DatagramQueue> {
    /// The rank.
    pub rank: JobRank,
    /// Where its datagrams go and come.
    pub queue: Q,
    /// A number for each rank of the job that cannot be guessed and that no earlier process of that
    /// rank had.
    pub incarnations: Vec<NonZeroU64>,
    /// DatagramRails, windows and times.
    pub link: ReliableConfig,
    /// The secret of the job, by which datagrams are sealed.
    pub seal: Option<Seal>,
    /// The hosts of the ranks, for errors.
    pub hosts: HostNames,
    /// Writes a warning for the user; the thread of the rails calls it.
    pub warn: fn(&str),
    /// How long a rank that ends goes on until all that it sent has arrived.
    pub exit_grace: Duration,
}
