//! Codes that calls return, in numbers and words, and the end of the job by a call.

use core::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use argonet_base::gasnet::number32;

use crate::export::export;
use crate::job::linked::Code;
use crate::job::state;

/// `GASNET_OK`.
pub(crate) const OK: c_int = number32("GASNET_OK") as c_int;

/// A call needs a rank that is lost; the same number for all conduits, as GASNet has none.
pub(crate) const PEER_LOST: c_int = number32("ARGONET_ERR_PEER_LOST") as c_int;

pub(crate) const NOT_INIT: Code = Code::NotInit;
pub(crate) const RESOURCE: Code = Code::Resource;
pub(crate) const BAD_ARG: Code = Code::BadArg;
pub(crate) const NOT_READY: Code = Code::NotReady;
pub(crate) const BARRIER_MISMATCH: Code = Code::BarrierMismatch;

/// Whether calls that return an error say why.
static VERBOSE: AtomicBool = AtomicBool::new(true);

fn name(code: Code) -> &'static CStr {
    match code {
        Code::NotInit => c"GASNET_ERR_NOT_INIT",
        Code::Resource => c"GASNET_ERR_RESOURCE",
        Code::BadArg => c"GASNET_ERR_BAD_ARG",
        Code::NotReady => c"GASNET_ERR_NOT_READY",
        Code::BarrierMismatch => c"GASNET_ERR_BARRIER_MISMATCH",
    }
}

fn description(code: Code) -> &'static CStr {
    match code {
        Code::NotInit => c"the library is not initialized, or is so already",
        Code::Resource => c"something needed has run out",
        Code::BadArg => c"an argument is not allowed",
        Code::NotReady => c"not complete yet",
        Code::BarrierMismatch => c"ranks named different barriers",
    }
}

/// Where this process stands, for messages.
fn place() -> String {
    state::rank().map_or_else(
        || format!("process {}", std::process::id()),
        |rank| format!("rank {rank}"),
    )
}

/// Says why a call returns an error, unless the client does not want to know; returns the number of
/// the code.
#[cold]
pub(crate) fn refuse(function: &str, code: Code, why: &str) -> c_int {
    if VERBOSE.load(Ordering::Relaxed) {
        let name = name(code).to_string_lossy();
        let line = format!("argonet: {}: {function} returns {name}: {why}\n", place());
        // If standard error is closed there is no other place for the message.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    code.number()
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
        let name = match code {
            OK => c"GASNET_OK",
            PEER_LOST => c"ARGONET_ERR_PEER_LOST",
            _ => Code::of(code).map_or(c"an unknown code", name),
        };
        name.as_ptr()
    }

    fn gasnet_ErrorDesc(code: c_int) -> *const c_char {
        let description = match code {
            OK => c"no error",
            PEER_LOST => c"a rank that the call needs is lost",
            _ => Code::of(code).map_or(c"no such code", description),
        };
        description.as_ptr()
    }

    fn gex_System_GetVerboseErrors() -> c_int {
        VERBOSE.load(Ordering::Relaxed).into()
    }

    fn gex_System_SetVerboseErrors(enable: c_int) {
        VERBOSE.store(enable != 0, Ordering::Relaxed);
    }
}
