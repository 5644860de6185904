//! The plate: rows of values, spread over the ranks, and one time step of the heat equation.
//!
//! ```text
//!              rank r - 1            rank r             rank r + 1
//!            +------------+      +------------+      +------------+
//!            | halo above |   +->| halo above |   +->| halo above |
//!            | rows       |   |  | rows       |   |  | rows       |
//!            |   last row |---+  |   last row |---+  |            |
//!            | halo below |<-----|-first row  |<-----|-first row  |
//!            +------------+      +------------+      +------------+
//! ```
//!
//! The rows themselves are private memory. The halos are shared memory, into which the *neighbors*
//! put: a put is complete when it returns, the target does nothing for it. A rank must still know
//! when a halo has arrived and when it has been used, and a barrier shows both:
//!
//! * A rank puts its edges, then enters the barrier. Behind the barrier all halos of this step have
//!   arrived.
//! * There are two sets of halos, used in turn. A rank that puts into a set in step t + 2 has
//!   passed the barrier of step t + 1, which its neighbor entered after it had used the set in step
//!   t. So no second barrier is needed.

use argonet::{Rank, Result, SharedArray, World};
use clap::ValueEnum;

/// Condition at the edge of the plate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Boundary {
    /// Nothing flows over the edge: the heat is conserved
    Insulated,
    /// Pixels at the edge keep their value
    Fixed,
    /// The opposite edge
    Periodic,
}

/// Size of the plate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub width: usize,
    pub height: usize,
    /// Values of a pixel, each of which diffuses by itself.
    pub channels: usize,
}

impl Shape {
    /// Values of a row.
    pub fn row(self) -> usize {
        self.width * self.channels
    }

    /// For a broadcast.
    pub fn numbers(self) -> [u64; 3] {
        [self.width, self.height, self.channels].map(|n| n as u64)
    }

    pub fn from_numbers(numbers: [u64; 3]) -> Self {
        let [width, height, channels] = numbers.map(|n| n as usize);
        Self {
            width,
            height,
            channels,
        }
    }

    /// First row of a rank; that of the rank after it is the end.
    ///
    /// The first ranks have one row more where the rows do not divide evenly, and where there are
    /// more ranks than rows the last ranks have none.
    pub fn first_row(self, rank: u32, ranks: u32) -> usize {
        let (rank, ranks) = (rank as usize, ranks as usize);
        self.height / ranks * rank + rank.min(self.height % ranks)
    }
}

#[derive(Clone, Copy)]
enum Side {
    Above = 0,
    Below = 1,
}

/// The part of the plate that one rank has.
pub struct Plate {
    shape: Shape,
    boundary: Boundary,
    /// This rank's rows: number of the first one, and one behind the last.
    first: usize,
    end: usize,
    /// Ranks that have rows.
    active: u32,
    /// Values of this rank's rows now, and room for those of the next step.
    now: Vec<f64>,
    next: Vec<f64>,
    /// Copies of the halos.
    above: Vec<f64>,
    below: Vec<f64>,
    /// Rows on their way from and to rank 0.
    rows: SharedArray<f64>,
    /// Two sets of two halos of one row.
    halos: SharedArray<f64>,
    steps: usize,
}

impl Plate {
    /// Takes memory.
    ///
    /// Collective; all ranks get an error or none, but for private memory, about which ranks must
    /// agree.
    pub fn new(
        world: &World,
        shape: Shape,
        boundary: Boundary,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let (rank, ranks) = (world.rank().0, world.size());
        let most_rows = shape.height.div_ceil(ranks as usize);
        // Shared arrays have the same length on all ranks.
        let rows = SharedArray::alloc(world, most_rows * shape.row())?;
        let halos = SharedArray::alloc(world, 4 * shape.row())?;
        let (first, end) = (
            shape.first_row(rank, ranks),
            shape.first_row(rank + 1, ranks),
        );
        Ok(Self {
            shape,
            boundary,
            first,
            end,
            active: ranks.min(shape.height as u32),
            now: zeroes((end - first) * shape.row())?,
            next: zeroes((end - first) * shape.row())?,
            above: zeroes(shape.row())?,
            below: zeroes(shape.row())?,
            rows,
            halos,
            steps: 0,
        })
    }

    /// The rows of a rank as a range of all values.
    fn values_of(&self, rank: Rank, world: &World) -> std::ops::Range<usize> {
        let first = |rank| self.shape.first_row(rank, world.size()) * self.shape.row();
        first(rank.0)..first(rank.0 + 1)
    }

    /// Rank 0 puts their rows into the memory of all ranks.
    pub fn scatter(&self, world: &World, values: &[f64]) -> Result<()> {
        world.ranks().try_for_each(|rank| {
            let part = &values[self.values_of(rank, world)];
            world.put_from(self.rows.on(rank).part(..part.len()), part)
        })
    }

    /// Takes the rows that rank 0 has put there.
    ///
    /// Collective.
    pub fn load(&mut self, world: &World) -> Result<()> {
        world.barrier()?;
        self.rows.read_into(world, 0, &mut self.now);
        Ok(())
    }

    /// Shows rank 0 the rows.
    ///
    /// Collective.
    pub fn store(&self, world: &World) -> Result<()> {
        self.rows.write_from(world, 0, &self.now);
        world.barrier()
    }

    /// Rank 0 gets the rows of all ranks.
    pub fn gather(&self, world: &World, values: &mut [f64]) -> Result<()> {
        world.ranks().try_for_each(|rank| {
            let part = &mut values[self.values_of(rank, world)];
            world.get_into(self.rows.on(rank).part(..part.len()), part)
        })
    }

    /// Where a halo of this step lies in the shared array.
    fn halo(&self, side: Side) -> usize {
        (self.steps % 2 * 2 + side as usize) * self.shape.row()
    }

    /// The rank with the row above this rank's first and that with the row below its last.
    fn neighbors(&self, rank: Rank) -> [Option<Rank>; 2] {
        let around = self.boundary == Boundary::Periodic;
        let last = Rank(self.active - 1);
        let above = match rank.0 {
            0 => around.then_some(last),
            n => Some(Rank(n - 1)),
        };
        let below = match rank {
            rank if rank == last => around.then_some(Rank(0)),
            rank => Some(Rank(rank.0 + 1)),
        };
        [above, below]
    }

    /// Exchanges halos and computes the next step.
    ///
    /// Collective.
    pub fn step(&mut self, world: &World, alpha: f64) -> Result<()> {
        if !self.now.is_empty() {
            self.put_edges(world)?;
        }
        world.barrier()?;
        if !self.now.is_empty() {
            let (above, below) = (self.halo(Side::Above), self.halo(Side::Below));
            self.halos.read_into(world, above, &mut self.above);
            self.halos.read_into(world, below, &mut self.below);
            self.compute(alpha);
            std::mem::swap(&mut self.now, &mut self.next);
        }
        self.steps += 1;
        Ok(())
    }

    /// Puts this rank's first row below the rows of the rank above, and its last row above those of
    /// the rank below.
    ///
    /// At the edge of an insulated plate a row is its own neighbor: nothing flows between equal
    /// values.
    fn put_edges(&self, world: &World) -> Result<()> {
        let row = self.shape.row();
        let (top, bottom) = (&self.now[..row], &self.now[self.now.len() - row..]);
        let (above, below) = (self.halo(Side::Above), self.halo(Side::Below));
        let [up, down] = self.neighbors(world.rank());
        match up {
            Some(rank) => world.put_from(self.halos.on(rank).part(below..below + row), top)?,
            None => self.halos.write_from(world, above, top),
        }
        match down {
            Some(rank) => world.put_from(self.halos.on(rank).part(above..above + row), bottom)?,
            None => self.halos.write_from(world, below, bottom),
        }
        Ok(())
    }

    fn compute(&mut self, alpha: f64) {
        let Self {
            shape,
            boundary,
            first,
            end,
            ref now,
            ref mut next,
            ref above,
            ref below,
            ..
        } = *self;
        let row = shape.row();
        let rows = end - first;
        let old = |y: usize| &now[y * row..(y + 1) * row];
        for (y, new) in next.chunks_exact_mut(row).enumerate() {
            let up = if y > 0 { old(y - 1) } else { above };
            let down = if y + 1 < rows { old(y + 1) } else { below };
            let at_edge = first + y == 0 || first + y + 1 == shape.height;
            if boundary == Boundary::Fixed && at_edge {
                new.copy_from_slice(old(y));
            } else {
                compute_row(shape.channels, boundary, alpha, [up, old(y), down], new);
            }
        }
    }
}

/// The next step of one row.
///
/// A pixel's neighbors in a row are as many values away as it has channels.
fn compute_row(
    channels: usize,
    boundary: Boundary,
    alpha: f64,
    [up, here, down]: [&[f64]; 3],
    new: &mut [f64],
) {
    // Heat flows in from four sides. The order of these operations is the result's last bit.
    let value = |i: usize, left: f64, right: f64| {
        let h = here[i];
        h + alpha * (((up[i] - h) + (down[i] - h)) + ((left - h) + (right - h)))
    };
    let len = here.len();
    for i in channels..len.saturating_sub(channels) {
        new[i] = value(i, here[i - channels], here[i + channels]);
    }
    // The first and the last pixel, which are one in a picture of one column.
    for first in 0..channels {
        let last = len - channels + first;
        for (i, opposite) in [(first, last), (last, first)] {
            let beyond = match boundary {
                Boundary::Insulated => here[i],
                Boundary::Periodic => here[opposite],
                Boundary::Fixed => {
                    new[i] = here[i];
                    continue;
                }
            };
            let left = if i == first {
                beyond
            } else {
                here[i - channels]
            };
            let right = if i == last {
                beyond
            } else {
                here[i + channels]
            };
            new[i] = value(i, left, right);
        }
    }
}

/// Private memory, or an error where there is not enough.
pub fn zeroes<T: Default + Clone>(len: usize) -> Result<Vec<T>, Box<dyn std::error::Error>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| format!("no memory for {} bytes", len * size_of::<T>()))?;
    values.resize(len, T::default());
    Ok(values)
}
