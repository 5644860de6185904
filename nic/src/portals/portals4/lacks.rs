//! Features that Portals 4 lacks, refused alike by the binding and by [`Narrow`](super::Narrow).

use crate::portals::{AtomicOp, Descriptor, Entry, Managed, NicError, Position, Queue};
use argonet_base::JobRank;

/// How an entry leaves its list by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaves {
    Never,
    /// After its first operation.
    Once,
    /// When less than this is left.
    Below(u64),
}

fn unsupported(rank: JobRank, feature: &'static str) -> NicError {
    NicError::Unsupported { rank, feature }
}

fn invalid(rank: JobRank, what: &'static str) -> NicError {
    NicError::Invalid { rank, what }
}

/// Refuses an entry or its position; else how it leaves.
pub(super) fn entry(rank: JobRank, position: Position, entry: &Entry) -> Result<Leaves, NicError> {
    if position != Position::Tail {
        return Err(unsupported(rank, "place in a match list but its end"));
    }
    if entry.events.start {
        return Err(unsupported(rank, "events at the start of operations"));
    }
    if entry.ack_disable {
        return Err(unsupported(rank, "entries that do not acknowledge"));
    }
    if !entry.puts && !entry.gets {
        let what = "an entry that accepts neither puts nor gets";
        return Err(invalid(rank, what));
    }
    match (entry.threshold, entry.managed) {
        (Some(0), _) => Err(invalid(rank, "an entry with a threshold of 0")),
        (Some(1), _) => Ok(Leaves::Once),
        (Some(_), _) => Err(unsupported(rank, "thresholds of entries other than 1")),
        (None, Managed::Local { min_free_bytes }) if min_free_bytes != 0 => {
            Ok(Leaves::Below(min_free_bytes))
        }
        _ => Ok(Leaves::Never),
    }
}

/// Refuses an entry whose queue is not that of its portal, or that needs one there.
pub(super) fn queue(
    rank: JobRank,
    of_portal: Option<Queue>,
    of_entry: Option<Queue>,
    leaves: Leaves,
) -> Result<(), NicError> {
    if of_entry.is_some() && of_entry != of_portal {
        let feature = "queue of an entry other than that of its portal";
        return Err(unsupported(rank, feature));
    }
    if leaves != Leaves::Never && of_portal.is_none() {
        let feature = "entries that leave by themselves at portals without a queue";
        return Err(unsupported(rank, feature));
    }
    Ok(())
}

/// Refuses a descriptor.
pub(super) fn descriptor(rank: JobRank, options: &Descriptor) -> Result<(), NicError> {
    if options.threshold == Some(0) {
        return Err(invalid(rank, "a descriptor with a threshold of 0"));
    }
    if options.events.start {
        return Err(unsupported(rank, "events at the start of operations"));
    }
    if options.threshold.is_some() {
        return Err(unsupported(rank, "thresholds of descriptors"));
    }
    Ok(())
}

/// Refuses an atomic operation that fetches nothing.
pub(super) fn atomic(rank: JobRank, op: AtomicOp) -> Result<(), NicError> {
    match op {
        AtomicOp::Swap => Err(unsupported(rank, "atomic swap that fetches nothing")),
        _ => Ok(()),
    }
}

/// The error of a message that is longer than the interface carries.
pub(super) fn too_long(rank: JobRank) -> NicError {
    invalid(rank, "a message longer than the interface's limit")
}
