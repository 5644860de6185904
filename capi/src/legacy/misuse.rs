//! Errors that macros of the headers find, and report here.

use core::ffi::{CStr, c_char, c_int};
use std::borrow::Cow;

use crate::export::export;
use crate::job::{fatal, job};

/// The name of a call.
///
/// # Safety
/// A literal.
unsafe fn name<'a>(function: *const c_char) -> Cow<'a, str> {
    // SAFETY: this function's contract.
    unsafe { CStr::from_ptr(function) }.to_string_lossy()
}

export! {
    /// Ends the process, as there is no job yet.
    fn argonet_legacy_no_job(function: *const c_char) {
        // SAFETY: the header's.
        let function = unsafe { name(function) };
        job(&function);
        fatal(&function, "the program was not started by gex_Client_Init or gasnet_init of the library that it is linked with");
    }

    /// Ends the job, as the number that a caller says is not that of the arguments.
    fn argonet_legacy_wrong_count(function: *const c_char, said: i64, given: c_int) {
        // SAFETY: the header's.
        let function = unsafe { name(function) };
        fatal(&function, &format!("numargs is {said}, and {given} arguments follow"));
    }
}
