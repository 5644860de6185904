//! The setup of the driver, and its calls to its user.

use super::dial::{DialConfig, Unreachable};
use super::gate::GateLimits;
use super::listen::ListenError;
use argonet_base::JobRank;
use core::net::SocketAddr;
use core::ops::RangeInclusive;
use rustix::fd::OwnedFd;

/// How a [`Joiner`](super::Joiner) is set up.
#[derive(Clone, PartialEq, Debug)]
pub struct JoinConfig {
    /// For strangers.
    pub gate: GateLimits,
    /// For the connections to peers.
    pub dial: DialConfig,
    /// The ports to listen at; 0 to 0 is any.
    pub ports: RangeInclusive<u16>,
    /// Attempts to connect at a time; further peers wait.
    pub attempts: usize,
    /// Whether peers may get other addresses than they have published: the last one from which a
    /// peer has connected is tried first.
    pub follows: bool,
}

impl Default for JoinConfig {
    fn default() -> Self {
        Self {
            gate: GateLimits::default(),
            dial: DialConfig::default(),
            ports: 0..=0,
            attempts: 256,
            follows: false,
        }
    }
}

/// Why a rank cannot take part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refuses something else.
    #[error("rank {rank} cannot wait for connections: {cause}")]
    System {
        /// The rank.
        rank: JobRank,
        /// The system's error.
        cause: rustix::io::Errno,
    },
}

/// Where a peer is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Whereabouts {
    /// The name of its host, for errors.
    pub host: String,
    /// Where it listens, in any order.
    pub addresses: Vec<SocketAddr>,
}

/// A connection that is ready for frames: both ends have proved who they are.
#[derive(Debug)]
pub struct Joined {
    /// The peer.
    pub peer: JobRank,
    /// Which of the connections to it.
    pub connection: u16,
    /// The same number at both ends, higher than that of all connections of this number before.
    pub incarnation: u64,
    /// The last sequence number that the peer has taken from this rank.
    pub received: u64,
    /// The socket, not blocking, nothing of the handshake left in it.
    pub socket: OwnedFd,
}

/// The user of a [`Joiner`](super::Joiner).
///
/// It is called from within the joiner's calls, by the same thread.
pub trait JoinUser {
    /// Where `peer` is.
    ///
    /// Asked once for each peer, when it is first connected to.
    fn whereabouts(&mut self, peer: JobRank) -> Whereabouts;

    /// Ends the connection of this number with `peer` if there is one: nothing that is unread in it
    /// may be taken any more.
    ///
    /// Yields the last sequence number taken from the peer, which must not change until the next
    /// connection is there. Connections of other numbers go on.
    fn fence(&mut self, peer: JobRank, connection: u16) -> u64;

    /// A connection is ready.
    fn joined(&mut self, joined: Joined);

    /// A peer cannot be reached.
    ///
    /// Nothing more happens on this connection unless the peer connects itself.
    fn unreachable(&mut self, error: Unreachable);
}
