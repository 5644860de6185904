//! What calls return, in numbers and words, and how a call ends the job.

use core::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::export::export;
use crate::job::state;

pub(crate) const OK: c_int = 0;
pub(crate) const NOT_INIT: c_int = 10001;
pub(crate) const RESOURCE: c_int = 10002;
pub(crate) const BAD_ARG: c_int = 10003;
pub(crate) const NOT_READY: c_int = 10004;
pub(crate) const BARRIER_MISMATCH: c_int = 10005;

/// Whether calls that return an error say why.
static VERBOSE: AtomicBool = AtomicBool::new(true);

fn name(code: c_int) -> &'static CStr {
    match code {
        OK => c"GASNET_OK",
        NOT_INIT => c"GASNET_ERR_NOT_INIT",
        RESOURCE => c"GASNET_ERR_RESOURCE",
        BAD_ARG => c"GASNET_ERR_BAD_ARG",
        NOT_READY => c"GASNET_ERR_NOT_READY",
        BARRIER_MISMATCH => c"GASNET_ERR_BARRIER_MISMATCH",
        _ => c"an unknown code",
    }
}

fn description(code: c_int) -> &'static CStr {
    match code {
        OK => c"no error",
        NOT_INIT => c"the library is not initialised, or is so already",
        RESOURCE => c"something needed has run out",
        BAD_ARG => c"an argument is not allowed",
        NOT_READY => c"not complete yet",
        BARRIER_MISMATCH => c"ranks named different barriers",
        _ => c"no such code",
    }
}

/// Where this process stands, for messages.
fn place() -> String {
    state::rank().map_or_else(
        || format!("process {}", std::process::id()),
        |rank| format!("rank {rank}"),
    )
}

/// Says why a call returns an error, unless the client does not want to know; returns the code.
#[cold]
pub(crate) fn refuse(function: &str, code: c_int, why: &str) -> c_int {
    if VERBOSE.load(Ordering::Relaxed) {
        let name = name(code).to_string_lossy();
        let line = format!("argonet: {}: {function} returns {name}: {why}\n", place());
        // Nobody is left to tell if standard error is closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    code
}

/// Ends the job because a call cannot do what it is asked for and has no way to say so.
#[cold]
pub(crate) fn fatal(function: &str, why: &str) -> ! {
    match state::find() {
        Some(job) => job.joined.engine.fatal(&format!("{function}: {why}")),
        None => {
            let pid = std::process::id();
            eprintln!(
                "*** FATAL ERROR (pid {pid}): argonet: {}: {function}: {why}",
                place()
            );
            std::process::abort()
        }
    }
}

export! {
    fn gasnet_ErrorName(code: c_int) -> *const c_char {
        name(code).as_ptr()
    }

    fn gasnet_ErrorDesc(code: c_int) -> *const c_char {
        description(code).as_ptr()
    }

    fn gex_System_GetVerboseErrors() -> c_int {
        VERBOSE.load(Ordering::Relaxed).into()
    }

    fn gex_System_SetVerboseErrors(enable: c_int) {
        VERBOSE.store(enable != 0, Ordering::Relaxed);
    }
}
