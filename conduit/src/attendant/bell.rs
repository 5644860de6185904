//! Counters of the system that wake a thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;

/// An event counter that wakes.
pub(crate) fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

pub(crate) fn ring(event: &OwnedFd) {
    // Full means that it is signaled.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}
