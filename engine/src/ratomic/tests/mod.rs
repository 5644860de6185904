//! Remote atomic operations over engines of one process, in segments and in bound memory.

mod batch;
mod bound;
mod forged;
mod model;
mod signal;

use super::{Atomic, AtomicWord, Target};
use crate::bound::tests::rig::Rig;
use crate::datatype::Operation;
use argonet_base::{JobRank, SegmentOffset};

fn what<T: AtomicWord>(operation: Operation, operand1: T, operand2: T) -> Atomic<T> {
    Atomic {
        operation,
        operand1,
        operand2,
    }
}

/// A word that rank 0 has mapped, of rank 1's segment.
fn segment_word(at: u64) -> Target {
    Target::Segment {
        rank: JobRank(1),
        offset: SegmentOffset(at),
    }
}

/// A word that only `rank` knows.
///
/// The rig's memory begins at some place: this is a multiple of 8.
fn bound_word(rig: &Rig, rank: usize, word: usize) -> Target {
    let mut place = rig.place(rank, 8 * word);
    place.address = place.address.next_multiple_of(8);
    Target::Bound(place)
}

fn operations_of<T: AtomicWord>() -> impl Iterator<Item = Operation> {
    Operation::all().filter(|op| op.is_atomic_on(T::TYPE))
}
