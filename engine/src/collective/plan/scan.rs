//! Scans: each rank gets the combination of all ranks up to it.

use super::hoods::Group;
use super::parts::{pieces, share};
use super::tree::{Tree, down};
use super::{Area, Kind, Range, Schedule, Situation, Task};

/// The result of a scan at a member.
struct Scanned {
    /// With its own value.
    inclusive: Range,
    /// Without it; `None` at the first.
    exclusive: Option<Range>,
}

/// In round r each member receives the combination of the 2^r members that end 2^r before it
/// (Hillis and Steele).
fn doubling(group: Group<'_>, rank: u32, own: Range, out: &mut Schedule) -> Scanned {
    let (count, at) = (group.len(), group.position(rank));
    let inclusive = out.scratch(own.len);
    let (exclusive, theirs) = (out.scratch(own.len), out.scratch(own.len));
    out.round();
    out.copy(own, inclusive);
    let mut distance = 1;
    while distance < count {
        out.round();
        if at + distance < count {
            out.send(group.rank(at + distance), inclusive);
        }
        if at >= distance {
            out.receive(group.rank(at - distance), theirs);
            if distance == 1 {
                out.copy(theirs, exclusive);
            } else {
                out.fold(theirs, exclusive);
            }
            out.fold(theirs, inclusive);
        }
        distance *= 2;
    }
    out.round();
    Scanned {
        inclusive,
        exclusive: (at > 0).then_some(exclusive),
    }
}

/// One after another, for long vectors: while a piece comes from the rank before, the one before it
/// goes to the next.
fn chain(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let (rank, size) = (situation.rank, situation.size());
    let tuning = situation.tuning;
    let most = tuning.segment_bytes.min(share(tuning.scratch_bytes, 3));
    let own = pieces(task.of(Area::Source), task.unit, most);
    let result = pieces(task.of(Area::Target), task.unit, most);
    let longest = own.iter().map(|piece| piece.len).max().unwrap_or(0);
    let (come, given) = (
        out.scratch(longest),
        [out.scratch(longest), out.scratch(longest)],
    );
    let mut before: Option<Range> = None;
    for (at, (piece, into)) in own.into_iter().zip(result).enumerate() {
        let (come, acc) = (come.part(0, piece.len), given[at % 2].part(0, piece.len));
        out.round();
        if let Some(before) = before.filter(|_| rank + 1 < size) {
            out.send(rank + 1, before);
        }
        if rank > 0 {
            out.receive(rank - 1, come);
        }
        out.copy(piece, acc);
        if rank > 0 {
            out.fold(come, acc);
        }
        match task.kind {
            Kind::Scan => out.copy(acc, into),
            _ if rank > 0 => out.copy(come, into),
            _ => {}
        }
        before = Some(acc);
    }
    out.round();
    if let Some(before) = before.filter(|_| rank + 1 < size) {
        out.send(rank + 1, before);
    }
}

/// Neighbors scan; the last of each neighborhood scan the results; and all ranks put the result of
/// the neighborhoods before on the left.
fn two_levels(situation: &Situation<'_>, task: &Task, out: &mut Schedule) -> Scanned {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let hood = hoods.of(rank);
    let group = hoods.group(hood);
    let last = group.len() - 1;
    let own = doubling(group, rank, task.of(Area::Source), out);
    let before = if rank == group.rank(last) {
        let all = own.inclusive;
        doubling(Group::Lasts(hoods), rank, all, out).exclusive
    } else {
        (hood > 0).then(|| out.scratch(task.block()))
    };
    let Some(before) = before else {
        return own;
    };
    let tree = Tree::within(group, last, rank, tuning.radix);
    down(&tree, &[before], &[before], out);
    out.fold(before, own.inclusive);
    let exclusive = match own.exclusive {
        Some(exclusive) => {
            out.fold(before, exclusive);
            exclusive
        }
        None => before,
    };
    Scanned {
        inclusive: own.inclusive,
        exclusive: Some(exclusive),
    }
}

pub(super) fn plan(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation { hoods, tuning, .. } = *situation;
    // At two levels a member has three vectors in each.
    let most = tuning.segment_bytes.min(share(tuning.scratch_bytes, 6));
    if task.block() > most {
        return chain(situation, task, out);
    }
    let flat = hoods.count() == 1 || hoods.count() == hoods.size() || !hoods.are_contiguous();
    let scanned = if flat {
        doubling(
            hoods.all_ranks(),
            situation.rank,
            task.of(Area::Source),
            out,
        )
    } else {
        two_levels(situation, task, out)
    };
    let target = task.of(Area::Target);
    match (task.kind, scanned.exclusive) {
        (Kind::Scan, _) => out.copy(scanned.inclusive, target),
        (_, Some(exclusive)) => out.copy(exclusive, target),
        (_, None) => {}
    }
}
