//! Errors of making teams.

use super::super::OpError;
use argonet_am::{AmError, ENDPOINTS};
use argonet_base::JobRank;

/// Why no team was made.
///
/// Ranks are those of the parent team where nothing else is said.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// Talking to the other members.
    #[error(transparent)]
    Op(#[from] OpError),
    /// Not all members called the same.
    #[error(
        "rank {one} of the parent team splits it while rank {other} creates teams from lists; all its ranks must call the same, in the same order"
    )]
    DifferentCalls {
        /// A rank that splits.
        one: u32,
        /// A rank that creates.
        other: u32,
    },
    /// Terms that must be the same on all members differ.
    #[error(
        "{what} is {ones:#x} on rank {one} of the parent team and {others:#x} on rank {other}; it must be the same on all ranks that make one team"
    )]
    DifferentTerms {
        /// The term.
        what: &'static str,
        /// A rank.
        one: u32,
        /// Its value there.
        ones: u64,
        /// Another.
        other: u32,
        /// Its value on that one.
        others: u64,
    },
    /// A member of the list, whose process makes another team with it.
    #[error(
        "the list names endpoint {endpoint} of rank {process} of the job, which rank {other} of the parent team names in another list; lists must be the same or have no endpoint in common"
    )]
    Overlap {
        /// The process.
        process: JobRank,
        /// The index of the endpoint.
        endpoint: u32,
        /// The rank with another list.
        other: u32,
    },
    /// A member of the list, whose process does not make the team.
    #[error(
        "the list names endpoint {endpoint} of rank {process} of the job, where no caller gives the same list; all processes that a list names must give it"
    )]
    Absent {
        /// The process.
        process: JobRank,
        /// The index of the endpoint.
        endpoint: u32,
    },
    /// Another rank has found something wrong with its own arguments.
    #[error(
        "the list of rank {other} of the parent team was refused; that rank reports the reason"
    )]
    WrongElsewhere {
        /// The rank.
        other: u32,
    },
    /// The list names an endpoint twice.
    #[error("the list names endpoint {endpoint} of rank {process} of the job twice")]
    Twice {
        /// The process.
        process: JobRank,
        /// The index of the endpoint.
        endpoint: u32,
    },
    /// The list names a process that does not exist.
    #[error("the list names rank {process}, and there are {size} ranks, from 0")]
    NoSuchProcess {
        /// The rank in the job.
        process: JobRank,
        /// How many there are.
        size: u32,
    },
    /// The list names an endpoint that cannot exist.
    #[error(
        "the list names endpoint {endpoint} of rank {process}; a process has at most {ENDPOINTS} endpoints"
    )]
    NoSuchEndpoint {
        /// The process.
        process: JobRank,
        /// The index of the endpoint.
        endpoint: u32,
    },
    /// A member sent an entry that this version does not send.
    #[error(
        "the entry of rank {other} of the parent team cannot be read; its version of argonet differs"
    )]
    Unreadable {
        /// The rank.
        other: u32,
    },
}

impl From<AmError> for TeamError {
    fn from(error: AmError) -> Self {
        Self::Op(error.into())
    }
}
