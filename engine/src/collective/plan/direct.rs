//! All members with all at once, which is best among neighbors, as they read each other's memory:
//! the least traffic that there can be, and the order of operands is kept.

use super::hoods::Group;
use super::parts::{parts, pieces, share};
use super::{Range, Schedule};

/// Each member gets the part of its position of all members' vectors combined.
///
/// All have their own vector at `own`, in the same `parts`; the result of this member's lies where
/// this returns.
pub(super) fn reduce_scatter(
    group: Group<'_>,
    rank: u32,
    parts: &[Range],
    out: &mut Schedule,
) -> Range {
    let at = group.position(rank);
    let mine = parts[at as usize];
    let others = || (0..group.len()).filter(move |other| *other != at);
    out.round();
    let buffers: Vec<Range> = others().map(|_| out.scratch(mine.len)).collect();
    for ((other, buffer), theirs) in others().zip(&buffers).zip(others()) {
        out.send(group.rank(theirs), parts[theirs as usize]);
        out.receive(group.rank(other), *buffer);
    }
    // The values of all, in the order of ranks; the highest takes up the others.
    let (below, above) = buffers.split_at(at as usize);
    let acc = match above.last() {
        Some(last) => {
            for buffer in above[..above.len() - 1].iter().rev() {
                out.fold(*buffer, *last);
            }
            out.fold(mine, *last);
            *last
        }
        None => {
            let acc = out.scratch(mine.len);
            out.copy(mine, acc);
            acc
        }
    };
    for buffer in below.iter().rev() {
        out.fold(*buffer, acc);
    }
    acc
}

/// Each member has the part of its position, and gets those of the others.
pub(super) fn gather_all(group: Group<'_>, rank: u32, parts: &[Range], out: &mut Schedule) {
    let at = group.position(rank);
    out.round();
    for step in 1..group.len() {
        let to = (at + step) % group.len();
        let from = (at + group.len() - step) % group.len();
        out.send(group.rank(to), parts[at as usize]);
        out.receive(group.rank(from), parts[from as usize]);
    }
    out.round();
}

/// Combines the vectors at `own` of all members of a group at `result` of each, or at that of one
/// alone.
pub(super) fn reduce_all(
    (group, rank): (Group<'_>, u32),
    (own, result): (Range, Range),
    to: Option<u32>,
    (unit, scratch): (usize, usize),
    out: &mut Schedule,
) {
    let count = group.len();
    // Each member has a buffer of its part's length for each other.
    let part = share(scratch, count as usize) / unit.max(1) * unit;
    let most = part.max(unit) * count as usize;
    let base = out.scratch_mark();
    for piece in pieces(own, unit, most) {
        // Rounds follow each other, so that all pieces can have the same scratch.
        out.scratch_back(base);
        let offset = piece.at - own.at;
        let given = parts(piece, unit, count);
        let mine = reduce_scatter(group, rank, &given, out);
        let at = group.position(rank) as usize;
        match to {
            None => {
                let taken = parts(result.part(offset, piece.len), unit, count);
                out.copy(mine, taken[at]);
                gather_all(group, rank, &taken, out);
            }
            Some(root) if root == rank => {
                let taken = parts(result.part(offset, piece.len), unit, count);
                out.copy(mine, taken[at]);
                out.round();
                for other in (0..count).filter(|other| *other as usize != at) {
                    out.receive(group.rank(other), taken[other as usize]);
                }
                out.round();
            }
            Some(root) => {
                out.send(root, mine);
                out.round();
            }
        }
    }
}
