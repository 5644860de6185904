//! Whether rank 0 of a job that started itself has replaced its program by exec.
//!
//! Such a program knows no ranks, and its code would be the job's although the others were killed
//! when it ended. Rank 0 alone holds one end of a pipe, which is closed on exec and by nothing else
//! that it does usually; the guardian, which has the other end, then looks at the mappings of the
//! process.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

/// Name of the control memory, which every rank has mapped, among the mappings of a process.
const CONTROL: &[u8] = b"/memfd:argonet-control";

/// Makes the guardian's end and that of rank 0.
pub(crate) fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// Whether the process, which has not been reaped, runs another program than the one that joined.
///
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
