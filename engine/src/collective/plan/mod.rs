//! Which steps a member takes in a collective operation: pure functions of kind, lengths, place in
//! the team and neighborhoods.
//!
//! Members of one neighborhood reach each other's memory; between neighborhoods is a network. So
//! most operations have two levels: inside the neighborhoods, and between one member of each,
//! its *leader*.

mod barrier;
mod columns;
mod direct;
mod envoys;
mod exchange;
mod gather_all;
mod halving;
mod hoods;
mod parts;
mod reduce;
mod ring;
mod rooted;
mod scan;
mod tree;
mod tuning;

pub(super) use exchange::exchange_v;
pub use hoods::Hoods;
pub(super) use parts::{parts, pieces};
pub use tuning::TREES;
pub use tuning::{Tuning, radix_of, tree_of};

use super::call::{AllSync, Kind};
use super::schedule::Schedule;
pub(super) use super::schedule::{Area, Range};

/// A member's place.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Its rank.
    pub rank: u32,
    /// The neighborhoods.
    pub hoods: &'a Hoods,
    /// Limits.
    pub tuning: &'a Tuning,
}

impl Situation<'_> {
    /// Members.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.hoods.size()
    }
}

/// The call that is planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// The operation.
    pub kind: Kind,
    /// The root; 0 where there is none.
    pub root: u32,
    /// Bytes of an element.
    pub unit: usize,
    /// Elements of a block.
    pub count: usize,
    /// Whether operands stay in the order of ranks.
    pub ordered: bool,
    /// Whether it synchronizes all, even where the data does not make it.
    pub all_sync: AllSync,
}

impl Task {
    /// Bytes of a block.
    #[must_use]
    pub fn block(&self) -> usize {
        self.unit * self.count
    }

    /// A whole block of an area.
    fn of(&self, area: Area) -> Range {
        Range::new(area, 0, self.block())
    }

    /// The block of a rank in an area that has one for each.
    fn block_of(&self, area: Area, rank: u32) -> Range {
        Range::new(area, rank as usize * self.block(), self.block())
    }
}

/// Makes the steps of a member.
pub fn plan(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    out.clear();
    if task.all_sync.before {
        barrier::plan(situation, out);
        out.round();
    }
    match task.kind {
        Kind::Barrier | Kind::Window => barrier::plan(situation, out),
        Kind::Broadcast => tree::broadcast(situation, task, out),
        Kind::Reduce => reduce::to_one(situation, task, out),
        Kind::ReduceAll => reduce::to_all(situation, task, out),
        Kind::Gather => rooted::gather(situation, task, out),
        Kind::GatherAll => gather_all::plan(situation, task, out),
        Kind::Scatter => rooted::scatter(situation, task, out),
        Kind::Exchange => exchange::plan(situation, task, out),
        Kind::ReduceScatter => reduce::scatter(situation, task, out),
        Kind::Scan | Kind::ExclusiveScan => scan::plan(situation, task, out),
        // Where its blocks lie is no part of a task: see `exchange_v`.
        Kind::ExchangeV | Kind::GatherV | Kind::ScatterV => {}
    }
    out.round();
    if task.all_sync.after {
        barrier::plan(situation, out);
        out.round();
    }
}

#[cfg(test)]
mod execute;
#[cfg(test)]
mod tests;
