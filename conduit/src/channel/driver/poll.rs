//! Polls and sleeps: which peers are looked at, and when.

use super::core::Core;
use crate::channel::rail::{Rails, Ready};
use crate::conduit::Sink;
use core::sync::atomic::Ordering;
use core::time::Duration;

/// How long a sleep lasts at most while payloads wait to be handed out to rails.
const STRIPING_LOOKS: Duration = Duration::from_micros(100);

impl<R: Rails> Core<R> {
    /// Takes frames that have come, first from the peer from which something came last.
    #[inline]
    pub(super) fn poll<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        self.flush_gathered();
        let is_held_up = self.dirty.any();
        let alone = self.connected.load(Ordering::Relaxed) <= 1;
        let look = self.rails.begin_poll(alone);
        let first = look.first.map(|peer| peer.0);
        let mut taken = first
            .and_then(|rank| self.used(rank))
            .map_or(0, |peer| self.poll_peer(peer, sink));
        if self.work.any() {
            self.work.each(|rank| {
                if Some(rank) != first
                    && let Some(peer) = self.used(rank)
                {
                    taken += self.poll_peer(peer, sink);
                }
            });
        }
        if look.all {
            taken += self.poll_others(first, sink);
        }
        // Messages that handlers have gathered leave now: their rank may make no call for long.
        if taken > 0 && !is_held_up && self.dirty.any() {
            self.each_of(&self.dirty, |peer, outbound| self.flush(peer, outbound));
        }
        taken
    }

    /// Looks at all rails.
    fn poll_others<S: Sink + ?Sized>(&self, polled: Option<u32>, sink: &mut S) -> usize {
        let mut taken = 0;
        self.look_at_peers();
        let mut found = Ready::new();
        self.rails.ready(&mut found);
        if found.has_made() {
            self.take_made();
        }
        for id in found.rails() {
            let rank = id.peer.0;
            let Some(peer) = self.used(rank) else {
                continue;
            };
            if id.number > 0 {
                peer.ready_rails.fetch_or(id.bit(), Ordering::Relaxed);
                self.work.set(rank);
            }
            if Some(rank) != polled {
                taken += self.poll_peer(peer, sink);
            }
        }
        taken
    }

    /// Whether a poll would find something, be it a new rail.
    pub(super) fn has_work(&self) -> bool {
        self.rails.has_ready() || self.work.any()
    }

    /// Sleeps until a rail has something, a thread wakes this one, or the time is over.
    pub(super) fn sleep(&self, timeout: Option<Duration>, seen: u32) {
        self.look_at_peers();
        let looks = self.flush_all().then_some(STRIPING_LOOKS);
        // A thread must look now and then whether rails still stand.
        let timeout = [timeout, self.vitals.interval(), looks]
            .into_iter()
            .flatten()
            .min();
        self.sleepers.sleep(timeout, seen, |timeout| {
            // What wakeups of the past were for is found by the looks after this.
            self.rails.forget_wakeups();
            self.rails.arm();
            if !self.work.any() && !self.sleepers.has_moved_since(seen) {
                self.rails.sleep(timeout);
            }
        });
        self.awake();
    }
}
