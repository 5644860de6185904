//! The other side of an operation, in words.

use crate::job::Team;

/// The most bytes that a name takes: two numbers of ten digits among the words.
pub(super) const NAME_BYTES: usize = 64;

/// A rank of a team.
///
/// Without a team, as operations of GASNet-1 have it, a rank of the job.
///
/// # Safety
/// `tm` is null or leads to a team.
pub(super) unsafe fn named(tm: *const Team, rank: u32) -> String {
    // SAFETY: this function's contract.
    match unsafe { tm.as_ref() } {
        Some(team) if rank < team.size() && team.remote_endpoint(rank) != 0 => {
            format!("rank {rank}, endpoint {}", team.remote_endpoint(rank))
        }
        Some(team) => format!("rank {rank} of {}", team.size()),
        None => format!("rank {rank}"),
    }
}
