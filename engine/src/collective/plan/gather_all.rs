//! Gather-all: the block of every rank to every rank.

use super::hoods::Group;
use super::parts::{bounded, pieces};
use super::tree::{Tree, down};
use super::{Area, Range, Schedule, Situation, Task, direct, ring};

/// Dissemination (Bruck): each member of a group has a block, of `bytes(position)` bytes; in round
/// r it gives those that it has, at most 2^r, to the one 2^r before it.
///
/// Leaves them in scratch, from this member's own on, where `own` has been put first; where each
/// position's lies.
fn disseminate(
    group: Group<'_>,
    rank: u32,
    bytes: impl Fn(u32) -> usize,
    own: impl FnOnce(Range, &mut Schedule),
    out: &mut Schedule,
) -> Vec<Range> {
    let (count, at) = (group.len(), group.position(rank));
    let position = |distance: u64| ((u64::from(at) + distance) % u64::from(count)) as u32;
    let mut ends = vec![0];
    for distance in 0..count {
        ends.push(ends[distance as usize] + bytes(position(distance.into())));
    }
    let all = out.scratch(ends[count as usize]);
    let run = |from: u32, to: u32| {
        let (begin, end) = (ends[from as usize], ends[to as usize]);
        all.part(begin, end - begin)
    };
    own(run(0, 1), out);
    let mut have = 1;
    while have < count {
        let more = have.min(count - have);
        out.round();
        let before = position(u64::from(count - have));
        out.send(group.rank(before), run(0, more));
        out.receive(group.rank(position(have.into())), run(have, have + more));
        have += more;
    }
    out.round();
    let mut places = vec![Range::NONE; count as usize];
    for distance in 0..count {
        places[position(distance.into()) as usize] = run(distance, distance + 1);
    }
    places
}

/// Short blocks, or a piece of each.
///
/// Neighbors give theirs to their leader; leaders give each other those of their neighborhoods by
/// dissemination, and the whole to their neighbors.
fn short(situation: &Situation<'_>, task: &Task, own: Range, out: &mut Schedule) {
    let Situation { rank, hoods, .. } = *situation;
    let target = |from| task.block_of(Area::Target, from).part(own.at, own.len);
    if hoods.count() == 1 || hoods.count() == hoods.size() {
        let group = hoods.all_ranks();
        let put = |place, out: &mut Schedule| out.copy(own, place);
        let places = disseminate(group, rank, |_| own.len, put, out);
        for (from, place) in (0..).zip(places) {
            out.copy(place, target(from));
        }
        return;
    }
    let hood = hoods.of(rank);
    let (group, leader) = (hoods.group(hood), hoods.leader(hood));
    // All blocks, in the order of neighborhoods.
    let all = own.len * hoods.size() as usize;
    let tree = Tree::within(group, 0, rank, situation.tuning.radix);
    let most = situation.tuning.segment_bytes;
    let whole = if rank == leader {
        let gather = |place: Range, out: &mut Schedule| {
            for at in 1..group.len() {
                out.receive(group.rank(at), place.part(at as usize * own.len, own.len));
            }
            out.copy(own, place.part(0, own.len));
        };
        let bytes = |hood| hoods.group(hood).len() as usize * own.len;
        let places = disseminate(hoods.leaders(), rank, bytes, gather, out);
        let whole = out.scratch(all);
        let mut at = 0;
        for place in places {
            out.copy(place, whole.part(at, place.len));
            at += place.len;
        }
        whole
    } else {
        out.send(leader, own);
        out.scratch(all)
    };
    let parts = pieces(whole, 1, most);
    down(&tree, &parts, &parts, out);
    let mut at = 0;
    for hood in 0..hoods.count() {
        let group = hoods.group(hood);
        for position in 0..group.len() {
            let place = target(group.rank(position));
            out.copy(whole.part(at, own.len), place);
            at += own.len;
        }
    }
}

pub(super) fn plan(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    // A leader has all blocks twice.
    let pieces = bounded(task, 2 * situation.size() as usize, tuning.scratch_bytes);
    if let Some(pieces) = pieces
        && task.block() <= tuning.gather_all_dissemination_bytes
    {
        let base = out.scratch_mark();
        for piece in pieces {
            out.scratch_back(base);
            short(situation, task, piece, out);
        }
        return;
    }
    let block = |rank| task.block_of(Area::Target, rank);
    out.copy(task.of(Area::Source), block(rank));
    if hoods.count() == 1 {
        let blocks: Vec<Range> = (0..situation.size()).map(block).collect();
        return direct::gather_all(hoods.all_ranks(), rank, &blocks, out);
    }
    // Round a ring in which neighbors follow each other, so that each neighborhood hears from one
    // other alone.
    let order: Vec<u32> = hoods.in_order().collect();
    let blocks: Vec<Range> = order.iter().map(|rank| block(*rank)).collect();
    ring::gather_all(Group::Order(&order), rank, &blocks, out);
}
