//! The ends of a handshake, and its outcomes.

use super::wire::Verdict;
use argonet_base::JobRank;

/// Data of one end of a connection, as it says them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Its rank.
    pub rank: JobRank,
    /// Which of the connections between the two ranks, from 0.
    pub connection: u16,
    /// The how-manieth connection of this number; both ends have the same when the handshake is
    /// done.
    pub incarnation: u64,
    /// The last sequence number that this end has taken from the other: bytes after it are sent
    /// again.
    pub received: u64,
}

/// Where a handshake stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It waits for more bytes.
    More,
    /// At the acceptor: this peer has proved to be of the job, and waits for
    /// [`Handshake::answer`](super::Handshake::answer) or
    /// [`Handshake::refuse`](super::Handshake::refuse).
    Peer(Hello),
    /// This is the other end.
    ///
    /// Bytes that arrive from now on are for the user of the connection.
    Done(Hello),
}

/// Why a handshake has failed.
///
/// The connection is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The other end does not speak this protocol.
    #[error("it does not speak argonet's protocol")]
    Magic,
    /// The other end is of another version.
    #[error(
        "it speaks version {0} of the protocol, this rank version 1; all ranks must use the same argonet"
    )]
    Version(u16),
    /// The other end is of another job.
    #[error("it is of another job")]
    Job,
    /// The code is wrong: the other end does not hold the key, or the message is an old one.
    #[error("it does not prove that it holds the job's key")]
    Proof,
    /// The other end is of the job and wants another rank: it was given this address for it.
    #[error("it wants rank {0}, which is not the one here")]
    Acceptor(u32),
    /// The other end says that it is a rank that it cannot be.
    #[error("it claims to be rank {0}")]
    Connector(u32),
    /// The other end is the peer, and does not take this connection.
    #[error("the peer does not take this connection ({verdict:?}, incarnation {incarnation})")]
    ByPeer {
        /// Why.
        verdict: Verdict,
        /// The highest incarnation that the peer knows.
        incarnation: u64,
    },
    /// The verdict is none that this version knows.
    #[error("it answers with verdict {0}, which this version does not know")]
    Verdict(u8),
}
