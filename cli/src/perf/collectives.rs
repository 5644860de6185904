//! Our side: collective operations, by all ranks.
#![allow(unsafe_code)]

use super::limits::Shared;
use super::metric::Load;
use super::pair::Pair;
use argonet::{Rank, Reduction, Result};
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

fn repeat(load: Load, mut operation: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    (0..load.count).try_for_each(|_| operation())?;
    Ok(start.elapsed())
}

/// Barriers in a row.
pub(crate) fn barrier(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    repeat(load, || pair.world.barrier())
}

/// Broadcasts of one word from rank 0.
pub(crate) fn broadcast(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let mut word = [1u64];
    repeat(load, || pair.world.broadcast(Rank(0), black_box(&mut word)))
}

/// Sums of one word, for all.
pub(crate) fn reduce_all(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let mut word = [1u64];
    repeat(load, || {
        pair.world.reduce_all(Reduction::Sum, black_box(&mut word))
    })
}

/// Sums of a long vector, for all.
pub(crate) fn reduce_all_long(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let mut values = vec![1.0f64; load.bytes / size_of::<f64>()];
    repeat(load, || {
        pair.world
            .reduce_all(Reduction::Max, black_box(&mut values))
    })
}

/// Doubles that are combined at a time.
const BLOCK: usize = 1024;

/// The same by loops that are written for it, with the least traffic: each rank gives the others
/// the parts that they combine, combines its own, and takes the parts that they have combined.
///
/// Our barriers, which cost nearly nothing beside, keep them in step.
pub(crate) fn reduce_by_hand(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let count = load.bytes / size_of::<f64>();
    let mut values = vec![1.0f64; count];
    let (me, size) = (pair.rank().0 as usize, pair.world.size() as usize);
    let part = |rank: usize| count * rank / size..count * (rank + 1) / size;
    let others = || (0..size).filter(|rank| *rank != me);
    let mut half = 0;
    repeat(load, || {
        // The half that was read in the last round is not written in this one.
        half ^= load.bytes;
        let shared = |rank| -> *mut f64 {
            let bytes = pair.raw(rank).bytes(Shared::FRONT + half, load.bytes);
            bytes.cast()
        };
        for rank in others() {
            let Range { start, end } = part(rank);
            // SAFETY: as many values lie there, which no rank reads before the barrier.
            unsafe {
                let to = shared(me).add(start);
                to.copy_from_nonoverlapping(values[start..end].as_ptr(), end - start);
            }
        }
        pair.world.barrier()?;
        for start in part(me).step_by(BLOCK) {
            let block = start..part(me).end.min(start + BLOCK);
            let own = &mut values[block.clone()];
            for rank in others() {
                // SAFETY: the other rank has written these values before the barrier.
                let theirs = unsafe { shared(rank).add(block.start) };
                for (at, value) in own.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *value = value.max(unsafe { theirs.add(at).read() });
                }
            }
            // SAFETY: no rank reads this part of this rank's memory before the next barrier.
            unsafe {
                let to = shared(me).add(block.start);
                to.copy_from_nonoverlapping(own.as_ptr(), own.len());
            }
        }
        pair.world.barrier()?;
        for rank in others() {
            let Range { start, end } = part(rank);
            // SAFETY: the other rank has written these values before the barrier.
            unsafe {
                let from = shared(rank).add(start);
                let to = values[start..end].as_mut_ptr();
                to.copy_from_nonoverlapping(from, end - start);
            }
        }
        black_box(&mut values);
        Ok(())
    })
}
