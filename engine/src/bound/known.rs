//! Memory that peers have bound, by their answers.

use super::BoundMemory;
use argonet_base::JobRank;
use parking_lot::RwLock;
use std::collections::HashMap;

/// Answers, by rank and endpoint.
#[derive(Default)]
pub(super) struct Known(RwLock<HashMap<(JobRank, u32), BoundMemory>>);

impl Known {
    /// Records an answer.
    ///
    /// Answers of endpoints without memory are not kept: the peer may bind some soon.
    pub(super) fn note(&self, rank: JobRank, endpoint: u32, bound: BoundMemory) {
        if bound.len > 0 {
            self.0.write().insert((rank, endpoint), bound);
        }
    }

    pub(super) fn get(&self, rank: JobRank, endpoint: u32) -> Option<BoundMemory> {
        self.0.read().get(&(rank, endpoint)).copied()
    }

    /// Forgets what a rank has answered.
    pub(super) fn forget(&self, rank: JobRank) {
        self.0.write().retain(|(its, _), _| *its != rank);
    }

    pub(super) fn clear(&self) {
        self.0.write().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_bound_is_not_kept() {
        let known = Known::default();
        let (rank, bound) = (JobRank(3), BoundMemory { address: 8, len: 1 });
        known.note(rank, 1, BoundMemory::default());
        assert_eq!(known.get(rank, 1), None);
        known.note(rank, 1, bound);
        assert_eq!(known.get(rank, 1), Some(bound));
        assert_eq!(known.get(rank, 0), None);
        known.note(JobRank(4), 1, bound);
        known.forget(rank);
        assert_eq!(known.get(rank, 1), None);
        assert_eq!(known.get(JobRank(4), 1), Some(bound));
        known.note(rank, 1, bound);
        known.clear();
        assert_eq!(known.get(rank, 1), None);
    }
}
