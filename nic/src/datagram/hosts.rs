//! Hosts of peers, for messages.

use argonet_base::JobRank;
use core::fmt;
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
    #[must_use]
    pub fn of(&self, peer: JobRank) -> String {
        let name = self.0.as_ref().map(|name| name(peer));
        name.unwrap_or_default()
    }
}

impl fmt::Debug for HostNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostNames").finish_non_exhaustive()
    }
}
