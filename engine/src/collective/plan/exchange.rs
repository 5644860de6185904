//! Exchange: each member has a block for each.
//!
//! Between neighborhoods short blocks travel together: all that one neighborhood has for another by
//! a pair of envoys ([`envoys`](super::envoys)), or, where there are many more neighborhoods than
//! members of one, by leaders and dissemination.

use super::envoys;
use super::hoods::Group;
use super::{Area, Hoods, Range, Schedule, Situation, Task};
use crate::collective::call::{BlockRanges, Kind};

/// Messages that are under way at once where blocks go straight to their members.
const AT_ONCE: u32 = 16;

pub(super) fn plan(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation {
        rank,
        hoods,
        tuning,
    } = *situation;
    let all_ranks = hoods.all_ranks();
    let is_short = task.block() <= tuning.exchange_dissemination_bytes;
    let fits = |bytes: usize| bytes <= tuning.scratch_bytes;
    if hoods.count() == 1 || hoods.size() == 2 {
        return straight(all_ranks, rank, task, out);
    }
    if hoods.count() == hoods.size() {
        return match is_short && fits(dissemination_scratch(hoods.size(), task.block())) {
            true => dissemination(situation, task, out),
            false => straight(all_ranks, rank, task, out),
        };
    }
    // Messages that an envoy sends to other neighborhoods, and that a leader sends.
    let (least, _) = hoods.extent();
    let (by_envoys, by_leaders) = (
        hoods.count().div_ceil(least),
        hoods.count().next_power_of_two().ilog2(),
    );
    if is_short && by_envoys > by_leaders && fits(leaders_scratch(hoods, task)) {
        return leaders(situation, task, out);
    }
    // Each long block is a message that uses the network well, so nothing is gained by further
    // copies.
    let together = task.block() <= tuning.eager_bytes;
    match envoys::Batches::new(hoods, task.block(), tuning.scratch_bytes).filter(|_| together) {
        Some(batches) => {
            straight(hoods.group(hoods.of(rank)), rank, task, out);
            envoys::exchange(situation, task, batches, out);
        }
        None => straight(all_ranks, rank, task, out),
    }
}

/// Among the members of a group: to the one i further on, from the one i before, some at once.
fn straight(group: Group<'_>, rank: u32, task: &Task, out: &mut Schedule) {
    let (count, at) = (group.len(), group.position(rank));
    let own = task.block_of(Area::Source, rank);
    out.copy(own, task.block_of(Area::Target, rank));
    for step in 1..count {
        if step % AT_ONCE == 1 {
            out.round();
        }
        let to = group.rank((at + step) % count);
        let from = group.rank((at + count - step) % count);
        out.send(to, task.block_of(Area::Source, to));
        out.receive(from, task.block_of(Area::Target, from));
    }
    out.round();
}

/// Blocks of any length, straight from member to member: at most `AT_ONCE` sends in a round.
///
/// A call with a root has one round: no member's sends depend there on what it receives.
///
/// # Panics
/// If there is not an entry for each member, or the two of this member for itself differ in their
/// length, or one of them is `None`.
pub(in crate::collective) fn exchange_v(
    kind: Kind,
    (size, rank): (u32, u32),
    blocks: &BlockRanges<'_>,
    out: &mut Schedule,
) {
    let ranges = |area, blocks: &[Option<core::ops::Range<usize>>]| -> Vec<Option<Range>> {
        assert_eq!(blocks.len(), size as usize, "an entry for each member");
        let range = |block: &core::ops::Range<usize>| Range::new(area, block.start, block.len());
        blocks
            .iter()
            .map(|block| block.as_ref().map(range))
            .collect()
    };
    let sent = ranges(Area::Source, blocks.sent);
    let received = ranges(Area::Target, blocks.received);
    let own = [&sent, &received].map(|blocks| blocks[rank as usize]);
    let lengths = own.map(|block| block.map(|range| range.len));
    assert_eq!(
        lengths[0], lengths[1],
        "the two lengths of a rank's block for itself"
    );
    out.clear();
    for step in 1..size {
        if step % AT_ONCE == 1 && !kind.is_rooted() {
            out.round();
        }
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        if let Some(block) = sent[to as usize] {
            out.send(to, block);
        }
        if let Some(block) = received[from as usize] {
            out.receive(from, block);
        }
    }
    if let [Some(from), Some(into)] = own {
        out.copy(from, into);
    }
    out.round();
}

/// The distances that travel in one round: those with that bit set.
fn moving(count: u32, bit: u32) -> impl Iterator<Item = u32> {
    (0..count).filter(move |distance| distance & bit != 0)
}

/// Bruck's algorithm: a block with d members to go travels by the bits of d, together with all
/// other blocks that have the same bit.
///
/// It takes as many rounds as the number of members has bits, each with half of all blocks. `bytes`
/// says how much the member at one position has for that at another, at most `most`; `put` puts
/// this one's block for a position into place. Returns where the block of each position for this
/// one lies then.
fn disseminate(
    (group, rank): (Group<'_>, u32),
    (bytes, most): (impl Fn(u32, u32) -> usize, usize),
    mut put: impl FnMut(u32, Range, &mut Schedule),
    out: &mut Schedule,
) -> Vec<Range> {
    let (count, at) = (group.len(), group.position(rank));
    let position = |offset: u64| ((u64::from(at) + offset) % u64::from(count)) as u32;
    // Length of the block that has `distance` to go in all and lies at the member `back` before
    // this one, its lower bits traveled.
    let len = |distance: u32, bit: u32, back: u32| {
        let traveled = distance & (bit - 1);
        let from = position(2 * u64::from(count) - u64::from(traveled + back));
        let to = (u64::from(from) + u64::from(distance)) % u64::from(count);
        bytes(from, to as u32)
    };
    let all = out.scratch(most * count as usize);
    let place = |distance: u32, len: usize| all.part(distance as usize * most, len);
    for distance in 0..count {
        put(
            position(distance.into()),
            place(distance, len(distance, 1, 0)),
            out,
        );
    }
    let half = count.next_power_of_two() as usize / 2;
    let (given, taken) = (out.scratch(half * most), out.scratch(half * most));
    let mut bit = 1;
    while bit < count {
        let mut end = 0;
        for distance in moving(count, bit) {
            let len = len(distance, bit, 0);
            out.copy(place(distance, len), given.part(end, len));
            end += len;
        }
        let comes = moving(count, bit)
            .map(|distance| len(distance, bit, bit))
            .sum();
        out.round();
        out.send(group.rank(position(bit.into())), given.part(0, end));
        let before = position(u64::from(count - bit));
        out.receive(group.rank(before), taken.part(0, comes));
        let mut end = 0;
        for distance in moving(count, bit) {
            let len = len(distance, bit, bit);
            out.copy(taken.part(end, len), place(distance, len));
            end += len;
        }
        bit *= 2;
    }
    let mut places = vec![Range::NONE; count as usize];
    for distance in 0..count {
        let from = position(u64::from(count - distance));
        places[from as usize] = place(distance, bytes(from, at));
    }
    places
}

/// Scratch of [`disseminate`] of a group of so many.
fn dissemination_scratch(count: u32, most: usize) -> usize {
    let buffers = count as usize + count.next_power_of_two() as usize;
    buffers.saturating_mul(most).saturating_add(3 * 64)
}

/// Each member for itself.
fn dissemination(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let all = (situation.hoods.all_ranks(), situation.rank);
    let put = |to, place, out: &mut Schedule| out.copy(task.block_of(Area::Source, to), place);
    let places = disseminate(all, (|_, _| task.block(), task.block()), put, out);
    for (from, place) in (0..).zip(places) {
        out.copy(place, task.block_of(Area::Target, from));
    }
}

fn leaders_scratch(hoods: &Hoods, task: &Task) -> usize {
    let (_, most) = hoods.extent();
    let most = most as usize;
    let given = most.saturating_mul(hoods.size() as usize);
    let given = given.saturating_mul(task.block()).saturating_add(64);
    let blocks = most.saturating_mul(most).saturating_mul(task.block());
    given.saturating_add(dissemination_scratch(hoods.count(), blocks))
}

/// Neighbors give all their blocks to their leader; leaders exchange the blocks of their
/// neighborhoods for each other by dissemination, and give their neighbors the blocks that have
/// come.
fn leaders(situation: &Situation<'_>, task: &Task, out: &mut Schedule) {
    let Situation { rank, hoods, .. } = *situation;
    let (size, len) = (hoods.size() as usize, task.block());
    let (hood, whole) = (hoods.of(rank), size * len);
    let (group, leader) = (hoods.group(hood), hoods.leader(hood));
    if rank != leader {
        out.send(leader, Range::new(Area::Source, 0, whole));
        out.round();
        out.receive(leader, Range::new(Area::Target, 0, whole));
        return;
    }
    let members = group.len() as usize;
    // The blocks that each member has given, and later those that each gets; the leader's own lie
    // elsewhere.
    let kept = out.scratch((members - 1) * whole);
    let block = |at: usize, other: u32, own: Area| match at.checked_sub(1) {
        Some(at) => kept.part(at * whole + other as usize * len, len),
        None => task.block_of(own, other),
    };
    for at in 1..members {
        out.receive(group.rank(at as u32), kept.part((at - 1) * whole, whole));
    }
    let bytes = |from, to| (hoods.group(from).len() * hoods.group(to).len()) as usize * len;
    let (_, most) = hoods.extent();
    let put = |to, place: Range, out: &mut Schedule| {
        let theirs = hoods.group(to);
        let count = theirs.len() as usize;
        for at in 0..members {
            for other in 0..count {
                let from = block(at, theirs.rank(other as u32), Area::Source);
                out.copy(from, place.part((at * count + other) * len, len));
            }
        }
    };
    let most = (most * most) as usize * len;
    let places = disseminate((hoods.leaders(), rank), (bytes, most), put, out);
    for (from, place) in (0..).zip(places) {
        let theirs = hoods.group(from);
        for other in 0..theirs.len() {
            for at in 0..members {
                let place = place.part((other as usize * members + at) * len, len);
                out.copy(place, block(at, theirs.rank(other), Area::Target));
            }
        }
    }
    out.round();
    for at in 1..members {
        out.send(group.rank(at as u32), kept.part((at - 1) * whole, whole));
    }
}
