//! Where connections come from: who dials, accepts and proves ranks is behind one trait.

use crate::channel::rail::{Made, RailId};
use crate::connections::GateCounts;
use argonet_base::JobRank;
use rustix::fd::{BorrowedFd, OwnedFd};

/// Makes connections. All calls return at once; any thread may call.
pub trait Connector: Send + Sync {
    /// Asks for a connection of a number, below
    /// [`ChannelSizes::rails`](crate::channel::ChannelSizes::rails), to a peer: the first, or
    /// another after it was lost. To ask again changes nothing.
    fn want(&self, peer: JobRank, number: u16);

    /// Takes what was made since, as [`Rails::next`](crate::channel::rail::Rails::next) does. The
    /// socket is made non-blocking by who takes it.
    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>>;

    /// A descriptor that can be read while [`next`](Self::next) has something to do; `None` where
    /// that never is.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// A number that changes with [`callers`](Self::callers). Costs next to nothing.
    fn came(&self) -> u64 {
        0
    }

    /// Who has come to its doors, and why they were sent away; `None` while another thread is at
    /// them.
    fn callers(&self) -> Option<GateCounts> {
        Some(GateCounts::default())
    }
}
