//! The threads that read the socket.
//!
//! A thread that looks for events reads it itself, and so does one that sleeps for them where
//! nothing but this process wakes it: then no other thread has to be woken between a datagram and
//! its event. The thread of the interface reads only while no caller does. A caller that has read
//! is taken to do so again within a [`LEASE`]; a caller that stops reading reports nothing, so the
//! thread looks when the lease ends.

use super::core::{Core, nanoseconds};
use crate::datagram::DatagramQueue as _;
use crate::datagram::udp::ReceiveBuffers;
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// For how long the thread leaves the socket to a caller that has read.
const LEASE: Duration = Duration::from_micros(500);

/// Batches that are read at once.
const MOST_BATCHES: u32 = 16;

/// Record of the reading threads.
pub(super) struct Reading {
    receive_buffers: Mutex<ReceiveBuffers>,
    /// When the lease ends of the caller that has read last, in nanoseconds.
    ///
    /// A hint: written by callers, read by the thread.
    leased_until: AtomicU64,
    /// How often a caller began or ended to sleep on the socket: odd while one does.
    ///
    /// Written by the caller that holds `receive_buffers`; the thread reads it under the lock of
    /// the interface, which a caller takes after its sleep to see whether the thread must wake.
    sleeps: AtomicU64,
    /// Batches that callers have read.
    by_callers: AtomicU64,
}

/// Until when the thread leaves the socket to callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    /// It reads.
    No,
    /// It looks again then.
    Until(Duration),
    /// A caller sleeps on the socket, and wakes the thread when it stops.
    UntilWoken,
}

impl Reading {
    pub(super) fn new(receive_buffers: ReceiveBuffers) -> Self {
        Self {
            receive_buffers: Mutex::new(receive_buffers),
            leased_until: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            by_callers: AtomicU64::new(0),
        }
    }

    /// How many batches of datagrams callers have read.
    pub(super) fn by_callers(&self) -> u64 {
        self.by_callers.load(Ordering::Relaxed)
    }

    /// Whether a caller sleeps on the socket.
    #[cfg(test)]
    pub(super) fn is_asleep(&self) -> bool {
        self.sleeps.load(Ordering::Relaxed) % 2 == 1
    }

    /// The next step of the thread; it has the lock of the interface.
    ///
    /// `seen` is the sleep that it saw last: one that it sees twice is a long one.
    pub(super) fn leave(&self, now: Duration, seen: &mut u64) -> Leave {
        let sleeps = self.sleeps.load(Ordering::Relaxed);
        let asleep = sleeps % 2 == 1;
        let lease = Duration::from_nanos(self.leased_until.load(Ordering::Relaxed));
        match (asleep, core::mem::replace(seen, sleeps) == sleeps) {
            (true, true) => Leave::UntilWoken,
            (true, false) => Leave::Until(now + LEASE),
            (false, _) if lease > now => Leave::Until(lease),
            (false, _) => Leave::No,
        }
    }
}

impl Core {
    /// Reads datagrams that have come, for the thread.
    pub(super) fn read_unless_callers_do(&self) {
        // The sleep of a caller is none that was seen before.
        if self.reading.leave(self.now(), &mut 0) == Leave::No {
            self.read(&mut self.reading.receive_buffers.lock());
        }
    }

    /// Reads datagrams that have come, for a caller that looks for events; whether there were any.
    pub(super) fn attend(&self) -> bool {
        // The thread that has the receive_buffers does the same.
        let Some(mut receive_buffers) = self.reading.receive_buffers.try_lock() else {
            return false;
        };
        self.read_for_caller(&mut receive_buffers)
    }

    fn read_for_caller(&self, receive_buffers: &mut ReceiveBuffers) -> bool {
        let until = nanoseconds(Some(self.now() + LEASE));
        self.reading.leased_until.store(until, Ordering::Relaxed);
        let batches = self.read(receive_buffers);
        if batches > 0 {
            let by_callers = &self.reading.by_callers;
            by_callers.fetch_add(batches.into(), Ordering::Relaxed);
        }
        batches > 0
    }

    /// How many batches there were.
    fn read(&self, receive_buffers: &mut ReceiveBuffers) -> u32 {
        let mut batches = 0;
        while batches < MOST_BATCHES {
            let take = &mut |datagram: &mut [u8]| self.lock().arrive(datagram);
            let batch = self.wire.receive(receive_buffers, take);
            if batch.any {
                batches += 1;
                let mut locked = self.lock();
                locked.transmit();
                self.wake_for_timers(locked);
            }
            if !batch.full {
                break;
            }
        }
        batches
    }

    /// Has a caller sleep on the socket, and then read it; `None` if another thread reads.
    pub(super) fn read_asleep<R>(&self, sleep: impl FnOnce() -> R) -> Option<R> {
        let mut receive_buffers = self.reading.receive_buffers.try_lock()?;
        self.reading.sleeps.fetch_add(1, Ordering::Relaxed);
        let slept = sleep();
        self.reading.sleeps.fetch_add(1, Ordering::Relaxed);
        self.read_for_caller(&mut receive_buffers);
        drop(receive_buffers);
        // Under the lock, the thread sees either that this sleep is over or the time that is set
        // here.
        let locked = self.lock();
        let look = nanoseconds(Some(locked.now + LEASE));
        self.wake_before(locked, look);
        Some(slept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_reads_when_no_caller_does() {
        let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let socket = crate::datagram::Udp::new(socket, Box::new([])).unwrap();
        let reading = Reading::new(socket.receive_buffers());
        let now = Duration::from_secs(1);
        let mut seen = 0;
        assert_eq!(reading.leave(now, &mut seen), Leave::No);
        let until = now + LEASE;
        let read = nanoseconds(Some(until));
        reading.leased_until.store(read, Ordering::Relaxed);
        assert_eq!(reading.leave(now, &mut seen), Leave::Until(until));
        assert_eq!(reading.leave(until, &mut seen), Leave::No);
        // A sleep is short until it is seen twice.
        for sleep in [1, 3] {
            reading.sleeps.store(sleep, Ordering::Relaxed);
            let look = Leave::Until(until + LEASE);
            assert_eq!(reading.leave(until, &mut seen), look);
            assert_eq!(reading.leave(until, &mut seen), Leave::UntilWoken);
        }
        reading.sleeps.store(4, Ordering::Relaxed);
        assert_eq!(reading.leave(until, &mut seen), Leave::No);
    }
}
