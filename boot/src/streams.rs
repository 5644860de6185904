//! Text in standard streams of this process at its end, and whether it can be written.
//!
//! The C library writes its buffers at exit and drops what a full device does not take, so a job
//! whose output is incomplete would end with 0. Each end of a process that the library knows writes
//! the buffers itself: a loss is one line on standard error, and a code that is not 0.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::fmt::Write as _;
use core::ptr;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::output::code_without_output;
use crate::{process, sys};

/// Whether output has been lost.
///
/// Written and read by the thread that ends the process; a signal handler that ends it instead may
/// miss text that the interrupted thread was about to store.
static LOST: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// Standard output, as both glibc and musl export it.
    static stdout: *mut libc::FILE;
    fn ftrylockfile(file: *mut libc::FILE) -> c_int;
    fn funlockfile(file: *mut libc::FILE);
}

/// Writes what Rust's standard output and all of C's streams hold.
pub(crate) fn flush() {
    if let Err(error) = io::stdout().flush() {
        note(error.raw_os_error());
    }
    flush_of_c();
}

/// Writes what C's streams hold.
///
/// In a signal handler this may wait forever for a stream that the interrupted code has locked:
/// only with a timer armed.
pub(crate) fn flush_of_c() {
    // SAFETY: a null pointer means all open output streams.
    if unsafe { libc::fflush(ptr::null_mut()) } != 0 {
        note(io::Error::last_os_error().raw_os_error());
    }
}

/// Writes what C's standard output holds, for an exit hook: a stream that another thread has
/// locked, perhaps forever, is left to the C library.
pub(crate) fn flush_standard_output_of_c() {
    // SAFETY: the C library initializes the variable before any code of the program runs, and only
    // a program that replaces the stream writes it; the stream is locked while it is flushed, and
    // unlocked once by the thread that locked it.
    let flushed = unsafe {
        let file = stdout;
        if file.is_null() || ftrylockfile(file) != 0 {
            return;
        }
        let flushed = libc::fflush(file);
        let error = io::Error::last_os_error().raw_os_error();
        funlockfile(file);
        if flushed == 0 { None } else { error }
    };
    if flushed.is_some() {
        note(flushed);
    }
}

/// The exit code of a process that would end with `code`.
///
/// Async-signal-safe.
pub(crate) fn code_after_loss(code: u8) -> u8 {
    match LOST.load(Ordering::Relaxed) {
        true => code_without_output(code),
        false => code,
    }
}

/// Output could not be written, for the reason of this error number; says so once.
///
/// Async-signal-safe.
fn note(error: Option<i32>) {
    let error = error.map_or(Errno::IO, Errno::from_raw_os_error);
    // A reader that has gone, or a stream that the user has closed, wants no more.
    if matches!(error, Errno::PIPE | Errno::BADF) || LOST.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut line = sys::Line::default();
    let pid = std::process::id();
    // A line that is too long is cut.
    let _ = match process::this() {
        Some(this) => write!(line, "argonet: rank {} (pid {pid}): ", this.rank),
        None => write!(line, "argonet: process {pid}: "),
    };
    let _ = line.write_str("writing standard output failed: ");
    let _ = match name(error) {
        Some(name) => line.write_str(name),
        None => write!(line, "error number {}", error.raw_os_error()),
    };
    let _ = writeln!(line, "; that output is incomplete");
    sys::say_line(&line);
}

/// The system's words for errors of writing: its own table is not for signal handlers.
fn name(error: Errno) -> Option<&'static str> {
    Some(match error {
        Errno::NOSPC => "No space left on device",
        Errno::DQUOT => "Disk quota exceeded",
        Errno::FBIG => "File too large",
        Errno::IO => "Input/output error",
        _ => return None,
    })
}
