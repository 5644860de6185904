//! The core that a rank runs on when the launcher is asked to pin ranks.

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::BootError;
use argonet_base::JobRank;

/// The cores that this process may use, in ascending order; never empty.
///
/// # Errors
/// What the system refuses.
pub fn allowed_cores() -> Result<Vec<usize>, BootError> {
    let mask =
        sched_getaffinity(None).map_err(|e| BootError::system("reading the affinity mask", e))?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&core| mask.is_set(core))
        .collect();
    match cores.is_empty() {
        true => Err(BootError::system(
            "finding a core",
            std::io::Error::other("the affinity mask is empty"),
        )),
        false => Ok(cores),
    }
}

/// The mask that pins `rank` to the (rank modulo number)-th of `cores`.
#[must_use]
pub(crate) fn mask_of(rank: JobRank, cores: &[usize]) -> CpuSet {
    let mut mask = CpuSet::new();
    if let Some(&core) = cores.get(rank.index() % cores.len().max(1)) {
        mask.set(core);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_go_round_the_allowed_cores() {
        let cores = [1, 5, 6];
        for (rank, core) in [(0, 1), (1, 5), (2, 6), (3, 1), (7, 5)] {
            let mask = mask_of(JobRank(rank), &cores);
            assert!(mask.is_set(core) && mask.count() == 1, "rank {rank}");
        }
    }
}
