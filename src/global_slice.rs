//! Several values beside each other in global memory.

use crate::error::{Error, Result};
use crate::global::{Global, GlobalPtr};
use argonet_base::{Rank, SegmentOffset};
use core::ops::{Bound, RangeBounds};

/// So many `T`s one after another in the segment of some rank.
///
/// Like a [`GlobalPtr`] it can be copied and sent in messages, and is checked where it is used;
/// unlike one it knows where it ends. Calls that put or get several values take it, and refuse
/// another number of values.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u32>::alloc(&world, 10).unwrap();
/// let all = v.on(world.rank());
/// assert!(all.len() == 10 && !all.is_empty());
/// let part = all.part(2..5);
/// assert_eq!((part.at(0), part.rank()), (v.ptr(world.rank(), 2), world.rank()));
/// world.put_from(part, &[7, 8, 9]).unwrap();
/// assert_eq!(world.get_value(all.at(4)).unwrap(), 9);
/// assert!(world.put_from(part, &[7, 8]).is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GlobalSlice<T: Global> {
    first: GlobalPtr<T>,
    len: usize,
}

impl<T: Global> GlobalSlice<T> {
    /// `len` values from `first` on.
    ///
    /// Checked when used.
    #[inline(always)]
    pub(crate) const fn new(first: GlobalPtr<T>, len: usize) -> Self {
        Self { first, len }
    }

    /// Where it begins: its first element, or the place behind its array if it is empty.
    pub(crate) const fn first(self) -> GlobalPtr<T> {
        self.first
    }

    /// Bytes from the start of the rank's segment to the first value.
    ///
    /// See the example of [`GlobalSlice`].
    #[must_use]
    pub const fn offset(self) -> SegmentOffset {
        self.first.offset()
    }

    /// The value with this number.
    ///
    /// See the example of [`GlobalSlice`].
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    #[must_use]
    pub fn at(self, i: usize) -> GlobalPtr<T> {
        assert!(
            i < self.len,
            "element {i} of a global slice of {} elements",
            self.len
        );
        self.first.offset_by(i)
    }

    /// Whether so many values are as many as it has.
    #[inline]
    pub(crate) fn check_len(self, values: usize) -> Result<()> {
        if values == self.len {
            return Ok(());
        }
        Err(self.other_len(values))
    }

    #[cold]
    fn other_len(self, values: usize) -> Error {
        Error::SliceLength {
            rank: self.rank(),
            slice: self.len,
            values,
        }
    }

    /// The rank whose memory it is.
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
    pub fn part(self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(&first) => first,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        assert!(
            start <= end && end <= self.len,
            "elements {start}..{end} of a global slice of {} elements",
            self.len
        );
        Self {
            first: self.first.offset_by(start),
            len: end - start,
        }
    }
}

impl<T: Global> serde::Serialize for GlobalSlice<T> {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> core::result::Result<S::Ok, S::Error> {
        (self.first, self.len as u64).serialize(serializer)
    }
}

impl<'de, T: Global> serde::Deserialize<'de> for GlobalSlice<T> {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> core::result::Result<Self, D::Error> {
        let (first, len) = <(GlobalPtr<T>, u64)>::deserialize(deserializer)?;
        // Every use compares it with the values given, or with the segment.
        Ok(Self::new(first, usize::try_from(len).unwrap_or(usize::MAX)))
    }
}
