//! The ranks that the job has lost, as polls read them.
//!
//! One process of a host declares losses. On one host that is the guardian; over several hosts the
//! root of the tree of agents numbers the losses that guardians find, and each agent declares them
//! to its ranks in that order. A rank is declared lost once its process has ended, or once the root
//! has given up its host. In both cases it doesn't write to memory that a survivor maps.

use std::sync::Arc;

use argonet_base::JobRank;

use crate::fence;
use crate::page::{Control, UNDECLARED};

/// The ranks that the job has lost, in the order in which they were declared.
///
/// One load of a cache line that ranks write only when they agree or end.
#[derive(Debug, Clone, Default)]
pub struct Losses(Option<Arc<Control>>);

impl Losses {
    pub(crate) fn new(control: &Arc<Control>) -> Self {
        Self(Some(Arc::clone(control)))
    }

    /// Number of ranks that are declared lost; it only grows.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        let control = self.0.as_ref();
        control.map_or(0, |control| control.job().losses())
    }

    /// The rank that was declared lost after `n` others; `None` if there are no more than `n`.
    #[must_use]
    pub fn get(&self, n: u32) -> Option<JobRank> {
        let control = self.0.as_ref().filter(|_| n < self.count())?;
        let mut ranks = (0..control.size()).map(JobRank);
        ranks.find(|&rank| control.rank_page(rank).lost() == Some(n + 1))
    }

    /// Whether `rank` is declared lost.
    ///
    /// False where there is no such rank.
    #[must_use]
    pub fn is_lost(&self, rank: JobRank) -> bool {
        let control = self.0.as_ref().filter(|control| rank.0 < control.size());
        control.is_some_and(|control| is_among(control, rank, self.count()))
    }
}

/// Whether `rank` is one of the first `count` that were declared lost.
pub(crate) fn is_among(control: &Control, rank: JobRank, count: u32) -> bool {
    let order = control.rank_page(rank).lost();
    order.is_some_and(|order| order <= count)
}

/// Declares that `rank` is lost, unless it is so already.
///
/// One process of a host only.
pub(crate) fn declare(control: &Control, rank: JobRank) {
    let page = control.rank_page(rank);
    if page.lost().is_some_and(|order| order != UNDECLARED) {
        return;
    }
    let order = control.job().losses() + 1;
    page.set_lost(order);
    control.job().set_losses(order);
    fence::wake_all(&control.job().fence);
}

/// Notes as the guardian that `rank`, whose process has ended, is lost: declares it, or leaves that
/// to the host's agent in a job over several hosts.
pub(crate) fn found_by_guardian(control: &Control, rank: JobRank) {
    match control.is_whole_job() {
        true => declare(control, rank),
        false => control.rank_page(rank).set_lost(UNDECLARED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::make_job;
    use argonet_settings::Settings;

    #[test]
    fn losses_are_known_in_the_order_in_which_they_were_declared() {
        let (_files, control) = make_job(4, &Settings::default()).unwrap();
        let control = Arc::new(control);
        let losses = Losses::new(&control);
        assert_eq!((losses.count(), losses.get(0)), (0, None));
        for rank in [2, 0, 2] {
            declare(&control, JobRank(rank));
        }
        assert_eq!(losses.count(), 2);
        let known = [0, 1, 2].map(|n| losses.get(n));
        assert_eq!(known, [Some(JobRank(2)), Some(JobRank(0)), None]);
        let lost = [0, 1, 2, 3, 4].map(|rank| losses.is_lost(JobRank(rank)));
        assert_eq!(lost, [true, false, true, false, false]);
    }

    #[test]
    fn a_rank_is_no_loss_before_the_count_says_so() {
        let (_files, control) = make_job(2, &Settings::default()).unwrap();
        let control = Arc::new(control);
        control.rank_page(JobRank(1)).set_lost(1);
        let losses = Losses::new(&control);
        assert!(!losses.is_lost(JobRank(1)));
        assert_eq!(losses.get(0), None);
    }

    #[test]
    fn a_job_that_knows_of_no_losses_has_none() {
        let losses = Losses::default();
        assert_eq!((losses.count(), losses.get(0)), (0, None));
        assert!(!losses.is_lost(JobRank(0)));
    }
}
