//! The error of joining a job.

use argonet_am::AmError;
use argonet_base::Rank;
use argonet_boot::BootError;
use argonet_engine::OpError;
use argonet_segment::SegmentError;
use argonet_settings::SettingsError;
use core::fmt;

/// Why a rank cannot join its job, or attach its segment.
///
/// Each message names the rank, the expected value and what to change.
///
/// Its `Debug` form is the message, too.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Starting the job.
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
    /// A file or a setting of collective operations cannot be used.
    #[error("rank {rank}: {setting} is \"{value}\": {cause}")]
    Tuning {
        /// The rank.
        rank: Rank,
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        cause: String,
    },
    /// Ranks registered different handlers.
    #[error(
        "rank {rank} registered other handlers or functions than rank 0 ({count} here): do all ranks run the same program, and register the same names?"
    )]
    DifferentHandlers {
        /// The rank that differs.
        rank: Rank,
        /// Names registered there.
        count: usize,
    },
    /// A second world in one process.
    #[error(
        "rank {rank}: this process has a world already, or had one; a process joins one job once"
    )]
    SecondWorld {
        /// The rank.
        rank: Rank,
    },
    /// Shared memory for the rings could not be mapped.
    #[error("rank {rank}: the rings of {ranks} ranks could not be mapped: {cause}")]
    Rings {
        /// The rank.
        rank: Rank,
        /// Ranks of the job.
        ranks: u32,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The network between hosts, or between neighborhoods, cannot be used.
    #[error("rank {rank}: the conduit {conduit} cannot be set up: {cause}")]
    Network {
        /// The rank.
        rank: Rank,
        /// Which conduit.
        conduit: &'static str,
        /// Why not, and what to change.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file for traces or statistics cannot be used.
    #[error(transparent)]
    Trace(#[from] argonet_trace::TraceError),
    /// Settings that cannot be used; one line for each variable.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A single-valued setting that the user gave to two ranks in different ways.
    #[error(
        "rank {rank}: {name} is {own} here and {theirs} on rank {other}; it must be the same on all ranks"
    )]
    DifferentSettings {
        /// The rank that differs.
        rank: Rank,
        /// The variable.
        name: &'static str,
        /// Its value there.
        own: String,
        /// The rank that it was compared with.
        other: Rank,
        /// The value on that rank.
        theirs: String,
    },
    /// The job is to go on without ranks that it loses, and the conduit cannot.
    #[error(
        "rank {rank}: the conduit {conduit} cannot go on without a rank that is lost; choose another, or leave out --on-rank-lost=continue (ARGONET_ON_RANK_LOST)"
    )]
    CannotGoOn {
        /// The rank.
        rank: Rank,
        /// Which conduit.
        conduit: &'static str,
    },
    /// A program asked for something that is not allowed.
    #[error("{name}={value} is not allowed: {allowed}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<OpError> for StartError {
    fn from(error: OpError) -> Self {
        match error {
            OpError::Am(error) => StartError::Am(error),
            error => StartError::Op(error),
        }
    }
}

/// Result of this crate's calls.
pub type Result<T, E = StartError> = std::result::Result<T, E>;
