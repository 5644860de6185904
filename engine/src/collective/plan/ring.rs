//! Round a ring: each member hears from the one before it alone, so that every link carries the
//! same, and the least.

use super::hoods::Group;
use super::parts::parts;
use super::{Range, Schedule};

/// Combines vectors in an order that differs from part to part, so only for operations that
/// commute.
///
/// Leaves the result where this returns.
pub(super) fn reduce_all(
    group: Group<'_>,
    rank: u32,
    own: Range,
    unit: usize,
    out: &mut Schedule,
) -> Range {
    let (count, at) = (group.len(), group.position(rank));
    let acc = out.scratch(own.len);
    out.round();
    out.copy(own, acc);
    if count == 1 {
        return acc;
    }
    let (next, before) = (
        group.rank((at + 1) % count),
        group.rank((at + count - 1) % count),
    );
    let parts = parts(acc, unit, count);
    let part = |step: u32| parts[((at + count - step % count) % count) as usize];
    let longest = parts.iter().map(|part| part.len).max().unwrap_or(0);
    let buffer = out.scratch(longest);
    for step in 0..count - 1 {
        let come = part(step + 1);
        out.round();
        out.send(next, part(step));
        out.receive(before, buffer.part(0, come.len));
        out.fold(buffer.part(0, come.len), come);
    }
    // This member has the whole of the part after its own.
    for step in 0..count - 1 {
        out.round();
        out.send(next, part(count + step - 1));
        out.receive(before, part(step));
    }
    out.round();
    acc
}

/// Each member's part to all: in each round a member passes on the part that has come in the one
/// before.
pub(super) fn gather_all(group: Group<'_>, rank: u32, parts: &[Range], out: &mut Schedule) {
    let (count, at) = (group.len(), group.position(rank));
    let (next, before) = (
        group.rank((at + 1) % count),
        group.rank((at + count - 1) % count),
    );
    let part = |step: u32| parts[((at + count - step) % count) as usize];
    for step in 0..count - 1 {
        out.round();
        out.send(next, part(step));
        out.receive(before, part(step + 1));
    }
    out.round();
}
