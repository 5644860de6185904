//! Which elements of an array a strided operation moves.

use crate::engine::Few;
use core::ops::Range;

/// What is wrong with a section, or with two of them together.
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
        /// An element that it leads to, as far as a number can tell.
        element: i128,
        /// Elements of the array.
        len: usize,
    },
    /// Two sections have different numbers of dimensions.
    #[error(
        "the section that is written has {to} dimensions, the one that is read {from}; both must have as many"
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
    /// There are as many ranges as dimensions, or not.
    #[error("{ranges} ranges are given for an array of {extents} dimensions; give one for each")]
    RangesMissing {
        /// Ranges given.
        ranges: usize,
        /// Dimensions of the array.
        extents: usize,
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

/// Elements of an array at regular distances, in any number of dimensions: the one with the indices `i` is element
/// `first + i[0] * stride[0] + i[1] * stride[1] + ...` of the array. Strides are in elements and may have any sign; the number of an
/// element in a dimension is below its count. What lies in which array is checked where a section is used.
///
/// Two sections of one operation have as many elements in each dimension, and the element with certain indices goes to the one with
/// the same. So a dimension that is [reversed](Self::reversed) in one of them is mirrored, and dimensions in
/// [another order](Self::permuted) are transposed.
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
            dims,
            bounds,
        }
    }

    /// The elements of an array of several dimensions that a range of each cuts out. The last dimension lies together.
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
            let Range { start, end } = *range;
            if start > end || end > extent {
                return Err(SectionError::NoSuchRange {
                    dimension,
                    start,
                    end,
                    extent,
                });
            }
            // Beyond all numbers it is beyond all arrays too.
            first = first.saturating_add(start.saturating_mul(stride));
            dims.push((end - start, isize::try_from(stride).unwrap_or(isize::MAX)));
            stride = stride.saturating_mul(extent);
        }
        dims.reverse();
        Ok(Self::with(first, dims))
    }

    /// With a dimension that runs the other way. One that does not exist changes nothing.
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

    /// What of it leaves an array of `len` elements, as something does.
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

    pub(crate) fn counts(&self) -> Few<usize> {
        self.dims.iter().map(|(count, _)| *count).collect()
    }

    /// Where the first element begins, and the strides, in bytes. All of it lies in an array of `len` elements of so many bytes; if
    /// memory can have no such array, a first byte that is in no segment.
    pub(crate) fn in_bytes(&self, size: usize) -> (usize, Few<isize>) {
        let strides = self.dims.iter().map(|&(count, stride)| match count {
            0 | 1 => 0,
            _ => stride.saturating_mul(size as isize),
        });
        (self.first.saturating_mul(size), strides.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_accepted_lies_in_the_array(
            first in 0usize..30,
            dims in prop::collection::vec((0usize..4, -9isize..10), 0..4),
            len in 0usize..60,
        ) {
            let section = Section::new(first, &dims);
            let mut elements = vec![first as isize];
            for (count, stride) in &dims {
                let steps = 0..*count as isize;
                let next = elements.iter().flat_map(|at| steps.clone().map(move |i| at + i * stride));
                elements = next.collect();
            }
            prop_assert_eq!(section.len(), elements.len());
            let inside = elements.iter().all(|at| (0..len as isize).contains(at));
            prop_assert_eq!(section.check(len).is_ok(), inside);
        }
    }

    #[test]
    fn numbers_beyond_all_arrays() {
        let huge = Section::new(1, &[(usize::MAX, isize::MAX), (usize::MAX, isize::MIN)]);
        assert!(huge.check(usize::MAX).is_err());
        let far = Section::of_array(&[usize::MAX; 3], &[1..2, 0..usize::MAX, 5..7]).unwrap();
        assert!(far.check(usize::MAX).is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
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
