//! Which elements of an array a strided operation moves.

use argonet_base::Rank;
use argonet_engine::Few;
use core::ops::Range;

/// The error of a section, or of two of them together.
///
/// See the example of [`Section`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SectionError {
    /// Its first element is not in the array.
    #[error(
        "a section begins with element {first} of an array of {len} elements, counted from 0; let it begin below {len}"
    )]
    FirstOutside {
        /// The element.
        first: usize,
        /// Elements of the array.
        len: usize,
    },
    /// A dimension leads out of the array.
    #[error(
        "dimension {dimension} of a section, {count} elements with stride {stride}, leads to element {element} of an array of {len} elements; a smaller count or stride is needed"
    )]
    Outside {
        /// Its number, from 0.
        dimension: usize,
        /// Elements in it.
        count: usize,
        /// From one to the next, in elements.
        stride: isize,
        /// An element that it leads to, as far as an `i128` can hold it.
        element: i128,
        /// Elements of the array.
        len: usize,
    },
    /// Two sections have different numbers of dimensions.
    #[error(
        "the written section has {to} dimensions, the read one has {from}; both must have as many"
    )]
    DimensionsDiffer {
        /// Of the destination.
        to: usize,
        /// Of the source.
        from: usize,
    },
    /// Two sections differ in a dimension.
    #[error(
        "dimension {dimension} has {to} elements where it is written and {from} where it is read; both sections must have as many"
    )]
    CountsDiffer {
        /// Its number, from 0.
        dimension: usize,
        /// Elements at the destination.
        to: usize,
        /// Elements at the source.
        from: usize,
    },
    /// A range that is to be cut out of an array is not in it.
    #[error(
        "elements {start}..{end} are not in dimension {dimension} of an array, which has {extent}"
    )]
    NoSuchRange {
        /// The dimension, from 0.
        dimension: usize,
        /// Where the range begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Elements of that dimension.
        extent: usize,
    },
    /// Another number of ranges than the array has dimensions.
    #[error("{ranges} ranges are given for an array of {extents} dimensions; give one for each")]
    RangesMissing {
        /// Ranges given.
        ranges: usize,
        /// Dimensions of the array.
        extents: usize,
    },
    /// Elements of an array that would lie beyond all memory.
    #[error(
        "elements {lowest} to {last} of {size} bytes each, of an array at offset {offset} of rank {rank}, would end beyond 2^63 bytes, where no segment has memory; the global slice was made with an offset or a length that no array has"
    )]
    Unaddressable {
        /// The lowest of them.
        lowest: usize,
        /// The highest.
        last: usize,
        /// Bytes of each.
        size: usize,
        /// Where the array begins.
        offset: u64,
        /// In whose segment.
        rank: u32,
    },
    /// Memory of several ranks in one operation.
    #[error(
        "pieces 0 and {piece} of a list are on ranks {first} and {other}; one operation reaches one rank"
    )]
    SeveralRanks {
        /// The first piece on another rank.
        piece: usize,
        /// The rank of piece 0.
        first: u32,
        /// Its rank.
        other: u32,
    },
}

/// Elements of an array at regular distances, in any number of dimensions: the one with the indices
/// `i` is element `first + i[0] * stride[0] + i[1] * stride[1] + ...` of the array.
///
/// Strides are in elements and may have any sign; the number of an element in a dimension is below
/// its count. The bounds of the array are checked where a section is used.
///
/// Two sections of one operation have as many elements in each dimension, and the element with
/// certain indices goes to the one with the same. So a dimension that is [reversed](Self::reversed)
/// in one of them is mirrored, and dimensions in [another order](Self::permuted) are transposed.
///
/// ```
/// use argonet::{Section, SectionError};
/// // The last column of a plate of 4 rows and 6 columns, and the same from below.
/// let column = Section::of_array(&[4, 6], &[0..4, 5..6]).unwrap();
/// assert_eq!(column, Section::new(5, &[(4, 6), (1, 1)]));
/// assert_eq!((column.len(), column.dimensions()), (4, 2));
/// assert_eq!(column.clone().reversed(0), Section::new(23, &[(4, -6), (1, 1)]));
/// assert_eq!(column.permuted(&[1, 0]), Section::new(5, &[(1, 1), (4, 6)]));
/// // Nothing leaves its array.
/// let wrong = Section::new(0, &[(5, 6)]);
/// assert!(matches!(wrong.check(24), Err(SectionError::Outside { dimension: 0, element: 24, .. })));
/// assert_eq!(wrong.check(25), Ok(()));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    first: usize,
    dims: Vec<(usize, isize)>,
    /// The lowest and the highest of its elements; `None` if it has none.
    bounds: Option<(i128, i128)>,
    rows: Option<Rows>,
}

/// Runs of elements that lie together, at equal distances, in the order of the section's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rows {
    /// Elements of a run.
    pub(crate) run: usize,
    /// Runs.
    pub(crate) count: usize,
    /// Elements from the beginning of a run to that of the next.
    pub(crate) stride: isize,
}

impl Rows {
    /// The rows that dimensions form, none of which is empty; `None` if they form no rows.
    fn of(dims: &[(usize, isize)]) -> Option<Self> {
        let mut rows = Self {
            run: 1,
            count: 1,
            stride: 0,
        };
        for &(count, stride) in dims.iter().rev().filter(|(count, _)| *count > 1) {
            let (run, whole) = (
                rows.run as isize,
                rows.stride.checked_mul(rows.count as isize),
            );
            if rows.count == 1 && stride == run {
                rows.run = rows.run.checked_mul(count)?;
            } else if rows.count == 1 {
                (rows.count, rows.stride) = (count, stride);
            } else if whole == Some(stride) {
                rows.count = rows.count.checked_mul(count)?;
            } else {
                return None;
            }
        }
        Some(rows)
    }

    /// Cut into runs like those of the other side, if there is but one.
    fn cut_as(self, other: Self) -> Self {
        match self.count {
            1 => Self {
                stride: other.run as isize,
                ..other
            },
            _ => self,
        }
    }
}

/// The lowest and the highest element with those to which a dimension leads.
fn stretched((lowest, highest): (i128, i128), (count, stride): (usize, isize)) -> (i128, i128) {
    // Below 2^127, as both are below 2^64; beyond all numbers it is beyond all arrays.
    let way = (count as i128 - 1) * stride as i128;
    (
        lowest.saturating_add(way.min(0)),
        highest.saturating_add(way.max(0)),
    )
}

/// Whether a range lies in a dimension of so many elements.
pub(crate) fn check_range(
    dimension: usize,
    extent: usize,
    &Range { start, end }: &Range<usize>,
) -> Result<(), SectionError> {
    if start <= end && end <= extent {
        return Ok(());
    }
    Err(SectionError::NoSuchRange {
        dimension,
        start,
        end,
        extent,
    })
}

impl Section {
    /// The element `first` and those that counts and strides lead to.
    ///
    /// See the example of [`Section`].
    #[must_use]
    pub fn new(first: usize, dims: &[(usize, isize)]) -> Self {
        Self::with(first, dims.to_vec())
    }

    fn with(first: usize, dims: Vec<(usize, isize)>) -> Self {
        let mut bounds = None;
        if dims.iter().all(|(count, _)| *count > 0) {
            let ends = (first as i128, first as i128);
            bounds = Some(dims.iter().fold(ends, |ends, dim| stretched(ends, *dim)));
        }
        Self {
            first,
            rows: bounds.and_then(|_| Rows::of(&dims)),
            dims,
            bounds,
        }
    }

    /// The elements of an array of several dimensions that a range of each cuts out.
    ///
    /// The last dimension lies together.
    ///
    /// See the example of [`Section`].
    ///
    /// # Errors
    /// Another number of ranges than dimensions, or a range that leaves its dimension.
    pub fn of_array(extents: &[usize], ranges: &[Range<usize>]) -> Result<Self, SectionError> {
        if extents.len() != ranges.len() {
            return Err(SectionError::RangesMissing {
                ranges: ranges.len(),
                extents: extents.len(),
            });
        }
        let (mut first, mut stride) = (0usize, 1usize);
        let mut dims = Vec::with_capacity(extents.len());
        for (dimension, (&extent, range)) in extents.iter().zip(ranges).enumerate().rev() {
            check_range(dimension, extent, range)?;
            let Range { start, end } = *range;
            // Beyond all numbers it is beyond all arrays too.
            first = first.saturating_add(start.saturating_mul(stride));
            dims.push((end - start, isize::try_from(stride).unwrap_or(isize::MAX)));
            stride = stride.saturating_mul(extent);
        }
        dims.reverse();
        Ok(Self::with(first, dims))
    }

    /// With a dimension that runs the other way.
    ///
    /// One that does not exist changes nothing.
    ///
    /// See the example of [`Section`].
    #[must_use]
    pub fn reversed(mut self, dimension: usize) -> Self {
        if let Some((count, stride)) = self.dims.get_mut(dimension) {
            let steps = count.saturating_sub(1);
            let way = stride.saturating_mul(isize::try_from(steps).unwrap_or(isize::MAX));
            self.first = self.first.saturating_add_signed(way);
            *stride = stride.saturating_neg();
        }
        Self::with(self.first, self.dims)
    }

    /// With its dimensions in another order: the first is that of number `order[0]`.
    ///
    /// See the example of [`Section`].
    ///
    /// # Panics
    /// If `order` does not name each dimension once.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let mut named = order.to_vec();
        named.sort_unstable();
        assert!(
            named.into_iter().eq(0..self.dims.len()),
            "{order:?} is no order of {} dimensions",
            self.dims.len()
        );
        let dims = order.iter().map(|dim| self.dims[*dim]);
        Self::with(self.first, dims.collect())
    }

    /// How many dimensions it has.
    ///
    /// See the example of [`Section`].
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dims.len()
    }

    /// How many elements it has.
    ///
    /// See the example of [`Section`].
    #[must_use]
    pub fn len(&self) -> usize {
        let counts = self.dims.iter().map(|(count, _)| *count);
        if counts.clone().any(|count| count == 0) {
            return 0;
        }
        counts.fold(1, usize::saturating_mul)
    }

    /// Whether it has none.
    ///
    /// ```
    /// assert!(argonet::Section::new(3, &[(4, 1), (0, 9)]).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all of it lies in an array of so many elements.
    ///
    /// See the example of [`Section`].
    ///
    /// # Errors
    /// [`SectionError::FirstOutside`], [`SectionError::Outside`].
    pub fn check(&self, len: usize) -> Result<(), SectionError> {
        match self.bounds {
            Some((lowest, highest)) if lowest < 0 || highest >= len as i128 => self.leaves(len),
            _ => Ok(()),
        }
    }

    /// The error of a section that leaves an array of `len` elements.
    #[cold]
    fn leaves(&self, len: usize) -> Result<(), SectionError> {
        let first = self.first;
        if first >= len {
            return Err(SectionError::FirstOutside { first, len });
        }
        let mut ends = (first as i128, first as i128);
        for (dimension, &(count, stride)) in self.dims.iter().enumerate() {
            ends = stretched(ends, (count, stride));
            let element = if stride < 0 { ends.0 } else { ends.1 };
            if element < 0 || element >= len as i128 {
                return Err(SectionError::Outside {
                    dimension,
                    count,
                    stride,
                    element,
                    len,
                });
            }
        }
        Ok(())
    }

    /// Whether elements can go from another section to this one.
    pub(crate) fn matches(&self, from: &Self) -> Result<(), SectionError> {
        let (to, other) = (self.dims.len(), from.dims.len());
        if to != other {
            return Err(SectionError::DimensionsDiffer { to, from: other });
        }
        let pairs = self.dims.iter().zip(&from.dims).enumerate();
        for (dimension, (&(to, _), &(from, _))) in pairs {
            if to != from {
                return Err(SectionError::CountsDiffer {
                    dimension,
                    to,
                    from,
                });
            }
        }
        Ok(())
    }

    /// This section and another that [matches](Self::matches) it as rows of the same lengths, if
    /// both are rows.
    #[inline]
    pub(crate) fn rows_with(&self, other: &Self) -> Option<(Rows, Rows)> {
        let (mine, theirs) = (self.rows?, other.rows?);
        let (mine, theirs) = (mine.cut_as(theirs), theirs.cut_as(mine));
        ((mine.run, mine.count) == (theirs.run, theirs.count)).then_some((mine, theirs))
    }

    /// The first element, the lowest, and how many there are from that to the highest; of a section
    /// that was [checked](Self::check), `None` if it is empty.
    #[inline]
    pub(crate) fn span(&self) -> Option<(usize, usize, usize)> {
        let (lowest, highest) = self.bounds?;
        let (lowest, highest) = (lowest as usize, highest as usize);
        Some((self.first, lowest, highest - lowest + 1))
    }

    /// The section of as many elements in each dimension that has nothing between them.
    pub(crate) fn dense(&self) -> Self {
        let mut dims = self.dims.clone();
        let mut stride = 1isize;
        for dim in dims.iter_mut().rev() {
            let count = isize::try_from(dim.0).unwrap_or(isize::MAX);
            dim.1 = stride;
            stride = stride.saturating_mul(count);
        }
        Self::with(0, dims)
    }

    /// The elements of a section, in their order.
    #[cfg(test)]
    pub(crate) fn elements(&self) -> Vec<isize> {
        let mut elements = vec![self.first as isize];
        for (count, stride) in &self.dims {
            let steps = 0..*count as isize;
            let next = elements
                .iter()
                .flat_map(|at| steps.clone().map(move |i| at + i * stride));
            elements = next.collect();
        }
        elements
    }

    /// The first of its elements and their number, if they lie together in their order.
    pub(crate) fn as_run(&self) -> Option<Range<usize>> {
        let rows = self.rows.filter(|rows| rows.count == 1)?;
        Some(self.first..self.first + rows.run)
    }

    pub(crate) fn counts(&self) -> Few<usize> {
        self.dims.iter().map(|(count, _)| *count).collect()
    }

    /// Where the first element begins and the strides, in bytes, of a section that was
    /// [checked](Self::check), in an array of elements of so many bytes at `offset` of `rank`.
    ///
    /// # Errors
    /// [`SectionError::Unaddressable`]. The results overflow nowhere: no element ends beyond 2^63
    /// bytes.
    pub(crate) fn in_bytes(
        &self,
        size: usize,
        (rank, offset): (Rank, u64),
    ) -> Result<(usize, Few<isize>), SectionError> {
        let Some((first, lowest, span)) = self.span() else {
            return Ok((0, self.dims.iter().map(|_| 0).collect()));
        };
        // The array has more elements than the highest's number.
        let end = (lowest + span).checked_mul(size);
        let end = end.and_then(|end| offset.checked_add(end as u64));
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err(SectionError::Unaddressable {
                lowest,
                last: lowest + (span - 1),
                size,
                offset,
                rank: rank.0,
            });
        }
        let strides = self.dims.iter().map(|&(count, stride)| match count {
            1 => 0,
            _ => stride * size as isize,
        });
        Ok((first * size, strides.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn accepted_sections_lie_in_the_array(
            first in 0usize..30,
            dims in prop::collection::vec((0usize..4, -9isize..10), 0..4),
            len in 0usize..60,
        ) {
            let section = Section::new(first, &dims);
            let elements = section.elements();
            prop_assert_eq!(section.len(), elements.len());
            let inside = elements.iter().all(|at| (0..len as isize).contains(at));
            prop_assert_eq!(section.check(len).is_ok(), inside);
        }
    }

    fn of_rows(first: usize, rows: Rows) -> Vec<isize> {
        let begins = (0..rows.count as isize).map(|row| first as isize + row * rows.stride);
        begins
            .flat_map(|begin| begin..begin + rows.run as isize)
            .collect()
    }

    /// Strides with which dimensions often go on from each other.
    fn dims() -> impl Strategy<Value = Vec<(usize, isize, isize)>> {
        let stride = || prop::sample::select(&[1isize, 1, 2, 3, 4, 6, 8, 12, -1, -4, 0][..]);
        prop::collection::vec((1usize..4, stride(), stride()), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn rows_are_the_elements_in_their_order(first in 0usize..30, dims in dims()) {
            let side = |right: bool| -> Vec<_> {
                dims.iter().map(|&(count, a, b)| (count, if right { a } else { b })).collect()
            };
            let (left, right) = (Section::new(first, &side(false)), Section::new(7, &side(true)));
            let all = Section::new(first, &side(false)).elements();
            let others = Section::new(7, &side(true)).elements();
            if let Some(rows) = left.rows {
                prop_assert_eq!(of_rows(first, rows), all.clone());
            }
            if let Some((mine, theirs)) = left.rows_with(&right) {
                prop_assert_eq!((mine.run, mine.count), (theirs.run, theirs.count));
                prop_assert_eq!(of_rows(first, mine), all.clone());
                prop_assert_eq!(of_rows(7, theirs), others);
            }
            if left.check(1000).is_ok() {
                let (lowest, highest) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
                let span = (highest - lowest + 1) as usize;
                prop_assert_eq!(left.span(), Some((first, lowest as usize, span)));
            }
        }
    }

    #[test]
    fn faces_of_a_cube_are_rows() {
        let face = |fixed: usize| {
            let range = |dim| if dim == fixed { 3..4 } else { 0..8 };
            Section::of_array(&[8; 3], &[range(0), range(1), range(2)])
                .unwrap()
                .rows
        };
        let rows = |run, count, stride| Some(Rows { run, count, stride });
        assert_eq!((face(0), face(1)), (rows(64, 1, 0), rows(8, 8, 64)));
        assert_eq!(face(2), rows(1, 64, 8));
    }

    #[test]
    fn numbers_beyond_all_arrays() {
        let huge = Section::new(1, &[(usize::MAX, isize::MAX), (usize::MAX, isize::MIN)]);
        assert!(huge.check(usize::MAX).is_err());
        let far = Section::of_array(&[usize::MAX; 3], &[1..2, 0..usize::MAX, 5..7]).unwrap();
        assert!(far.check(usize::MAX).is_err());
    }

    #[test]
    fn errors_name_the_wrong_dimension_or_element() {
        for (error, words) in [
            (
                Section::of_array(&[4, 6], &[]).unwrap_err(),
                ["0 ranges", "2 dimensions"],
            ),
            (
                Section::of_array(&[4, 6], &[0..4, 3..7]).unwrap_err(),
                ["dimension 1", "3..7"],
            ),
            (
                Section::new(24, &[]).check(24).unwrap_err(),
                ["element 24", "24 elements"],
            ),
            (
                Section::new(5, &[(3, 1), (4, -2)]).check(24).unwrap_err(),
                ["dimension 1", "stride -2"],
            ),
            (
                Section::new(0, &[(3, 1)])
                    .matches(&Section::new(0, &[(4, 1)]))
                    .unwrap_err(),
                ["dimension 0", "3 elements where it is written and 4"],
            ),
        ] {
            let text = error.to_string();
            for word in words {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
    }
}
