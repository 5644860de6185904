//! Counts the vertices of an unbalanced tree on all ranks, in the manner of the benchmark UTS.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/tree_search 20000     # the children of the root
//! ```
//!
//! A vertex is a number that says how many children there are, and which. Most have none, so the
//! parts of the tree differ widely: [`World::run_tasks`] moves vertices to ranks that have none.

use argonet::{Rank, Reduction, Result, World};
use fastrand::Rng;
use std::time::Instant;

/// The children of a vertex: seven for an eighth of the vertices.
pub(crate) fn children(vertex: u64) -> impl Iterator<Item = u64> {
    let mut random = Rng::with_seed(vertex);
    let count = if random.u8(..8) == 0 { 7 } else { 0 };
    (0..count).map(move |_| random.u64(..))
}

fn search(world: &World, count: u64) -> Result<()> {
    let begun = Instant::now();
    let first = if world.rank() == Rank(0) { count } else { 0 };
    let mut visited = 0u64;
    world.run_tasks(0..first, |vertex, tasks| {
        visited += 1;
        children(vertex).for_each(|child| tasks.push(child));
    })?;
    let took = begun.elapsed();
    println!(
        "rank {} visited {visited} vertices in {took:.1?}",
        world.rank()
    );
    let all = world
        .collectives()
        .reduce_value(Rank(0), Reduction::Sum, visited)?;
    if let Some(all) = all {
        println!(
            "{all} vertices, {:.3} million a second",
            all as f64 / took.as_secs_f64() / 1e6
        );
    }
    Ok(())
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    argonet::run(|world| search(world, count.unwrap_or(20_000)));
}
