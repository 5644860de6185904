//! One side of a strided transfer: runs of bytes at regular distances.

use super::few::Few;
use super::grid::{Hull, continues};

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub(super) count: usize,
    pub(super) stride: isize,
}

/// Runs of one length; the axes begin with the one whose index changes first.
#[derive(Clone, Debug)]
pub(super) struct Lattice {
    pub(super) first: usize,
    pub(super) run: usize,
    pub(super) axes: Few<Axis>,
}

impl Lattice {
    /// Merges adjacent runs, without a change of the order.
    pub(super) fn new(
        first: usize,
        run: usize,
        axes: impl IntoIterator<Item = (usize, isize)>,
    ) -> Self {
        let mut lattice = Self {
            first,
            run,
            axes: Few::new(),
        };
        for (count, stride) in axes {
            lattice.extend(count, stride);
        }
        lattice
    }

    fn extend(&mut self, count: usize, stride: isize) {
        if count == 1 {
            return;
        }
        match self.axes.last_mut() {
            None if isize::try_from(self.run) == Ok(stride) => self.run *= count,
            Some(last) if continues(last.stride, last.count, stride) => last.count *= count,
            _ => self.axes.push(Axis { count, stride }),
        }
    }

    /// How many runs there are; `None` if more than can be counted.
    pub(super) fn runs(&self) -> Option<usize> {
        let mut counts = { self.axes.iter() }.map(|axis| axis.count);
        counts.try_fold(1usize, usize::checked_mul)
    }

    /// All addresses between its lowest and its highest.
    pub(super) fn hull(&self) -> Option<Hull> {
        let first = Hull::of(self.first, self.run);
        let mut axes = self.axes.iter();
        axes.try_fold(first?, |hull, axis| hull.swept(axis.count, axis.stride))
    }

    /// Its runs from one of them on.
    pub(super) fn walk(&self, index: usize, within: usize) -> LatticeWalk<'_> {
        let mut walk = LatticeWalk {
            lattice: self,
            address: self.first,
            at: Few::new(),
            index,
            left: self.runs().unwrap_or(0).saturating_sub(index),
            within,
        };
        let mut rest = index;
        for axis in &*self.axes {
            let at = rest % axis.count;
            rest /= axis.count;
            let way = axis.stride.wrapping_mul(at as isize);
            walk.address = walk.address.wrapping_add_signed(way);
            walk.at.push(at);
        }
        walk
    }
}

/// A place in a lattice.
pub(super) struct LatticeWalk<'a> {
    lattice: &'a Lattice,
    /// Of the run.
    address: usize,
    /// Its indices.
    at: Few<usize>,
    pub(super) index: usize,
    /// Runs from this one on.
    left: usize,
    pub(super) within: usize,
}

impl LatticeWalk<'_> {
    #[inline]
    pub(super) fn now(&self) -> Option<(usize, usize)> {
        if self.left == 0 {
            return None;
        }
        let address = self.address.wrapping_add(self.within);
        Some((address, self.lattice.run - self.within))
    }

    /// Goes on by at most the rest of the run.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.within += bytes;
        if self.within == self.lattice.run {
            self.within = 0;
            self.step();
        }
    }

    #[inline]
    fn step(&mut self) {
        self.index += 1;
        self.left -= 1;
        for (axis, at) in self.lattice.axes.iter().zip(&mut *self.at) {
            self.address = self.address.wrapping_add_signed(axis.stride);
            *at += 1;
            if *at < axis.count {
                return;
            }
            *at = 0;
            let back = axis.stride.wrapping_mul(axis.count as isize);
            self.address = self.address.wrapping_add_signed(back.wrapping_neg());
        }
    }
}
