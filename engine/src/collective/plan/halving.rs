//! Reduce-to-all of a group by halves: recursive doubling for short vectors, recursive halving and
//! doubling (Rabenseifner) for long ones.
//!
//! Nearest first, so that neighboring runs of ranks are combined, and the order is kept.
//!
//! Where the members are no power of two, the first ones go in pairs: the even gives its vector to
//! the odd, and gets the result from it.

use super::hoods::Group;
use super::parts::parts;
use super::{Range, Schedule};

/// The members that take part after pairs have been made.
struct Participants<'g> {
    group: Group<'g>,
    /// The members in pairs.
    paired: u32,
    /// Members that take part: a power of two.
    count: u32,
}

impl Participants<'_> {
    fn rank(&self, place: u32) -> u32 {
        let position = if place < self.paired / 2 {
            2 * place + 1
        } else {
            place + self.paired / 2
        };
        self.group.rank(position)
    }
}

/// Makes pairs; this member's place among those that take part, and where its vector lies then.
fn pair<'g>(
    group: Group<'g>,
    rank: u32,
    own: Range,
    out: &mut Schedule,
) -> (Participants<'g>, Option<u32>, Range) {
    let (size, at) = (group.len(), group.position(rank));
    let count = 1 << size.ilog2();
    let paired = 2 * (size - count);
    let participants = Participants {
        group,
        paired,
        count,
    };
    out.round();
    if at >= paired {
        let acc = out.scratch(own.len);
        out.copy(own, acc);
        return (participants, Some(at - paired / 2), acc);
    }
    if at % 2 == 0 {
        out.send(group.rank(at + 1), own);
        return (participants, None, own);
    }
    let theirs = out.scratch(own.len);
    let acc = out.scratch(own.len);
    out.receive(group.rank(at - 1), theirs);
    out.copy(own, acc);
    out.fold(theirs, acc);
    (participants, Some(at / 2), acc)
}

/// Gives the result to those that did not take part; where it lies.
fn unpair(
    group: Group<'_>,
    rank: u32,
    acc: Range,
    place: Option<u32>,
    paired: u32,
    out: &mut Schedule,
) -> Range {
    let at = group.position(rank);
    out.round();
    match place {
        None => {
            let acc = out.scratch(acc.len);
            out.receive(group.rank(at + 1), acc);
            out.round();
            acc
        }
        Some(_) => {
            if at < paired {
                out.send(group.rank(at - 1), acc);
            }
            out.round();
            acc
        }
    }
}

/// Recursive doubling: each round combines whole vectors with the member whose place differs in one
/// more bit.
///
/// The result is the same at all members, bit by bit.
pub(super) fn doubling(group: Group<'_>, rank: u32, own: Range, out: &mut Schedule) -> Range {
    let (participants, place, mut acc) = pair(group, rank, own, out);
    if let Some(place) = place {
        let mut theirs = out.scratch(own.len);
        let mut distance = 1;
        while distance < participants.count {
            let partner = participants.rank(place ^ distance);
            out.round();
            out.send(partner, acc);
            out.receive(partner, theirs);
            if place & distance == 0 {
                out.fold(acc, theirs);
                core::mem::swap(&mut acc, &mut theirs);
            } else {
                out.fold(theirs, acc);
            }
            distance *= 2;
        }
    }
    unpair(group, rank, acc, place, participants.paired, out)
}

/// Rabenseifner's: in each round half of the remaining vector goes to the partner, which combines
/// it; then the parts come back the same way.
pub(super) fn halving(
    group: Group<'_>,
    rank: u32,
    own: Range,
    unit: usize,
    out: &mut Schedule,
) -> Range {
    let (participants, place, acc) = pair(group, rank, own, out);
    if let Some(place) = place {
        let theirs = out.scratch(own.len);
        let count = participants.count;
        let parts = parts(acc, unit, count);
        // Parts `low..high` are still combined here.
        let span = |low: u32, high: u32| {
            let (first, last) = (parts[low as usize], parts[high as usize - 1]);
            acc.part(first.at - acc.at, last.at + last.len - first.at)
        };
        let (mut low, mut high, mut distance) = (0, count, 1);
        let mut rounds = Vec::new();
        while distance < count {
            let partner = participants.rank(place ^ distance);
            let middle = low + (high - low) / 2;
            let is_lower = place & distance == 0;
            let (keep, give) = if is_lower {
                ((low, middle), (middle, high))
            } else {
                ((middle, high), (low, middle))
            };
            let (kept, given) = (span(keep.0, keep.1), span(give.0, give.1));
            let buffer = theirs.part(kept.at - acc.at, kept.len);
            out.round();
            out.send(partner, given);
            out.receive(partner, buffer);
            if is_lower {
                out.fold(kept, buffer);
                out.copy(buffer, kept);
            } else {
                out.fold(buffer, kept);
            }
            rounds.push((partner, kept, given));
            (low, high) = keep;
            distance *= 2;
        }
        for (partner, kept, given) in rounds.into_iter().rev() {
            out.round();
            out.send(partner, kept);
            out.receive(partner, given);
        }
    }
    unpair(group, rank, acc, place, participants.paired, out)
}
