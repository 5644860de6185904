//! What the agents of a job over several hosts know of the ranks that are left.

use argonet_base::JobRank;

use crate::page::{Control, RankState};

/// The common state of some ranks, those of a host, of a subtree, or of the job, without those that
/// have finalized or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Whether their clients accept losses.
    pub(crate) accepts: bool,
    /// The last round of agreement that all have entered.
    pub(crate) entered: u32,
    /// Number of losses that all have acknowledged.
    pub(crate) acknowledged: u32,
    /// The most losses that one of them has acknowledged, and that rank.
    pub(crate) furthest: (u32, JobRank),
}

impl Tally {
    /// That of ranks of which nothing has come.
    pub(crate) const UNKNOWN: Self = Self {
        accepts: false,
        entered: 0,
        acknowledged: 0,
        furthest: (0, JobRank(0)),
    };

    /// That of no rank.
    pub(crate) const OF_NO_RANKS: Self = Self {
        accepts: true,
        entered: u32::MAX,
        acknowledged: u32::MAX,
        furthest: (0, JobRank(0)),
    };

    /// The round that all have entered; `None` if there are none.
    pub(crate) fn round(&self) -> Option<u32> {
        Some(self.entered).filter(|&round| round != Self::OF_NO_RANKS.entered)
    }

    /// That of these and of other ranks.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            accepts: self.accepts && other.accepts,
            entered: self.entered.min(other.entered),
            acknowledged: self.acknowledged.min(other.acknowledged),
            furthest: match other.furthest.0 > self.furthest.0 {
                true => other.furthest,
                false => self.furthest,
            },
        }
    }

    /// Whether it may replace `before`: what ranks have done stays, and ranks only become fewer.
    pub(crate) fn follows(&self, before: &Self) -> bool {
        self.accepts >= before.accepts
            && self.entered >= before.entered
            && self.acknowledged >= before.acknowledged
    }

    /// That of the ranks of this host that have not ended.
    pub(crate) fn of_host(control: &Control, has_ended: impl Fn(JobRank) -> bool) -> Self {
        let of_rank = |rank| {
            let page = control.rank_page(rank);
            let acknowledged = page.acknowledged();
            let own = Self {
                accepts: page.accepts_losses(),
                entered: page.agreed(),
                acknowledged,
                furthest: match acknowledged {
                    0 => Self::OF_NO_RANKS.furthest,
                    _ => (acknowledged, rank),
                },
            };
            // Read last, so that `own` has all that the rank did before it finalized.
            (page.state() <= RankState::Running && !has_ended(rank)).then_some(own)
        };
        let left = control.host_ranks().filter_map(of_rank);
        left.fold(Self::OF_NO_RANKS, Self::with)
    }
}
