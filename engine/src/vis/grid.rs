//! Strided transfers in their simplest form: dimensions of one element left out, those that run
//! backwards turned round, the rest ordered by stride, and merged where they lie together.

use super::few::Few;
use super::lattice::Lattice;
use super::shape::{Part, Strided};

/// Destination or source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    To,
    From,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::To => "destination",
            Self::From => "source",
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Dimension {
    pub(super) count: usize,
    pub(super) to: isize,
    pub(super) from: isize,
}

impl Dimension {
    #[inline]
    fn stride(&self, side: Side) -> isize {
        match side {
            Side::To => self.to,
            Side::From => self.from,
        }
    }

    /// Whether `next` goes on where this one ends.
    fn is_continued_by(&self, next: &Self) -> bool {
        continues(self.to, self.count, next.to) && continues(self.from, self.count, next.from)
    }
}

/// Whether a stride is that of so many steps of another.
pub(super) fn continues(stride: isize, count: usize, next: isize) -> bool {
    let steps = isize::try_from(count);
    steps.is_ok_and(|steps| stride.checked_mul(steps) == Some(next))
}

/// A range of addresses, [first, end).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hull {
    pub(super) first: usize,
    pub(super) end: usize,
}

impl Hull {
    pub(super) fn of(address: usize, len: usize) -> Option<Self> {
        let end = address.checked_add(len)?;
        Some(Self {
            first: address,
            end,
        })
    }

    pub(super) fn len(self) -> usize {
        self.end - self.first
    }

    /// The range extended by so many steps of a stride.
    pub(super) fn swept(self, count: usize, stride: isize) -> Option<Self> {
        let steps = isize::try_from(count.saturating_sub(1)).ok()?;
        let way = stride.checked_mul(steps)?;
        Some(match way < 0 {
            true => Self {
                first: self.first.checked_add_signed(way)?,
                ..self
            },
            false => Self {
                end: self.end.checked_add_signed(way)?,
                ..self
            },
        })
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            end: self.end.max(other.end),
        }
    }
}

/// Elements at regular distances on both sides.
///
/// There is at least one, of at least one byte.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) element: usize,
    pub(super) to: usize,
    pub(super) from: usize,
    pub(super) dims: Few<Dimension>,
}

/// Where a side leaves the addresses that it may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Leaves {
    pub(super) side: Side,
    pub(super) part: Part,
    /// The addresses that it would use with that part.
    pub(super) hull: Option<Hull>,
}

/// The addresses of one side of a transfer that is not empty; `within` says which are allowed.
pub(super) fn hull(
    shape: &Strided<'_>,
    side: Side,
    within: impl Fn(Hull) -> bool,
) -> Result<Hull, Leaves> {
    let (address, strides) = match side {
        Side::To => (shape.to, shape.to_strides),
        Side::From => (shape.from, shape.from_strides),
    };
    let allowed = |hull: Option<Hull>, part: Part| {
        hull.filter(|hull| within(*hull))
            .ok_or(Leaves { side, part, hull })
    };
    let mut hull = allowed(Hull::of(address, shape.element), Part::Element)?;
    for (number, (&count, &stride)) in shape.counts.iter().zip(strides).enumerate() {
        let part = Part::Dimension {
            number,
            count,
            stride,
        };
        hull = allowed(hull.swept(count, stride), part)?;
    }
    Ok(hull)
}

impl Grid {
    /// As it is given, but for dimensions of one element.
    ///
    /// `None` if there are no bytes.
    pub(super) fn new(shape: &Strided<'_>) -> Option<Self> {
        if shape.element == 0 || shape.counts.contains(&0) {
            return None;
        }
        let strides = shape.to_strides.iter().zip(shape.from_strides);
        let dims = shape.counts.iter().zip(strides);
        Some(Self {
            element: shape.element,
            to: shape.to,
            from: shape.from,
            dims: dims
                .filter(|(count, _)| **count > 1)
                .map(|(&count, (&to, &from))| Dimension { count, to, from })
                .collect(),
        })
    }

    /// Brings it into its simplest form; the order of elements becomes that of the addresses of one
    /// side, as far as strides show.
    pub(super) fn simplify(&mut self, by: Side) {
        for dim in &mut *self.dims {
            if dim.stride(by) < 0 {
                // The first element becomes the last.
                let steps = (dim.count - 1) as isize;
                self.to = self.to.wrapping_add_signed(dim.to.wrapping_mul(steps));
                self.from = self.from.wrapping_add_signed(dim.from.wrapping_mul(steps));
                dim.to = dim.to.wrapping_neg();
                dim.from = dim.from.wrapping_neg();
            }
        }
        let other = match by {
            Side::To => Side::From,
            Side::From => Side::To,
        };
        let key = |dim: &Dimension| (dim.stride(by), dim.stride(other).unsigned_abs());
        insertion_sort(&mut self.dims, key);
        let together = |dim: &Dimension, element: usize| {
            let element = isize::try_from(element);
            element.is_ok_and(|element| dim.to == element && dim.from == element)
        };
        while let Some(at) = { self.dims.iter() }.position(|dim| together(dim, self.element)) {
            self.element *= self.dims[at].count;
            self.dims.remove(at);
        }
        let mut at = 0;
        while at + 1 < self.dims.len() {
            if self.dims[at].is_continued_by(&self.dims[at + 1]) {
                self.dims[at].count *= self.dims[at + 1].count;
                self.dims.remove(at + 1);
            } else {
                at += 1;
            }
        }
    }

    /// Bytes of all elements; `None` if they are more than a process can have.
    pub(super) fn bytes(&self) -> Option<usize> {
        let mut counts = { self.dims.iter() }.map(|dim| dim.count);
        counts.try_fold(self.element, usize::checked_mul)
    }

    /// One side of it, merged as far as that side allows.
    pub(super) fn side(&self, side: Side) -> Lattice {
        let first = match side {
            Side::To => self.to,
            Side::From => self.from,
        };
        let dims = { self.dims.iter() }.map(|dim| (dim.count, dim.stride(side)));
        Lattice::new(first, self.element, dims)
    }
}

/// Few elements, mostly in order; the standard library's allocates for many.
fn insertion_sort<T: Copy, K: PartialOrd>(list: &mut [T], key: impl Fn(&T) -> K) {
    for sorted in 1..list.len() {
        let mut at = sorted;
        while at > 0 && key(&list[at - 1]) > key(&list[at]) {
            list.swap(at - 1, at);
            at -= 1;
        }
    }
}
