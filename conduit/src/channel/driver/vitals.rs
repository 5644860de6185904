//! Looks, now and then, whether the hosts of peers that this rank waits for still answer, and which
//! peers are idle.

use super::config::ChannelSizes;
use super::core::Core;
use super::idle::IdleLimits;
use super::peer::{Inbound, Peer};
use super::silence::{LOOKS, Verdict};
use crate::channel::rail::{Rails, Vital};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Between two looks at the latest.
const LONGEST: Duration = Duration::from_millis(250);

/// How many looks there are at least in a time after which an idle peer gives something up.
const IDLE_LOOKS: u32 = 4;

/// When to look.
#[derive(Debug)]
pub(super) struct Vitals {
    begun: Instant,
    /// 0 where no peer is given up.
    least_limit_ns: u64,
    /// See [`ChannelSizes::silent_tries`].
    tries: u32,
    pub(super) idle: IdleLimits,
    /// 0 where there is nothing to look for.
    interval_ns: u64,
    /// ns since the beginning.
    ///
    /// The thread that sets it on looks.
    next_ns: AtomicU64,
}

impl Vitals {
    pub(super) fn new(sizes: &ChannelSizes) -> Self {
        let ns = |time: Duration| time.as_nanos() as u64;
        let waits = [
            sizes.silent_time * sizes.silent_tries.max(1) / LOOKS,
            sizes.idle_buffers / IDLE_LOOKS,
            sizes.idle_rails / IDLE_LOOKS,
        ];
        let interval = waits.into_iter().filter(|wait| !wait.is_zero()).min();
        Self {
            begun: Instant::now(),
            least_limit_ns: ns(sizes.silent_time),
            tries: sizes.silent_tries,
            idle: IdleLimits {
                buffers_ns: ns(sizes.idle_buffers),
                rails_ns: ns(sizes.idle_rails),
            },
            interval_ns: interval.map_or(0, |interval| ns(interval.min(LONGEST))),
            next_ns: AtomicU64::new(0),
        }
    }

    /// The longest time between two looks.
    pub(super) fn interval(&self) -> Option<Duration> {
        (self.interval_ns > 0).then(|| Duration::from_nanos(self.interval_ns))
    }

    /// For how long the host at the other end of a rail may be silent.
    pub(super) fn limit_ns(&self, vital: Vital) -> u64 {
        let tries_ns = vital.rto_ns.saturating_mul(self.tries.into());
        self.least_limit_ns.max(tries_ns)
    }

    /// Whether a look is due at this time.
    fn is_due(&self, now_ns: u64) -> bool {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        now_ns >= next_ns
            && self
                .next_ns
                .compare_exchange(next_ns, now_ns + self.interval_ns, order, order)
                .is_ok()
    }
}

impl<R: Rails> Core<R> {
    /// ns since the channel began, or as its rails say.
    pub(super) fn now_ns(&self) -> u64 {
        let begun = || self.vitals.begun.elapsed().as_nanos() as u64;
        self.rails.virtual_ns().unwrap_or_else(begun)
    }

    /// Gives up rails whose hosts do not answer, and what idle peers do not need.
    ///
    /// A look when it is time; else it reads the clock.
    pub(super) fn look_at_peers(&self) {
        if self.vitals.interval_ns == 0 {
            return;
        }
        let now_ns = self.now_ns();
        if self.vitals.is_due(now_ns) {
            let peers = self.all_used().filter(|peer| peer.rank != self.rank);
            peers.for_each(|peer| self.look_after(peer, now_ns));
        }
    }

    fn look_after(&self, peer: &Peer<R>, now_ns: u64) {
        // The thread that holds it hears from the peer.
        let Some(mut inbound) = peer.inbound.try_lock() else {
            return;
        };
        self.look_at_idle(peer, &mut inbound, now_ns);
        if self.vitals.least_limit_ns > 0 {
            self.look_for_silent(peer, &mut inbound, now_ns);
        }
        let lost = core::mem::take(&mut inbound.lost_rails);
        drop(inbound);
        if lost > 0 {
            self.want_rails(peer, lost);
        }
    }

    fn look_for_silent(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, now_ns: u64) {
        self.look_after_rails(peer, inbound, now_ns);
        let Some(vital) = inbound.wire.as_ref().and_then(|wire| wire.vital()) else {
            return;
        };
        let waits = !peer.outbound.lock().is_quiescent();
        let limit_ns = self.vitals.limit_ns(vital);
        let verdict = inbound.silence.look(now_ns, limit_ns, waits, vital);
        match verdict {
            Verdict::Alive => {}
            Verdict::Probe => {
                let mut outbound = peer.outbound.lock();
                outbound.send_stream.probe();
                self.flush(peer, &mut outbound);
            }
            Verdict::GiveUp => self.lost(peer, inbound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_borne_for_as_long_as_slow_paths_take_to_send_again() {
        let sizes = ChannelSizes {
            silent_time: Duration::from_millis(200),
            silent_tries: 3,
            ..ChannelSizes::default()
        };
        let limit_ms = |sizes: &ChannelSizes, again_ms: u64| {
            let vital = Vital {
                owed: true,
                silent_ns: 0,
                rto_ns: again_ms * 1_000_000,
            };
            Vitals::new(sizes).limit_ns(vital) / 1_000_000
        };
        let limits = [0, 20, 204, 1200].map(|again_ms| limit_ms(&sizes, again_ms));
        assert_eq!(limits, [200, 200, 612, 3600]);
        let fixed = ChannelSizes {
            silent_tries: 0,
            ..sizes
        };
        assert_eq!(limit_ms(&fixed, 1200), 200);
    }
}
