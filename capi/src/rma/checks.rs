//! Mistakes of C.
//!
//! Sizes of values are always checked, the rest in debug builds.

use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_engine::{Direction, Side, Transfer};

use crate::flags::{COPY, IMMEDIATE, PEER_DISPOSITION, SELF_DISPOSITION};
use crate::job::{Job, fatal};
use crate::rma::Operation;

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
    let Transfer { target, side, len } = transfer;
    let local = match side {
        Side::Put(src) => src.addr(),
        Side::Get(dst) => dst.addr(),
    };
    let Some(remote) = job.joined.engine.address_here(target, len) else {
        return;
    };
    if local.abs_diff(remote) < len {
        fatal(
            operation.function,
            &format!(
                "the {len} bytes at {local:#x} and those at {remote:#x}, of rank {}, overlap",
                target.rank()
            ),
        );
    }
}
