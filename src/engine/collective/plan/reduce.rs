//! Reductions.

use super::hoods::Group;
use super::parts::pieces;
use super::tree::{Tree, down, up};
use super::{Area, Range, Schedule, Situation, Task, columns, direct, halving, ring};

/// Whether a vector is long enough for parts of it to be combined by different members.
fn is_long(situation: &Situation<'_>, task: &Task) -> bool {
    task.block() > situation.tuning.eager_bytes
        && task.count >= situation.size() as usize
        && situation.size() > 1
}

/// One result for the root.
pub(super) fn to_one(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    if hoods.count() == 1 && is_long(situation, task) {
        let group = (hoods.everybody(), rank);
        let vectors = (task.of(Area::Source), task.of(Area::Target));
        let limits = (task.unit, tuning.scratch_bytes);
        return direct::reduce_all(group, vectors, Some(task.root), limits, out);
    }
    let most = tuning.segment_bytes;
    let own = pieces(task.of(Area::Source), task.unit, most);
    let result = pieces(task.of(Area::Target), task.unit, most);
    if !task.ordered || task.root == 0 {
        let tree = Tree::new(situation, task.root, tuning.radix);
        let at_root = (rank == task.root).then_some(&result[..]);
        return up(&tree, &own, at_root, out);
    }
    // In order only rank 0 can have everybody below it; it passes the result on, piece by piece.
    let tree = Tree::new(situation, 0, tuning.radix);
    if rank == 0 {
        let passed = pieces(out.scratch(task.block()), task.unit, most);
        up(&tree, &own, Some(&passed), out);
        for part in passed {
            out.send(task.root, part);
        }
    } else {
        up(&tree, &own, None, out);
        if rank == task.root {
            for piece in result {
                out.receive(0, piece);
            }
        }
    }
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
    let everybody = hoods.everybody();
    if hoods.count() == 1 && is_long(situation, task) {
        let limits = (task.unit, tuning.scratch_bytes);
        return direct::reduce_all((everybody, rank), (own, result), None, limits, out);
    }
    // In pieces, so that scratch is bounded.
    let base = out.scratch_mark();
    for piece in pieces(own, task.unit, tuning.scratch_bytes / 4) {
        out.scratch_back(base);
        let into = result.part(piece.at, piece.len);
        let acc = if hoods.count() == 1 || hoods.count() == hoods.size() {
            among(everybody, rank, piece, (situation, task), out)
        } else {
            two_levels(situation, task, piece, out)
        };
        out.copy(acc, into);
        out.round();
    }
}

/// Neighbours' vectors go to their leader, leaders combine theirs, and the result goes to their neighbours.
fn two_levels(situation: &Situation<'_>, task: &Task, own: Range, out: &mut Schedule) -> Range {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let hood = hoods.of(rank);
    let tree = Tree::within(hoods.group(hood), 0, rank, tuning.radix);
    let given = pieces(own, task.unit, tuning.segment_bytes);
    let acc = if rank == hoods.leader(hood) {
        let folded = out.scratch(own.len);
        up(
            &tree,
            &given,
            Some(&pieces(folded, task.unit, tuning.segment_bytes)),
            out,
        );
        among(hoods.leaders(), rank, folded, (situation, task), out)
    } else {
        up(&tree, &given, None, out);
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
    if hoods.count() > 1 && total <= tuning.eager_bytes {
        let whole = Range::new(Area::Source, 0, total);
        let acc = if hoods.count() == size {
            among(hoods.everybody(), rank, whole, (situation, task), out)
        } else {
            two_levels(situation, task, whole, out)
        };
        let result = acc.part(mine.at, mine.len);
        out.copy(result, task.of(Area::Target));
        return;
    }
    if hoods.count() > 1 && hoods.count() < size {
        return columns::reduce_scatter(situation, task, out);
    }
    // Everybody combines its own block, in pieces, so that scratch is bounded.
    let most = tuning.scratch_bytes / size as usize;
    let base = out.scratch_mark();
    for piece in pieces(task.of(Area::Target), task.unit, most) {
        out.scratch_back(base);
        let part = |to| task.block_of(Area::Source, to).part(piece.at, piece.len);
        let parts: Vec<Range> = (0..size).map(part).collect();
        let acc = direct::reduce_scatter(hoods.everybody(), rank, &parts, out);
        out.copy(acc, piece);
        out.round();
    }
}
