//! The functions behind `gasnet_tools.h`.

mod bytes;
mod environment;
mod errors;
mod rwlock;
mod state;
mod system;
mod ticks;
mod trace;

use core::ffi::{CStr, c_char};
use std::borrow::Cow;

use crate::Prototype;
pub(crate) use environment::settings_of;
pub(crate) use errors::warn;

/// All functions that `gasnet_tools.h` calls.
#[must_use]
pub fn prototypes() -> Vec<Prototype> {
    [
        bytes::PROTOTYPES,
        environment::PROTOTYPES,
        errors::PROTOTYPES,
        rwlock::PROTOTYPES,
        system::PROTOTYPES,
        ticks::PROTOTYPES,
        trace::PROTOTYPES,
    ]
    .concat()
}

/// A text of C's; empty for null.
///
/// # Safety
/// `text` is null or a string that ends with 0 and does not change while the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: not null, so a string, by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Sizes and places in structs that C declares too, as C would ask for them.
#[must_use]
pub fn layouts() -> Vec<(&'static str, usize)> {
    [errors::LAYOUT, rwlock::LAYOUT].concat()
}
