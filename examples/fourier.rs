//! A Fourier transform in three dimensions, by transposition.
//!
//! ```sh
//! argonet run -n 2 target/release/examples/fourier 64     # elements in each dimension
//! ```
//!
//! Each rank has some planes of a cube, and so whole lines along the last dimension, which it
//! transforms by itself. Then all turn the cube, so that the next dimension is the last one: each
//! rank gets what it needs from the others. After three turns the cube lies as before.

use argonet::{Distribution, GlobalArray, Rank, Spread, World};
use std::error::Error;

/// Real and imaginary part.
type Complex = [f64; 2];

/// What is transformed.
pub(crate) fn input([i, j, k]: [usize; 3]) -> Complex {
    let number = (i * 31 + j * 17 + k * 7) as f64;
    [number.sin(), number.cos() / 2.0]
}

/// Transforms a line whose length is a power of two, by halves.
fn transform(line: &mut [Complex]) {
    let half = line.len() / 2;
    if half == 0 {
        return;
    }
    let from = |first| -> Vec<Complex> { line[first..].iter().step_by(2).copied().collect() };
    let (mut even, mut odd) = (from(0), from(1));
    transform(&mut even);
    transform(&mut odd);
    for k in 0..half {
        let (sin, cos) = (-std::f64::consts::PI * k as f64 / half as f64).sin_cos();
        let ([re, im], [odd_re, odd_im]) = (even[k], odd[k]);
        let turned = [odd_re * cos - odd_im * sin, odd_re * sin + odd_im * cos];
        line[k] = [re + turned[0], im + turned[1]];
        line[k + half] = [re - turned[0], im - turned[1]];
    }
}

fn run(world: &mut World, side: usize) -> Result<(), Box<dyn Error>> {
    if !side.is_power_of_two() {
        return Err(format!("{side} is no power of two").into());
    }
    let planes = Distribution::new([side; 3], [Spread::Block, Spread::Whole, Spread::Whole]);
    let mut cube = GlobalArray::<Complex, 3>::alloc(world, planes)?;
    let mut turned = GlobalArray::<Complex, 3>::alloc(world, planes)?;
    world.quiet(|quiet| {
        for (index, value) in cube.local_mut(quiet).iter_mut() {
            *value = input(index);
        }
    })?;
    let Some([own, ..]) = cube.own_indices() else {
        unreachable!("planes are spread in blocks")
    };
    for _ in 0..3 {
        world.quiet(|quiet| {
            for (_, line) in cube.local_mut(quiet).lines_mut() {
                transform(line);
            }
        })?;
        // Element [i, j, k] becomes [k, i, j], so this rank needs the k of its planes.
        let slab = cube.get_vec(world, [0..side, 0..side, own.clone()])?;
        world.quiet(|quiet| {
            for ([k, i, j], value) in turned.local_mut(quiet).iter_mut() {
                *value = slab[(i * side + j) * own.len() + k - own.start];
            }
        })?;
        std::mem::swap(&mut cube, &mut turned);
    }
    if world.rank() == Rank(0) {
        for index in [[0, 0, 0], [0, 1 % side, 2 % side], [side - 1; 3]] {
            let [re, im] = world.get_value(cube.at(index))?;
            println!("element {index:?} is {re:.6} {im:+.6} i");
        }
    }
    Ok(())
}

fn main() {
    let side = std::env::args().nth(1).map_or(Ok(64), |arg| arg.parse());
    argonet::run(|world| run(world, side.clone()?));
}
