//! K-nomial trees, one over neighborhoods and one in each, and data that goes up and down them in
//! pieces.

use super::super::schedule::ALIGN;
use super::hoods::Group;
use super::parts::{pieces, share};
use super::{Area, Range, Schedule, Situation, Task};

/// A member's place in a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tree {
    pub(super) parent: Option<u32>,
    /// In the order of their ranks from the root, in both levels.
    ///
    /// Where ranks of neighborhoods follow each other and the root is rank 0, the member and the
    /// subtrees of its children are runs of ranks in this order.
    pub(super) children: Vec<u32>,
}

impl Tree {
    /// A k-nomial tree over a group whose root stands at position `root`.
    ///
    /// Counted from the root, a position is a number of digits to the base k. Its parent lacks the
    /// lowest digit that is not 0; its children have one more digit below that.
    pub(super) fn within(group: Group<'_>, root: u32, rank: u32, radix: u32) -> Self {
        let (count, radix) = (u64::from(group.len()), u64::from(radix.max(2)));
        let at = group.position(rank);
        let place = (u64::from(at) + count - u64::from(root)) % count;
        let member = |place: u64| group.rank(((place + u64::from(root)) % count) as u32);
        let mut tree = Self::default();
        let mut weight = 1;
        while weight < count {
            let digit = place / weight % radix;
            if digit > 0 {
                tree.parent = Some(member(place - digit * weight));
                break;
            }
            let children = (1..radix).map(|digit| place + digit * weight);
            tree.children
                .extend(children.take_while(|child| *child < count).map(member));
            weight *= radix;
        }
        tree
    }

    /// The tree of a team with its root at `root`: in each neighborhood its leader, or the root,
    /// has the others below it, in a tree of the radix `near_radix`.
    pub(super) fn new(situation: &Situation<'_>, root: u32, near_radix: u32) -> Self {
        let Situation {
            rank,
            hoods,
            tuning,
        } = *situation;
        if hoods.count() == 1 {
            return Self::within(hoods.all_ranks(), root, rank, near_radix);
        }
        let (hood, home) = (hoods.of(rank), hoods.of(root));
        let head = |hood| {
            if hood == home {
                root
            } else {
                hoods.leader(hood)
            }
        };
        let group = hoods.group(hood);
        let mut tree = Self::within(group, group.position(head(hood)), rank, near_radix);
        if rank == head(hood) {
            let leader = hoods.leader(hood);
            let above = Self::within(hoods.leaders(), home, leader, tuning.radix);
            let heads = |leader| head(hoods.of(leader));
            tree.parent = above.parent.map(heads);
            tree.children.extend(above.children.into_iter().map(heads));
        }
        tree
    }
}

/// Signals the parent when all children have signaled this member.
pub(super) fn signal_up(tree: &Tree, out: &mut Schedule) {
    out.round();
    for child in &tree.children {
        out.receive(*child, Range::NONE);
    }
    out.round();
    if let Some(parent) = tree.parent {
        out.send(parent, Range::NONE);
    }
    out.round();
}

/// Signals the children when the parent has signaled this member.
pub(super) fn signal_down(tree: &Tree, out: &mut Schedule) {
    down(tree, &[Range::NONE], &[Range::NONE], out);
}

/// Bytes go down a tree in pieces: while one comes, the one before it goes on.
///
/// The root has them at `given`; all others get them at `taken`.
pub(super) fn down(tree: &Tree, given: &[Range], taken: &[Range], out: &mut Schedule) {
    out.round();
    let Some(parent) = tree.parent else {
        for piece in given {
            // The farthest first: the largest subtree.
            for child in tree.children.iter().rev() {
                out.send(*child, *piece);
            }
            out.round();
        }
        return;
    };
    let mut before = None;
    for piece in taken {
        out.receive(parent, *piece);
        send_on(tree, before, out);
        before = Some(*piece);
        out.round();
    }
    send_on(tree, before, out);
    out.round();
}

fn send_on(tree: &Tree, piece: Option<Range>, out: &mut Schedule) {
    if let Some(piece) = piece {
        for child in tree.children.iter().rev() {
            out.send(*child, piece);
        }
    }
}

/// The root's bytes to all.
///
/// Neighbors read long ones from where they lie at their head, all at once and not in pieces unless
/// these have come in pieces.
pub(super) fn broadcast(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let tuning = situation.tuning;
    let is_long = task.block() > tuning.eager_bytes;
    let near_radix = if is_long { u32::MAX } else { tuning.radix };
    let tree = Tree::new(situation, task.root, near_radix);
    let most = if situation.hoods.count() == 1 {
        usize::MAX
    } else {
        tuning.segment_bytes
    };
    let given = pieces(task.of(Area::Source), 1, most);
    let taken = pieces(task.of(Area::Target), 1, most);
    down(&tree, &given, &taken, out);
    if situation.rank == task.root {
        out.copy(task.of(Area::Source), task.of(Area::Target));
    }
}

/// How much goes up a tree at once: the same at all its members.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Bytes of an element.
    pub(super) unit: usize,
    /// Bytes of a piece.
    pub(super) segment: usize,
    /// Bytes of a member's scratch; three elements are taken in any case.
    pub(super) scratch: usize,
}

/// Combines the vectors that come up a tree, piece by piece: `own` of this member and of all below
/// it.
///
/// While one piece comes, the one before it goes up. At the root the result is left at `result`.
pub(super) fn up(
    tree: &Tree,
    own: Range,
    result: Option<Range>,
    limits: Limits,
    out: &mut Schedule,
) {
    out.round();
    let most = limits.segment.min(share(limits.scratch, 3));
    let own = pieces(own, limits.unit, most);
    let result = result.map(|result| pieces(result, limits.unit, most));
    let Some((last, others)) = tree.children.split_last() else {
        for (at, piece) in own.iter().enumerate() {
            match (tree.parent, &result) {
                (Some(parent), _) => out.send(parent, *piece),
                (None, Some(result)) => out.copy(*piece, result[at]),
                (None, None) => {}
            }
            out.round();
        }
        return;
    };
    let base = out.scratch_mark();
    let longest = own.iter().map(|piece| piece.len).max().unwrap_or(0);
    // A complete piece goes up from one of these while the next comes into the other.
    let folded = [out.scratch(longest), out.scratch(longest)];
    // A flat tree has more children than there is scratch for; then some come after others.
    let room = limits.scratch / longest.next_multiple_of(ALIGN).max(1);
    let room = room.saturating_sub(folded.len()).max(1);
    let buffers: Vec<Range> = others
        .iter()
        .take(room)
        .map(|_| out.scratch(longest))
        .collect();
    let mut before = None;
    for (at, piece) in own.iter().enumerate() {
        let len = piece.len;
        let acc = folded[at % 2].part(0, len);
        out.receive(*last, acc);
        if let (Some(parent), Some(before)) = (tree.parent, before) {
            out.send(parent, before);
        }
        for some in others.rchunks(room) {
            let come = || buffers.iter().map(|buffer| buffer.part(0, len));
            for (child, buffer) in some.iter().zip(come()) {
                out.receive(*child, buffer);
            }
            for buffer in come().take(some.len()).rev() {
                out.fold(buffer, acc);
            }
        }
        out.fold(*piece, acc);
        if let (None, Some(result)) = (tree.parent, &result) {
            out.copy(acc, result[at]);
        }
        before = Some(acc);
        out.round();
    }
    if let (Some(parent), Some(before)) = (tree.parent, before) {
        out.send(parent, before);
    }
    out.scratch_back(base);
}
