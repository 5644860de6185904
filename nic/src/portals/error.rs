//! Errors of calls of an interface.

use crate::reliable::{PeerUnreachable, ReliableError};
use argonet_base::JobRank;
use core::fmt;
use core::net::SocketAddr;
use thiserror::Error;

/// A call that did nothing, and why.
///
/// The end of an operation that was begun is reported in its [`Outcome`](super::Outcome), never
/// here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NicError {
    /// A table is full.
    #[error(
        "rank {rank}: no {what} is left, all {limit} are in use; raise the interface's limit or free some"
    )]
    NoSpace {
        /// The rank that has the table.
        rank: JobRank,
        /// The object that was to be made.
        what: &'static str,
        /// How many there are.
        limit: u64,
    },
    /// A handle of something that is gone, or never was.
    #[error("rank {rank}: {what} {index}.{generation} does not exist (any more)")]
    BadHandle {
        /// The rank that has the interface.
        rank: JobRank,
        /// The kind of object.
        what: &'static str,
        /// Its place.
        index: u32,
        /// Its generation.
        generation: u32,
    },
    /// A portal that is not allocated, or outside of the table.
    #[error("rank {rank}: portal {portal} is not allocated; the table has {portals}")]
    BadPortal {
        /// The rank that has the table.
        rank: JobRank,
        /// Which place.
        portal: u32,
        /// Places of the table.
        portals: u32,
    },
    /// It cannot go while others use it.
    #[error("rank {rank}: {what} {index} is in use {by}; wait for that to end")]
    InUse {
        /// The rank that has the interface.
        rank: JobRank,
        /// The object that was to go.
        what: &'static str,
        /// Which one.
        index: u32,
        /// The users.
        by: &'static str,
    },
    /// A rank that the interface does not reach.
    #[error("rank {rank}: there is no rank {peer} among the {ranks} ranks of this interface")]
    BadRank {
        /// The rank that called.
        rank: JobRank,
        /// The rank that is not there.
        peer: JobRank,
        /// How many there are.
        ranks: u32,
    },
    /// A part that is not in its memory.
    #[error(
        "rank {rank}: {len_bytes} bytes from {offset_bytes} on are outside of a descriptor of {size_bytes} bytes"
    )]
    OutOfRange {
        /// The rank that has the descriptor.
        rank: JobRank,
        /// Where the part begins.
        offset_bytes: u64,
        /// How long it is.
        len_bytes: u64,
        /// How long the memory is.
        size_bytes: u64,
    },
    /// Memory that peers cannot reach.
    #[error(
        "rank {rank}: {len_bytes} bytes at {address:#x} are neither in the attached segment nor in the interface's buffers, so peers cannot reach them"
    )]
    NotShared {
        /// The rank that has the memory.
        rank: JobRank,
        /// Where it begins.
        address: usize,
        /// How long it is.
        len_bytes: u64,
    },
    /// A descriptor that has done all operations of its threshold.
    #[error(
        "rank {rank}: descriptor {index} was bound for {threshold} operations, and all were begun"
    )]
    Exhausted {
        /// The rank that has the descriptor.
        rank: JobRank,
        /// Which one.
        index: u32,
        /// Its threshold.
        threshold: u32,
    },
    /// Options or arguments that contradict each other.
    #[error("rank {rank}: {what}")]
    Invalid {
        /// The rank that called.
        rank: JobRank,
        /// The fault.
        what: &'static str,
    },
    /// This interface has no such feature.
    #[error("rank {rank}: this interface has no {feature}")]
    Unsupported {
        /// The rank that called.
        rank: JobRank,
        /// The feature that it lacks.
        feature: &'static str,
    },
    /// A queue was full: so many events are missing just here.
    ///
    /// They were counted, reported once, and are lost.
    #[error(
        "rank {rank}: queue {queue} was full and {count} events were dropped; make it deeper or bound the operations in flight"
    )]
    EventsDropped {
        /// The rank that has the queue.
        rank: JobRank,
        /// Which one.
        queue: u32,
        /// How many.
        count: u64,
    },
    /// Shared memory holds words that no working rank writes.
    #[error(
        "the interface of rank {rank} holds {what}; a rank of this host wrote where it must not"
    )]
    Corrupt {
        /// The rank that has the interface.
        rank: JobRank,
        /// The finding.
        what: &'static str,
    },
    /// The file that ranks share is not of this layout.
    #[error("the file of the interfaces of {ranks} ranks cannot be used: {reason}")]
    WrongFile {
        /// Ranks that were asked for.
        ranks: u32,
        /// The fault.
        reason: String,
    },
    /// There is no library of Portals 4.
    #[error(
        "no library of Portals 4 could be loaded: {reason}; install the driver of the network card or the reference implementation, and name its libportals.so by ARGONET_PORTALS_LIBRARY or its directory by LD_LIBRARY_PATH"
    )]
    NoLibrary {
        /// The names that were tried, and the loader's errors.
        reason: String,
    },
    /// A library that is not of Portals 4, or of another version or vendor whose constants differ.
    #[error(
        "{library} is no library of Portals 4 as its reference implementation defines it: {what}; name another one by ARGONET_PORTALS_LIBRARY"
    )]
    WrongLibrary {
        /// The name that it was loaded by.
        library: String,
        /// How it differs.
        what: String,
    },
    /// A call of the library failed.
    #[error("rank {rank}: {call} answered {answer} where PTL_OK was expected; {advice}")]
    Library {
        /// The rank that called.
        rank: JobRank,
        /// The library's function.
        call: &'static str,
        /// The answer of the function.
        answer: String,
        /// Advice to the user.
        advice: &'static str,
    },
    /// A rank of another host that was lost.
    #[error(
        "rank {} cannot reach rank {} {}: {}; {}",
        lost.rank, lost.peer, WhereTo(host, address), lost.words(), lost.fault.advice()
    )]
    Unreachable {
        /// The name of its host; empty if it is not known.
        host: String,
        /// Where it was.
        address: Option<SocketAddr>,
        /// The two ranks, and the time of waiting.
        lost: PeerUnreachable,
    },
    /// An error of a link between hosts.
    #[error("{0}")]
    Link(ReliableError),
    /// The system refused.
    #[error("cannot {action}: {source}")]
    Os {
        /// The action that failed.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// A host and an address, as far as they are known.
struct WhereTo<'a>(&'a str, &'a Option<SocketAddr>);

impl fmt::Display for WhereTo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(host, address) = self;
        if !host.is_empty() {
            write!(f, "on {host} ")?;
        }
        match address {
            Some(address) => write!(f, "over UDP at {address}"),
            None => f.write_str("over UDP at no known address"),
        }
    }
}
