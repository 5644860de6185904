//! Threads that sleep in epoll, and what wakes them besides sockets.

use core::sync::atomic::{AtomicU32, Ordering, fence};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;

/// The sleeping threads of a rank.
///
/// A sleeper counts itself, then looks whether there is anything for it, then sleeps; whoever
/// brings something raises the epoch, then looks whether anybody sleeps, and writes the event
/// descriptor. Both in one order (SeqCst).
#[derive(Debug)]
pub(super) struct Sleepers {
    event: OwnedFd,
    /// Threads that sleep or are about to.
    count: AtomicU32,
    /// Polls that took something, if only what made room. Written by polling threads, read by those
    /// who wait (Acquire): acquire loads pair with the increment in `moved`, so that what handlers
    /// did is seen.
    epoch: AtomicU32,
}

impl Sleepers {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            event: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            count: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// A poll has moved something.
    #[inline]
    pub(super) fn moved(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Wakes whoever sleeps.
    #[inline]
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            self.signal();
        }
    }

    /// Whether any thread sleeps or is about to.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    #[cold]
    fn signal(&self) {
        // Full means that it is signaled.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Counts the calling thread as one that sleeps, until the result is dropped.
    pub(super) fn enter(&self) -> Sleeper<'_> {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            // Signals of the past, for threads that are gone. If another thread comes meanwhile and
            // its signal is read here, this thread finds what it was for and, when it leaves,
            // signals again.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        Sleeper(self)
    }
}

/// A thread that sleeps.
pub(super) struct Sleeper<'a>(&'a Sleepers);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) > 1 {
            self.0.signal();
        }
    }
}
