//! Temperatures of a square plate with one hot edge, by Jacobi's method.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/jacobi 500 1000     # side of the plate, and steps
//! ```
//!
//! Each rank has some of the rows, and a halo: the rows of the ranks beside it, and the edges of
//! the plate.

use argonet::{Distribution, GlobalArray, Rank, Spread, World};
use std::error::Error;

/// A row after a step: each inner point becomes the mean of those around it.
pub(crate) fn step(above: &[f64], row: &[f64], below: &[f64], to: &mut [f64]) {
    let vertical = above[1..].iter().zip(&below[1..]);
    for ((to, (above, below)), row) in to[1..].iter_mut().zip(vertical).zip(row.windows(3)) {
        *to = (above + below + row[0] + row[2]) / 4.0;
    }
}

fn run(world: &mut World, side: usize, steps: usize) -> Result<(), Box<dyn Error>> {
    let rows = Distribution::new([side, side], [Spread::Block, Spread::Whole]).halo([1, 1]);
    let mut plate = GlobalArray::<f64, 2>::alloc(world, rows)?;
    let mut new = GlobalArray::<f64, 2>::alloc(world, rows)?;
    if plate.own_indices().is_some_and(|[rows, _]| rows.start == 0) {
        // The edge before the first row.
        let hot = vec![1.0; side + 2];
        plate.write_line(world, [0, 0], &hot);
        new.write_line(world, [0, 0], &hot);
    }
    for _ in 0..steps {
        plate.exchange_halo(world)?;
        world.quiet(|quiet| {
            let (plate, mut new) = (plate.local(quiet), new.local_mut(quiet));
            let [rows, _] = plate.own_numbers();
            for row in rows {
                let [above, own, below] = [row - 1, row, row + 1].map(|row| plate.line([row, 0]));
                step(above, own, below, new.line_mut([row, 0]));
            }
        })?;
        std::mem::swap(&mut plate, &mut new);
    }
    if world.rank() == Rank(0) {
        let middle = world.get_value(plate.at([side / 2, side / 2]))?;
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
