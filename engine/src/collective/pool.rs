//! Reductions among neighbors that do not fit cells: through memory that all of them map.
//!
//! In each of the first slots a member has a *pool* that it alone writes and all may read
//! ([`SharedCells::pool`]). A vector goes through the pools in pieces. Each piece takes two calls
//! by cells, its *stages*:
//!
//! 1. *Give*. Each member copies the parts of the piece that others combine into its pool, and
//!    enters the call.
//! 2. *Fold*. When all have, each combines its own part, reading the others' pools in the order of
//!    ranks, puts the result into its target and its pool, and enters the next call. When all have
//!    done that, each copies the others' results.
//!
//! So every byte is read by one other member on its way there and by each on its way back: the
//! least that there can be. Short pieces take one stage, *give all*: each member combines
//! everything, which is more traffic and one synchronization less.
//!
//! A pool has two halves, which pieces use in turn, and no member needs to ask whether a half may
//! be written anew: a member enters no stage before it has finished all calls before it. So a
//! member that has seen the last stage of piece k + 1 entered by all, as it has before it goes on
//! to piece k + 2, knows that all have finished piece k.
#![allow(unsafe_code)]

use super::call::{AllSync, Call, Kind};
use super::plan::{Area, Range, parts, pieces};
use super::shared_team::SharedTeam;
use argonet_base::JobRank;
use argonet_conduit::SharedCells;
use argonet_segment::bulk;
use core::sync::atomic::Ordering;

/// Bytes of half a pool.
const HALF_BYTES: usize = SharedCells::POOL_BYTES / 2;

/// Bytes that are combined at a time, so that their buffer stays in the nearest cache.
const BLOCK_BYTES: usize = 8 << 10;

/// Bytes of all members together up to which each member combines everything.
const ALL_BYTES: usize = 32 << 10;

/// The work of a stage on its piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    GiveAll,
    Give,
    Fold,
}

/// The work of one round of a reduction through pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stage {
    step: Step,
    /// Which half of the pools.
    half: usize,
    /// The piece of the vectors.
    piece: Range,
}

impl Call {
    /// Whether the call can go through pools; the same at all members that call the same.
    pub(super) fn fits_pool(&self) -> bool {
        matches!(self.kind, Kind::Reduce | Kind::ReduceAll)
            && self.all_sync == AllSync::default()
            && self.folding.is_some()
            && (1..=BLOCK_BYTES).contains(&self.unit)
    }

    /// Whether a member gets the result.
    fn gets(&self, rank: u32) -> bool {
        self.kind == Kind::ReduceAll || rank == self.root
    }
}

/// The stages of the next call, with scratch of `scratch` bytes.
///
/// The caller has the call lock.
pub(super) fn stages(shared: &SharedTeam, call: &Call, scratch: usize) -> Vec<Stage> {
    let size = shared.size();
    let whole = Range::new(Area::Source, 0, call.block());
    let most = HALF_BYTES.min(scratch / 2).max(BLOCK_BYTES);
    let mut stages = Vec::new();
    for piece in pieces(whole, call.unit, most) {
        let half = shared.next_half();
        let stage = |step| Stage { step, half, piece };
        if piece.len * size as usize <= ALL_BYTES {
            stages.push(stage(Step::GiveAll));
        } else {
            stages.extend([Step::Give, Step::Fold].map(stage));
        }
    }
    stages
}

/// The memory that a stage is about, as one member sees it.
pub(super) struct Pools<'s> {
    pub(super) cells: SharedCells<'s>,
    pub(super) shared: &'s SharedTeam,
    pub(super) call: &'s Call,
}

impl Pools<'_> {
    /// Where a member's copy of a range of the vectors lies.
    fn place(&self, stage: &Stage, member: u32, range: Range) -> *mut u8 {
        let group = &self.shared.group;
        let process: JobRank = group.members[member as usize];
        let at = stage.half * HALF_BYTES + (range.at - stage.piece.at);
        debug_assert!(at + range.len <= (stage.half + 1) * HALF_BYTES);
        let pool = self.cells.pool(group.slot, process);
        pool.as_ptr().wrapping_add(at)
    }

    fn rank(&self) -> u32 {
        self.shared.group.rank
    }

    fn parts(&self, stage: &Stage) -> Vec<Range> {
        parts(stage.piece, self.call.unit, self.shared.size())
    }

    /// The work before the stage is entered.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands; `stage` may be entered, and all have
    /// entered the one before.
    pub(super) unsafe fn begin(&self, stage: &Stage) {
        let rank = self.rank();
        match stage.step {
            // SAFETY: this function's contract.
            Step::GiveAll => unsafe { self.give(stage, stage.piece) },
            Step::Give => {
                for (member, part) in (0..).zip(self.parts(stage)) {
                    if member != rank {
                        // SAFETY: this function's contract.
                        unsafe { self.give(stage, part) };
                    }
                }
            }
            Step::Fold => {
                let part = self.parts(stage)[rank as usize];
                // SAFETY: this function's contract; no member reads the own half at this part
                // before the stage is entered.
                unsafe { self.fold(stage, part, Some(rank)) };
            }
        }
    }

    /// The work after all have entered the stage, and before it is finished.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands; all have entered `stage`.
    pub(super) unsafe fn end(&self, stage: &Stage) {
        if !self.call.gets(self.rank()) {
            return;
        }
        match stage.step {
            // SAFETY: this function's contract.
            Step::GiveAll => unsafe { self.fold(stage, stage.piece, None) },
            Step::Give => {}
            Step::Fold => {
                for (member, part) in (0..).zip(self.parts(stage)) {
                    if member != self.rank() {
                        let from = self.place(stage, member, part);
                        let into = self.call.dst.wrapping_add(part.at);
                        // SAFETY: the member has written its result there, and writes nothing
                        // before this one has finished the stage; the target is this call's.
                        unsafe { bulk::copy(into, from, part.len) };
                    }
                }
            }
        }
    }

    /// Copies a range of the source into the own pool.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    unsafe fn give(&self, stage: &Stage, range: Range) {
        let into = self.place(stage, self.rank(), range);
        let from = self.call.src.wrapping_add(range.at);
        // SAFETY: the source is readable until the call is complete; no member reads the own half
        // any more.
        unsafe { bulk::copy(into, from, range.len) };
    }

    /// Combines the contributions of all to a range into the target, if this member gets the
    /// result, and into the pool of `into`, if there is one.
    ///
    /// # Safety
    /// The call's memory is as `collective_start` demands; all members' pools hold the range, but
    /// for this member's own, whose source is read instead.
    unsafe fn fold(&self, stage: &Stage, range: Range, into: Option<u32>) {
        let Some(folding) = self.call.folding else {
            return;
        };
        let (unit, rank, size) = (self.call.unit, self.rank(), self.shared.size());
        let scratch = self.shared.spare.take(2 * BLOCK_BYTES);
        let acc = scratch.as_ptr();
        let theirs = acc.wrapping_add(BLOCK_BYTES);
        for block in pieces(range, unit, BLOCK_BYTES) {
            let (count, len) = (block.len / unit, block.len);
            let own = self.call.src.wrapping_add(block.at);
            let given = |member| match member == rank {
                true => own,
                false => self.place(stage, member, block).cast_const(),
            };
            // SAFETY: blocks of scratch, of sources and of pools, by this function's contract;
            // bytes in a pool are copied first, as only the copy is this process's own. As many
            // whole elements lie at all of them. The function and its context are usable until the
            // call is complete.
            unsafe {
                bulk::copy(acc, given(size - 1), len);
                for member in (0..size - 1).rev() {
                    let left = match member == rank {
                        true => own,
                        false => {
                            bulk::copy(theirs, given(member), len);
                            theirs.cast_const()
                        }
                    };
                    (folding.function)(folding.context, left, acc, count);
                }
                if let Some(member) = into {
                    bulk::copy(self.place(stage, member, block), acc, len);
                }
                if self.call.gets(rank) {
                    bulk::copy(self.call.dst.wrapping_add(block.at), acc, len);
                }
            }
        }
        self.shared.spare.give(scratch);
    }
}

impl SharedTeam {
    /// Whether its slot has pools; the same at all members.
    pub(super) fn has_pool(&self) -> bool {
        self.group.slot < SharedCells::POOLS
    }

    /// The half of the pools that the next piece uses.
    ///
    /// The caller has the call lock.
    fn next_half(&self) -> usize {
        let piece = self.pieces.load(Ordering::Relaxed);
        self.pieces.store(piece + 1, Ordering::Relaxed);
        (piece % 2) as usize
    }
}
