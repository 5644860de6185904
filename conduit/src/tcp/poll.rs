//! Polls and sleeps: which peers are looked at, and when.

use super::core::{CONNECTOR, Core, NOBODY, WAKE};
use super::peer::Report;
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

impl Core {
    /// Takes what has come, first from the peer from which something came last.
    #[inline]
    pub(super) fn poll<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        self.flush_gathered();
        let hot = self.hot.load(Ordering::Relaxed);
        let mut taken = self.used(hot).map_or(0, |peer| self.visit(peer, sink));
        if self.work.any() {
            self.work.each(|rank| {
                if rank != hot
                    && let Some(peer) = self.used(rank)
                {
                    taken += self.visit(peer, sink);
                }
            });
        }
        let turn = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        self.turn.store(turn, Ordering::Relaxed);
        let alone = hot != NOBODY && self.connected.load(Ordering::Relaxed) <= 1;
        let every = if alone {
            CONNECTIONS_EVERY
        } else {
            OTHERS_EVERY
        };
        if turn.is_multiple_of(every) {
            taken += self.poll_others(hot, sink);
        }
        taken
    }

    /// Looks at all descriptors.
    fn poll_others<S: Sink + ?Sized>(&self, hot: u32, sink: &mut S) -> usize {
        let mut taken = 0;
        for report in self.connect() {
            match report {
                Report::Completed(op, part) => sink.completed(op, part),
                Report::Broken(error) => sink.broken(error),
            }
            taken += 1;
        }
        let mut events = [const { None }; EVENTS];
        for rank in self.ready(&mut events) {
            if rank != hot
                && let Some(peer) = self.used(rank)
            {
                if hot != NOBODY {
                    self.watch_all();
                }
                self.hits.store(0, Ordering::Relaxed);
                self.hot.store(rank, Ordering::Relaxed);
                taken += self.visit(peer, sink);
            }
        }
        taken
    }

    /// The peers whose sockets have something, without waiting.
    fn ready<'a>(&self, ranks: &'a mut [Option<u32>; EVENTS]) -> impl Iterator<Item = u32> + 'a {
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let found = epoll::wait(&self.epoll, &mut events, Some(&now));
        let found = found.map_or(&[][..], |(found, _)| &*found);
        let peers = found.iter().map(|event| event.data.u64());
        let peers = peers.filter(|mark| ![WAKE, CONNECTOR].contains(mark));
        for (rank, mark) in ranks.iter_mut().zip(peers) {
            *rank = Some(mark as u32);
        }
        ranks.iter().flatten().copied()
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
        self.flush_all();
        let _sleeper = self.sleepers.enter();
        self.watch_all();
        if self.work.any() || self.sleepers.epoch() != seen {
            return;
        }
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        // Whatever it was, the caller looks again.
        let _ = epoll::wait(&self.epoll, &mut events, timeout.as_ref());
        self.look_around();
    }
}
