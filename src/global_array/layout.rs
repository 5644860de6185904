//! Where the elements of a global array lie in the memory of their ranks.

use super::axis::{Axis, Run};
use crate::section::{Section, SectionError, check_range};
use core::ops::Range;

/// Which place of the grid has an element, and where in its memory that lies.
///
/// The memory of a place is an array of as many dimensions, the same extents on all: in each the
/// halo, its indices in their order, and the halo again. Places with fewer indices than the first
/// leave the end unused.
#[derive(Clone, Debug)]
pub(super) struct Layout<const D: usize> {
    axes: [Axis; D],
    halo: [usize; D],
    periodic: [bool; D],
    /// Elements of the memory from one index of a dimension to the next.
    strides: [usize; D],
    /// Elements of a place's memory.
    len: usize,
}

/// Elements of a region that one place has, in its memory and in an array of the region alone.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Piece<const D: usize> {
    pub(super) place: [usize; D],
    pub(super) there: Section,
    pub(super) here: Section,
}

/// The last of several choices that runs fastest is next; whether there is one more.
fn advance<const D: usize>(at: &mut [usize; D], counts: [usize; D]) -> bool {
    for d in (0..D).rev() {
        at[d] += 1;
        if at[d] < counts[d] {
            return true;
        }
        at[d] = 0;
    }
    false
}

/// Calls `f` with each choice of one number below each count.
fn each_choice<const D: usize>(counts: [usize; D], mut f: impl FnMut([usize; D])) {
    if counts.contains(&0) {
        return;
    }
    let mut at = [0; D];
    loop {
        f(at);
        if !advance(&mut at, counts) {
            return;
        }
    }
}

impl<const D: usize> Layout<D> {
    /// `None` if a place would have more bytes than any memory.
    pub(super) fn new(
        axes: [Axis; D],
        halo: [usize; D],
        periodic: [bool; D],
        size: usize,
    ) -> Option<Self> {
        let mut strides = [0; D];
        let mut len = 1usize;
        if axes.iter().any(|axis| axis.extent() == 0) {
            len = 0;
        }
        for d in (0..D).rev() {
            strides[d] = len;
            let extent = axes[d].most().checked_add(halo[d].checked_mul(2)?)?;
            len = len.checked_mul(extent)?;
        }
        let fits = len.checked_mul(size)? <= isize::MAX as usize;
        fits.then_some(Self {
            axes,
            halo,
            periodic,
            strides,
            len,
        })
    }

    pub(super) const fn axes(&self) -> &[Axis; D] {
        &self.axes
    }

    pub(super) const fn halo(&self) -> &[usize; D] {
        &self.halo
    }

    pub(super) const fn strides(&self) -> &[usize; D] {
        &self.strides
    }

    /// Elements of a place's memory; none if the array has none.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn extents(&self) -> [usize; D] {
        self.axes.map(|axis| axis.extent())
    }

    /// The place with a number, and the number of a place.
    pub(super) fn place(&self, mut number: usize) -> [usize; D] {
        let mut place = [0; D];
        for d in (0..D).rev() {
            let places = self.axes[d].places();
            place[d] = number % places;
            number /= places;
        }
        place
    }

    #[inline]
    pub(super) fn number(&self, place: [usize; D]) -> usize {
        let along = self.axes.iter().zip(place);
        along.fold(0, |number, (axis, place)| number * axis.places() + place)
    }

    /// How many indices a place has in each dimension.
    pub(super) fn counts(&self, place: [usize; D]) -> [usize; D] {
        core::array::from_fn(|d| self.axes[d].count(place[d]))
    }

    /// The number of the place that has an element, and where in its memory that lies.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub(super) fn find(&self, index: [usize; D]) -> (usize, usize) {
        let (mut number, mut offset) = (0, 0);
        for d in 0..D {
            let axis = &self.axes[d];
            if index[d] >= axis.extent() {
                self.no_such_element(index);
            }
            let (place, local) = axis.find(index[d]);
            number = number * axis.places() + place;
            offset += (local + self.halo[d]) * self.strides[d];
        }
        (number, offset)
    }

    #[cold]
    fn no_such_element(&self, index: [usize; D]) -> ! {
        panic!(
            "element {index:?} of a global array with extents {:?}",
            self.extents()
        )
    }

    /// The elements of a place's memory with these numbers in each dimension, its halo counted.
    pub(super) fn section(&self, ranges: &[Range<usize>; D]) -> Section {
        let first = ranges.iter().zip(self.strides);
        let first = first.map(|(range, stride)| range.start * stride).sum();
        let dims = ranges.iter().zip(self.strides);
        let dims: Vec<_> = dims
            .map(|(range, stride)| (range.len(), stride as isize))
            .collect();
        Section::new(first, &dims)
    }

    /// The place beside another one in a dimension, before it or after it, if there is one.
    pub(super) fn beside(
        &self,
        mut place: [usize; D],
        d: usize,
        after: bool,
    ) -> Option<[usize; D]> {
        let last = self.axes[d].places() - 1;
        place[d] = match (after, place[d]) {
            (true, at) if at < last => at + 1,
            (false, at) if at > 0 => at - 1,
            (true, _) if self.periodic[d] => 0,
            (false, _) if self.periodic[d] => last,
            _ => return None,
        };
        Some(place)
    }

    /// Whether a region lies in the array.
    ///
    /// # Errors
    /// The first range that leaves its dimension.
    pub(super) fn check(&self, region: &[Range<usize>; D]) -> Result<(), SectionError> {
        let mut ranges = region.iter().zip(&self.axes).enumerate();
        ranges
            .try_for_each(|(dimension, (range, axis))| check_range(dimension, axis.extent(), range))
    }

    /// The most elements that go to one rank beside another in a dimension, with those that came
    /// from others before.
    pub(super) fn most_beside(&self, dimension: usize) -> usize {
        let across = (0..D).filter(|d| *d != dimension);
        let across = across.map(|d| self.axes[d].most() + 2 * self.halo[d]);
        self.halo[dimension] * across.product::<usize>()
    }

    /// Cuts a region into pieces that lie at equal distances in the memory of one place.
    ///
    /// # Errors
    /// A range that leaves its dimension.
    pub(super) fn pieces(&self, region: &[Range<usize>; D]) -> Result<Vec<Piece<D>>, SectionError> {
        self.check(region)?;
        if region.iter().any(Range::is_empty) {
            return Ok(vec![]);
        }
        let mut here_strides = [1usize; D];
        for d in (1..D).rev() {
            here_strides[d - 1] = here_strides[d] * region[d].len();
        }
        // What each place along a dimension has of it.
        let along: [Vec<(usize, Vec<Run>)>; D] = core::array::from_fn(|d| {
            let (axis, range) = (&self.axes[d], &region[d]);
            let places = axis.places_of(range);
            places
                .map(|place| (place, axis.runs(place, range)))
                .collect()
        });
        let mut pieces = vec![];
        each_choice(along.each_ref().map(Vec::len), |at| {
            let all: [&(usize, Vec<Run>); D] = core::array::from_fn(|d| &along[d][at[d]]);
            let place = all.map(|(place, _)| *place);
            each_choice(all.map(|(_, runs)| runs.len()), |at| {
                let runs = core::array::from_fn(|d| all[d].1[at[d]]);
                pieces.push(self.piece(place, runs, region, here_strides));
            });
        });
        Ok(pieces)
    }

    fn piece(
        &self,
        place: [usize; D],
        runs: [Run; D],
        region: &[Range<usize>; D],
        here_strides: [usize; D],
    ) -> Piece<D> {
        let (mut first_there, mut first_here) = (0, 0);
        let (mut there, mut here) = (Vec::with_capacity(D), Vec::with_capacity(D));
        for (d, run) in runs.into_iter().enumerate() {
            let (in_memory, in_region) = (self.strides[d], here_strides[d]);
            first_there += (run.local + self.halo[d]) * in_memory;
            first_here += (run.index - region[d].start) * in_region;
            if run.blocks > 1 {
                there.push((run.blocks, (run.block * in_memory) as isize));
                here.push((run.blocks, (run.period * in_region) as isize));
            }
            there.push((run.block, in_memory as isize));
            here.push((run.block, in_region as isize));
        }
        Piece {
            place,
            there: Section::new(first_there, &there),
            here: Section::new(first_here, &here),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, each_choice};
    use crate::global_array::{Distribution, Spread};
    use proptest::prelude::{Just, Strategy, any, prop_oneof};
    use std::collections::BTreeMap;

    fn spreads() -> impl Strategy<Value = Spread> {
        prop_oneof![
            Just(Spread::Whole),
            Just(Spread::Block),
            Just(Spread::Cyclic),
            (1..5usize).prop_map(Spread::BlockCyclic),
        ]
    }

    /// Layouts of three dimensions, on teams of one to twelve ranks.
    fn layouts() -> impl Strategy<Value = Layout<3>> {
        let parts = ([0..9usize, 0..9, 0..9], [spreads(), spreads(), spreads()]);
        let more = ([0..3usize, 0..3, 0..3], 1..13u32);
        (parts, more).prop_filter_map("no such layout", |((extents, spread), (halo, ranks))| {
            let distribution = Distribution::new(extents, spread);
            let with_halo = distribution.halo(halo).on(ranks, 8);
            with_halo.or_else(|_| distribution.on(ranks, 8)).ok()
        })
    }

    proptest::proptest! {
        #[test]
        fn each_element_has_a_place_of_its_own(layout in layouts()) {
            let mut used = std::collections::BTreeSet::new();
            let places: usize = layout.axes().iter().map(|axis| axis.places()).product();
            each_choice(layout.extents(), |index| {
                let (number, offset) = layout.find(index);
                assert!(number < places && offset < layout.len());
                assert_eq!(layout.number(layout.place(number)), number);
                assert!(used.insert((number, offset)), "{index:?} lies where another one does");
            });
        }

        #[test]
        fn pieces_have_each_element_of_a_region_once(
            layout in layouts(),
            ends in any::<[[usize; 2]; 3]>(),
        ) {
            let extents = layout.extents();
            let region: [_; 3] = core::array::from_fn(|d| {
                let [a, b] = ends[d].map(|end| end % (extents[d] + 1));
                a.min(b)..a.max(b)
            });
            // Where each element of the region lies, by its place in an array of the region.
            let mut expected = BTreeMap::new();
            each_choice(region.clone().map(|range| range.len()), |at| {
                let index = core::array::from_fn(|d| region[d].start + at[d]);
                let here = at.iter().zip(&region).fold(0, |sum, (at, range)| sum * range.len() + at);
                expected.insert(here, layout.find(index));
            });
            let mut found = BTreeMap::new();
            for piece in layout.pieces(&region).unwrap() {
                piece.there.matches(&piece.here).unwrap();
                piece.there.check(layout.len()).unwrap();
                let there = piece.there.elements();
                for (here, there) in piece.here.elements().into_iter().zip(there) {
                    let place = layout.number(piece.place);
                    let before = found.insert(here as usize, (place, there as usize));
                    assert!(before.is_none(), "{here} is in two pieces");
                }
            }
            assert_eq!(found, expected);
        }

        #[test]
        fn the_place_after_is_before_its_own(layout in layouts(), number in any::<usize>()) {
            let places: usize = layout.axes().iter().map(|axis| axis.places()).product();
            let place = layout.place(number % places);
            for d in 0..3 {
                if let Some(after) = layout.beside(place, d, true) {
                    assert_eq!(layout.beside(after, d, false), Some(place));
                }
            }
        }
    }

    #[test]
    fn a_periodic_dimension_has_no_end() {
        let all = [Spread::Block, Spread::Whole];
        let layout = Distribution::new([8, 8], all)
            .periodic([true, false])
            .on(3, 8)
            .unwrap();
        assert_eq!(layout.beside([0, 0], 0, false), Some([2, 0]));
        assert_eq!(layout.beside([2, 0], 0, true), Some([0, 0]));
        assert_eq!(layout.beside([0, 0], 1, true), None);
        let alone = Distribution::new([8, 8], all)
            .periodic([true; 2])
            .on(1, 8)
            .unwrap();
        assert_eq!(alone.beside([0, 0], 1, false), Some([0, 0]));
    }

    #[test]
    fn an_array_without_elements_takes_no_memory() {
        for extents in [[0, usize::MAX, usize::MAX], [usize::MAX, 0, usize::MAX]] {
            let layout = Distribution::new(extents, [Spread::Block; 3])
                .on(6, 8)
                .unwrap();
            assert_eq!(layout.len(), 0);
            assert_eq!(layout.pieces(&extents.map(|extent| 0..extent)).unwrap(), []);
        }
    }

    #[test]
    fn a_region_outside_is_refused() {
        let layout = Distribution::new([8, 4], [Spread::Cyclic; 2])
            .on(2, 8)
            .unwrap();
        assert!(layout.pieces(&[0..9, 0..1]).is_err());
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "that is what is wrong with it"
        )]
        let reversed = [0..1, 3..2];
        assert!(layout.pieces(&reversed).is_err());
        assert!(layout.pieces(&[0..1, 5..5]).is_err());
        assert_eq!(layout.pieces(&[8..8, 4..4]).unwrap(), []);
    }
}
