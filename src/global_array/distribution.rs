//! Which rank has which elements of a global array.

use super::axis::Axis;
use super::layout::Layout;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The error of a [`Distribution`] that a team cannot have, or of a call with indices.
///
/// See the example of [`Distribution`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// The grid has another number of places than the team has ranks.
    #[error(
        "the grid {grid:?} of a global array has {places} places, and the team {ranks} ranks; give as many, or leave the grid out"
    )]
    Grid {
        /// Places along each dimension.
        grid: Vec<usize>,
        /// Their product.
        places: u128,
        /// Ranks of the team.
        ranks: u32,
    },
    /// The grid divides a dimension that is whole.
    #[error(
        "dimension {dimension} of a global array is `Spread::Whole`, and the grid has {places} places along it; give one, or spread the dimension"
    )]
    WholeDivided {
        /// The dimension, from 0.
        dimension: usize,
        /// Places along it.
        places: usize,
    },
    /// No dimension is spread over ranks.
    #[error(
        "all dimensions of a global array are `Spread::Whole`, so one rank would have all of it, and the team has {ranks}; spread a dimension"
    )]
    NotSpread {
        /// Ranks of the team.
        ranks: u32,
    },
    /// Blocks of no indices.
    #[error("dimension {dimension} of a global array has blocks of 0 indices; give at least 1")]
    EmptyBlock {
        /// The dimension, from 0.
        dimension: usize,
    },
    /// A halo of a dimension whose indices are dealt out in turn.
    #[error(
        "dimension {dimension} of a global array has a halo and is cyclic, so adjacent indices are on different ranks; spread it as `Spread::Block`"
    )]
    CyclicHalo {
        /// The dimension, from 0.
        dimension: usize,
    },
    /// A halo that is wider than the smallest part.
    #[error(
        "dimension {dimension} of a global array has a halo of {width}, and a rank has {smallest} of its {extent} indices; make the halo smaller, or the array larger"
    )]
    WideHalo {
        /// The dimension, from 0.
        dimension: usize,
        /// Width of its halo.
        width: usize,
        /// Indices of the rank that has the fewest.
        smallest: usize,
        /// Indices of the dimension.
        extent: usize,
    },
    /// More bytes on a rank than an address can name.
    #[error(
        "a part of a global array of {extents:?} elements of {size} bytes each would have more bytes than any memory"
    )]
    TooLarge {
        /// Extents of the array.
        extents: Vec<usize>,
        /// Bytes of an element.
        size: usize,
    },
    /// Another number of values than a region has.
    #[error(
        "{values} values are given for a region {region:?} of {elements} elements; give as many"
    )]
    RegionLength {
        /// Elements in each dimension.
        region: Vec<usize>,
        /// Their product.
        elements: usize,
        /// The values given.
        values: usize,
    },
}

/// How the indices of one dimension are spread over the places of the grid along it.
///
/// See the example of [`Distribution`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spread {
    /// Not at all: a rank that has one element of a line along it has the whole line.
    Whole,
    /// Each place has one block; blocks differ in length by at most one, the longer ones first.
    Block,
    /// One index to each place in turn.
    Cyclic,
    /// Blocks of this length to each place in turn.
    BlockCyclic(usize),
}

/// Extents of a [`GlobalArray`](crate::GlobalArray) and which rank has which of its elements.
///
/// The ranks of the team stand in a *grid* with one dimension for each of the array, the last one
/// running fastest. Where no grid is given, it is one whose parts are wide enough for the halo if
/// there is one, then the one that leaves the fewest ranks without elements, then the one with the
/// smallest cuts, then the one with more places in the first dimensions.
///
/// ```
/// use argonet::{Distribution, DistributionError, Error, GlobalArray, Spread};
/// # let world = argonet::World::init().unwrap();
/// // Rows on each rank, with a row of the ranks beside it on each side.
/// let rows = Distribution::new([100, 60], [Spread::Block, Spread::Whole]).halo([1, 0]);
/// let plate = GlobalArray::<f64, 2>::alloc(&world, rows).unwrap();
/// // Of one rank on a single host, all rows.
/// assert_eq!(plate.own_indices(), Some([0..100, 0..60]));
/// // What no ranks can have is refused on all of them.
/// let wrong = Distribution::new([100, 60], [Spread::Block; 2]).grid([3, 5]);
/// let Err(Error::Distribution(refused)) = GlobalArray::<f64, 2>::alloc(&world, wrong) else {
///     panic!("a grid of 15 places");
/// };
/// assert!(matches!(refused, DistributionError::Grid { places: 15, .. }));
/// ```
///
/// Source: High Performance Fortran 2.0, 3.3 (`BLOCK`, `CYCLIC`, `CYCLIC(k)`, `*`); its blocks have
/// the same length but for the last ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Distribution<const D: usize> {
    extents: [usize; D],
    spread: [Spread; D],
    grid: Option<[usize; D]>,
    halo: [usize; D],
    periodic: [bool; D],
}

impl<const D: usize> Distribution<D> {
    /// An array with these extents, spread in this way.
    ///
    /// See the example of [`Distribution`].
    #[must_use]
    pub const fn new(extents: [usize; D], spread: [Spread; D]) -> Self {
        Self {
            extents,
            spread,
            grid: None,
            halo: [0; D],
            periodic: [false; D],
        }
    }

    /// How many places the grid has along each dimension: one for each that is whole, and in all as
    /// many as the team has ranks.
    ///
    /// See the example of [`Distribution`].
    #[must_use]
    pub const fn grid(mut self, grid: [usize; D]) -> Self {
        self.grid = Some(grid);
        self
    }

    /// How many elements beside its own each rank has room for, on both sides of each dimension,
    /// so that [`GlobalArray::exchange_halo`](crate::GlobalArray::exchange_halo) gets them.
    ///
    /// Only for dimensions that are spread in blocks, or whole; no rank has fewer indices than its
    /// halo is wide.
    ///
    /// See the example of [`Distribution`].
    #[must_use]
    pub const fn halo(mut self, widths: [usize; D]) -> Self {
        self.halo = widths;
        self
    }

    /// Dimensions in which the halo of the first indices has the last ones, and the other way
    /// round; in others the outer halo has what the program writes there.
    ///
    /// See the example of [`GlobalArray::exchange_halo`](crate::GlobalArray::exchange_halo).
    #[must_use]
    pub const fn periodic(mut self, dimensions: [bool; D]) -> Self {
        self.periodic = dimensions;
        self
    }

    /// A number that differs, but for rare accidents, where distributions or sizes of elements do.
    pub(super) fn fingerprint(&self, size: usize) -> u64 {
        // Its keys are fixed, so it is the same in all processes of a job, which run one program.
        let mut hasher = DefaultHasher::new();
        (self, size).hash(&mut hasher);
        hasher.finish()
    }

    /// The layout on a team of so many ranks, for elements of so many bytes.
    pub(super) fn on(&self, ranks: u32, size: usize) -> Result<Layout<D>, DistributionError> {
        let empty = self
            .spread
            .iter()
            .position(|it| *it == Spread::BlockCyclic(0));
        if let Some(dimension) = empty {
            return Err(DistributionError::EmptyBlock { dimension });
        }
        let grid = match self.grid {
            Some(grid) => self.check_grid(grid, ranks)?,
            None => self.choose_grid(ranks)?,
        };
        let axes = core::array::from_fn(|d| {
            let cycle = match self.spread[d] {
                Spread::Whole | Spread::Block => None,
                Spread::Cyclic => Some(1),
                Spread::BlockCyclic(block) => Some(block),
            };
            Axis::new(self.extents[d], grid[d], cycle)
        });
        for (dimension, axis) in axes.iter().enumerate() {
            self.check_halo(dimension, axis)?;
        }
        Layout::new(axes, self.halo, self.periodic, size).ok_or_else(|| {
            DistributionError::TooLarge {
                extents: self.extents.to_vec(),
                size,
            }
        })
    }

    fn check_halo(&self, dimension: usize, axis: &Axis) -> Result<(), DistributionError> {
        let width = self.halo[dimension];
        if width == 0 {
            return Ok(());
        }
        if !matches!(self.spread[dimension], Spread::Whole | Spread::Block) {
            return Err(DistributionError::CyclicHalo { dimension });
        }
        let smallest = axis.count(axis.places() - 1);
        if width > smallest {
            return Err(DistributionError::WideHalo {
                dimension,
                width,
                smallest,
                extent: axis.extent(),
            });
        }
        Ok(())
    }

    fn check_grid(&self, grid: [usize; D], ranks: u32) -> Result<[usize; D], DistributionError> {
        let places = grid.iter().fold(1u128, |product, places| {
            product.saturating_mul(*places as u128)
        });
        if places != u128::from(ranks) {
            return Err(DistributionError::Grid {
                grid: grid.to_vec(),
                places,
                ranks,
            });
        }
        let is_whole = |d: &usize| self.spread[*d] == Spread::Whole && grid[*d] > 1;
        match (0..D).find(is_whole) {
            Some(dimension) => Err(DistributionError::WholeDivided {
                dimension,
                places: grid[dimension],
            }),
            None => Ok(grid),
        }
    }

    /// The best grid of so many places.
    fn choose_grid(&self, ranks: u32) -> Result<[usize; D], DistributionError> {
        let mut best: Option<(Cost, [usize; D])> = None;
        self.each_grid(ranks as usize, 0, &mut [1; D], &mut |grid| {
            let cost = self.cost(grid);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, *grid));
            }
        });
        match best {
            Some((_, grid)) => Ok(grid),
            None => Err(DistributionError::NotSpread { ranks }),
        }
    }

    /// Calls `f` with each grid of `left` places in the dimensions from `d` on, those with the most
    /// places in the first dimensions first.
    fn each_grid(
        &self,
        left: usize,
        d: usize,
        grid: &mut [usize; D],
        f: &mut impl FnMut(&[usize; D]),
    ) {
        if d == D {
            if left == 1 {
                f(grid);
            }
            return;
        }
        let divides = |places: &usize| left.is_multiple_of(*places);
        let is_spread = self.spread[d] != Spread::Whole;
        let places = (1..=if is_spread { left } else { 1 }).rev();
        for places in places.filter(divides) {
            grid[d] = places;
            self.each_grid(left / places, d + 1, grid, f);
        }
    }

    fn cost(&self, grid: &[usize; D]) -> Cost {
        let narrow = |d: &usize| self.extents[*d] / grid[*d] < self.halo[*d];
        // How many blocks are dealt out along a dimension.
        let blocks = |d: usize| match self.spread[d] {
            Spread::Whole => 1,
            Spread::Block => grid[d].min(self.extents[d]),
            Spread::Cyclic => self.extents[d],
            Spread::BlockCyclic(block) => self.extents[d].div_ceil(block),
        };
        let has = |d: usize| grid[d].min(blocks(d)) as u64;
        // Elements beside each cut, over all of the array.
        let surface = (0..D).filter(|d| grid[*d] > 1).map(|d| {
            let others = (0..D).filter(|other| *other != d);
            let area: f64 = others.map(|other| self.extents[other] as f64).product();
            area * blocks(d).saturating_sub(1) as f64
        });
        Cost {
            narrow: (0..D).filter(narrow).count(),
            with_elements: core::cmp::Reverse((0..D).map(has).product()),
            surface: surface.sum(),
        }
    }
}

/// What is bad about a grid; what comes first counts most.
#[derive(PartialEq, PartialOrd)]
struct Cost {
    /// Dimensions whose halo is wider than the smallest part.
    narrow: usize,
    /// Ranks with elements, of which more are better.
    with_elements: core::cmp::Reverse<u64>,
    surface: f64,
}

#[cfg(test)]
mod tests {
    use super::{Distribution, DistributionError, Spread};

    fn grid<const D: usize>(distribution: Distribution<D>, ranks: u32) -> [usize; D] {
        distribution.choose_grid(ranks).unwrap()
    }

    #[test]
    fn a_grid_has_small_cuts_and_few_idle_ranks() {
        use Spread::{Block, Whole};
        assert_eq!(grid(Distribution::new([100, 100], [Block; 2]), 16), [4, 4]);
        assert_eq!(grid(Distribution::new([400, 100], [Block; 2]), 16), [8, 2]);
        // Of two that are equal, the one that leaves lines whole.
        assert_eq!(grid(Distribution::new([100, 100], [Block; 2]), 2), [2, 1]);
        assert_eq!(grid(Distribution::new([64; 3], [Block; 3]), 8), [2, 2, 2]);
        assert_eq!(
            grid(Distribution::new([64; 3], [Whole, Block, Whole]), 7),
            [1, 7, 1]
        );
        // A line of three cannot be on more than three ranks.
        assert_eq!(grid(Distribution::new([3, 1000], [Block; 2]), 4), [1, 4]);
        let halo = Distribution::new([8, 8], [Block; 2]).halo([5, 0]);
        assert_eq!(grid(halo, 4), [1, 4]);
        assert_eq!(grid(Distribution::new([5], [Whole]), 1), [1]);
        // One block of all rows is on one rank, and cuts between single rows are many.
        let rows = |rows| Distribution::new([1000, 4], [rows, Block]);
        assert_eq!(grid(rows(Spread::BlockCyclic(1000)), 4), [1, 4]);
        assert_eq!(grid(rows(Spread::Cyclic), 4), [1, 4]);
        assert_eq!(grid(rows(Block), 4), [4, 1]);
    }

    #[test]
    fn what_no_team_can_have_is_refused() {
        use Spread::{Block, BlockCyclic, Cyclic, Whole};
        let refused = |distribution: Distribution<2>| distribution.on(6, 8).unwrap_err();
        let of = |spread| Distribution::new([12, 7], spread);
        assert_eq!(
            refused(of([Whole; 2])),
            DistributionError::NotSpread { ranks: 6 }
        );
        assert_eq!(
            refused(of([Block, BlockCyclic(0)])),
            DistributionError::EmptyBlock { dimension: 1 }
        );
        assert!(matches!(
            refused(of([Block; 2]).grid([usize::MAX, usize::MAX])),
            DistributionError::Grid { ranks: 6, .. }
        ));
        assert!(matches!(
            refused(of([Block; 2]).grid([0, 6])),
            DistributionError::Grid { places: 0, .. }
        ));
        assert_eq!(
            refused(of([Block, Whole]).grid([3, 2])),
            DistributionError::WholeDivided {
                dimension: 1,
                places: 2
            }
        );
        assert_eq!(
            refused(of([Cyclic, Whole]).halo([1, 0])),
            DistributionError::CyclicHalo { dimension: 0 }
        );
        // On one rank too, where the program may be tried first.
        assert!(of([Cyclic, Whole]).halo([1, 0]).on(1, 8).is_err());
        assert_eq!(
            refused(of([Block, Whole]).halo([3, 0])),
            DistributionError::WideHalo {
                dimension: 0,
                width: 3,
                smallest: 2,
                extent: 12
            }
        );
        for extents in [[usize::MAX, usize::MAX], [usize::MAX, 1], [1 << 61, 8]] {
            let huge = Distribution::new(extents, [Block, Whole]);
            assert!(matches!(refused(huge), DistributionError::TooLarge { .. }));
        }
        assert!(of([Block; 2]).halo([2, 1]).on(6, 8).is_ok());
    }
}
