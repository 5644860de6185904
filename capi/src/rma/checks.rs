//! Mistakes of C.
//!
//! Sizes of values are always checked, the rest in debug builds.

use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_conduit::Conduit;
use argonet_engine::{Engine, FarPlace, Transfer};

use crate::flags::{COPY, IMMEDIATE, PEER_DISPOSITION, SELF_DISPOSITION};
use crate::job::{Job, fatal};
use crate::rma::Operation;
use crate::rma::operation::Direction;

const NEVER_SELF: u32 = number32("GEX_FLAG_PEER_NEVER_SELF");
const NEVER_NEIGHBOR: u32 = number32("GEX_FLAG_PEER_NEVER_NBRHD");
const ALL: u32 = IMMEDIATE | NEVER_SELF | NEVER_NEIGHBOR | SELF_DISPOSITION | PEER_DISPOSITION;

#[inline]
pub(crate) fn value_size(function: &str, bytes: usize) {
    if !(1..=8).contains(&bytes) {
        fatal(
            function,
            &format!("nbytes is {bytes}; a value has 1 to 8 bytes"),
        );
    }
}

/// Unknown flags, and assertions that are not true.
pub(super) fn flags(operation: &Operation<'_>, job: &Job) {
    let Operation {
        function, flags, ..
    } = *operation;
    let JobRank(rank) = operation.to();
    let wrong = |why: &str| fatal(function, &format!("flags are {flags:#x}: {why}"));
    let (known, what) = match operation.direction {
        Direction::Put => (ALL | COPY, "put"),
        Direction::Get => (ALL, "get"),
    };
    if flags & !known != 0 {
        wrong(&format!("not all of them are for {what}"));
    }
    for disposition in [SELF_DISPOSITION, PEER_DISPOSITION] {
        if (flags & disposition).count_ones() > 1 {
            wrong("GEX_FLAG_*_SEG_UNKNOWN, SOME, BOUND and OFFSET exclude each other");
        }
    }
    if flags & COPY == COPY {
        wrong("GEX_FLAG_LC_COPY_YES and GEX_FLAG_LC_COPY_NO exclude each other");
    }
    let never = flags & (NEVER_SELF | NEVER_NEIGHBOR) != 0;
    if never && rank == job.joined.engine.rank().0 {
        wrong(&format!(
            "rank {rank} is this process, against GEX_FLAG_PEER_NEVER_*"
        ));
    }
    if flags & NEVER_NEIGHBOR != 0 && job.neighbors.contains(&rank) {
        wrong(&format!(
            "rank {rank} is a neighbor, against GEX_FLAG_PEER_NEVER_NBRHD"
        ));
    }
}

/// Source and destination that lie over each other.
pub(super) fn overlap(operation: &Operation<'_>, job: &Job, transfer: Transfer) {
    let (local, rank, offset, len) = match transfer {
        Transfer::Put {
            src,
            rank,
            offset,
            len,
        } => (src.addr(), rank, offset, len),
        Transfer::Get {
            dst,
            rank,
            offset,
            len,
        } => (dst.addr(), rank, offset, len),
    };
    let Some(remote) = mapped(&job.joined.engine, rank, offset, len) else {
        return;
    };
    if local < remote + len && remote < local + len {
        fatal(
            operation.function,
            &format!(
                "the {len} bytes at {local:#x} and those at {remote:#x}, of rank {rank}, overlap"
            ),
        );
    }
}

/// The same of memory that is not in an attached segment, where it is this process's.
pub(super) fn overlap_of_own(operation: &Operation<'_>, job: &Job, far: FarPlace, local: *mut u8) {
    if far.rank != job.joined.engine.rank() {
        return;
    }
    let (local, remote, len) = (local.addr() as u64, far.address, operation.bytes as u64);
    if local.abs_diff(remote) < len {
        fatal(
            operation.function,
            &format!(
                "the {len} bytes at {local:#x} and those at {remote:#x}, of rank {}, overlap",
                far.rank
            ),
        );
    }
}

/// Where this process has what an operation reaches.
fn mapped<C: Conduit>(
    engine: &Engine<C>,
    rank: JobRank,
    offset: argonet_base::SegmentOffset,
    len: usize,
) -> Option<usize> {
    let place = engine.directory().resolve(rank, offset, len)?;
    Some(place.addr().get())
}
