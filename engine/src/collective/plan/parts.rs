//! Cuts vectors into parts of whole elements.

use super::super::schedule::ALIGN;
use super::{Area, Range, Task};

/// A range in `count` parts that are as equal as elements of `unit` bytes permit; some may be
/// empty.
pub(in super::super) fn parts(range: Range, unit: usize, count: u32) -> Vec<Range> {
    let elements = range.len / unit.max(1);
    let end =
        |index: u32| (elements as u128 * u128::from(index) / u128::from(count)) as usize * unit;
    let part = |index: u32| range.part(end(index), end(index + 1) - end(index));
    (0..count).map(part).collect()
}

/// A range in pieces of whole elements of at most `most` bytes, or one element; at least one, so
/// that a range without bytes has a message, too.
pub(in super::super) fn pieces(range: Range, unit: usize, most: usize) -> Vec<Range> {
    let step = (most / unit.max(1)).max(1) * unit.max(1);
    let piece = |at: usize| range.part(at, step.min(range.len - at));
    (0..range.len.max(1)).step_by(step).map(piece).collect()
}

/// Bytes of each of `count` ranges that fit scratch, which begin at lines there.
pub(super) fn share(scratch: usize, count: usize) -> usize {
    scratch / count.max(1) / ALIGN * ALIGN
}

/// Pieces of a block at most where all blocks pass through members' scratch: in more, another way
/// is as good.
pub(super) const MOST_PIECES: usize = 16;

/// A block, as a range of the source, in pieces such that `blocks` of each fit scratch; `None` if
/// that would take too many.
pub(super) fn bounded(task: &Task, blocks: usize, scratch: usize) -> Option<Vec<Range>> {
    // Ranges of scratch begin at lines.
    let most = scratch.saturating_sub(4 * ALIGN) / blocks;
    let fits = task.block() <= most.saturating_mul(MOST_PIECES);
    fits.then(|| pieces(task.of(Area::Source), 1, most.max(1)))
}
