//! Temperatures of a square plate with one hot edge, by Jacobi's method.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/jacobi 500 1000     # rows and columns, and steps
//! ```
//!
//! Each rank has some of the rows. Before a step it puts its outer ones where its neighbors read
//! them, and signals that they are there: no rank waits for more than its neighbors.

use argonet::{Rank, Reduction, Result, SharedArray, Signal, World};

/// A row after a step: each inner point becomes the mean of those around it.
pub(crate) fn step(above: &[f64], row: &[f64], below: &[f64], to: &mut [f64]) {
    let vertical = above[1..].iter().zip(&below[1..]);
    for ((to, (above, below)), row) in to[1..].iter_mut().zip(vertical).zip(row.windows(3)) {
        *to = (above + below + row[0] + row[2]) / 4.0;
    }
}

fn run(world: &World, side: usize, steps: usize) -> Result<()> {
    let (me, ranks, width) = (world.rank().0 as usize, world.size() as usize, side + 2);
    let rows = me * side / ranks..(me + 1) * side / ranks;
    // Between a row of the rank before and one of the next rank, or the edges of the plate.
    let mut plate = vec![vec![0.0; width]; rows.len() + 2];
    let end = rows.len() + 1;
    if me == 0 {
        plate[0].fill(1.0);
    }
    let mut new = plate.clone();
    // Rows of the rank before and of the next one, each for even and for odd steps.
    let outer = SharedArray::<f64>::alloc(world, 4 * width)?;
    let counts = SharedArray::<u64>::alloc(world, 2)?;
    let begin = |of: usize, number: usize| (of + 2 * (number % 2)) * width;
    world.barrier()?;
    let before = me.checked_sub(1).map(|rank| Rank(rank as u32));
    let next = (me + 1 < ranks).then_some(Rank(me as u32 + 1));
    for number in 0..steps {
        // To the rank before this is the next rank, and the other way round.
        for (to, row, of) in [(before, 1, 1), (next, end - 1, 0)] {
            if let Some(to) = to {
                let there = outer.on(to).part(begin(of, number)..).part(..width);
                world.put_signal(there, &plate[row], Signal::add(counts.ptr(to, of), 1))?;
            }
        }
        for (from, row, of) in [(before, 0, 0), (next, end, 1)] {
            if from.is_some() {
                let count = counts.ptr(world.rank(), of);
                world.wait_signal(count, |count| count > number as u64)?;
                outer.read_into(world, begin(of, number), &mut plate[row]);
            }
        }
        for row in 1..end {
            let to = &mut new[row];
            step(&plate[row - 1], &plate[row], &plate[row + 1], to);
        }
        std::mem::swap(&mut plate, &mut new);
    }
    let at = side / 2;
    let own = rows.contains(&at).then(|| plate[at - rows.start + 1][at]);
    let calls = world.collectives();
    if let Some(middle) = calls.reduce_value(Rank(0), Reduction::Sum, own.unwrap_or(0.0))? {
        println!("the middle has {middle:.9}");
    }
    // The next rank may still be about to write here.
    world.drain()
}

fn main() {
    let mut args = std::env::args().skip(1).map_while(|arg| arg.parse().ok());
    let (side, steps) = (args.next().unwrap_or(500), args.next().unwrap_or(1000));
    argonet::run(|world| run(world, side, steps));
}
