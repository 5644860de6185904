//! The source of connections: one trait dials, accepts and proves ranks.

use crate::channel::rail::{Made, RailId};
use crate::connections::GateCounts;
use argonet_base::JobRank;
use rustix::fd::{BorrowedFd, OwnedFd};

/// Makes connections.
///
/// All calls return at once; any thread may call.
pub trait Connector: Send + Sync {
    /// Asks for a connection of a number, below
    /// [`ChannelSizes::rails`](crate::channel::ChannelSizes::rails), to a peer: the first, or
    /// another after it was lost.
    ///
    /// To ask again changes nothing.
    fn want(&self, peer: JobRank, number: u16);

    /// Both ranks have closed a connection that they did not use, as
    /// [`Rails::unwant`](crate::channel::rail::Rails::unwant) says.
    fn unwant(&self, peer: JobRank, number: u16) {
        let _ = (peer, number);
    }

    /// Addresses of this host have changed.
    fn readdress(&self) {}

    /// Takes a connection that was made since, as
    /// [`Rails::next`](crate::channel::rail::Rails::next) does.
    ///
    /// The caller makes its socket non-blocking.
    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<OwnedFd>>;

    /// A descriptor that can be read while [`next`](Self::next) has something to do; `None` where
    /// it never has.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// A number that changes with [`callers`](Self::callers).
    ///
    /// Costs next to nothing.
    fn came(&self) -> u64 {
        0
    }

    /// Counts of connections that have come, and of refusals by reason; `None` while another thread
    /// holds them.
    fn callers(&self) -> Option<GateCounts> {
        Some(GateCounts::default())
    }
}
