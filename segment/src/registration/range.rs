//! Ranges of whole pages.

use core::fmt;

/// Why there are no such bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRange {
    /// No bytes.
    #[error("0 bytes at {address:#x} cannot be registered; an operation of no bytes needs none")]
    Empty {
        /// Where.
        address: usize,
    },
    /// Bytes beyond the last address.
    #[error("{len} bytes at {address:#x} go beyond the end of memory")]
    Wraps {
        /// Where they begin.
        address: usize,
        /// How many.
        len: usize,
    },
}

/// Whole pages, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageRange {
    start: usize,
    end: usize,
}

impl PageRange {
    /// The pages that `len` bytes at `address` lie in.
    ///
    /// `page_bytes` is a power of two.
    ///
    /// # Errors
    /// [`BadRange`].
    pub fn around(address: usize, len: usize, page_bytes: usize) -> Result<Self, BadRange> {
        if len == 0 {
            return Err(BadRange::Empty { address });
        }
        let end = address.checked_add(len);
        let end = end.and_then(|end| end.checked_next_multiple_of(page_bytes));
        Ok(Self {
            start: address & !(page_bytes - 1),
            end: end.ok_or(BadRange::Wraps { address, len })?,
        })
    }

    /// Address of the first byte.
    #[must_use]
    pub fn start(self) -> usize {
        self.start
    }

    /// Address behind the last byte.
    #[must_use]
    pub fn end(self) -> usize {
        self.end
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.end - self.start
    }

    /// Whether all of `other` lies in it.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether it shares a page with `other`.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The shortest range that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Itself, extended to multiples of `unit`, a power of two that is no less than a page; as it
    /// is where memory ends before.
    pub(super) fn widened(self, unit: usize) -> Self {
        match self.end.checked_next_multiple_of(unit) {
            Some(end) => Self {
                start: self.start & !(unit - 1),
                end,
            },
            None => self,
        }
    }
}

impl fmt::Display for PageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}-{:#x}", self.start, self.end)
    }
}

impl fmt::Debug for PageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadRange, PageRange};

    const PAGE: usize = 4096;

    #[test]
    fn bytes_lie_in_pages() {
        let range = |address, len| PageRange::around(address, len, PAGE);
        let ends = |address, len| range(address, len).map(|r| (r.start() / PAGE, r.end() / PAGE));
        assert_eq!(ends(0, 1), Ok((0, 1)));
        assert_eq!(ends(PAGE - 1, 1), Ok((0, 1)));
        assert_eq!(ends(PAGE - 1, 2), Ok((0, 2)));
        assert_eq!(ends(PAGE, PAGE), Ok((1, 2)));
        assert_eq!(range(7, 0), Err(BadRange::Empty { address: 7 }));
        for (address, len) in [(usize::MAX, 1), (PAGE, usize::MAX), (0, usize::MAX)] {
            assert_eq!(range(address, len), Err(BadRange::Wraps { address, len }));
        }
        let last = range(usize::MAX - 2 * PAGE, 1).unwrap();
        assert_eq!(last.widened(1 << 20), last);
    }

    #[test]
    fn ranges_that_touch_do_not_overlap() {
        let range = |first: usize, pages: usize| {
            PageRange::around(first * PAGE, pages * PAGE, PAGE).unwrap()
        };
        assert!(!range(0, 2).overlaps(range(2, 1)) && !range(2, 1).overlaps(range(0, 2)));
        assert!(range(0, 2).overlaps(range(1, 2)) && range(1, 2).overlaps(range(0, 2)));
        assert!(range(0, 3).contains(range(0, 3)) && range(0, 3).contains(range(1, 1)));
        assert!(!range(0, 3).contains(range(1, 3)) && !range(1, 3).contains(range(0, 3)));
        assert_eq!(range(0, 1).union(range(4, 1)), range(0, 5));
        assert_eq!(range(3, 2).widened(4 * PAGE), range(0, 8));
    }
}
