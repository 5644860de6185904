//! Errors of events.

use thiserror::Error;

use crate::{Category, Event};

/// No handle is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{in_use} of at most {limit} handles are in use: synchronize events before starting more operations"
)]
pub struct Exhausted {
    /// The most handles that the table gives out.
    pub limit: u32,
    /// The handles that are in use, or free in the cache of another thread.
    pub in_use: u32,
}

/// Why a call on the handle table was refused.
///
/// A refused call has changed nothing, but for array tests, which keep what they had already
/// synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventError {
    /// The operation is over, or never was: the generation is not that of a living one.
    #[error("{0} is stale: its operation has been synchronized already")]
    Stale(Event),
    /// The value was never given out: it names no slot of the table.
    #[error("{0} was never given out by this table")]
    Unknown(Event),
    /// The value is [`Event::NO_OP`], a leaf where a root is needed, or a root where a token is.
    #[error("{0} is not of the kind that this call takes")]
    WrongKind(Event),
    /// More completions were reported than are pending: a report was repeated or invented.
    #[error("{event}: {count} completions reported, only {pending} pending")]
    TooManyCompletions {
        /// The operation, or the token of the implicit one.
        event: Event,
        /// The completions that were reported.
        count: u32,
        /// The completions that were pending.
        pending: u32,
    },
    /// Completions were to be added to an operation that has none pending; another thread may have
    /// synchronized it already.
    #[error("{0} has no pending completions, none can be added")]
    AlreadyComplete(Event),
    /// An operation with no completions has nothing to wait for and is [`Event::DONE`].
    #[error("an operation without completions takes no handle")]
    NoCompletions,
    /// More completions than a slot can count; wait for some to complete before more are added.
    #[error("{count} completions at once, at most {limit} can be pending")]
    CompletionLimit {
        /// The completions that there would have been.
        count: u64,
        /// The most that can be counted.
        limit: u32,
    },
    /// The root has no leaf of this category.
    #[error("{event} has no leaf event of category {category:?}")]
    NoLeaf {
        /// The root.
        event: Event,
        /// The category asked for.
        category: Category,
    },
    /// An access region was begun, or implicit operations were tested, inside an access region.
    #[error("not allowed inside an access region: end the region first")]
    RegionOpen,
    /// An access region was ended that had not been begun by this thread.
    #[error("no access region has been begun by this thread")]
    NoRegion,
    /// No handle is free.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}
