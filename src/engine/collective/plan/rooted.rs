//! Gather and scatter: short blocks by a tree, in which each member has the blocks of all below it; long ones straight.

use super::tree::Tree;
use super::{Area, Range, Schedule, Shape, Task};

/// Who is below a member in a tree, itself first, in the order in which their blocks lie.
fn below(shape: &Shape<'_>, root: u32, rank: u32, found: &mut Vec<u32>) {
    found.push(rank);
    for child in Tree::new(&Shape { rank, ..*shape }, root, shape.tuning.radix).children {
        below(shape, root, child, found);
    }
}

/// A member's part: its tree, all below it, and the range of the blocks of each child's subtree.
struct Part {
    tree: Tree,
    members: Vec<u32>,
    subtrees: Vec<(u32, Range)>,
    all: Range,
}

fn part(shape: &Shape<'_>, task: &Task, out: &mut Schedule) -> Part {
    let tree = Tree::new(shape, task.root, shape.tuning.radix);
    let mut members = vec![shape.rank];
    let mut counts = Vec::new();
    for child in &tree.children {
        let begin = members.len();
        below(shape, task.root, *child, &mut members);
        counts.push((*child, begin, members.len() - begin));
    }
    let len = task.block();
    let all = out.scratch(members.len() * len);
    let subtree =
        |(child, begin, count): (u32, usize, usize)| (child, all.part(begin * len, count * len));
    Part {
        tree,
        subtrees: counts.into_iter().map(subtree).collect(),
        members,
        all,
    }
}

/// Whether blocks are so long that passing them on costs more than messages.
fn is_straight(shape: &Shape<'_>, task: &Task) -> bool {
    shape.size() <= 2 || task.block() > shape.tuning.tree_block_bytes
}

pub(super) fn gather(shape: &Shape<'_>, task: &Task, out: &mut Schedule) {
    let (rank, len) = (shape.rank, task.block());
    let own = task.of(Area::Source);
    if is_straight(shape, task) {
        if rank == task.root {
            for from in (0..shape.size()).filter(|from| *from != rank) {
                out.receive(from, task.block_of(Area::Target, from));
            }
            out.copy(own, task.block_of(Area::Target, rank));
        } else {
            out.send(task.root, own);
        }
        return;
    }
    let Part {
        tree,
        members,
        subtrees,
        all,
    } = part(shape, task, out);
    for (child, range) in subtrees {
        out.receive(child, range);
    }
    out.copy(own, all.part(0, len));
    match tree.parent {
        Some(parent) => out.send(parent, all),
        None => {
            for (at, from) in members.into_iter().enumerate() {
                out.copy(all.part(at * len, len), task.block_of(Area::Target, from));
            }
        }
    }
}

pub(super) fn scatter(shape: &Shape<'_>, task: &Task, out: &mut Schedule) {
    let (rank, len) = (shape.rank, task.block());
    let own = task.of(Area::Target);
    if is_straight(shape, task) {
        if rank == task.root {
            for to in (0..shape.size()).filter(|to| *to != rank) {
                out.send(to, task.block_of(Area::Source, to));
            }
            out.copy(task.block_of(Area::Source, rank), own);
        } else {
            out.receive(task.root, own);
        }
        return;
    }
    let Part {
        tree,
        members,
        subtrees,
        all,
    } = part(shape, task, out);
    match tree.parent {
        Some(parent) => out.receive(parent, all),
        None => {
            for (at, to) in members.into_iter().enumerate() {
                out.copy(task.block_of(Area::Source, to), all.part(at * len, len));
            }
        }
    }
    out.round();
    for (child, range) in subtrees.into_iter().rev() {
        out.send(child, range);
    }
    out.copy(all.part(0, len), own);
}
