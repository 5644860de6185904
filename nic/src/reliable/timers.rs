//! When to look at which peer.

use core::time::Duration;
use std::collections::BTreeSet;

// spec U5: a peer is checked in with its time, and out when that is over.
/// One time for each peer at most.
///
/// A peer whose time moves back keeps its early one, and is looked at once for nothing: so times
/// that move with every datagram change nothing here.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Duration, u32)>);

impl Timers {
    /// Has a peer looked at no later than `at`; `armed` is where its time is kept.
    pub(super) fn arm(&mut self, peer: u32, armed: &mut Option<Duration>, at: Option<Duration>) {
        let Some(at) = at else { return };
        if armed.is_some_and(|armed| armed <= at) {
            return;
        }
        self.disarm(peer, armed);
        self.0.insert((at, peer));
        *armed = Some(at);
    }

    pub(super) fn disarm(&mut self, peer: u32, armed: &mut Option<Duration>) {
        if let Some(at) = armed.take() {
            self.0.remove(&(at, peer));
        }
    }

    pub(super) fn first(&self) -> Option<Duration> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next peer whose time has come; the caller clears its entry.
    pub(super) fn due(&mut self, now: Duration) -> Option<u32> {
        if self.first()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, peer)| peer)
    }
}
