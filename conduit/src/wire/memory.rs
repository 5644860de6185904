//! Memory of the user that an operation under way reads or writes after the call has returned.

use argonet_segment::bulk;

/// Memory of the user, readable until its operation is locally complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserBytes {
    start: *const u8,
    len: usize,
}

// SAFETY: the user has promised that the memory stays readable, for all polling threads.
unsafe impl Send for UserBytes {}

impl UserBytes {
    /// `len` bytes from `start` on.
    ///
    /// # Safety
    /// They stay readable until local completion of the operation has been reported, and the value
    /// is not used any more after that.
    #[must_use]
    pub unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// How many bytes.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "operations of nothing are complete at once"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The part of `len` bytes from `at` on.
    ///
    /// # Panics
    /// If there are not that many.
    #[must_use]
    pub fn part(self, at: usize, len: usize) -> Self {
        assert!(
            at <= self.len && len <= self.len - at,
            "a part of an operation lies in it"
        );
        Self {
            start: self.start.wrapping_add(at),
            len,
        }
    }

    /// Where they begin.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// A copy.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Copies the bytes from `at` on into `out`.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn read(self, at: usize, out: &mut [u8]) {
        let part = self.part(at, out.len());
        // SAFETY: `part` has checked the bounds of the memory that `new` was promised.
        unsafe { bulk::copy(out.as_mut_ptr(), part.start, out.len()) };
    }
}

/// Memory of the user, writable until its get is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserPlace {
    start: *mut u8,
    len: usize,
}

// SAFETY: the user has promised that the memory stays writable, for all polling threads.
unsafe impl Send for UserPlace {}

impl UserPlace {
    /// `len` bytes from `start` on.
    ///
    /// # Safety
    /// They stay writable until completion of the get has been reported, and the value is not used
    /// any more after that.
    #[must_use]
    pub unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len }
    }

    /// How many bytes.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "operations of nothing are complete at once"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The part of `len` bytes from `at` on.
    ///
    /// # Panics
    /// If there are not that many.
    #[must_use]
    pub fn part(self, at: usize, len: usize) -> Self {
        assert!(
            at <= self.len && len <= self.len - at,
            "a part of an operation lies in it"
        );
        Self {
            start: self.start.wrapping_add(at),
            len,
        }
    }

    /// Where they begin.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Stores bytes from `at` on.
    ///
    /// # Panics
    /// If there is not that much room.
    pub fn write(self, at: usize, bytes: &[u8]) {
        let part = self.part(at, bytes.len());
        // SAFETY: `part` has checked the bounds of the memory that `new` was promised.
        unsafe { bulk::copy(part.start, bytes.as_ptr(), bytes.len()) };
    }
}
