//! The end of a job that the client asks for.

use core::ffi::c_int;

use argonet_boot::exit_without_handlers;

use crate::export::export;
use crate::heap::report_at_end;

export! {
    /// Ends the whole job, from anywhere.
    ///
    /// Never returns.
    fn gasnet_exit(code: c_int) {
        report_at_end();
        exit_without_handlers(code)
    }
}
