//! Whether rank 0 of a job that started itself has replaced its program by exec.
//!
//! Such a program knows no ranks, and its code would be the job's although the others were killed
//! when it ended. Rank 0 alone holds one end of a pipe, which is closed on exec and by nothing else
//! that it does usually; the guardian, which has the other end, then looks at what the process has
//! mapped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdGetfdFlags, pidfd_getfd};

/// How the control memory, which every rank has mapped, is called among the mappings of a process.
const CONTROL: &[u8] = b"/memfd:argonet-control";

/// Makes the guardian's end and that of rank 0.
pub(crate) fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// Whether the process, which has not been reaped, runs another program than the one that joined.
/// False for one that is ending or has closed its descriptors itself.
pub(crate) fn runs_another_program(pid: Pid) -> bool {
    match fs::read(format!("/proc/{pid}/maps")) {
        // The memory of a process that ends goes before its descriptors.
        Ok(maps) if maps.is_empty() => false,
        Ok(maps) => !maps.windows(CONTROL.len()).any(|text| text == CONTROL),
        // A program with more rights than this process, which has not become another otherwise.
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// Writes a line on the standard error of the process: the guardian has none.
pub(crate) fn say_there(process: BorrowedFd<'_>, pid: Pid, line: &str) {
    let text = format!("{line}\n");
    if let Ok(mut file) = its_standard_error(process, pid) {
        // Nothing can be done where it takes nothing.
        let _ = file.write_all(text.as_bytes());
    }
}

fn its_standard_error(process: BorrowedFd<'_>, pid: Pid) -> io::Result<File> {
    const STANDARD_ERROR: i32 = 2;
    match pidfd_getfd(process.as_fd(), STANDARD_ERROR, PidfdGetfdFlags::empty()) {
        Ok(same) => Ok(same.into()),
        // Some systems allow that to a parent only.
        Err(_) => OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open(format!("/proc/{pid}/fd/{STANDARD_ERROR}")),
    }
}
