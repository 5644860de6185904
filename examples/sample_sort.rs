//! Sorts random numbers of all ranks.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/sample_sort 1000000     # numbers of each rank
//! ```
//!
//! Samples say where the parts of the ranks begin and end; one exchange moves all numbers.

use argonet::{Blocks, Rank, Result, World};
use fastrand::Rng;
use std::error::Error;
use std::time::Instant;

/// Samples of each rank.
const SAMPLES: usize = 64;

/// The numbers that a rank has at first.
pub(crate) fn numbers(rank: u32, count: usize) -> Vec<u64> {
    let mut random = Rng::with_seed(rank.into());
    std::iter::repeat_with(|| random.u64(..))
        .take(count)
        .collect()
}

fn sort(world: &World, mut numbers: Vec<u64>) -> Result<Vec<u64>> {
    let ranks = world.size() as usize;
    numbers.sort_unstable();
    let samples = (0..SAMPLES).filter_map(|at| numbers.get(at * numbers.len() / SAMPLES));
    let samples: Vec<u64> = samples.copied().collect();
    let mut samples = world.collectives().gather_all_v(&samples)?.into_values();
    samples.sort_unstable();
    // The part of a rank ends where that of the next one begins; the last one ends nowhere.
    let ends = (1..ranks).map(|rank| match samples.get(rank * samples.len() / ranks) {
        Some(sample) => numbers.partition_point(|number| number < sample),
        None => 0,
    });
    let mut begin = 0;
    let lengths: Vec<usize> = ends
        .chain([numbers.len()])
        .map(|end| end - std::mem::replace(&mut begin, end))
        .collect();
    let mut part = world
        .collectives()
        .exchange_v(&Blocks::new(numbers, lengths))?
        .into_values();
    part.sort_unstable();
    Ok(part)
}

fn run(world: &World, each: usize) -> Result<()> {
    let numbers = numbers(world.rank().0, each);
    world.barrier()?;
    let begun = Instant::now();
    let part = sort(world, numbers)?;
    let lengths = world.collectives().gather_all(&[part.len() as u64])?;
    let first: u64 = lengths[..world.rank().0 as usize].iter().sum();
    if let (Some(least), Some(most)) = (part.first(), part.last()) {
        let last = first + part.len() as u64 - 1;
        println!(
            "rank {}: number {first} is {least}, number {last} is {most}",
            world.rank()
        );
    }
    if world.rank() == Rank(0) {
        println!(
            "{} numbers in {:.1?}",
            lengths.iter().sum::<u64>(),
            begun.elapsed()
        );
    }
    Ok(())
}

fn main() {
    let each = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |arg| arg.parse());
    argonet::run(|world| -> Result<(), Box<dyn Error>> { Ok(run(world, each.clone()?)?) });
}
