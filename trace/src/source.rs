//! The line of the client's source that a thread is in, as the client records it.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::ptr::null;

/// A file and a line.
///
/// No file until the client has named one.
#[derive(Clone, Copy)]
struct Place {
    file: *const c_char,
    line: u32,
    /// How often it was frozen and not thawed.
    frozen: u32,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place { file: null(), line: 0, frozen: 0 }) };
}

/// Records where the calling thread is, unless it is frozen.
///
/// Null for the same file as before.
///
/// # Safety
/// `file` is null or a string that lives as long as the process.
pub unsafe fn set_source(file: *const c_char, line: u32) {
    let place = PLACE.get();
    if place.frozen == 0 {
        let file = if file.is_null() { place.file } else { file };
        PLACE.set(Place {
            file,
            line,
            ..place
        });
    }
}

/// Where the calling thread is; null where it has recorded nothing.
#[must_use]
pub fn source() -> (*const c_char, u32) {
    let place = PLACE.get();
    (place.file, place.line)
}

/// Ignores lines that the calling thread records from now on, until it has thawed as often.
pub fn freeze_source() {
    let place = PLACE.get();
    let frozen = place.frozen.saturating_add(1);
    PLACE.set(Place { frozen, ..place });
}

/// The contrary.
pub fn thaw_source() {
    let place = PLACE.get();
    let frozen = place.frozen.saturating_sub(1);
    PLACE.set(Place { frozen, ..place });
}

/// Where the calling thread is, as a text.
pub(crate) fn recorded() -> Option<(&'static str, u32)> {
    let (file, line) = source();
    if file.is_null() {
        return None;
    }
    // SAFETY: the promise of the caller of `set_source`.
    let file: &'static CStr = unsafe { CStr::from_ptr(file) };
    Some((file.to_str().unwrap_or("?"), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_lines_stay() {
        assert_eq!(recorded(), None);
        // SAFETY: literals.
        unsafe {
            set_source(c"a.c".as_ptr(), 3);
            set_source(null(), 4);
            assert_eq!(recorded(), Some(("a.c", 4)));
            freeze_source();
            freeze_source();
            set_source(c"b.c".as_ptr(), 5);
            thaw_source();
            set_source(c"b.c".as_ptr(), 6);
            assert_eq!(recorded(), Some(("a.c", 4)));
            thaw_source();
            thaw_source();
            set_source(c"b.c".as_ptr(), 7);
        }
        assert_eq!(recorded(), Some(("b.c", 7)));
        std::thread::spawn(|| assert_eq!(recorded(), None))
            .join()
            .unwrap();
    }
}
