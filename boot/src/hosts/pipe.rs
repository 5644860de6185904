//! Moving bytes between an [`Edge`] and descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::PollFlags;
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

/// Writes once; false if the reader has gone.
pub(crate) fn transmit(edge: &mut Edge, to: impl AsFd) -> bool {
    if edge.to_send().is_empty() {
        return true;
    }
    match rustix::io::write(to, edge.to_send()) {
        Ok(n) => {
            edge.sent(n);
            true
        }
        Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
    }
}

/// Events to wait for at the descriptor that `edge` writes to.
///
/// If one fires with nothing to send, the reader has gone.
pub(crate) fn writable(edge: &Edge) -> PollFlags {
    match edge.to_send().is_empty() {
        true => PollFlags::empty(),
        false => PollFlags::OUT,
    }
}

/// Writes as much of `queue` as the pipe takes, the oldest bytes first; how many bytes, `None` if
/// the reader has gone.
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
