//! The launcher's own standard output or standard error, written as fast as it is taken.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

/// Bytes that may wait to be written before ranks are no longer read.
pub(crate) const QUEUE_BYTES: usize = 256 << 10;

/// Target of lines.
pub(crate) struct Sink {
    to: BorrowedFd<'static>,
    queue: Vec<u8>,
    /// Bytes of `queue` that have been written.
    written: usize,
    /// Bytes that may be written at once without blocking when `to` is writable.
    chunk: usize,
    /// The output cannot be written any more.
    closed: bool,
    /// Why not; `None` if the reader has gone, which is no error.
    error: Option<Errno>,
}

impl Sink {
    pub(crate) fn new(to: BorrowedFd<'static>) -> Self {
        let regular =
            fstat(to).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        let chunk = if regular { QUEUE_BYTES } else { PIPE_BUF };
        Self {
            to,
            queue: Vec::new(),
            written: 0,
            chunk,
            closed: false,
            error: None,
        }
    }

    /// Why output has been lost, as on a full device; nothing if its reader has gone.
    pub(crate) fn error(&self) -> Option<Errno> {
        self.error
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'static> {
        self.to
    }

    /// The queue to append lines to.
    pub(crate) fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        &self.queue[self.written..]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting().len() >= QUEUE_BYTES
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn write_some(&mut self) {
        let waiting = self.waiting();
        match rustix::io::write(self.to, &waiting[..waiting.len().min(self.chunk)]) {
            Ok(n) => self.written += n,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => {
                self.closed = true;
                self.error = Some(error).filter(|error| *error != Errno::PIPE);
            }
        }
        if self.closed || self.waiting().is_empty() {
            self.queue.clear();
            self.written = 0;
        } else if self.written > QUEUE_BYTES {
            self.queue.drain(..self.written);
            self.written = 0;
        }
    }

    /// Writes all that waits.
    ///
    /// Blocks while it is not taken.
    pub(crate) fn flush(&mut self) {
        while !self.waiting().is_empty() {
            let mut writable = [PollFd::from_borrowed_fd(self.to, PollFlags::OUT)];
            let _ = rustix::event::poll(&mut writable, None);
            self.write_some();
        }
    }
}
