//! Solves a system of linear equations by the method of conjugate gradients.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/conjugate_gradient 100000     # equations
//! ```
//!
//! The matrix has [`DIAGONAL`] on its diagonal and -1 beside it, and each equation's right side
//! is 1. Each rank has some of the equations, and unknowns.

use argonet::{Rank, Reduction, Result, World};
use std::error::Error;

pub(crate) const DIAGONAL: f64 = 2.01;

/// The product of the matrix and a vector, of which this rank has a part.
///
/// It gets the ends of all parts, which is simple and grows with the ranks; `jacobi` exchanges rows
/// with the ranks before and after.
fn product(world: &World, vector: &[f64]) -> Result<Vec<f64>> {
    // The first and the last value of each rank.
    let ends = [vector[0], vector[vector.len() - 1]];
    let all = world.collectives().gather_all(&[ends])?;
    let me = world.rank().0 as usize;
    let before = me.checked_sub(1).map_or(0.0, |rank| all[rank][1]);
    let behind = all.get(me + 1).map_or(0.0, |ends| ends[0]);
    let left = std::iter::once(&before).chain(vector);
    let right = vector[1..].iter().chain([&behind]);
    let sides = left.zip(right).map(|(left, right)| left + right);
    Ok(vector
        .iter()
        .zip(sides)
        .map(|(value, sides)| DIAGONAL * value - sides)
        .collect())
}

fn dot(world: &World, a: &[f64], b: &[f64]) -> Result<f64> {
    let own = a.iter().zip(b).map(|(a, b)| a * b).sum();
    world.collectives().reduce_all_value(Reduction::Sum, own)
}

/// `to` becomes `by * to + add * vector`.
fn combine(to: &mut [f64], by: f64, add: f64, vector: &[f64]) {
    to.iter_mut()
        .zip(vector)
        .for_each(|(to, value)| *to = by * *to + add * value);
}

fn run(world: &World, equations: usize) -> Result<(), Box<dyn Error>> {
    let (me, ranks) = (world.rank().0 as usize, world.size() as usize);
    if equations < ranks {
        return Err(format!("{equations} equations are fewer than {ranks} ranks").into());
    }
    let own = me * equations / ranks..(me + 1) * equations / ranks;
    let mut solution = vec![0.0; own.len()];
    let mut residual = vec![1.0; own.len()];
    let mut direction = residual.clone();
    let (mut square, mut steps) = (dot(world, &residual, &residual)?, 0);
    while square > 1e-20 * equations as f64 {
        let image = product(world, &direction)?;
        let length = square / dot(world, &direction, &image)?;
        combine(&mut solution, 1.0, length, &direction);
        combine(&mut residual, 1.0, -length, &image);
        let before = square;
        square = dot(world, &residual, &residual)?;
        combine(&mut direction, square / before, 1.0, &residual);
        steps += 1;
    }
    let sum = dot(world, &solution, &vec![1.0; own.len()])?;
    if world.rank() == Rank(0) {
        println!("after {steps} steps the sum of the unknowns is {sum:.6}");
    }
    Ok(())
}

fn main() {
    let equations = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |arg| arg.parse());
    argonet::run(|world| run(world, equations.clone()?));
}
