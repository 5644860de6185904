//! Moving bytes between an [`Edge`] and descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::hosts::edge::Edge;
use crate::hosts::message::BULK_BYTES;

/// Makes reads and writes return at once.
pub(crate) fn unblock(fd: impl AsFd) -> rustix::io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(fd, flags | OFlags::NONBLOCK)
}

/// Reads once; false if the other end has been closed.
pub(crate) fn receive(edge: &mut Edge, from: impl AsFd, now: Instant) -> bool {
    let mut bytes = vec![0; BULK_BYTES];
    match rustix::io::read(from, &mut bytes[..]) {
        Ok(0) => false,
        Ok(n) => {
            edge.take(now, &bytes[..n]);
            crate::secret::wipe(&mut bytes[..n]);
            true
        }
        Err(Errno::AGAIN | Errno::INTR) => true,
        Err(_) => false,
    }
}

/// Writes once. A connection that is broken shows that when it is read.
pub(crate) fn transmit(edge: &mut Edge, to: impl AsFd) {
    if edge.to_send().is_empty() {
        return;
    }
    if let Ok(n) = rustix::io::write(to, edge.to_send()) {
        edge.sent(n);
    }
}

/// Writes what can be written of `queue`, which begins with what is oldest; false if nobody will read it.
pub(crate) fn pour(queue: &mut Vec<u8>, to: &OwnedFd) -> Option<usize> {
    match rustix::io::write(to, queue) {
        Ok(n) => {
            queue.drain(..n);
            Some(n)
        }
        Err(Errno::AGAIN | Errno::INTR) => Some(0),
        Err(_) => None,
    }
}
