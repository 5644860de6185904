//! The round-trip time and the retransmission timer (RFC 6298).

use super::config::LinkConfig;

/// Measured round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// Smoothed, and its variation; none before the first measurement.
    smoothed: Option<(u64, u64)>,
    latest_ns: u64,
    /// Doublings since the last progress.
    backoff: u32,
}

impl Rtt {
    pub(super) const fn new() -> Self {
        Self {
            smoothed: None,
            latest_ns: 0,
            backoff: 0,
        }
    }

    /// One round trip was measured, of a part that was sent once (Karn).
    pub(super) fn measured(&mut self, rtt_ns: u64) {
        self.latest_ns = rtt_ns;
        self.smoothed = Some(match self.smoothed {
            None => (rtt_ns, rtt_ns / 2),
            Some((smoothed, variation)) => (
                smoothed - smoothed / 8 + rtt_ns / 8,
                variation - variation / 4 + smoothed.abs_diff(rtt_ns) / 4,
            ),
        });
    }

    /// Something new was acknowledged.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// The timer has fired.
    pub(super) fn expired(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// The retransmission timer.
    pub(super) fn rto_ns(&self, config: &LinkConfig) -> u64 {
        let base = match self.smoothed {
            None => config.first_rto_ns,
            Some((smoothed, variation)) => smoothed + (4 * variation).max(1000),
        };
        let base = base.clamp(config.least_rto_ns, config.most_rto_ns);
        base.saturating_mul(1 << self.backoff)
            .min(config.most_rto_ns)
    }

    /// How much later than a part another must have been sent and arrived for the first to be lost
    /// (RFC 8985: the latest round trip and a quarter of the smoothed one).
    pub(super) fn patience_ns(&self) -> u64 {
        let smoothed = self.smoothed.map_or(0, |(smoothed, _)| smoothed);
        self.latest_ns.max(smoothed) + smoothed / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_measurements_and_doubles() {
        let config = LinkConfig::default();
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto_ns(&config), config.first_rto_ns);
        for _ in 0..100 {
            rtt.measured(50_000);
        }
        let settled = rtt.rto_ns(&config);
        assert!((50_000..70_000).contains(&settled), "{settled}");
        rtt.expired();
        rtt.expired();
        assert_eq!(rtt.rto_ns(&config), settled * 4);
        for _ in 0..100 {
            rtt.expired();
        }
        assert_eq!(rtt.rto_ns(&config), config.most_rto_ns);
        rtt.progress();
        assert_eq!(rtt.rto_ns(&config), settled);
    }
}
