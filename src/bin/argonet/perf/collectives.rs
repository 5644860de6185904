//! Our side: collective operations, by all ranks.

use super::metric::Load;
use super::pair::Pair;
use argonet::{Rank, Reduction, Result};
use std::hint::black_box;
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

/// What the memory has to carry for that at the least, nearly: of all vectors together, each rank combines its part, and reads
/// those of the others; that is two vectors read and one written.
pub(crate) fn add(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let mut values = vec![1.0f64; load.bytes / size_of::<f64>()];
    let others = vec![2.0f64; values.len()];
    let taken = repeat(load, || {
        let (values, others) = (black_box(&mut values), black_box(&others));
        for (value, other) in values.iter_mut().zip(others) {
            *value = value.max(*other);
        }
        Ok(())
    });
    pair.world.barrier()?;
    taken
}
