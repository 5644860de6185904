//! Fields of all objects: a handle that C gives back, and a pointer of the client's.

use core::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::job::fatal;

/// The client's pointer.
///
/// Any thread may set and read it, in handlers too.
#[derive(Debug, Default)]
pub(crate) struct CData(AtomicPtr<c_void>);

impl CData {
    pub(crate) fn set(&self, value: *const c_void) {
        self.0.store(value.cast_mut(), Ordering::Release);
    }

    pub(crate) fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Acquire)
    }
}

/// The object of a handle.
///
/// Ends the job if there is none.
///
/// # Safety
/// The handle is null or one that this library gave out for an object that has not been destroyed.
#[inline]
pub(crate) unsafe fn given<'a, T>(handle: *const T, function: &str, argument: &str) -> &'a T {
    // SAFETY: this function's contract.
    match unsafe { handle.as_ref() } {
        Some(object) => object,
        None => missing(function, argument),
    }
}

#[cold]
#[inline(never)]
fn missing(function: &str, argument: &str) -> ! {
    fatal(function, &format!("{argument} is invalid (null)"))
}
