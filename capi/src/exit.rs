//! The end of a job that the client asks for.

use core::ffi::c_int;

use argonet_boot::exit_without_handlers;

use crate::export::export;

export! {
    /// Ends the whole job, from anywhere. Never returns.
    fn gasnet_exit(code: c_int) {
        exit_without_handlers(code)
    }
}
