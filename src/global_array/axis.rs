//! One dimension of a global array: which place of the grid has which indices.

use core::ops::Range;

/// Which places along a dimension have which indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    extent: usize,
    places: usize,
    /// Indices that follow each other at one place, before the next place has some; `None` if each
    /// place has one block, and these differ in length by at most one.
    cycle: Option<usize>,
}

/// Indices of one place at equal distances: blocks, each of which lies together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// Number of the first among those of its place.
    pub(super) local: usize,
    /// Its index.
    pub(super) index: usize,
    /// How many blocks there are, and indices in each.
    pub(super) blocks: usize,
    pub(super) block: usize,
    /// From the index where a block begins to that where the next one does.
    pub(super) period: usize,
}

impl Axis {
    /// `cycle` is at least one.
    pub(super) fn new(extent: usize, places: usize, cycle: Option<usize>) -> Self {
        Self {
            extent,
            places,
            // A block of all indices is the same as a longer one, and one place has all of them.
            cycle: cycle.map(|block| match places {
                1 => extent.max(1),
                _ => block.min(extent.max(1)),
            }),
        }
    }

    pub(super) const fn extent(&self) -> usize {
        self.extent
    }

    pub(super) const fn places(&self) -> usize {
        self.places
    }

    /// Indices that one round of blocks has.
    fn period(&self, block: usize) -> usize {
        // Beyond all numbers it is beyond all indices.
        self.places.saturating_mul(block)
    }

    /// How many indices below `index` a place has.
    pub(super) fn below(&self, place: usize, index: usize) -> usize {
        match self.cycle {
            None => {
                let (start, count) = self.only_block(place);
                index.saturating_sub(start).min(count)
            }
            Some(block) => {
                let period = self.period(block);
                let rest = (index % period).saturating_sub(place.saturating_mul(block));
                index / period * block + rest.min(block)
            }
        }
    }

    /// Where the only block of a place begins, and its length.
    fn only_block(&self, place: usize) -> (usize, usize) {
        let (each, more) = (self.extent / self.places, self.extent % self.places);
        (
            place * each + place.min(more),
            each + usize::from(place < more),
        )
    }

    /// How many indices a place has.
    pub(super) fn count(&self, place: usize) -> usize {
        self.below(place, self.extent)
    }

    /// The most that a place has.
    pub(super) fn most(&self) -> usize {
        self.count(0)
    }

    /// The place that has an index, and its number among those of the place.
    #[inline]
    pub(super) fn find(&self, index: usize) -> (usize, usize) {
        match self.cycle {
            None => {
                let (each, more) = (self.extent / self.places, self.extent % self.places);
                // The first `more` places have one more than the others.
                let long = more * (each + 1);
                if index < long {
                    (index / (each + 1), index % (each + 1))
                } else {
                    let rest = index - long;
                    (more + rest / each, rest % each)
                }
            }
            Some(block) => {
                let number = index / block;
                let (round, place) = (number / self.places, number % self.places);
                (place, round * block + index % block)
            }
        }
    }

    /// The index with a number among those of a place.
    #[inline]
    pub(super) fn index(&self, place: usize, local: usize) -> usize {
        match self.cycle {
            None => self.only_block(place).0 + local,
            Some(block) => (local / block * self.places + place) * block + local % block,
        }
    }

    /// All indices of a place, if they follow each other.
    pub(super) fn block_of(&self, place: usize) -> Option<Range<usize>> {
        let (count, first) = (self.count(place), self.first(place));
        let is_one = count == 0 || self.index(place, count - 1) == first + count - 1;
        is_one.then_some(first..first + count)
    }

    /// The first index of a place, or one past the end if it has none.
    fn first(&self, place: usize) -> usize {
        match self.cycle {
            None => self.only_block(place).0,
            Some(block) => place.saturating_mul(block).min(self.extent),
        }
    }

    /// The places that have indices of a range, and perhaps others.
    pub(super) fn places_of(&self, range: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = if range.is_empty() {
            (0, 0)
        } else {
            let (first, last) = (range.start, range.end - 1);
            match self.cycle {
                None => (
                    self.find(first).0,
                    self.find(last).0 - self.find(first).0 + 1,
                ),
                Some(block) => (
                    first / block % self.places,
                    (last / block - first / block + 1).min(self.places),
                ),
            }
        };
        let places = self.places;
        (first..first + count).map(move |place| place % places)
    }

    /// The indices of a range that a place has: a part of a block, whole ones, and another part.
    pub(super) fn runs(&self, place: usize, range: &Range<usize>) -> Vec<Run> {
        let (mut local, end) = (self.below(place, range.start), self.below(place, range.end));
        let block = self.cycle.unwrap_or(usize::MAX);
        let period = self.period(block);
        let mut runs = Vec::with_capacity(3);
        while local < end {
            let (rest, left) = (block - local % block, end - local);
            let (blocks, block) = match left / block {
                0 => (1, rest.min(left)),
                _ if rest < block => (1, rest),
                whole => (whole, block),
            };
            runs.push(Run {
                local,
                index: self.index(place, local),
                blocks,
                block,
                period,
            });
            local += blocks * block;
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;
    use proptest::prelude::{Just, Strategy, any, prop_oneof};

    fn axes() -> impl Strategy<Value = Axis> {
        let cycle = prop_oneof![Just(None), (1..12usize).prop_map(Some)];
        (0..60usize, 1..9usize, cycle)
            .prop_map(|(extent, places, cycle)| Axis::new(extent, places, cycle))
    }

    proptest::proptest! {
        #[test]
        fn each_index_has_one_place(axis in axes()) {
            let mut next = vec![0; axis.places()];
            for index in 0..axis.extent() {
                let (place, local) = axis.find(index);
                // A place numbers its indices in their order.
                assert_eq!(local, next[place]);
                assert_eq!(axis.below(place, index), local);
                assert_eq!(axis.index(place, local), index);
                next[place] += 1;
            }
            let counts: Vec<_> = (0..axis.places()).map(|place| axis.count(place)).collect();
            assert_eq!(counts, next);
            assert_eq!(counts.iter().max(), Some(&axis.most()));
        }

        #[test]
        fn runs_are_the_indices_of_a_range(axis in axes(), ends in any::<[usize; 2]>()) {
            let [a, b] = ends.map(|end| end % (axis.extent() + 1));
            let range = a.min(b)..a.max(b);
            let mut found = vec![];
            let places: Vec<_> = axis.places_of(&range).collect();
            for place in 0..axis.places() {
                let runs = axis.runs(place, &range);
                assert!(runs.len() <= 3 && (runs.is_empty() || places.contains(&place)));
                for run in runs {
                    for number in 0..run.blocks * run.block {
                        let (block, at) = (number / run.block, number % run.block);
                        let index = run.index + block * run.period + at;
                        assert_eq!(axis.find(index), (place, run.local + number));
                        found.push(index);
                    }
                }
            }
            found.sort_unstable();
            assert!(found.into_iter().eq(range));
            let all: std::collections::BTreeSet<_> = places.iter().collect();
            assert_eq!(all.len(), places.len(), "no place twice");
        }

        #[test]
        fn a_block_is_all_indices_of_a_place(axis in axes()) {
            for place in 0..axis.places() {
                let own = (0..axis.extent()).filter(|index| axis.find(*index).0 == place);
                let own: Vec<_> = own.collect();
                let follow = own.windows(2).all(|pair| pair[1] == pair[0] + 1);
                match axis.block_of(place) {
                    Some(block) => assert_eq!(block.collect::<Vec<_>>(), own),
                    None => assert!(!follow),
                }
            }
        }
    }

    #[test]
    fn numbers_may_be_as_large_as_they_can_be() {
        for cycle in [None, Some(1), Some(usize::MAX), Some(usize::MAX / 2)] {
            let axis = Axis::new(usize::MAX, u32::MAX as usize, cycle);
            for index in [0, usize::MAX / 2, usize::MAX - 1] {
                let (place, local) = axis.find(index);
                assert_eq!(axis.index(place, local), index, "{cycle:?}");
                assert_eq!(axis.below(place, index), local, "{cycle:?}");
            }
        }
    }
}
