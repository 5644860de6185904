//! Options of sockets that have no call of their own.
#![allow(unsafe_code)]

use core::ffi::c_int;
use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Sets an option whose value is a number, as `setsockopt` takes it.
///
/// # Errors
/// What the system says.
pub fn set(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the socket is open during the call, the value is a `c_int` that outlives it, which it
    // only reads, and the length is that of one.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
