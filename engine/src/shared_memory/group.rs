//! Teams that have a slot.

use argonet_base::JobRank;
use argonet_conduit::SharedCells;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;

/// Slots that no team gets: those of [`Groups`], and the world's.
pub(crate) const KEPT_SLOTS: u32 = 4;

/// The slot of the world as a team.
pub(crate) const WORLD_SLOT: u32 = 3;

/// Most members of a group.
///
/// Each member reads the cells of all. In a larger group that takes longer than the log2(n) rounds
/// of a dissemination by messages.
pub(crate) const MOST_MEMBERS: u32 = 64;

/// The groups of all ranks.
///
/// Kinds of calls that do not count for each other have one each.
pub(crate) struct Groups {
    /// Barriers that wait.
    pub(crate) barrier: Group,
    /// Other operations of the Rust API.
    pub(crate) passes: Group,
    /// The barrier with names.
    pub(crate) named: Group,
}

impl Groups {
    /// The groups of a job of `size` ranks that all share memory; `None` where there are too many,
    /// or only one.
    pub(crate) fn new(rank: JobRank, size: u32) -> Option<Self> {
        let group = |slot| Group::new(slot, rank.0, (0..size).map(JobRank).collect(), 0);
        (2..=MOST_MEMBERS).contains(&size).then(|| Self {
            barrier: group(0),
            passes: group(1),
            named: group(2),
        })
    }
}

/// A team that has a slot, as one of its members sees it.
///
/// Only the thread that has the call lock changes `next`, and other threads load it as a hint.
/// Relaxed: `call_lock` orders its changes in PAR, and the program orders its threads in other
/// modes. Any thread that looks for room stores `known`, with Release after it has loaded the
/// members' counts with Acquire; the Acquire load before a cell is written anew pairs with that, so
/// that the members' reads of the old cell come before. A `known` that is too small costs another
/// look.
pub(crate) struct Group {
    pub(crate) slot: u32,
    /// This member.
    pub(crate) rank: u32,
    /// The process of each member.
    pub(crate) members: Box<[JobRank]>,
    /// One thread of the rank at a time, in PAR mode.
    pub(crate) call_lock: Mutex<()>,
    /// Number of the next call.
    next: AtomicU64,
    /// Calls that all members are known to have finished.
    known: AtomicU64,
}

impl Group {
    /// A group whose calls are numbered from `first` on, which is more than any member's last
    /// number in the slot.
    pub(crate) fn new(slot: u32, rank: u32, members: Box<[JobRank]>, first: u64) -> Self {
        Self {
            slot,
            rank,
            members,
            call_lock: Mutex::default(),
            next: AtomicU64::new(first),
            known: AtomicU64::new(first),
        }
    }

    /// Number of the next call.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// A call has been entered.
    #[inline(always)]
    pub(crate) fn entered(&self, call: u64) {
        self.next.store(call + 1, Ordering::Relaxed);
    }

    /// Whether the call's cell may be written, as far as this member knows.
    #[inline(always)]
    pub(crate) fn has_room(&self, call: u64) -> bool {
        self.known.load(Ordering::Acquire) + SharedCells::DEPTH > call
    }

    /// All members have finished so many calls.
    #[inline(always)]
    pub(crate) fn knows(&self, finished: u64) {
        self.known.store(finished, Ordering::Release);
    }

    /// Reads how many calls the members have finished; returns whether the call's cell may be
    /// written.
    #[cold]
    pub(crate) fn look_for_room(&self, cells: SharedCells<'_>, call: u64) -> bool {
        let done = self.members.iter().map(|&rank| cells.done(self.slot, rank));
        self.knows(done.min().unwrap_or(0));
        self.has_room(call)
    }

    /// The processes of the other members.
    #[inline(always)]
    pub(crate) fn others(&self) -> impl Iterator<Item = JobRank> + '_ {
        let own = self.rank as usize;
        let (before, after) = (&self.members[..own], &self.members[own + 1..]);
        before.iter().chain(after).copied()
    }
}
