//! Polls and sleeps: which peers are looked at, and when.

use super::core::Core;
use super::readiness::{CONNECTOR, Readiness, WAKE, of_mark};
use crate::conduit::Sink;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::event::Timespec;

impl Core {
    /// Takes what has come, first from the peer from which something came last.
    #[inline]
    pub(super) fn poll<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        self.flush_gathered();
        let is_held_up = self.dirty.any();
        let alone = self.connected.load(Ordering::Relaxed) <= 1;
        let (first, every) = self.readiness.first(alone);
        let mut taken = first
            .and_then(|rank| self.used(rank))
            .map_or(0, |peer| self.visit(peer, sink));
        if self.work.any() {
            self.work.each(|rank| {
                if Some(rank) != first
                    && let Some(peer) = self.used(rank)
                {
                    taken += self.visit(peer, sink);
                }
            });
        }
        if self.readiness.next_turn().is_multiple_of(every) {
            taken += self.poll_others(first, sink);
        }
        // What handlers have gathered goes now: their rank may make no call for long.
        if taken > 0 && !is_held_up && self.dirty.any() {
            self.each_of(&self.dirty, |peer, outbound| self.flush(peer, outbound));
        }
        taken
    }

    /// Looks at all descriptors.
    fn poll_others<S: Sink + ?Sized>(&self, visited: Option<u32>, sink: &mut S) -> usize {
        let mut taken = 0;
        self.look_for_silent();
        let mut found = Readiness::found();
        let marks = self.readiness.wait(&mut found, Some(&Timespec::default()));
        if self.connector.descriptor().is_none() || marks.clone().any(|mark| mark == CONNECTOR) {
            self.connect();
        }
        for mark in marks.filter(|mark| ![WAKE, CONNECTOR].contains(mark)) {
            let (rank, connection) = of_mark(mark);
            let Some(peer) = self.used(rank) else {
                continue;
            };
            if connection > 0 {
                peer.ready_rails
                    .fetch_or(1 << connection, Ordering::Relaxed);
                self.work.set(rank);
            }
            if Some(rank) != visited {
                if let Some(is_second) = self.readiness.is_other(rank) {
                    if is_second {
                        self.watch_all();
                    }
                    self.readiness.heat(rank);
                }
                taken += self.visit(peer, sink);
            }
        }
        taken
    }

    /// Whether a poll would find something, be it a connection.
    pub(super) fn has_work(&self) -> bool {
        self.watch_all();
        let mut found = Readiness::found();
        let mut marks = self.readiness.wait(&mut found, Some(&Timespec::default()));
        let something = marks.any(|mark| mark != WAKE);
        if something {
            self.readiness.look_around();
        }
        something || self.work.any()
    }

    /// Sleeps until a socket has something, a thread wakes this one, or the time is over.
    pub(super) fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.look_for_silent();
        self.flush_all();
        let sleeper = self.sleepers.enter();
        self.watch_all();
        if self.work.any() || self.sleepers.epoch() != seen {
            drop(sleeper);
            self.progress.awake();
            return;
        }
        // Somebody must look now and then whether connections still stand.
        let timeout = [timeout, self.vitals.interval()]
            .into_iter()
            .flatten()
            .min();
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        // Whatever it was, the caller looks again.
        let _ = self
            .readiness
            .wait(&mut Readiness::found(), timeout.as_ref());
        drop(sleeper);
        self.progress.awake();
        self.readiness.look_around();
    }
}
