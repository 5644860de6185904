//! How an interface reaches other hosts.

use crate::datagram::{HostNames, WireFaults};
use crate::reliable::{ReliableConfig, Seal};
use core::time::Duration;

/// Sizes and rules on which all ranks of a job agree.
#[derive(Clone, Debug)]
pub struct NetworkedConfig {
    /// Ranks of the job, on all hosts.
    pub ranks: u32,
    /// Datagrams, windows and times.
    pub link: ReliableConfig,
    /// The secret of the job, by which datagrams are sealed.
    ///
    /// Without it they are known by the incarnations alone, which a listener can read.
    pub seal: Option<Seal>,
    /// Operations of this rank for other hosts that have not ended.
    pub operations: u32,
    /// Operations for one peer that this has not answered, and so most answers that a rank keeps
    /// for a peer; others wait.
    ///
    /// Of all ranks the same.
    pub answers: u32,
    /// How long an interface that is dropped goes on until all that it sent has arrived.
    pub exit_grace: Duration,
    /// Names of the ranks' hosts, for errors.
    pub hosts: HostNames,
    /// Faults of the wire for datagrams of this rank; for tests.
    pub faults: WireFaults,
    /// What it does to what arrives here; for tests.
    pub arriving_faults: WireFaults,
}

impl NetworkedConfig {
    /// For so many ranks, with the usual values.
    #[must_use]
    pub fn of_ranks(ranks: u32) -> Self {
        Self {
            ranks,
            link: ReliableConfig::default(),
            seal: None,
            operations: 1 << 14,
            answers: 1 << 10,
            exit_grace: Duration::from_secs(2),
            hosts: HostNames::default(),
            faults: WireFaults::NONE,
            arriving_faults: WireFaults::NONE,
        }
    }
}
