//! Counts the vertices of an unbalanced tree on all ranks, in the manner of the benchmark UTS.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/tree_search 200000     # the children of the root
//! ```
//!
//! A vertex is a number from which its children follow. Most have none, so the parts of the tree
//! differ widely: [`World::run_tasks`] moves vertices to ranks without tasks.

use argonet::{Rank, Reduction, Result, World};
use fastrand::Rng;
use std::error::Error;
use std::time::Instant;

/// Vertices that one task visits, at most.
const MOST: usize = 1000;

/// The children of a vertex: eight for 124 of 1000 vertices.
pub(crate) fn children(vertex: u64) -> impl Iterator<Item = u64> {
    let mut random = Rng::with_seed(vertex);
    let count = if random.u32(..1000) < 124 { 8 } else { 0 };
    (0..count).map(move |_| random.u64(..))
}

fn search(world: &World, count: u64) -> Result<()> {
    let begun = Instant::now();
    let first = if world.rank() == Rank(0) { count } else { 0 };
    let mut visited = 0u64;
    world.run_tasks(0..first, |vertex, tasks| {
        let mut stack = vec![vertex];
        for _ in 0..MOST {
            let Some(vertex) = stack.pop() else { break };
            visited += 1;
            stack.extend(children(vertex));
        }
        stack.into_iter().for_each(|vertex| tasks.push(vertex));
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
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(200_000), |arg| arg.parse());
    argonet::run(|world| -> Result<(), Box<dyn Error>> { Ok(search(world, count.clone()?)?) });
}
