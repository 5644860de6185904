//! Processes that serve a job beside its ranks: forked from one of them, in a session of their own,
//! and no children of it, unless they end before it.
//!
//! They execute no program: they keep the maker's memory image alive as copy-on-write pages, which
//! is cheap because jobs start before programs allocate.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    PidfdFlags, Signal, WaitId, getpid, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal, setsid,
};
use rustix::stdio::stderr;

use crate::error::BootError;
use crate::exit::ProcessEnd;
use crate::guardian::check_threads;
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
        _ => Err(failed(io::Error::other(
            "no process could be made (see `ulimit -u`)",
        ))),
    }
}

/// A process that serves the one that has started it, and ends with that.
pub(crate) struct Child(OwnedFd);

impl Child {
    /// The process of a command, for tests of what follows.
    #[cfg(test)]
    #[expect(
        clippy::zombie_processes,
        reason = "it is waited for when this is dropped"
    )]
    pub(crate) fn of_test(mut command: std::process::Command) -> Self {
        let child = command.spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        Self(pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }

    /// How it has ended, or that it has not within a second; in words.
    pub(crate) fn end(&self) -> String {
        let mut end = [PollFd::new(&self.0, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        if poll(&mut end, Some(&limit)) != Ok(1) {
            return "has closed its connection and goes on".into();
        }
        match ProcessEnd::wait(WaitId::PidFd(self.0.as_fd()), false) {
            ProcessEnd::Code(code) => format!("has ended with code {code}"),
            ProcessEnd::Signal(signal) => format!("was killed by signal {signal}"),
            ProcessEnd::Unknown => "has ended".into(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended needs no signal.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
        ProcessEnd::wait(WaitId::PidFd(self.0.as_fd()), true);
    }
}

/// Has `run` executed by a child of this process, which ends with it and with [`Child`], and speaks
/// with it over a socket of messages; `what` it is, for errors.
///
/// Of this process's files standard error alone is open there. It is in the same directory.
///
/// # Errors
/// A second thread of this process, and errors of the system.
pub(crate) fn start_child(
    what: &'static str,
    name: &CStr,
    run: impl FnOnce(&OwnedFd),
) -> Result<(Child, OwnedFd), BootError> {
    check_threads(what)?;
    let failed = |e: io::Error| BootError::system(format!("forking {what}"), e);
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let pair = socketpair(AddressFamily::UNIX, kind, flags, None);
    let (ours, theirs) = pair.map_err(|e| failed(e.into()))?;
    let maker = getpid();
    let Some(child) = sys::fork().map_err(failed)? else {
        let dies = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
        if dies && getppid() == Some(maker) {
            sys::exit_now(code_of(|| {
                hold_only(name, &[theirs.as_fd(), stderr()]);
                run(&theirs);
            }));
        }
        sys::exit_now(1);
    };
    let pidfd = pidfd_open(child, PidfdFlags::empty());
    Ok((Child(pidfd.map_err(|e| failed(e.into()))?), ours))
}

/// The exit code of a process that does this: a panic ends it, and does not unwind into the
/// program, which would go on in a second process.
fn code_of(run: impl FnOnce()) -> u8 {
    u8::from(catch_unwind(AssertUnwindSafe(run)).is_err())
}

/// Makes a process that was just forked one of those: nothing of its maker's is open but `keep`.
pub(crate) fn settle(name: &CStr, keep: &[BorrowedFd<'_>]) {
    hold_only(name, keep);
    let _ = std::env::set_current_dir("/");
}

/// Closes all else, blocks all signals and takes a name.
fn hold_only(name: &CStr, keep: &[BorrowedFd<'_>]) {
    SignalSet::full().block();
    sys::close_all_except(keep);
    // Standard descriptors, if they are closed now, lead nowhere, so that no other file gets their
    // numbers.
    for _ in 0..3 {
        std::mem::forget(File::open("/dev/null"));
    }
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
