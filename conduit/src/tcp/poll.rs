//! Polls and sleeps: which peers are looked at, and when.

use super::core::{CONNECTOR, Core, NOBODY, WAKE};
use crate::conduit::Sink;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::event::{Timespec, epoll};

/// Sockets with something to read that one poll finds besides the hot one.
const EVENTS: usize = 16;

/// The other sockets are looked for in one of so many polls, as that is a system call.
const OTHERS_EVERY: u32 = 4;

/// The same where there is one socket, for connections that come.
const CONNECTIONS_EVERY: u32 = 64;

/// Visits with something after which a peer counts as the one from which the next thing comes. Before that it is looked for
/// among all in every poll, and the hot one has no look of its own.
const STEADY: u32 = 4;

impl Core {
    /// Takes what has come, first from the peer from which something came last.
    #[inline]
    pub(super) fn poll<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        self.flush_gathered();
        let is_held_up = self.dirty.any();
        let hot = self.hot.load(Ordering::Relaxed);
        let alone = hot != NOBODY && self.connected.load(Ordering::Relaxed) <= 1;
        let (every, visited) = if alone {
            (CONNECTIONS_EVERY, hot)
        } else if self.hits.load(Ordering::Relaxed) >= STEADY {
            (OTHERS_EVERY, hot)
        } else {
            (1, NOBODY)
        };
        let mut taken = self.used(visited).map_or(0, |peer| self.visit(peer, sink));
        if self.work.any() {
            self.work.each(|rank| {
                if rank != visited
                    && let Some(peer) = self.used(rank)
                {
                    taken += self.visit(peer, sink);
                }
            });
        }
        let turn = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        self.turn.store(turn, Ordering::Relaxed);
        if turn.is_multiple_of(every) {
            taken += self.poll_others(visited, sink);
        }
        // What handlers have gathered goes now: their rank may make no call for long.
        if taken > 0 && !is_held_up && self.dirty.any() {
            self.each_of(&self.dirty, |peer, outbound| self.flush(peer, outbound));
        }
        taken
    }

    /// Looks at all descriptors.
    fn poll_others<S: Sink + ?Sized>(&self, visited: u32, sink: &mut S) -> usize {
        let mut taken = 0;
        self.look_for_silent();
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        let found = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()));
        let found = found.map_or(&[][..], |(found, _)| &*found);
        let marks = || found.iter().map(|event| event.data.u64());
        if self.connector.descriptor().is_none() || marks().any(|mark| mark == CONNECTOR) {
            self.connect();
        }
        for mark in marks().filter(|mark| ![WAKE, CONNECTOR].contains(mark)) {
            let (rank, connection) = (mark as u32, (mark >> 32) as u16);
            let Some(peer) = self.used(rank) else {
                continue;
            };
            if connection > 0 {
                peer.ready_rails
                    .fetch_or(1 << connection, Ordering::Relaxed);
                self.work.set(rank);
            }
            if rank != visited {
                let hot = self.hot.load(Ordering::Relaxed);
                if rank != hot {
                    if hot != NOBODY {
                        self.watch_all();
                    }
                    self.hits.store(0, Ordering::Relaxed);
                    self.hot.store(rank, Ordering::Relaxed);
                }
                taken += self.visit(peer, sink);
            }
        }
        taken
    }

    /// Whether a poll would find something, be it a connection.
    pub(super) fn has_work(&self) -> bool {
        self.watch_all();
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        let now = Timespec::default();
        let found = epoll::wait(&self.epoll, &mut events, Some(&now));
        let found = found.map_or(&[][..], |(found, _)| &*found);
        let something = found.iter().any(|event| event.data.u64() != WAKE);
        if something {
            self.look_around();
        }
        something || self.work.any()
    }

    /// The next poll looks at all descriptors.
    fn look_around(&self) {
        self.turn.store(u32::MAX, Ordering::Relaxed);
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
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        // Whatever it was, the caller looks again.
        let _ = epoll::wait(&self.epoll, &mut events, timeout.as_ref());
        drop(sleeper);
        self.progress.awake();
        self.look_around();
    }
}
