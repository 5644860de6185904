//! Long reduce-scatter in two levels: neighbors combine their blocks for a member of another
//! neighborhood before they send the result, so each link between neighborhoods carries each block
//! once and not once for each neighbor.
//!
//! The blocks for the member at a position are combined by the neighbor at the same position,
//! around its own neighborhood.

use super::super::schedule::ALIGN;
use super::parts::{pieces, share};
use super::{Area, Range, Schedule, Situation, Task, direct};

/// Neighborhoods that partial results go to at once, if there are so many.
const AT_ONCE: u32 = 8;

/// How much goes at once, so that scratch is bounded.
pub(super) struct Batches {
    /// Neighborhoods that partial results go to at once.
    width: u32,
    /// Bytes of a piece of a block, at least an element.
    piece: usize,
    /// The most members of another neighborhood that one member here combines for.
    turns: u32,
}

impl Batches {
    /// `None` if scratch is too short.
    pub(super) fn new(situation: &Situation<'_>, task: &Task) -> Option<Self> {
        let (least, most) = situation.hoods.extent();
        let turns = most.div_ceil(least);
        let scratch = situation.tuning.scratch_bytes;
        // Buffers: one for each neighbor and two results; for each neighborhood at once, those for
        // its members and the one from there.
        let fixed = most as usize + 2;
        let each = turns as usize + 1;
        let width = (scratch / (task.block() + ALIGN)).saturating_sub(fixed) / each;
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        let width = width.max(AT_ONCE).min(situation.hoods.count());
        let piece = |width: u32| share(scratch, fixed + width as usize * each);
        let width = if piece(width) < task.unit { 1 } else { width };
        let piece = piece(width);
        (piece >= task.unit).then_some(Self {
            width,
            piece,
            turns,
        })
    }
}

/// The results that have come to a member: of neighborhoods before and up to its own, and of those
/// behind it.
struct Results {
    low: Range,
    high: Range,
    /// Whether something has come from behind.
    any_high: bool,
}

impl Results {
    /// From a neighborhood; those before this member's own come from the nearest to the first, then
    /// those behind it from the last to the nearest, so operands keep their order.
    fn fold(&mut self, come: Range, is_behind: bool, out: &mut Schedule) {
        if !is_behind {
            out.fold(come, self.low);
        } else if self.any_high {
            out.fold(come, self.high);
        } else {
            out.copy(come, self.high);
            self.any_high = true;
        }
    }

    fn all(&self, out: &mut Schedule) -> Range {
        if !self.any_high {
            return self.low;
        }
        out.fold(self.low, self.high);
        self.high
    }
}

pub(super) fn reduce_scatter(
    situation: &Situation<'_>,
    task: &Task,
    batches: Batches,
    out: &mut Schedule,
) {
    let Situation { rank, hoods, .. } = *situation;
    let (hood, count) = (hoods.of(rank), hoods.count());
    let group = hoods.group(hood);
    let (members, at) = (group.len(), group.position(rank));
    let base = out.scratch_mark();
    for piece in pieces(task.of(Area::Target), task.unit, batches.piece) {
        out.scratch_back(base);
        let mut results = Results {
            low: out.scratch(piece.len),
            high: out.scratch(piece.len),
            any_high: false,
        };
        let kept: Vec<Range> = (0..batches.width * batches.turns)
            .map(|_| out.scratch(piece.len))
            .collect();
        let come: Vec<Range> = (0..batches.width).map(|_| out.scratch(piece.len)).collect();
        let mark = out.scratch_mark();
        for first in (0..count).step_by(batches.width as usize) {
            let steps = || first..count.min(first.saturating_add(batches.width));
            // The members that this one combines for in a step, and where it keeps their results.
            let receivers = |step: u32| {
                let theirs = hoods.group((hood + step) % count);
                let turns = (at..theirs.len()).step_by(members as usize);
                let kept = &kept[((step - first) * batches.turns) as usize..];
                turns.map(move |other| theirs.rank(other)).zip(kept)
            };
            for step in steps() {
                let theirs = hoods.group((hood + step) % count);
                let mut mine = receivers(step);
                for turn in (0..theirs.len()).step_by(members as usize) {
                    out.scratch_back(mark);
                    let part = |other: u32| match turn + other < theirs.len() {
                        true => task
                            .block_of(Area::Source, theirs.rank(turn + other))
                            .part(piece.at, piece.len),
                        false => Range::new(Area::Source, 0, 0),
                    };
                    let parts: Vec<Range> = (0..members).map(part).collect();
                    let acc = direct::reduce_scatter(group, rank, &parts, out);
                    match mine.next() {
                        _ if acc.len == 0 => {}
                        Some(_) if step == 0 => out.copy(acc, results.low),
                        Some((_, kept)) => out.copy(acc, *kept),
                        None => {}
                    }
                }
            }
            out.scratch_back(mark);
            for step in steps().filter(|step| *step > 0) {
                for (to, kept) in receivers(step) {
                    out.send(to, *kept);
                }
                let theirs = hoods.group((hood + count - step) % count);
                let from = theirs.rank(at % theirs.len());
                out.receive(from, come[(step - first) as usize]);
            }
            for step in steps().filter(|step| *step > 0) {
                results.fold(come[(step - first) as usize], step > hood, out);
            }
            out.round();
        }
        let result = results.all(out);
        out.copy(result, piece);
        out.round();
    }
}
