//! Errors of an endpoint, and its reports of peers.

use super::fault::{PathFault, Words};
use argonet_base::JobRank;
use core::time::Duration;
use thiserror::Error;

/// A call that did nothing, and why.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ReliableError {
    /// Sizes or times that contradict each other.
    #[error(
        "rank {rank}: datagrams cannot be sent reliably with {what}; change the sizes or times of the link"
    )]
    Config {
        /// The rank that has the endpoint.
        rank: JobRank,
        /// The fault.
        what: &'static str,
    },
    /// A rank that the endpoint does not know.
    #[error(
        "rank {rank}: there is no rank {peer} among the {ranks} ranks that datagrams go to, or its incarnation is not known yet"
    )]
    Unknown {
        /// The rank that called.
        rank: JobRank,
        /// The rank that is not there.
        peer: JobRank,
        /// How many there are.
        ranks: u32,
    },
    /// The window is full; there is room once the peer has acknowledged something.
    #[error(
        "rank {rank}: the window to rank {peer} is full; send again when the peer has acknowledged records in flight"
    )]
    Full {
        /// The rank that called.
        rank: JobRank,
        /// The peer.
        peer: JobRank,
    },
    /// A record that no datagram holds.
    #[error(
        "rank {rank}: a record of {len_bytes} bytes for rank {peer} is longer than the {most_bytes} bytes of a datagram"
    )]
    TooLong {
        /// The rank that called.
        rank: JobRank,
        /// The peer.
        peer: JobRank,
        /// How long it is.
        len_bytes: usize,
        /// How long it may be.
        most_bytes: usize,
    },
    /// The peer was lost.
    #[error(transparent)]
    Lost(#[from] PeerUnreachable),
}

/// A peer that did not answer for too long.
///
/// Records in flight to it may have arrived or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("rank {rank} cannot reach rank {peer}: {}; {}", self.words(), fault.advice())]
pub struct PeerUnreachable {
    /// The rank that waited.
    pub rank: JobRank,
    /// The peer.
    pub peer: JobRank,
    /// What is wrong.
    pub fault: PathFault,
    /// How long nothing came.
    pub silent: Duration,
    /// How often the oldest record was sent; 0 if only questions were open.
    pub sends: u32,
}

impl PeerUnreachable {
    /// What is wrong, and for how long.
    pub(crate) fn words(&self) -> Words {
        Words {
            fault: self.fault,
            silent: self.silent,
            sends: self.sends,
        }
    }
}
