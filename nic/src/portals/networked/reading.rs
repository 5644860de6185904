//! Who reads the socket.
//!
//! A thread that looks for events reads it itself, and so does one that sleeps for them where nothing but this process wakes it: then nobody else has to be woken
//! between a datagram and its event. The thread of the interface reads only while no caller does. A caller that has read lately is taken to do so again; a caller
//! that stops tells nobody, so the thread looks every [`LEASE`] whether it still reads.

use super::core::{Core, nanoseconds};
use super::wire::Inbox;
use argonet_base::cpu::{SHORT_PAUSE_TICKS, ticks};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// For how long the thread leaves the socket to callers that have read lately.
const LEASE: Duration = Duration::from_micros(200);

/// How long ago that may be: some 50 microseconds.
const LATELY_TICKS: u64 = 400 * SHORT_PAUSE_TICKS;

/// Batches that are read at once.
const MOST_BATCHES: u32 = 16;

/// Who reads.
pub(super) struct Reading {
    inbox: Mutex<Inbox>,
    /// When a caller has read last, in ticks. A hint: written by callers, read by the thread.
    called_at: AtomicU64,
    /// How often a caller began or ended to sleep on the socket: odd while one does. Written by whoever has the inbox; the thread reads it under the lock of the
    /// interface, which a caller takes after its sleep to see whether the thread must be told.
    sleeps: AtomicU64,
}

/// Until when the thread leaves the socket to callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    /// It reads.
    No,
    /// It looks again then.
    Until(Duration),
    /// A caller sleeps on the socket, and rings if it does so no more.
    UntilRung,
}

impl Reading {
    pub(super) fn new() -> Self {
        Self {
            inbox: Mutex::new(Inbox::new()),
            called_at: AtomicU64::new(ticks().wrapping_sub(LATELY_TICKS)),
            sleeps: AtomicU64::new(0),
        }
    }

    /// Whether a caller reads, or will soon.
    fn is_left_to_callers(&self) -> bool {
        let ago = ticks().wrapping_sub(self.called_at.load(Ordering::Relaxed));
        ago < LATELY_TICKS || self.sleeps.load(Ordering::Relaxed) % 2 == 1
    }

    /// What the thread does now; it has the lock of the interface. `seen` is the sleep that it saw last.
    pub(super) fn leave(&self, now: Duration, seen: &mut u64) -> Leave {
        let sleeps = self.sleeps.load(Ordering::Relaxed);
        if sleeps % 2 == 1 && *seen == sleeps {
            return Leave::UntilRung;
        }
        *seen = sleeps;
        match self.is_left_to_callers() {
            true => Leave::Until(now + LEASE),
            false => Leave::No,
        }
    }
}

impl Core {
    /// Reads what has come, for the thread.
    pub(super) fn read_unless_callers_do(&self) {
        if !self.reading.is_left_to_callers() {
            self.read(&mut self.reading.inbox.lock());
        }
    }

    /// Reads what has come, for a caller that looks for events; whether anything had.
    pub(super) fn attend(&self) -> bool {
        // Who has the inbox does the same.
        let Some(mut inbox) = self.reading.inbox.try_lock() else {
            return false;
        };
        self.called();
        self.read(&mut inbox)
    }

    fn called(&self) {
        self.reading.called_at.store(ticks(), Ordering::Relaxed);
    }

    fn read(&self, inbox: &mut Inbox) -> bool {
        let mut any = false;
        for _ in 0..MOST_BATCHES {
            let batch = inbox.receive(&self.wire, |datagram| self.turn().arrive(datagram));
            any |= batch.any;
            if !batch.full {
                break;
            }
        }
        if any {
            self.tell_of_timers(self.turn());
        }
        any
    }

    /// Has a caller sleep on the socket if nobody else reads it, and do what comes; `None` if another does. `sleep` gets what sleeps, and says whether it has.
    pub(super) fn read_asleep<R>(&self, sleep: impl FnOnce() -> R) -> Option<R> {
        let mut inbox = self.reading.inbox.try_lock()?;
        self.reading.sleeps.fetch_add(1, Ordering::Relaxed);
        let slept = sleep();
        self.reading.sleeps.fetch_add(1, Ordering::Relaxed);
        self.called();
        self.read(&mut inbox);
        drop(inbox);
        // The thread sees, under the lock, either that this sleep is over or what it is told here.
        let turn = self.turn();
        let look = nanoseconds(Some(turn.now + LEASE));
        self.tell(turn, look);
        Some(slept)
    }
}
