//! Gather and scatter: short blocks by a tree, in which each member has the blocks of all below it;
//! long ones straight.

use super::parts::bounded;
use super::tree::Tree;
use super::{Area, Range, Schedule, Situation, Task};

/// The members below a member in a tree, itself first, in the order in which their blocks lie.
fn below(situation: &Situation<'_>, root: u32, rank: u32, found: &mut Vec<u32>) {
    found.push(rank);
    for child in Tree::new(
        &Situation { rank, ..*situation },
        root,
        situation.tuning.radix,
    )
    .children
    {
        below(situation, root, child, found);
    }
}

/// A member's part: its tree, all below it, and which of those are in the subtree of each child, as
/// runs of their places.
struct Part {
    tree: Tree,
    members: Vec<u32>,
    subtrees: Vec<(u32, core::ops::Range<usize>)>,
}

impl Part {
    fn new(situation: &Situation<'_>, task: &Task) -> Self {
        let tree = Tree::new(situation, task.root, situation.tuning.radix);
        let mut members = vec![situation.rank];
        let mut subtrees = Vec::new();
        for child in &tree.children {
            let begin = members.len();
            below(situation, task.root, *child, &mut members);
            subtrees.push((*child, begin..members.len()));
        }
        Self {
            tree,
            members,
            subtrees,
        }
    }

    /// The blocks of a child's subtree in `all`, which has `len` bytes for each member.
    fn subtree(places: &core::ops::Range<usize>, all: Range, len: usize) -> Range {
        all.part(places.start * len, places.len() * len)
    }
}

/// In which pieces blocks go by a tree; `None` where they are so long that passing them on costs
/// more than messages, or scratch is too small.
fn by_tree(situation: &Situation<'_>, task: &Task) -> Option<Vec<Range>> {
    let (size, tuning) = (situation.size(), situation.tuning);
    // The root has all blocks.
    let pieces = bounded(task, size as usize, tuning.scratch_bytes);
    pieces.filter(|_| size > 2 && task.block() <= tuning.tree_block_bytes)
}

pub(super) fn gather(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let rank = situation.rank;
    let Some(pieces) = by_tree(situation, task) else {
        let own = task.of(Area::Source);
        if rank == task.root {
            for from in (0..situation.size()).filter(|from| *from != rank) {
                out.receive(from, task.block_of(Area::Target, from));
            }
            out.copy(own, task.block_of(Area::Target, rank));
        } else {
            out.send(task.root, own);
        }
        return;
    };
    let part = Part::new(situation, task);
    let base = out.scratch_mark();
    for piece in pieces {
        out.scratch_back(base);
        let len = piece.len;
        let all = out.scratch(part.members.len() * len);
        for (child, places) in &part.subtrees {
            out.receive(*child, Part::subtree(places, all, len));
        }
        out.copy(piece, all.part(0, len));
        match part.tree.parent {
            Some(parent) => out.send(parent, all),
            None => {
                for (at, from) in part.members.iter().enumerate() {
                    let block = task.block_of(Area::Target, *from);
                    out.copy(all.part(at * len, len), block.part(piece.at, len));
                }
            }
        }
    }
}

pub(super) fn scatter(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let rank = situation.rank;
    let own = task.of(Area::Target);
    let Some(pieces) = by_tree(situation, task) else {
        if rank == task.root {
            for to in (0..situation.size()).filter(|to| *to != rank) {
                out.send(to, task.block_of(Area::Source, to));
            }
            out.copy(task.block_of(Area::Source, rank), own);
        } else {
            out.receive(task.root, own);
        }
        return;
    };
    let part = Part::new(situation, task);
    let base = out.scratch_mark();
    for piece in pieces {
        out.scratch_back(base);
        let len = piece.len;
        let all = out.scratch(part.members.len() * len);
        match part.tree.parent {
            Some(parent) => out.receive(parent, all),
            None => {
                for (at, to) in part.members.iter().enumerate() {
                    let block = task.block_of(Area::Source, *to);
                    out.copy(block.part(piece.at, len), all.part(at * len, len));
                }
            }
        }
        out.round();
        for (child, places) in part.subtrees.iter().rev() {
            out.send(*child, Part::subtree(places, all, len));
        }
        out.copy(all.part(0, len), own.part(piece.at, len));
    }
}
