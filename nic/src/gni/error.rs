//! Errors of calls of an interface.

use super::NicAddress;
use argonet_base::JobRank;
use thiserror::Error;

/// A call that did nothing, and why.
///
/// The end of an operation that was begun is in its event, never here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GniError {
    /// A table is full (`GNI_RC_ERROR_RESOURCE`).
    #[error("rank {rank}: no {what} is left, all {limit} are in use; free some")]
    NoSpace {
        /// The rank that has the table.
        rank: JobRank,
        /// The object that was to be made.
        what: &'static str,
        /// How many there are.
        limit: u64,
    },
    /// No such registration, or datagram, or with another key (`GNI_RC_PERMISSION_ERROR`).
    #[error("rank {rank}: {what} does not exist (any more)")]
    BadHandle {
        /// The rank that called.
        rank: JobRank,
        /// The kind of object.
        what: &'static str,
    },
    /// An interface that is not reached (`GNI_RC_NO_MATCH`).
    #[error("rank {rank}: there is no interface {} of rank {}, or it has other credentials", .peer.nic, .peer.rank)]
    BadPeer {
        /// The rank that called.
        rank: JobRank,
        /// The interface that is not there.
        peer: NicAddress,
    },
    /// A range that is not within registered memory.
    #[error(
        "rank {rank}: {len_bytes} bytes from {offset} on are outside of registered memory of {size_bytes} bytes"
    )]
    OutOfRange {
        /// The rank that called.
        rank: JobRank,
        /// Where the range begins.
        offset: u64,
        /// How long it is.
        len_bytes: u64,
        /// How long the memory is.
        size_bytes: u64,
    },
    /// Memory that peers cannot reach.
    #[error(
        "rank {rank}: {len_bytes} bytes at {address:#x} are in no memory that peers can reach: neither in its segment nor in its buffers"
    )]
    NotShared {
        /// The rank that called.
        rank: JobRank,
        /// Where.
        address: usize,
        /// How long.
        len_bytes: u64,
    },
    /// The hardware needs other places or lengths (`GNI_RC_ALIGNMENT_ERROR`).
    #[error("rank {rank}: {what}")]
    Alignment {
        /// The rank that called.
        rank: JobRank,
        /// What it needs.
        what: &'static str,
    },
    /// Memory that may be read only (`GNI_RC_PERMISSION_ERROR`).
    #[error("rank {rank}: that memory of rank {peer} may only be read")]
    NotAllowed {
        /// The rank that called.
        rank: JobRank,
        /// The rank that has the memory.
        peer: JobRank,
    },
    /// More than fits (`GNI_RC_SIZE_ERROR`).
    #[error("rank {rank}: {what} of {len_bytes} bytes, where the longest has {most_bytes}")]
    TooLong {
        /// The rank that called.
        rank: JobRank,
        /// What is too long.
        what: &'static str,
        /// How long it is.
        len_bytes: u64,
        /// How long it may be.
        most_bytes: u64,
    },
    /// No room now, or something of the same kind is under way (`GNI_RC_NOT_DONE`): try again.
    #[error("rank {rank}: {what} cannot be done now; try again")]
    Busy {
        /// The rank that called.
        rank: JobRank,
        /// What.
        what: &'static str,
    },
    /// An endpoint without mailboxes (`GNI_RC_INVALID_STATE`).
    #[error("rank {rank}: the endpoint to rank {peer} has no mailbox")]
    NotOpen {
        /// The rank that called.
        rank: JobRank,
        /// Its peer.
        peer: JobRank,
    },
    /// A mailbox in which something stands that no peer sends.
    #[error("rank {rank}: the mailbox of rank {peer} is damaged: {what}")]
    Damaged {
        /// The rank that has it.
        rank: JobRank,
        /// Whose messages it has.
        peer: JobRank,
        /// What is wrong.
        what: &'static str,
    },
    /// A queue was full, and events were lost (`GNI_RC_ERROR_RESOURCE`, overrun).
    #[error("rank {rank}: a completion queue was full, events are lost")]
    Overrun {
        /// The rank that has it.
        rank: JobRank,
    },
    /// Arguments that make no sense (`GNI_RC_INVALID_PARAM`).
    #[error("rank {rank}: {what}")]
    Invalid {
        /// The rank that called.
        rank: JobRank,
        /// What is wrong.
        what: &'static str,
    },
    /// The file of the interfaces is not one of this job.
    #[error("the interfaces' file of {ranks} ranks cannot be used: {reason}")]
    WrongFile {
        /// How many share it.
        ranks: u32,
        /// Why.
        reason: String,
    },
    /// The system refused something.
    #[error("cannot {action}")]
    Os {
        /// What was to be done.
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}
