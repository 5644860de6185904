//! Values that belong to an operation under way.
#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// Values that an operation reads or writes while their owner is moved about: not as a box, which would claim them for itself
/// with each move, so that pointers taken before would not be good any more.
pub(crate) struct Kept<T>(NonNull<[T]>);

impl<T> Kept<T> {
    pub(crate) fn new(values: Box<[T]>) -> Self {
        Self(NonNull::from(Box::leak(values)))
    }

    /// The values, good until this is given back or dropped, wherever it is moved.
    pub(crate) fn as_ptr(&self) -> *mut [T] {
        self.0.as_ptr()
    }

    pub(crate) fn give(self) -> Box<[T]> {
        let values = ManuallyDrop::new(self).0;
        // SAFETY: leaked by `new`, and nobody else has it any more.
        unsafe { Box::from_raw(values.as_ptr()) }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`; whoever starts an operation with it forgets it if the end of that is not known.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
