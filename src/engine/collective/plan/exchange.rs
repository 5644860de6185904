//! Exchange: each member has a block for each.

use super::{Area, Range, Schedule, Shape, Task};

/// Messages that are under way at once where blocks go straight to their members.
const AT_ONCE: u32 = 16;

pub(super) fn plan(shape: &Shape<'_>, task: &Task, out: &mut Schedule) {
    let far = shape.hoods.count() > 1;
    if far && task.block() <= shape.tuning.exchange_dissemination_bytes && shape.size() > 2 {
        dissemination(shape, task, out);
    } else {
        pairwise(shape, task, out);
    }
}

/// To the member i further on, from the one i before, some at once.
fn pairwise(shape: &Shape<'_>, task: &Task, out: &mut Schedule) {
    let (rank, size) = (shape.rank, shape.size());
    let own = task.block_of(Area::Source, rank);
    out.copy(own, task.block_of(Area::Target, rank));
    for step in 1..size {
        if step % AT_ONCE == 1 {
            out.round();
        }
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        out.send(to, task.block_of(Area::Source, to));
        out.receive(from, task.block_of(Area::Target, from));
    }
}

/// Bruck's: a block that has d members to go travels by the bits of d, together with all others that have the same bit. In as
/// many rounds as the number of members has bits, of half of all blocks each.
fn dissemination(shape: &Shape<'_>, task: &Task, out: &mut Schedule) {
    let (rank, size, len) = (shape.rank, shape.size(), task.block());
    let member = |at: u64| (at % u64::from(size)) as u32;
    let all = out.scratch(len * size as usize);
    let block = |distance: u32| all.part(distance as usize * len, len);
    for distance in 0..size {
        let to = member(u64::from(rank) + u64::from(distance));
        out.copy(task.block_of(Area::Source, to), block(distance));
    }
    let half = size.next_power_of_two() as usize / 2;
    let (given, taken) = (out.scratch(half * len), out.scratch(half * len));
    let mut bit = 1;
    while bit < size {
        let moving: Vec<u32> = (0..size).filter(|distance| distance & bit != 0).collect();
        for (at, distance) in moving.iter().enumerate() {
            out.copy(block(*distance), given.part(at * len, len));
        }
        let bytes = moving.len() * len;
        out.round();
        out.send(
            member(u64::from(rank) + u64::from(bit)),
            given.part(0, bytes),
        );
        out.receive(
            member(u64::from(rank) + u64::from(size - bit)),
            taken.part(0, bytes),
        );
        for (at, distance) in moving.iter().enumerate() {
            out.copy(taken.part(at * len, len), block(*distance));
        }
        bit *= 2;
    }
    for distance in 0..size {
        let from = member(u64::from(rank) + u64::from(size - distance));
        let into: Range = task.block_of(Area::Target, from);
        out.copy(block(distance), into);
    }
}
