//! The error of the Rust API.

use crate::global_array::DistributionError;
use crate::rpc::RpcError;
use crate::section::SectionError;
use argonet_am::AmError;
use argonet_base::Rank;
use argonet_boot::BootError;
use argonet_engine::{HeapError, OpError, TeamError};
use argonet_segment::SegmentError;
use argonet_start::StartError;
use core::fmt;

/// The error of a call of this library.
///
/// Each message names the rank, the expected value and what to change.
///
/// ```
/// use argonet::{AmError, Error, Rank, SharedArray};
/// # let world = argonet::World::init().unwrap();
/// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
/// let nowhere = v.ptr(Rank(world.size()), 0);
/// match world.put_value(nowhere, 1) {
///     Err(Error::Am(AmError::NoSuchRank { .. })) => {}
///     other => panic!("{other:?}"),
/// }
/// ```
/// Its `Debug` form is the message, too, as `fn main() -> Result<()>` prints that.
/// [`run`](crate::run()) prints an error with the rank, and ends the job.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job does not start, or the rank cannot join it.
    #[error(transparent)]
    Start(StartError),
    /// The launcher, or the bootstrap of the job's ranks.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// Reserving or mapping a segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// An active message, or a put, get or atomic operation that is refused where it starts.
    #[error(transparent)]
    Am(#[from] AmError),
    /// An event or a handle.
    #[error(transparent)]
    Op(OpError),
    /// Which elements a non-contiguous operation is to move.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// How a global array is spread, or which of its elements a call means.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// The halo of a global array is exchanged after an exchange has failed.
    #[error(
        "rank {rank}: an exchange of this array's halo has failed before, so nothing is known of what adjacent ranks have sent; go on with its own elements alone, or with another array"
    )]
    HaloBroken {
        /// The rank.
        rank: Rank,
    },
    /// A global slice and the values for it differ in length.
    #[error(
        "{values} values for a global slice of {slice} elements on rank {rank}; give as many as it has, or a part of it"
    )]
    SliceLength {
        /// The rank whose memory the slice is.
        rank: Rank,
        /// Its elements.
        slice: usize,
        /// The values given.
        values: usize,
    },
    /// The word of a signal is not where it has to be.
    #[error(
        "the word of the signal is on rank {word} and must be on rank {expected}: a put signals on the rank of its values, and a rank waits for words of its own"
    )]
    SignalElsewhere {
        /// The rank of the word.
        word: Rank,
        /// The rank that it should be on.
        expected: Rank,
    },
    /// There is no memory for the values of a get.
    #[error("rank {rank}: no memory for {bytes} bytes of a get; read the slice in parts")]
    NoMemory {
        /// The rank that reads.
        rank: Rank,
        /// The size of the values.
        bytes: usize,
    },
    /// The system gives no thread.
    #[error(
        "rank {rank}: no thread can be started: {cause}; the limit of processes (`ulimit -u`) may be too low"
    )]
    Thread {
        /// The rank.
        rank: Rank,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// The symmetric heap is full.
    #[error("rank {rank}: {cause}")]
    Heap {
        /// The rank.
        rank: Rank,
        /// The error of the heap.
        cause: HeapError,
    },
    /// A remote procedure call failed.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// Ranks called a collective operation with different arguments.
    #[error(
        "rank {rank}: {what} is collective, but the ranks' arguments differ; all ranks must call it in the same order with the same arguments"
    )]
    Mismatch {
        /// The rank that found the difference.
        rank: Rank,
        /// Which operation.
        what: &'static str,
    },
    /// A team could not be made.
    #[error("rank {rank}: {cause}")]
    Team {
        /// The rank.
        rank: Rank,
        /// The reason.
        cause: TeamError,
    },
    /// A collective operation was given up because another rank could not do its part.
    #[error(
        "rank {rank}: {what} failed on another rank and was given up; that rank reports the reason"
    )]
    ElsewhereFailed {
        /// The rank that reports this; it could have done its part.
        rank: Rank,
        /// Which operation.
        what: &'static str,
    },
    /// Two handlers or functions have one name.
    #[error("two handlers or functions are registered under the name `{name}`")]
    DuplicateName {
        /// The name.
        name: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<StartError> for Error {
    /// Causes that other calls report, too, become the same error here.
    fn from(error: StartError) -> Self {
        match error {
            StartError::Boot(error) => Error::Boot(error),
            StartError::Segment(error) => Error::Segment(error),
            StartError::Am(error) => Error::Am(error),
            StartError::Op(error) => Error::Op(error),
            StartError::Mismatch { rank, what } => Error::Mismatch { rank, what },
            StartError::ElsewhereFailed { rank, what } => Error::ElsewhereFailed { rank, what },
            error => Error::Start(error),
        }
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Self {
        match error {
            OpError::Am(error) => Error::Am(error),
            error => Error::Op(error),
        }
    }
}

/// Result of this library's calls.
///
/// ```
/// use argonet::{Reduction, Result, World};
/// fn sum_of_ranks(world: &World) -> Result<u32> {
///     let mut ranks = [world.rank().0];
///     world.reduce_all(Reduction::Sum, &mut ranks)?;
///     Ok(ranks[0])
/// }
/// assert_eq!(argonet::run(|world| sum_of_ranks(world)), 0);
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether a rank is lost, which a program may survive.
pub(crate) fn is_loss(error: &Error) -> bool {
    matches!(error, Error::Am(AmError::PeerLost { .. }))
}

/// Keeps a failure for a later call, unless there is one before it; losses give way to others.
pub(crate) fn keep_failure(outcome: &mut Result<()>, error: Error) {
    match outcome {
        Err(first) if !is_loss(first) || is_loss(&error) => {}
        _ => *outcome = Err(error),
    }
}
