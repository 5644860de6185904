//! Reductions.

use super::hoods::Group;
use super::parts::{pieces, share};
use super::tree::{Limits, Tree, down, up};
use super::{Area, Range, Schedule, Situation, Task, columns, direct, halving, ring};

/// Whether a vector is long enough for parts of it to be combined by different members, each with a
/// buffer for every other.
fn is_long(situation: &Situation<'_>, task: &Task) -> bool {
    let tuning = situation.tuning;
    let size = situation.size() as usize;
    task.block() > tuning.eager_bytes
        && task.count >= size
        && size > 1
        && share(tuning.scratch_bytes, size) >= task.unit
}

/// One result for the root.
pub(super) fn to_one(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let (own, result) = (task.of(Area::Source), task.of(Area::Target));
    let hoods = situation.hoods;
    if hoods.count() == 1 && is_long(situation, task) {
        let group = (hoods.all_ranks(), situation.rank);
        let limits = (task.unit, situation.tuning.scratch_bytes);
        return direct::reduce_all(group, (own, result), Some(task.root), limits, out);
    }
    by_tree(situation, task, task.root, (own, result), out);
}

/// A vector of each, at `own`, combined at a member's `result`.
fn by_tree(
    situation: &Situation<'_>,
    task: &Task,
    root: u32,
    (own, result): (Range, Range),
    out: &mut Schedule,
) {
    let Situation { rank, tuning, .. } = *situation;
    let scratch = tuning.scratch_bytes;
    let limits = |scratch| Limits {
        unit: task.unit,
        segment: tuning.segment_bytes,
        scratch,
    };
    if !task.ordered || root == 0 {
        let tree = Tree::new(situation, root, tuning.radix);
        let at_root = (rank == root).then_some(result);
        return up(&tree, own, at_root, limits(scratch), out);
    }
    // In order only rank 0 can have all others below it. It passes the result on, as much at once
    // as scratch holds beside the buffers of the tree.
    let tree = Tree::new(situation, 0, tuning.radix);
    let kept = share(scratch, 4);
    let base = out.scratch_mark();
    for piece in pieces(own, task.unit, kept) {
        out.scratch_back(base);
        let passed = (rank == 0).then(|| out.scratch(piece.len));
        up(&tree, piece, passed, limits(3 * kept), out);
        if let Some(passed) = passed {
            out.send(root, passed);
        }
        if rank == root {
            out.receive(0, result.part(piece.at - own.at, piece.len));
        }
    }
    out.scratch_back(base);
}

/// The result of a group, at all its members, where this returns; by the length's algorithm.
fn among(
    group: Group<'_>,
    rank: u32,
    own: Range,
    (situation, task): (&Situation<'_>, &Task),
    out: &mut Schedule,
) -> Range {
    let count = group.len() as usize;
    let elements = own.len / task.unit.max(1);
    if own.len <= situation.tuning.eager_bytes || elements < count {
        halving::doubling(group, rank, own, out)
    } else if task.ordered || own.len / count < situation.tuning.eager_bytes {
        halving::halving(group, rank, own, task.unit, out)
    } else {
        ring::reduce_all(group, rank, own, task.unit, out)
    }
}

/// The same result for all.
pub(super) fn to_all(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let (own, result) = (task.of(Area::Source), task.of(Area::Target));
    let all_ranks = hoods.all_ranks();
    if hoods.count() == 1 && is_long(situation, task) {
        let limits = (task.unit, tuning.scratch_bytes);
        return direct::reduce_all((all_ranks, rank), (own, result), None, limits, out);
    }
    // In pieces, so that scratch is bounded.
    let base = out.scratch_mark();
    for piece in pieces(own, task.unit, share(tuning.scratch_bytes, 4)) {
        out.scratch_back(base);
        let into = result.part(piece.at, piece.len);
        let acc = if hoods.count() == 1 || hoods.count() == hoods.size() {
            among(all_ranks, rank, piece, (situation, task), out)
        } else {
            two_levels(situation, task, piece, out)
        };
        out.copy(acc, into);
        out.round();
    }
}

/// Neighbors' vectors go to their leader, leaders combine theirs, and the result goes to their
/// neighbors.
///
/// Scratch is for four such vectors.
fn two_levels(situation: &Situation<'_>, task: &Task, own: Range, out: &mut Schedule) -> Range {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let hood = hoods.of(rank);
    let tree = Tree::within(hoods.group(hood), 0, rank, tuning.radix);
    let limits = Limits {
        unit: task.unit,
        segment: tuning.segment_bytes,
        scratch: 3 * share(tuning.scratch_bytes, 4),
    };
    let acc = if rank == hoods.leader(hood) {
        let folded = out.scratch(own.len);
        up(&tree, own, Some(folded), limits, out);
        among(hoods.leaders(), rank, folded, (situation, task), out)
    } else {
        up(&tree, own, None, limits, out);
        out.scratch(own.len)
    };
    let parts = pieces(acc, 1, tuning.segment_bytes);
    down(&tree, &parts, &parts, out);
    acc
}

/// A result for each, of its block.
pub(super) fn scatter(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let size = situation.size();
    let total = task.block() * size as usize;
    let mine = task.block_of(Area::Source, rank);
    let scratch = tuning.scratch_bytes;
    if hoods.count() > 1 && total <= tuning.eager_bytes.min(share(scratch, 4)) {
        let whole = Range::new(Area::Source, 0, total);
        let acc = if hoods.count() == size {
            among(hoods.all_ranks(), rank, whole, (situation, task), out)
        } else {
            two_levels(situation, task, whole, out)
        };
        let result = acc.part(mine.at, mine.len);
        out.copy(result, task.of(Area::Target));
        return;
    }
    if hoods.count() > 1
        && hoods.count() < size
        && let Some(batches) = columns::Batches::new(situation, task)
    {
        return columns::reduce_scatter(situation, task, batches, out);
    }
    // Each member combines its own block, in pieces, so that scratch is bounded.
    let most = share(scratch, size as usize);
    if most < task.unit {
        for to in 0..size {
            let vectors = (task.block_of(Area::Source, to), task.of(Area::Target));
            by_tree(situation, task, to, vectors, out);
        }
        return;
    }
    let base = out.scratch_mark();
    for piece in pieces(task.of(Area::Target), task.unit, most) {
        out.scratch_back(base);
        let part = |to| task.block_of(Area::Source, to).part(piece.at, piece.len);
        let parts: Vec<Range> = (0..size).map(part).collect();
        let acc = direct::reduce_scatter(hoods.all_ranks(), rank, &parts, out);
        out.copy(acc, piece);
        out.round();
    }
}
