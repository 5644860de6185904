//! Arrays of several dimensions that are spread over the ranks of a team.

mod axis;
mod distribution;
mod halo;
mod layout;
mod view;

pub use distribution::{Distribution, DistributionError, Spread};
pub use view::{LocalView, LocalViewMut};

use crate::collectives::Reduction;
use crate::error::{Error, Result};
use crate::global::{Global, GlobalPtr};
use crate::quiet::Quiet;
use crate::shared_array::SharedArray;
use crate::team::Team;
use crate::vis::Moved;
use crate::world::{Threading, World};
use argonet_base::Rank;
use argonet_engine::Members;
use core::fmt;
use core::ops::Range;
use halo::Halo;
use layout::Layout;
use std::sync::Arc;
use view::Part;

/// Which elements of a [`GlobalArray`] a call means: a range of indices for each dimension.
///
/// ```
/// use argonet::{Distribution, GlobalArray, Region, Spread};
/// # let world = argonet::World::init().unwrap();
/// let plane = Distribution::new([4, 5], [Spread::Block, Spread::Whole]);
/// let plane = GlobalArray::<u8, 2>::alloc(&world, plane).unwrap();
/// assert_eq!(plane.get_vec(&world, [1..3, 0..4]).unwrap().len(), 8);
/// // Of one dimension it may be the range itself.
/// assert_eq!(Region::<1>::ranges(3..7), Region::ranges([3..7]));
/// ```
pub trait Region<const D: usize> {
    /// The range of each dimension.
    fn ranges(self) -> [Range<usize>; D];
}

impl<const D: usize> Region<D> for [Range<usize>; D] {
    fn ranges(self) -> Self {
        self
    }
}

impl Region<1> for Range<usize> {
    fn ranges(self) -> [Self; 1] {
        [self]
    }
}

/// An array of `D` dimensions whose elements are spread over the ranks of a team as its
/// [`Distribution`] says.
///
/// Any rank of the team may read and write any element at any time: one by its [pointer](Self::at),
/// with all that a [`GlobalPtr`] can do, or a region of them ([`get_into`](Self::get_into),
/// [`put_from`](Self::put_from)), wherever its elements are. A rank's own part is seen as slices in
/// a [quiet](World::quiet) phase ([`local`](Self::local), [`local_mut`](Self::local_mut)), and read
/// and written by copy outside of one ([`read_line`](Self::read_line),
/// [`write_line`](Self::write_line)). Indices are those of the whole array; where numbers in a
/// rank's own part are meant, the documentation says so.
///
/// Its memory is given back by [`free`](Self::free), which is collective; a value that is only
/// dropped keeps its memory until the world ends.
///
/// ```
/// use argonet::{Distribution, GlobalArray, Spread};
/// # let mut world = argonet::World::init().unwrap();
/// let table = Distribution::new([6, 9], [Spread::Block, Spread::Cyclic]);
/// let mut table = GlobalArray::<u64, 2>::alloc(&world, table).unwrap();
/// // Each rank writes what it has.
/// world.quiet(|q| {
///     for ([row, column], value) in table.local_mut(q).iter_mut() {
///         *value = (10 * row + column) as u64;
///     }
/// }).unwrap();
/// // Any rank reads what it likes, and may change single elements.
/// assert_eq!(world.get_value(table.at([4, 7])).unwrap(), 47);
/// let mut region = [0; 6];
/// table.get_into(&world, [2..4, 3..6], &mut region).unwrap();
/// assert_eq!(region, [23, 24, 25, 33, 34, 35]);
/// world.barrier().unwrap();
/// if table.at([4, 7]).rank() == world.rank() {
///     table.put_from(&world, [0..1, 7..9], &[7, 8]).unwrap();
///     world.fetch_add(table.at([0, 7]), 1).unwrap();
/// }
/// world.barrier().unwrap();
/// assert_eq!(world.get_value(table.at([0, 7])).unwrap(), 8);
/// // Its own part, element by element and line by line.
/// world.quiet(|q| {
///     let view = table.local(q);
///     let sum: u64 = view.iter().map(|(_, value)| value).sum();
///     let lines = view.lines().map(|(_, line)| line.iter().sum::<u64>());
///     assert_eq!(sum, lines.sum());
///     let [rows, columns] = view.own_numbers();
///     if !rows.is_empty() && !columns.is_empty() {
///         assert_eq!(view.line([0, 0])[0], view[[0, 0]]);
///     }
/// }).unwrap();
/// table.free(&world).unwrap();
/// ```
pub struct GlobalArray<T: Global, const D: usize> {
    distribution: Distribution<D>,
    layout: Layout<D>,
    /// This rank's place in the grid.
    place: [usize; D],
    /// The ranks of the places, in the order of their numbers.
    members: Arc<Members>,
    memory: SharedArray<T>,
    halo: Option<Halo<T>>,
}

impl<T: Global, const D: usize> GlobalArray<T, D> {
    /// Makes an array of zeroed elements on all ranks of the world.
    ///
    /// Collective: all ranks give the same distribution. Blocks, polling, until all ranks may use
    /// it. The segments grow where they must.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// # Errors
    /// [`Error::Distribution`] for a distribution that the ranks cannot have, [`Error::Mismatch`]
    /// for distributions that differ; otherwise as [`SharedArray::alloc`].
    pub fn alloc<M: Threading>(world: &World<M>, distribution: Distribution<D>) -> Result<Self> {
        Self::alloc_on(world, &world.team(), distribution)
    }

    /// Makes an array of zeroed elements on the ranks of a team.
    ///
    /// Collective over the *world*, as memory is at the same place on all ranks: each rank calls it
    /// with a team that it belongs to, and teams may make arrays of different extents, but of the
    /// same `T` and `D`. A rank that is to have no part gives a team of such ranks, and an extent
    /// of
    /// 0. All ranks of a team give the same distribution. Blocks and grows segments as
    /// [`alloc`](Self::alloc).
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// // Two teams, of which one has the longer array.
    /// let odd = world.rank().0 % 2;
    /// let team = world.team().split(&world, Some(odd), 0).unwrap().unwrap();
    /// let distribution = Distribution::new([10 + odd as usize], [Spread::Block]);
    /// let array = GlobalArray::<u8, 1>::alloc_on(&world, &team, distribution).unwrap();
    /// assert!(team.rank_of(array.at([9]).rank()).is_some());
    /// ```
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), on all ranks of the world; where another team has failed,
    /// [`Error::ElsewhereFailed`].
    pub fn alloc_on<M: Threading>(
        world: &World<M>,
        team: &Team,
        distribution: Distribution<D>,
    ) -> Result<Self> {
        const WHAT: &str = "GlobalArray::alloc";
        const {
            assert!(D > 0, "an array has at least one dimension");
        }
        let layout = distribution.on(team.size(), size_of::<T>());
        let mine = distribution.fingerprint(size_of::<T>());
        let all = team.collectives(world);
        let most = all.reduce_all_value(Reduction::Max, [mine, !mine])?;
        let same = most == [mine, !mine];
        // With the word of no halo, and of one without staging.
        let halo = layout.as_ref().map_or(0, |layout| {
            let has_one = layout.halo().iter().any(|width| *width > 0);
            if has_one {
                1 + Self::staging(layout)
            } else {
                0
            }
        });
        let len = layout.as_ref().map_or(0, Layout::len);
        let failed = layout.is_err() || !same;
        // All ranks of the world take as much, even those of a team that needs less.
        let needs = [len as u64, halo as u64, u64::from(failed)];
        let all = world.collectives();
        let [len, halo, failed] = all.reduce_all_value(Reduction::Max, needs)?;
        let rank = world.rank();
        if !same {
            return Err(Error::Mismatch { rank, what: WHAT });
        }
        let layout = layout?;
        if failed != 0 {
            return Err(Error::ElsewhereFailed { rank, what: WHAT });
        }
        let memory = SharedArray::alloc(world, len as usize)?;
        let mut array = Self {
            distribution,
            place: layout.place(team.rank().0 as usize),
            layout,
            members: Arc::clone(&team.of_engine().members),
            memory,
            halo: None,
        };
        if let Some(staging) = halo.checked_sub(1) {
            match array.make_halo(world, staging as usize) {
                Ok(halo) => array.halo = Some(halo),
                Err(error) => {
                    let _ = array.free(world);
                    return Err(error);
                }
            }
        }
        Ok(array)
    }

    /// Gives the memory back.
    ///
    /// Collective over the world; blocks, polling, until all ranks have called it.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// # Errors
    /// As [`SharedArray::free`].
    pub fn free<M: Threading>(self, world: &World<M>) -> Result<()> {
        let memory = self.memory.free(world);
        let halo = self.halo.map_or(Ok(()), |halo| halo.free(world));
        memory.and(halo)
    }

    /// Elements in each dimension of the whole array.
    ///
    /// See the example of [`grid`](Self::grid).
    #[must_use]
    pub fn extents(&self) -> [usize; D] {
        self.layout.extents()
    }

    /// Places of the grid along each dimension.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// let lines = Distribution::new([20, 30], [Spread::Whole, Spread::Block]);
    /// let lines = GlobalArray::<u8, 2>::alloc(&world, lines).unwrap();
    /// assert_eq!(lines.grid(), [1, world.size() as usize]);
    /// assert_eq!(lines.extents(), [20, 30]);
    /// ```
    #[must_use]
    pub fn grid(&self) -> [usize; D] {
        self.layout.axes().map(|axis| axis.places())
    }

    /// All of it, as a region.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// let square = Distribution::new([3, 3], [Spread::Block, Spread::Whole]);
    /// let square = GlobalArray::<u32, 2>::alloc(&world, square).unwrap();
    /// assert_eq!(square.get_vec(&world, square.all()).unwrap(), [0; 9]);
    /// ```
    #[must_use]
    pub fn all(&self) -> [Range<usize>; D] {
        self.extents().map(|extent| 0..extent)
    }

    /// The distribution that it was made with.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// let line = Distribution::new([8], [Spread::Block]);
    /// let array = GlobalArray::<u32, 1>::alloc(&world, line).unwrap();
    /// assert_eq!(array.distribution(), line);
    /// ```
    #[must_use]
    pub const fn distribution(&self) -> Distribution<D> {
        self.distribution
    }

    /// The element with this index, on the rank that has it.
    ///
    /// Copies of it in halos are not named.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[must_use]
    pub fn at(&self, index: [usize; D]) -> GlobalPtr<T> {
        let (place, offset) = self.layout.find(index);
        self.memory.ptr(self.rank_of(place), offset)
    }

    /// The indices in the array of this rank's own elements, if they are one block; `None` where a
    /// dimension is cyclic and others have indices between them.
    ///
    /// See the example of [`Distribution`].
    #[must_use]
    pub fn own_indices(&self) -> Option<[Range<usize>; D]> {
        let axes = self.layout.axes();
        let mut block = [const { 0..0 }; D];
        for d in 0..D {
            block[d] = axes[d].block_of(self.place[d])?;
        }
        Some(block)
    }

    /// The rank of the world that has a place of the grid.
    #[inline]
    fn rank_of(&self, place: usize) -> Rank {
        Rank(self.members.job_rank(place as u32).0)
    }

    fn part(&self) -> Part<'_, D> {
        Part::new(&self.layout, self.place)
    }

    /// This rank's part.
    ///
    /// A quiet phase is one of all ranks of the world, also for an array of a team.
    ///
    /// See the example of [`GlobalArray`].
    #[must_use]
    pub fn local<'q>(&'q self, quiet: &'q Quiet) -> LocalView<'q, T, D>
    where
        T: Sync,
    {
        LocalView {
            part: self.part(),
            // Other teams may need more.
            memory: &self.memory.local(quiet)[..self.layout.len()],
        }
    }

    /// This rank's part, to be written.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// ```compile_fail,E0502
    /// # use argonet::{GlobalArray, World};
    /// # fn f(world: &mut World, mut array: GlobalArray<f64, 2>) {
    /// world.quiet(|q| {
    ///     let (old, mut new) = (array.local(q), array.local_mut(q));
    ///     new[[0, 0]] = old[[1, 0]];
    /// }).unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn local_mut<'q>(&'q mut self, quiet: &'q Quiet) -> LocalViewMut<'q, T, D> {
        LocalViewMut {
            part: Part::new(&self.layout, self.place),
            memory: &mut self.memory.local_mut(quiet)[..self.layout.len()],
        }
    }

    /// Reads elements of this rank's part from `at` along its line.
    ///
    /// Numbers are those of a [`LocalView`]. Where another rank writes meanwhile the values may be
    /// of different writes.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// let pairs = Distribution::new([4, world.size() as usize], [Spread::Whole, Spread::Block]);
    /// let pairs = GlobalArray::<u32, 2>::alloc(&world, pairs).unwrap();
    /// pairs.write_line(&world, [3, 0], &[7]);
    /// let mut values = [0];
    /// pairs.read_line(&world, [3, 0], &mut values);
    /// assert_eq!(values, [7]);
    /// ```
    ///
    /// # Panics
    /// If they reach past the end of the line, its halo counted.
    pub fn read_line<M: Threading>(&self, world: &World<M>, at: [usize; D], values: &mut [T]) {
        let first = self.along_line(at, values.len());
        self.memory.read_into(world, first, values);
    }

    /// Writes elements of this rank's part from `at` along its line.
    ///
    /// See the example of [`read_line`](Self::read_line), and its numbers.
    ///
    /// # Panics
    /// As [`read_line`](Self::read_line).
    pub fn write_line<M: Threading>(&self, world: &World<M>, at: [usize; D], values: &[T]) {
        let first = self.along_line(at, values.len());
        self.memory.write_from(world, first, values);
    }

    /// Where `count` elements along a line begin in this rank's memory.
    fn along_line(&self, at: [usize; D], count: usize) -> usize {
        let line = self.part().line(at);
        assert!(
            count <= line.len(),
            "{count} elements from {at:?} on, where the line of a global array has {}",
            line.len()
        );
        line.start
    }

    /// Reads the elements with indices in a range of each dimension, wherever they are, into an
    /// array of these alone, in which the last dimension runs fastest.
    ///
    /// Blocks, polling, until all have arrived; up to 64 operations are under way at once. Where
    /// another rank writes meanwhile the values may be of different writes.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// # Errors
    /// [`Error::Section`] for a range outside the array, [`Error::Distribution`] for another number
    /// of values; `values` is unchanged then. Otherwise as [`World::get_into`], and some may have
    /// arrived.
    pub fn get_into<M: Threading>(
        &self,
        world: &World<M>,
        region: impl Region<D>,
        values: &mut [T],
    ) -> Result<()> {
        let moved = self.moved(&region.ranges(), values.len())?;
        world.get_each(values, &moved)
    }

    /// Reads a region as [`get_into`](Self::get_into) does, into memory of its own.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let world = argonet::World::init().unwrap();
    /// let line = Distribution::new([10], [Spread::BlockCyclic(3)]);
    /// let line = GlobalArray::<u32, 1>::alloc(&world, line).unwrap();
    /// assert_eq!(line.get_vec(&world, 2..6).unwrap(), [0; 4]);
    /// ```
    ///
    /// # Errors
    /// As [`get_into`](Self::get_into); [`Error::NoMemory`].
    pub fn get_vec<M: Threading>(
        &self,
        world: &World<M>,
        region: impl Region<D>,
    ) -> Result<Vec<T>> {
        let region = region.ranges();
        let len = elements_of(&region).unwrap_or(usize::MAX);
        // A region outside the array is refused before it takes memory.
        let moved = self.moved(&region, len)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| Error::NoMemory {
            rank: world.rank(),
            bytes: len.saturating_mul(size_of::<T>()),
        })?;
        values.resize(len, T::new_zeroed());
        world.get_each(&mut values, &moved)?;
        Ok(values)
    }

    /// Writes the elements with indices in a range of each dimension, wherever they are, from an
    /// array of these alone, in which the last dimension runs fastest.
    ///
    /// Blocks, polling, until all are visible there. Copies of them in halos of other ranks are as
    /// they were.
    ///
    /// See the example of [`GlobalArray`].
    ///
    /// # Errors
    /// As [`get_into`](Self::get_into); some may have been written where it does not refuse all.
    pub fn put_from<M: Threading>(
        &self,
        world: &World<M>,
        region: impl Region<D>,
        values: &[T],
    ) -> Result<()> {
        let moved = self.moved(&region.ranges(), values.len())?;
        world.put_each(values, &moved)
    }

    /// The pieces of a region on each rank.
    fn moved(&self, region: &[Range<usize>; D], values: usize) -> Result<Vec<Moved<T>>> {
        // Ranges that lead out of the array come first, so that the product of the others fits.
        let elements = elements_of(region);
        if elements != Some(values) {
            self.layout.check(region)?;
            return Err(Error::Distribution(DistributionError::RegionLength {
                region: region.iter().map(ExactSizeIterator::len).collect(),
                elements: elements.unwrap_or(usize::MAX),
                values,
            }));
        }
        let pieces = self.layout.pieces(region)?.into_iter();
        let moved = pieces.map(|piece| Moved {
            there: self
                .memory
                .on(self.rank_of(self.layout.number(piece.place))),
            at: piece.there,
            of: piece.here,
        });
        Ok(moved.collect())
    }
}

impl<T: Global, const D: usize> fmt::Debug for GlobalArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut array = f.debug_struct("GlobalArray");
        array.field("distribution", &self.distribution);
        array.field("grid", &self.grid()).finish_non_exhaustive()
    }
}

/// How many elements a region has, if that is a number.
fn elements_of<const D: usize>(region: &[Range<usize>; D]) -> Option<usize> {
    if region.iter().any(Range::is_empty) {
        return Some(0);
    }
    let mut lengths = region.iter().map(ExactSizeIterator::len);
    lengths.try_fold(1usize, usize::checked_mul)
}
