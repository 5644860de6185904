//! The tools of `gasnet_tools.h` that only a program with `gasnetex.h` has.

mod lists;
mod memory;
mod peer;
mod sets;
mod strides;

use core::ffi::c_char;

use crate::Prototype;
pub(crate) use lists::Piece;

/// All functions that `argonet/job_tools.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [
        lists::PROTOTYPES,
        memory::PROTOTYPES,
        sets::PROTOTYPES,
        strides::PROTOTYPES,
    ]
    .concat()
}

/// Sizes and places in structs that C declares too, as C would ask for them.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    lists::LAYOUT.to_vec()
}

/// Writes the text to `to` unless that is null; the bytes that it takes.
///
/// # Safety
/// `to` is null or has room for the text and a 0.
unsafe fn put(to: *mut c_char, text: &str) -> usize {
    if !to.is_null() {
        // SAFETY: by this function's contract; the caller's buffer is not the new text.
        unsafe {
            to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
            to.add(text.len()).write(0);
        }
    }
    text.len() + 1
}

/// The slice that C passes as an address and a count.
///
/// # Safety
/// `from` leads to `count` values that do not change while the result is used; with `count` 0 it
/// may be anything.
unsafe fn slice<'a, T>(from: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: this function's contract.
    unsafe { core::slice::from_raw_parts(from, count) }
}
