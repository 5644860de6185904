//! Values that belong to an operation under way.
#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// Values that an operation reads or writes while their owner is moved about.
///
/// A box claims its values for itself with each move, and pointers that were taken before are not
/// good any more. This holds the pointer that the box gave.
pub struct Kept<T>(NonNull<[T]>);

// SAFETY: it owns the values, as the box did that it was made of.
unsafe impl<T: Send> Send for Kept<T> {}
// SAFETY: a shared reference gives a pointer and nothing that it points to.
unsafe impl<T: Sync> Sync for Kept<T> {}

impl<T> Kept<T> {
    /// Keeps the values where they are.
    #[must_use]
    pub fn new(values: Box<[T]>) -> Self {
        Self(NonNull::from(Box::leak(values)))
    }

    /// The values, good until this is given back or dropped, wherever it is moved.
    #[must_use]
    pub fn as_ptr(&self) -> *mut [T] {
        self.0.as_ptr()
    }

    /// Gives the values back.
    ///
    /// Pointers to them are not good any more.
    #[must_use]
    pub fn give(self) -> Box<[T]> {
        let values = ManuallyDrop::new(self).0;
        // SAFETY: leaked by `new`, and no other code has it any more.
        unsafe { Box::from_raw(values.as_ptr()) }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`; an owner that does not know the end of its operation forgets it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} values)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_stays_good_while_its_owner_is_moved() {
        let kept = Kept::new(vec![1u8, 2, 3].into());
        let first = kept.as_ptr().cast::<u8>();
        let moved = Box::new(kept);
        // SAFETY: the first of three values that are kept.
        unsafe { first.write(7) };
        assert_eq!(*moved.give(), [7, 2, 3]);
    }
}
