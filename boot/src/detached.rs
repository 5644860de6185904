//! Processes that serve a job beside its ranks: forked from one of them, in a session of their own,
//! and no children of it.
//!
//! They execute no program: they keep the maker's memory image alive as copy-on-write pages, which
//! is cheap because jobs start before programs allocate.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{WaitId, setsid};

use crate::error::BootError;
use crate::exit::ProcessEnd;
use crate::sys::{self, SignalSet};

/// Has `run` executed by a process of this name that holds the descriptors `keep` and no other;
/// `what` it is, for errors.
///
/// The calling process must have one thread.
pub(crate) fn start(
    what: &str,
    name: &CStr,
    keep: &[BorrowedFd<'_>],
    run: impl FnOnce(),
) -> Result<(), BootError> {
    let failed = |e| BootError::system(format!("forking {what}"), e);
    // Twice forked: a program that waits for all of its children does not wait for it, and it is
    // not the leader of its session, so that it never gets a terminal.
    let Some(middle) = sys::fork().map_err(failed)? else {
        let in_session = setsid().is_ok();
        match sys::fork() {
            Ok(None) if in_session => sys::exit_now(code_of(|| {
                settle(name, keep);
                run();
            })),
            Ok(Some(_)) if in_session => sys::exit_now(0),
            _ => sys::exit_now(1),
        }
    };
    match ProcessEnd::wait(WaitId::Pid(middle), true) {
        // Reaped by a handler of the program.
        ProcessEnd::Code(0) | ProcessEnd::Unknown => Ok(()),
        _ => Err(failed(std::io::Error::other(
            "no process could be made (see `ulimit -u`)",
        ))),
    }
}

/// The exit code of a process that does this: a panic ends it, and does not unwind into the
/// program, which would go on in a second process.
fn code_of(run: impl FnOnce()) -> u8 {
    u8::from(catch_unwind(AssertUnwindSafe(run)).is_err())
}

/// Makes a process that was just forked one of those: nothing of its maker's is open but `keep`.
pub(crate) fn settle(name: &CStr, keep: &[BorrowedFd<'_>]) {
    SignalSet::full().block();
    sys::close_all_except(keep);
    // Standard descriptors, if they are closed now, lead nowhere, so that no other file gets their
    // numbers.
    for _ in 0..3 {
        std::mem::forget(File::open("/dev/null"));
    }
    let _ = std::env::set_current_dir("/");
    let _ = rustix::thread::set_name(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_exit_code() {
        assert_eq!(code_of(|| {}), 0);
        assert_eq!(code_of(|| panic!("seen by the program")), 1);
    }
}
