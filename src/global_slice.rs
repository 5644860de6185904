//! Several values beside each other in global memory.

use crate::global::{Global, GlobalPtr};
use argonet_base::Rank;
use core::ops::Range;

/// So many `T`s one after another in the segment of some rank. Like a [`GlobalPtr`] it can be copied and is checked where it is used;
/// unlike one it knows where it ends.
///
/// ```
/// # use argonet::{SharedVec, World};
/// # let world = World::init().unwrap();
/// let v = SharedVec::<u32>::alloc(&world, 10).unwrap();
/// let all = v.on(world.rank());
/// assert!(all.len() == 10 && !all.is_empty());
/// assert_eq!(all.part(2..5), v.gptr(world.rank(), 2).slice(3));
/// assert_eq!((all.part(2..5).first(), all.rank()), (v.gptr(world.rank(), 2), world.rank()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GlobalSlice<T: Global> {
    first: GlobalPtr<T>,
    len: usize,
}

impl<T: Global> GlobalPtr<T> {
    /// This value and those behind it, `len` in all.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn slice(self, len: usize) -> GlobalSlice<T> {
        GlobalSlice { first: self, len }
    }
}

impl<T: Global> GlobalSlice<T> {
    /// Where it begins.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn first(self) -> GlobalPtr<T> {
        self.first
    }

    /// Whose memory it is.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn rank(self) -> Rank {
        self.first.rank()
    }

    /// How many values there are.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The values with these numbers.
    ///
    /// See the example of [`GlobalSlice`].
    ///
    /// # Panics
    /// If they are not all in it.
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(
            start <= end && end <= self.len,
            "elements {start}..{end} of a global slice of {} elements",
            self.len
        );
        Self {
            first: self.first.add(start),
            len: end - start,
        }
    }
}
