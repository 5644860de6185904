//! A rank's own part of a global array, as slices.

use super::layout::Layout;
use crate::global::Global;
use core::ops::{Index, IndexMut, Range};

/// Where the lines of a rank's part lie in its memory.
#[derive(Clone, Copy)]
pub(super) struct Part<'a, const D: usize> {
    layout: &'a Layout<D>,
    place: [usize; D],
    counts: [usize; D],
}

impl<'a, const D: usize> Part<'a, D> {
    pub(super) fn new(layout: &'a Layout<D>, place: [usize; D]) -> Self {
        Self {
            layout,
            place,
            counts: layout.counts(place),
        }
    }

    /// Elements in each dimension with the halo on both sides.
    fn extents(&self) -> [usize; D] {
        core::array::from_fn(|d| self.counts[d] + 2 * self.layout.halo()[d])
    }

    pub(super) fn own(&self) -> [Range<usize>; D] {
        core::array::from_fn(|d| {
            let halo = self.layout.halo()[d];
            halo..halo + self.counts[d]
        })
    }

    /// Where in the memory the line begins that `at` leads into, and where it ends.
    ///
    /// # Panics
    /// If there is no such line; the last of `at` may be its end.
    #[inline]
    pub(super) fn line(&self, at: [usize; D]) -> Range<usize> {
        let (extents, strides) = (self.extents(), self.layout.strides());
        let mut first = 0;
        for d in 0..D {
            let is_last = d + 1 == D;
            if at[d] >= extents[d] + usize::from(is_last) {
                self.no_such_element(at);
            }
            first += at[d] * strides[d];
        }
        first..first + extents[D - 1] - at[D - 1]
    }

    #[inline]
    fn element(&self, at: [usize; D]) -> usize {
        let line = self.line(at);
        if line.is_empty() {
            self.no_such_element(at);
        }
        line.start
    }

    #[cold]
    fn no_such_element(&self, at: [usize; D]) -> ! {
        panic!(
            "element {at:?} of a part of a global array with extents {:?}, its halo counted",
            self.extents()
        )
    }

    /// The index in the array of the first own element of a line of the memory; `None` for a line
    /// of the halo, or one that is not used.
    fn line_index(&self, line: usize) -> Option<[usize; D]> {
        let strides = self.layout.strides();
        let mut rest = line * self.width();
        let mut index = [0; D];
        for d in 0..D {
            let halo = self.layout.halo()[d];
            let local = if d + 1 < D {
                let at = rest / strides[d];
                rest %= strides[d];
                at.checked_sub(halo)?
            } else {
                0
            };
            if local >= self.counts[d] {
                return None;
            }
            index[d] = self.layout.axes()[d].index(self.place[d], local);
        }
        Some(index)
    }

    /// Elements of the memory in each line.
    fn width(&self) -> usize {
        // Of a memory without elements there are no lines of any length.
        match D {
            1 => self.layout.len().max(1),
            _ => self.layout.strides()[D - 2].max(1),
        }
    }

    /// The number of an own element.
    fn number_of(&self, index: [usize; D]) -> Option<[usize; D]> {
        let mut number = [0; D];
        for d in 0..D {
            let axis = &self.layout.axes()[d];
            let (place, local) = (index[d] < axis.extent()).then(|| axis.find(index[d]))?;
            if place != self.place[d] {
                return None;
            }
            number[d] = self.layout.halo()[d] + local;
        }
        Some(number)
    }

    /// The index of an element of a line, from that of the first own one.
    fn along(self, mut first: [usize; D], local: usize) -> [usize; D] {
        first[D - 1] = self.layout.axes()[D - 1].index(self.place[D - 1], local);
        first
    }
}

/// The part of this rank of a [`GlobalArray`](crate::GlobalArray), to be read in a quiet phase.
///
/// *Numbers* count from the first element of the halo in each dimension, so that without a halo, 0
/// is the first of this rank's own elements; *indices* are those of the whole array. A *line* has
/// all elements that differ in the last dimension alone; it is a slice.
///
/// See the example of [`GlobalArray`](crate::GlobalArray).
pub struct LocalView<'q, T: Global, const D: usize> {
    pub(super) part: Part<'q, D>,
    pub(super) memory: &'q [T],
}

/// The part of this rank of a [`GlobalArray`](crate::GlobalArray), to be written in a quiet phase.
///
/// Numbers and lines as those of [`LocalView`].
///
/// See the example of [`GlobalArray`](crate::GlobalArray).
pub struct LocalViewMut<'q, T: Global, const D: usize> {
    pub(super) part: Part<'q, D>,
    pub(super) memory: &'q mut [T],
}

impl<'q, T: Global, const D: usize> LocalView<'q, T, D> {
    /// How many elements there are in each dimension, the halo on both sides counted.
    ///
    /// See the example of [`own_numbers`](Self::own_numbers).
    #[must_use]
    pub fn extents(&self) -> [usize; D] {
        self.part.extents()
    }

    /// The numbers of this rank's own elements, which the halo surrounds.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let mut world = argonet::World::init().unwrap();
    /// let distribution = Distribution::new([8, 6], [Spread::Block, Spread::Whole]).halo([2, 1]);
    /// let array = GlobalArray::<f32, 2>::alloc(&world, distribution).unwrap();
    /// world.quiet(|q| {
    ///     let view = array.local(q);
    ///     let [rows, columns] = view.own_numbers();
    ///     assert_eq!((rows.start, columns), (2, 1..7));
    ///     assert_eq!(view.extents(), [rows.end + 2, 8]);
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn own_numbers(&self) -> [Range<usize>; D] {
        self.part.own()
    }

    /// The number of an own element with this index in the array; `None` if another rank has it.
    ///
    /// See the example of [`lines`](Self::lines).
    #[must_use]
    pub fn number_of(&self, index: [usize; D]) -> Option<[usize; D]> {
        self.part.number_of(index)
    }

    /// The elements from `at` to the end of the line, the halo there included.
    ///
    /// See the example of [`GlobalArray`](crate::GlobalArray).
    ///
    /// # Panics
    /// If there is no such line, or `at` is beyond its end.
    #[inline]
    #[must_use]
    pub fn line(&self, at: [usize; D]) -> &'q [T] {
        &self.memory[self.part.line(at)]
    }

    /// Each line of this rank's own elements without its halo, with the index in the array of the
    /// first one; the others are not adjacent in the array if the last dimension is cyclic.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let mut world = argonet::World::init().unwrap();
    /// let distribution = Distribution::new([8, 6], [Spread::Block, Spread::Whole]).halo([2, 1]);
    /// let mut array = GlobalArray::<u64, 2>::alloc(&world, distribution).unwrap();
    /// world.quiet(|q| {
    ///     let mut view = array.local_mut(q);
    ///     for ([row, _], line) in view.lines_mut() {
    ///         line.fill(row as u64);
    ///     }
    ///     let view = array.local(q);
    ///     for ([row, column], line) in view.lines() {
    ///         assert!(column == 0 && line == [row as u64; 6]);
    ///         // Behind two lines of the halo, and one element of it.
    ///         let [number, 1] = view.number_of([row, 0]).unwrap() else { panic!() };
    ///         assert_eq!(view.line([number, 0]).len(), 8);
    ///     }
    ///     assert_eq!(view.number_of([9, 0]), None);
    /// }).unwrap();
    /// ```
    pub fn lines(&self) -> impl Iterator<Item = ([usize; D], &'q [T])> + use<'q, T, D> {
        let part = self.part;
        let own = part.own()[D - 1].clone();
        let lines = self.memory.chunks_exact(part.width()).enumerate();
        lines.filter_map(move |(line, elements)| {
            Some((part.line_index(line)?, &elements[own.clone()]))
        })
    }

    /// Each of this rank's own elements with its index in the array.
    ///
    /// See the example of [`GlobalArray`](crate::GlobalArray).
    pub fn iter(&self) -> impl Iterator<Item = ([usize; D], &'q T)> + use<'q, T, D> {
        let part = self.part;
        self.lines().flat_map(move |(first, line)| {
            let elements = line.iter().enumerate();
            elements.map(move |(local, value)| (part.along(first, local), value))
        })
    }
}

impl<T: Global, const D: usize> LocalViewMut<'_, T, D> {
    /// How many elements there are in each dimension, the halo on both sides counted.
    ///
    /// See the example of [`LocalView::own_numbers`].
    #[must_use]
    pub fn extents(&self) -> [usize; D] {
        self.part.extents()
    }

    /// The numbers of this rank's own elements, which the halo surrounds.
    ///
    /// See the example of [`LocalView::own_numbers`].
    #[must_use]
    pub fn own_numbers(&self) -> [Range<usize>; D] {
        self.part.own()
    }

    /// The same part, to be read.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let mut world = argonet::World::init().unwrap();
    /// let line = Distribution::new([9], [Spread::Cyclic]);
    /// let mut line = GlobalArray::<u8, 1>::alloc(&world, line).unwrap();
    /// world.quiet(|q| {
    ///     let mut view = line.local_mut(q);
    ///     view.iter_mut().for_each(|([index], value)| *value = index as u8);
    ///     assert!(view.as_view().iter().all(|([index], value)| *value == index as u8));
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn as_view(&self) -> LocalView<'_, T, D> {
        LocalView {
            part: self.part,
            memory: self.memory,
        }
    }

    /// The elements from `at` to the end of the line, the halo there included.
    ///
    /// See the example of [`GlobalArray`](crate::GlobalArray).
    ///
    /// # Panics
    /// If there is no such line, or `at` is beyond its end.
    #[inline]
    #[must_use]
    pub fn line_mut(&mut self, at: [usize; D]) -> &mut [T] {
        &mut self.memory[self.part.line(at)]
    }

    /// Each line of this rank's own elements without its halo, with the index in the array of the
    /// first one.
    ///
    /// The slices may be written at once, by several threads too.
    ///
    /// See the example of [`LocalView::lines`].
    pub fn lines_mut(&mut self) -> impl Iterator<Item = ([usize; D], &mut [T])> {
        let part = self.part;
        let own = part.own()[D - 1].clone();
        let lines = self.memory.chunks_exact_mut(part.width()).enumerate();
        lines.filter_map(move |(line, elements)| {
            Some((part.line_index(line)?, &mut elements[own.clone()]))
        })
    }

    /// Each of this rank's own elements with its index in the array.
    ///
    /// See the example of [`GlobalArray`](crate::GlobalArray).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = ([usize; D], &mut T)> {
        let part = self.part;
        self.lines_mut().flat_map(move |(first, line)| {
            let elements = line.iter_mut().enumerate();
            elements.map(move |(local, value)| (part.along(first, local), value))
        })
    }
}

impl<T: Global, const D: usize> Index<[usize; D]> for LocalView<'_, T, D> {
    type Output = T;

    #[inline]
    fn index(&self, at: [usize; D]) -> &T {
        &self.memory[self.part.element(at)]
    }
}

impl<T: Global, const D: usize> Index<[usize; D]> for LocalViewMut<'_, T, D> {
    type Output = T;

    #[inline]
    fn index(&self, at: [usize; D]) -> &T {
        &self.memory[self.part.element(at)]
    }
}

impl<T: Global, const D: usize> IndexMut<[usize; D]> for LocalViewMut<'_, T, D> {
    #[inline]
    fn index_mut(&mut self, at: [usize; D]) -> &mut T {
        &mut self.memory[self.part.element(at)]
    }
}
