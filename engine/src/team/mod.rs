//! Teams: ordered sets of endpoints, in which collective operations take place.

mod entry;
mod error;
mod form;
mod make;
mod members;

pub use entry::{Choice, Terms};
pub use error::TeamError;
pub(super) use make::Making;
pub use make::OwnedTeam;
pub use members::Members;

use super::collective::SharedTeam;
use super::named::TeamBarrier;
use argonet_base::JobRank;
use std::sync::{Arc, OnceLock};

/// The name of a team in messages, the same at all members.
///
/// No two teams that exist at the same time have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TeamKey(pub u64);

impl TeamKey {
    /// The team of all ranks.
    pub const WORLD: Self = Self(0);

    /// The team in which a process's endpoint `leader` has rank 0, as the process counts teams that
    /// it has led from 1 on.
    #[must_use]
    pub fn led_by(leader: JobRank, count: u32) -> Self {
        Self(u64::from(leader.0) << 32 | u64::from(count))
    }
}

/// A team as one of its members sees it.
#[derive(Clone, Debug)]
pub struct Team {
    /// Its name in messages.
    pub key: TeamKey,
    /// Its members.
    pub members: Arc<Members>,
    /// This member's rank in it.
    pub rank: u32,
    /// Its slot of cells, if it has one: set before its first call.
    pub(super) shared: OnceLock<Arc<SharedTeam>>,
    /// Its barrier with names, if it is not the team of all ranks.
    pub(super) named: TeamBarrier,
}

impl Team {
    /// The team of a key and its members, among which this one has `rank`.
    #[must_use]
    pub fn new(key: TeamKey, members: Arc<Members>, rank: u32) -> Self {
        Self {
            key,
            members,
            rank,
            shared: OnceLock::new(),
            named: TeamBarrier::default(),
        }
    }

    /// All ranks of a job.
    #[must_use]
    pub fn world(rank: JobRank, size: u32) -> Self {
        Self::new(TeamKey::WORLD, Arc::new(Members::world(size)), rank.0)
    }

    /// How many members it has.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.members.size()
    }

    /// The process of a member; the rank is below [`size`](Self::size).
    #[inline]
    #[must_use]
    pub fn job_rank(&self, rank: u32) -> JobRank {
        self.members.job_rank(rank)
    }
}
