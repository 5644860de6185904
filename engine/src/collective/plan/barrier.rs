//! Barriers: neighbors signal their leader, leaders signal each other by dissemination, and then
//! their neighbors.

use super::hoods::Group;
use super::tree::{Tree, signal_down, signal_up};
use super::{Range, Schedule, Situation};

/// In round r each member signals the one 2^r further on that it and the 2^r - 1 before it have
/// come.
fn disseminate(group: Group<'_>, rank: u32, out: &mut Schedule) {
    let (count, at) = (u64::from(group.len()), u64::from(group.position(rank)));
    let member = |at: u64| group.rank((at % count) as u32);
    let mut distance = 1;
    while distance < count {
        out.round();
        out.send(member(at + distance), Range::NONE);
        out.receive(member(at + count - distance), Range::NONE);
        distance *= 2;
    }
}

pub(super) fn plan(situation: &Situation<'_>, out: &mut Schedule) {
    let Situation { rank, hoods, .. } = *situation;
    if hoods.count() == 1 {
        return disseminate(hoods.all_ranks(), rank, out);
    }
    let hood = hoods.of(rank);
    let tree = Tree::within(hoods.group(hood), 0, rank, situation.tuning.radix);
    signal_up(&tree, out);
    if rank == hoods.leader(hood) {
        disseminate(hoods.leaders(), rank, out);
    }
    signal_down(&tree, out);
}
