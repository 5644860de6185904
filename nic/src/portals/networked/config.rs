//! How an interface reaches other hosts.

use crate::datagram::WireFaults;
use crate::reliable::{ReliableConfig, Seal};
use argonet_base::JobRank;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// Names of the hosts that ranks are on.
///
/// An error of a peer that was lost asks for one; nothing else does.
#[derive(Clone, Default)]
pub struct HostNames(Option<Arc<dyn Fn(JobRank) -> String + Send + Sync>>);

impl HostNames {
    /// Names that `name` looks up.
    ///
    /// It is called under the lock of an interface, which it must not use.
    pub fn new(name: impl Fn(JobRank) -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(name)))
    }

    /// The name of a rank's host; empty where it is not known.
    pub(super) fn of(&self, peer: JobRank) -> String {
        let name = self.0.as_ref().map(|name| name(peer));
        name.unwrap_or_default()
    }
}

impl fmt::Debug for HostNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostNames").finish_non_exhaustive()
    }
}

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
