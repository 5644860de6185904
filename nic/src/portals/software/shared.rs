//! One rank's view of the interfaces of its host.

use super::faults::Faults;
use super::memory::Memory;
use super::region::Region;
use argonet_base::JobRank;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::fd::OwnedFd;

/// Which of an interface's counts.
pub(super) const DROPS: u64 = 0;
pub(super) const EVENTS_DROPPED: u64 = 1;
pub(super) const RECOVERIES: u64 = 2;

/// State that every part of the interface works with.
pub(super) struct Shared {
    pub(super) region: Region,
    pub(super) memory: Memory,
    /// Which of the ranks that share the file this is.
    pub(super) place: u32,
    /// How many ranks the job has, if operations of other hosts come, too; else 0.
    pub(super) reach: u32,
    /// Written when threads of this rank are woken; only of a rank that shares its file with no
    /// other.
    pub(super) wakeup: Option<OwnedFd>,
    pub(super) faults: Faults,
    /// Which places for operations under way are taken by threads of this process, a bit each.
    pub(super) slots: AtomicU64,
    pub(super) direct: AtomicU64,
    pub(super) matched: AtomicU64,
    /// Threads of this process that sleep, or are about to.
    ///
    /// Changed under the lock of its interface.
    pub(super) sleepers: AtomicU32,
}

impl Shared {
    #[inline(always)]
    pub(super) fn ranks(&self) -> u32 {
        self.region.layout.config.ranks
    }

    #[inline(always)]
    pub(super) fn rank_at(&self, place: u32) -> JobRank {
        JobRank(self.region.layout.config.first.0.wrapping_add(place))
    }

    /// The rank of this process.
    #[inline(always)]
    pub(super) fn rank(&self) -> JobRank {
        self.rank_at(self.place)
    }

    /// Which of those that share the file, if it is one.
    #[inline(always)]
    pub(super) fn place_of(&self, rank: JobRank) -> Option<u32> {
        let place = rank.0.wrapping_sub(self.region.layout.config.first.0);
        (place < self.ranks()).then_some(place)
    }

    /// The place of a rank whose operations come, if it is one: outside of the file that of a rank
    /// of another host, modulo 2^32.
    pub(super) fn source_place(&self, rank: JobRank) -> Option<u32> {
        if rank.0 < self.reach {
            return Some(rank.0.wrapping_sub(self.region.layout.config.first.0));
        }
        self.place_of(rank)
    }

    /// A step that a fault may make the last.
    #[inline(always)]
    pub(super) fn step(&self) {
        self.faults.step();
    }
}
