//! Where connections come from: who dials, accepts and proves ranks is behind one trait.

use super::join::gate::GateCounts;
use argonet_am::AmError;
use argonet_base::JobRank;
use rustix::fd::{BorrowedFd, OwnedFd};

/// A connection whose peer has proved who it is, and over which no frame has passed.
#[derive(Debug)]
pub struct Connection {
    /// The peer.
    pub peer: JobRank,
    /// Which of the connections to it: 0 is the one that messages use, the others carry parts of
    /// large transfers.
    pub connection: u16,
    /// The socket. It is made non-blocking.
    pub socket: OwnedFd,
    /// Counts the connections of this number between the two ranks from 1 on; a lower number than
    /// one that was seen is of the past.
    pub incarnation: u64,
    /// Up to which byte the peer says that it has taken this rank's stream, at or after the time at
    /// which the connection was made. 0 on a first connection, and on those that carry parts.
    pub received: u64,
}

/// What has become of a wish.
#[derive(Debug)]
pub enum Made {
    /// A connection, asked for or accepted.
    Connected(Connection),
    /// There will be none of this number: why. A job goes on without those after the first.
    Unreachable(JobRank, u16, AmError),
}

/// Makes connections. All calls return at once; any thread may call.
pub trait Connector: Send + Sync {
    /// Asks for a connection of a number, below
    /// [`TcpSizes::connections`](super::TcpSizes::connections), to a peer: the first, or another
    /// after it was lost. To ask again changes nothing.
    fn want(&self, peer: JobRank, connection: u16);

    /// Takes what was made since. `received` tells up to which byte this rank has taken a peer's
    /// stream; the peer is told that in the handshake. It needs not end what there is of the
    /// connection: what is taken from it meanwhile is passed over when it comes again, and nothing
    /// is read from it once the next is here.
    fn next(&self, received: &dyn Fn(JobRank, u16) -> u64) -> Option<Made>;

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
