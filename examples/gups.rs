//! Random updates of a table over all ranks, in the manner of RandomAccess of HPC Challenge.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/gups 24            # 2^24 words, by an aggregator
//! argonet run -n 2 target/release/examples/gups 24 single     # one by one
//! ```
//!
//! Each rank applies exclusive ors of random numbers to words that the numbers choose: as many
//! updates as it has words, and then the same again. Exclusive or undoes itself, so the table must
//! be unchanged. It prints millions of updates a second.

use argonet::{AtomicOp, GlobalPtr, Rank, Result, SharedArray, World};
use std::time::Instant;

/// The updates that a rank makes: a generator of Marsaglia's, with a seed for each rank.
fn updates(world: &World, table: &SharedArray<u64>) -> impl Iterator<Item = (GlobalPtr<u64>, u64)> {
    let (ranks, each) = (u64::from(world.size()), table.len() as u64);
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ u64::from(world.rank().0 + 1) << 32;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (rank, word) = (Rank((state % ranks) as u32), state / ranks % each);
        (table.ptr(rank, word as usize), state)
    };
    std::iter::repeat_with(next).take(table.len())
}

fn run(world: &mut World) -> Result<()> {
    let mut args = std::env::args().skip(1);
    let bits: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    let single = args.next().is_some_and(|how| how == "single");
    let table = SharedArray::<u64>::alloc(world, ((1 << bits) / world.size() as usize).max(1))?;
    for word in 0..table.len() {
        table.write(world, word, word as u64);
    }
    world.barrier()?;
    let begun = Instant::now();
    for _ in 0..2 {
        if single {
            for (word, number) in updates(world, &table) {
                world.atomic(word, AtomicOp::xor(number))?;
            }
        } else {
            let mut aggregator = world.aggregator();
            for (word, number) in updates(world, &table) {
                aggregator.atomic(word, AtomicOp::xor(number))?;
            }
            aggregator.flush()?;
        }
    }
    world.barrier()?;
    let updates = 2.0 * table.len() as f64 * f64::from(world.size());
    let rate = updates / begun.elapsed().as_secs_f64() / 1e6;
    for word in 0..table.len() {
        assert_eq!(table.read(world, word), word as u64);
    }
    if world.rank().0 == 0 {
        println!("{rate:.3} million updates a second, and the table is right");
    }
    Ok(())
}

fn main() {
    argonet::run(run);
}
