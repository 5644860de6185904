//! Exchange between neighborhoods by envoys: for each pair of neighborhoods one member of each, so
//! that all that one has for the other is one message, and the members share the messages.

use super::hoods::Group;
use super::parts::{MOST_PIECES, pieces};
use super::{Area, Hoods, Range, Schedule, Situation, Task};

/// How much goes at once, so that scratch is bounded.
#[derive(Clone, Copy)]
pub(super) struct Batches {
    /// Neighborhoods that each exchanges with at once.
    width: u32,
    /// Bytes of a piece of a block.
    piece: usize,
}

impl Batches {
    /// For blocks of `block` bytes in `scratch` bytes; `None` if that would take too many pieces.
    pub(super) fn new(hoods: &Hoods, block: usize, scratch: usize) -> Option<Self> {
        let (least, most) = hoods.extent();
        // An envoy holds the outgoing and the incoming blocks of one pair, and a member its own
        // part of as many pairs as there are envoys.
        let bytes = most as usize * (least as usize + 2 * most as usize);
        let scratch = scratch.saturating_sub(3 * 64);
        let groups = scratch / bytes.saturating_mul(block).max(1);
        let width = u32::try_from(groups).unwrap_or(u32::MAX);
        let width = width.max(1).saturating_mul(least).min(hoods.count());
        let piece = if groups > 0 { block } else { scratch / bytes };
        (block <= piece.saturating_mul(MOST_PIECES)).then_some(Self { width, piece })
    }
}

/// Some neighborhoods' exchange with this member's own, of a piece of each block.
struct Batch<'a> {
    situation: &'a Situation<'a>,
    task: &'a Task,
    /// Of a block.
    piece: Range,
    pairs: Vec<Pair<'a>>,
}

/// Another neighborhood.
struct Pair<'a> {
    theirs: Group<'a>,
    /// The envoys.
    here: u32,
    there: u32,
    /// This member's own part, on its way out and in, where it does not lie together in its source
    /// and target.
    own: Range,
    /// At the envoy: outgoing blocks, by member here and then there; incoming ones, by member there
    /// and then here.
    going: Range,
    coming: Range,
}

impl Batch<'_> {
    /// The piece of this member's block for, or from, another.
    fn block(&self, area: Area, other: u32) -> Range {
        let block = self.task.block_of(area, other);
        block.part(self.piece.at, self.piece.len)
    }

    /// The pieces for all members of a neighborhood, if they lie together.
    fn together(&self, area: Area, theirs: Group<'_>) -> Option<Range> {
        let (first, count) = (theirs.rank(0), theirs.len());
        let len = self.task.block();
        let is_run = theirs.rank(count - 1) - first == count - 1;
        (is_run && self.piece.len == len)
            .then(|| Range::new(area, first as usize * len, count as usize * len))
    }

    /// Where this member's own part of a pair lies.
    fn own(&self, area: Area, pair: &Pair<'_>) -> Range {
        self.together(area, pair.theirs).unwrap_or(pair.own)
    }

    /// Copies between a member's own part and its blocks, where they do not lie together.
    fn copies(&self, pair: &Pair<'_>, area: Area, mut copy: impl FnMut(Range, Range)) {
        if self.together(area, pair.theirs).is_none() {
            for at in 0..pair.theirs.len() {
                let len = self.piece.len;
                let part = pair.own.part(at as usize * len, len);
                copy(self.block(area, pair.theirs.rank(at)), part);
            }
        }
    }

    /// The part of the outgoing blocks, or of those given out, that is a member's.
    fn part(&self, pair: &Pair<'_>, member: u32) -> Range {
        let len = pair.theirs.len() as usize * self.piece.len;
        pair.going.part(member as usize * len, len)
    }

    fn steps(&self, out: &mut Schedule) {
        let Situation { rank, hoods, .. } = *self.situation;
        let group = hoods.group(hoods.of(rank));
        let (count, at) = (group.len(), group.position(rank));
        let others = || (0..count).filter(|other| *other != at);
        let mine = || self.pairs.iter().filter(|pair| pair.here == rank);
        out.round();
        for pair in &self.pairs {
            self.copies(pair, Area::Source, |block, part| out.copy(block, part));
        }
        out.round();
        for pair in &self.pairs {
            if pair.here == rank {
                for other in others() {
                    out.receive(group.rank(other), self.part(pair, other));
                }
            } else {
                out.send(pair.here, self.own(Area::Source, pair));
            }
        }
        for pair in mine() {
            out.copy(self.own(Area::Source, pair), self.part(pair, at));
        }
        out.round();
        for pair in mine() {
            out.send(pair.there, pair.going);
            out.receive(pair.there, pair.coming);
        }
        let len = self.piece.len;
        for pair in mine() {
            for there in 0..pair.theirs.len() {
                for here in 0..count {
                    let come = pair.coming.part((there * count + here) as usize * len, len);
                    let part = self.part(pair, here);
                    out.copy(come, part.part(there as usize * len, len));
                }
            }
        }
        out.round();
        for pair in &self.pairs {
            if pair.here == rank {
                for other in others() {
                    out.send(group.rank(other), self.part(pair, other));
                }
            } else {
                out.receive(pair.here, self.own(Area::Target, pair));
            }
        }
        for pair in mine() {
            out.copy(self.part(pair, at), self.own(Area::Target, pair));
        }
        for pair in &self.pairs {
            self.copies(pair, Area::Target, |block, part| out.copy(part, block));
        }
        out.round();
    }
}

/// All blocks for members of other neighborhoods.
///
/// Neighborhoods a and b meet at the step (a + b) modulo their number, the same for both, so that
/// no two wait for each other in different steps; in step c the envoy is the member at position c,
/// around the smallest neighborhood.
pub(super) fn exchange(
    situation: &Situation<'_>,
    task: &Task,
    batches: Batches,
    out: &mut Schedule,
) {
    let Situation { rank, hoods, .. } = *situation;
    let (hood, count) = (hoods.of(rank), hoods.count());
    let (least, _) = hoods.extent();
    let group = hoods.group(hood);
    let base = out.scratch_mark();
    for piece in pieces(task.of(Area::Source), 1, batches.piece.max(1)) {
        for first in (0..count).step_by(batches.width as usize) {
            out.scratch_back(base);
            let steps = first..count.min(first.saturating_add(batches.width));
            let partner =
                |step: u32| ((u64::from(step + count) - u64::from(hood)) % u64::from(count)) as u32;
            let exchanges = steps.map(|step| (step, partner(step)));
            let exchanges: Vec<_> = exchanges.filter(|(_, other)| *other != hood).collect();
            let bytes = |members: u32| members as usize * piece.len;
            let is_mine = |step: u32| group.rank(step % least) == rank;
            let parts = exchanges
                .iter()
                .map(|(_, other)| bytes(hoods.group(*other).len()));
            let own = out.scratch(parts.sum());
            let mine = exchanges.iter().filter(|(step, _)| is_mine(*step));
            let blocks = mine.map(|(_, other)| bytes(hoods.group(*other).len() * group.len()));
            let all: usize = blocks.sum();
            let (going, coming) = (out.scratch(all), out.scratch(all));
            let (mut own_end, mut end) = (0, 0);
            let pairs = exchanges.iter().map(|&(step, other)| {
                let theirs = hoods.group(other);
                let part = own.part(own_end, bytes(theirs.len()));
                own_end += part.len;
                let len = match is_mine(step) {
                    true => bytes(theirs.len() * group.len()),
                    false => 0,
                };
                end += len;
                Pair {
                    theirs,
                    here: group.rank(step % least),
                    there: theirs.rank(step % least),
                    own: part,
                    going: going.part(end - len, len),
                    coming: coming.part(end - len, len),
                }
            });
            let batch = Batch {
                situation,
                task,
                piece,
                pairs: pairs.collect(),
            };
            batch.steps(out);
        }
    }
}
