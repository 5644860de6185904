//! Temperatures of a square plate with one hot edge, by Jacobi's method.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/jacobi 500 1000     # rows and columns, and steps
//! ```
//!
//! Each rank has some of the rows. Before a step it puts its outer ones where those beside it read
//! them, and signals that they are there: no rank waits for others than those beside it.

use argonet::{Rank, Reduction, SharedArray, Signal, World};
use std::error::Error;

/// A row after a step: each inner point becomes the mean of those around it.
pub(crate) fn step(above: &[f64], row: &[f64], below: &[f64], to: &mut [f64]) {
    let vertical = above[1..].iter().zip(&below[1..]);
    for ((to, (above, below)), row) in to[1..].iter_mut().zip(vertical).zip(row.windows(3)) {
        *to = (above + below + row[0] + row[2]) / 4.0;
    }
}

fn run(world: &World, side: usize, steps: usize) -> Result<(), Box<dyn Error>> {
    let (me, ranks, width) = (world.rank().0 as usize, world.size() as usize, side + 2);
    if side < ranks {
        return Err(format!("{side} rows are fewer than {ranks} ranks").into());
    }
    let rows = me * side / ranks..(me + 1) * side / ranks;
    // Between a row of the rank before and one of the next rank, or the edges of the plate.
    let mut plate = vec![vec![0.0; width]; rows.len() + 2];
    let end = rows.len() + 1;
    if me == 0 {
        plate[0].fill(1.0);
    }
    let mut new = plate.clone();
    // Rows of the rank before and of the next one, and how many have come, each for even and for
    // odd steps: an adjacent rank may be one step ahead.
    let outer = SharedArray::<f64>::alloc(world, 4 * width)?;
    let counts = SharedArray::<u64>::alloc(world, 4)?;
    let place = |of: usize, number: usize| of + 2 * (number % 2);
    world.barrier()?;
    let before = me.checked_sub(1).map(|rank| Rank(rank as u32));
    let next = (me + 1 < ranks).then_some(Rank(me as u32 + 1));
    for number in 0..steps {
        // To the rank before this is the next rank, and the other way round.
        for (to, row, of) in [(before, 1, 1), (next, end - 1, 0)] {
            if let Some(to) = to {
                let place = place(of, number);
                let there = outer.on(to).part(place * width..).part(..width);
                world.put_signal(there, &plate[row], Signal::add(counts.ptr(to, place), 1))?;
            }
        }
        for (from, row, of) in [(before, 0, 0), (next, end, 1)] {
            if from.is_some() {
                let place = place(of, number);
                let count = counts.ptr(world.rank(), place);
                world.wait_signal(count, |count| count > number as u64 / 2)?;
                outer.read_into(world, place * width, &mut plate[row]);
            }
        }
        for row in 1..end {
            let to = &mut new[row];
            step(&plate[row - 1], &plate[row], &plate[row + 1], to);
        }
        std::mem::swap(&mut plate, &mut new);
    }
    let at = side / 2;
    let own = rows
        .contains(&at)
        .then(|| plate[at - rows.start + 1][at + 1]);
    let calls = world.collectives();
    if let Some(middle) = calls.reduce_value(Rank(0), Reduction::Sum, own.unwrap_or(0.0))? {
        println!("the middle has {middle:.9}");
    }
    Ok(())
}

fn main() {
    let argument = |at, default| {
        std::env::args()
            .nth(at)
            .map_or(Ok(default), |arg| arg.parse())
    };
    let [side, steps] = [argument(1, 500), argument(2, 1000)];
    argonet::run(|world| run(world, side.clone()?, steps.clone()?));
}
