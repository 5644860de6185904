//! Breadth-first search in a random graph of the kind of Graph500 (R-MAT).
//!
//! ```sh
//! argonet run -n 2 target/release/examples/breadth_first 16     # 2^16 vertices
//! ```
//!
//! A vertex, and its edges, are on one rank. An exchange for each level brings the vertices
//! adjacent to the last one to their ranks. The vertices are not permuted, so rank 0 has the heavy
//! ones.

use argonet::{Blocks, Global, Rank, Reduction, Result, World};
use fastrand::Rng;
use std::error::Error;
use std::time::Instant;

pub(crate) const EDGES_A_VERTEX: u64 = 16;

/// The vertices of an edge (R-MAT): the quarters of the matrix have 57, 19, 19 and 5 edges of 100.
pub(crate) fn edge(scale: u32, number: u64) -> [u64; 2] {
    let mut random = Rng::with_seed(number);
    (0..scale).fold([0, 0], |[from, to], _| match random.u32(..100) {
        0..57 => [2 * from, 2 * to],
        57..76 => [2 * from, 2 * to + 1],
        76..95 => [2 * from + 1, 2 * to],
        _ => [2 * from + 1, 2 * to + 1],
    })
}

/// Sends each value to the rank that it is paired with, and returns those that came here.
fn moved<T: Global>(world: &World, values: impl Iterator<Item = (u64, T)>) -> Result<Vec<T>> {
    let mut by_rank = vec![Vec::new(); world.size() as usize];
    values.for_each(|(rank, value)| by_rank[rank as usize].push(value));
    let blocks = Blocks::from_iter(by_rank);
    Ok(world.collectives().exchange_v(&blocks)?.into_values())
}

fn run(world: &World, scale: u32) -> Result<(), Box<dyn Error>> {
    let (me, ranks) = (u64::from(world.rank().0), u64::from(world.size()));
    if scale > 40 {
        return Err("more than 2^40 vertices".into());
    }
    let count = 1u64 << scale;
    let own = (me..count * EDGES_A_VERTEX).step_by(ranks as usize);
    let both = own
        .map(|number| edge(scale, number))
        .flat_map(|[a, b]| [[a, b], [b, a]]);
    let mut edges = moved(world, both.map(|edge| (edge[0] % ranks, edge)))?;
    edges.sort_unstable();
    let adjacent: Vec<u64> = edges.iter().map(|[_, to]| *to).collect();
    // Where the edges of a vertex begin.
    let first = |vertex| edges.partition_point(|[from, _]| *from < vertex);
    let first: Vec<usize> = (me..=count + 2 * ranks)
        .step_by(ranks as usize)
        .map(first)
        .collect();
    let begun = Instant::now();
    let mut visited = vec![false; first.len()];
    let mut level = Vec::from_iter((me == 0).then_some(0u64));
    let (mut levels, mut reached) = (0, 0);
    loop {
        level.retain(|vertex| !std::mem::replace(&mut visited[(vertex / ranks) as usize], true));
        let size = world
            .collectives()
            .reduce_all_value(Reduction::Sum, level.len() as u64)?;
        if size == 0 {
            break;
        }
        (levels, reached) = (levels + 1, reached + size);
        let next = level.iter().flat_map(|vertex| {
            let own = (vertex / ranks) as usize;
            &adjacent[first[own]..first[own + 1]]
        });
        level = moved(world, next.map(|vertex| (vertex % ranks, *vertex)))?;
    }
    if world.rank() == Rank(0) {
        let took = begun.elapsed();
        println!("{reached} of {count} vertices on {levels} levels in {took:.1?}");
    }
    Ok(())
}

fn main() {
    let scale = std::env::args().nth(1).map_or(Ok(16), |arg| arg.parse());
    argonet::run(|world| run(world, scale.clone()?));
}
