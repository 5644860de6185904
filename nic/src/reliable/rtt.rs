//! Round trips and the retransmission timer (RFC 6298).

use super::config::ReliableConfig;
use core::time::Duration;

/// Doublings beyond which the timer is at its greatest value anyway.
const MOST_DOUBLINGS: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// Smoothed, and its variation; none before the first measurement.
    smoothed: Option<(Duration, Duration)>,
    /// Doublings since something was acknowledged.
    doublings: u32,
}

impl Rtt {
    /// A round trip of a datagram that was sent once (section 3).
    pub(super) fn measured(&mut self, trip: Duration) {
        // Section 2.2 and 2.3, with alpha 1/8 and beta 1/4.
        self.smoothed = Some(match self.smoothed {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => (
                smoothed - smoothed / 8 + trip / 8,
                variation - variation / 4 + smoothed.abs_diff(trip) / 4,
            ),
        });
    }

    /// Something new was acknowledged.
    pub(super) fn progress(&mut self) {
        self.doublings = 0;
    }

    /// The timer has fired (section 5.5).
    pub(super) fn expired(&mut self) {
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// How long the timer runs at first, after progress.
    ///
    /// An acknowledgement may come later than its datagram by its delay.
    pub(super) fn first_rto(&self, config: &ReliableConfig) -> Duration {
        let base = match self.smoothed {
            None => config.first_rto,
            Some((smoothed, variation)) => smoothed + variation * 4 + config.ack_delay,
        };
        base.clamp(config.least_rto, config.most_rto)
    }

    /// How long the timer runs.
    pub(super) fn rto(&self, config: &ReliableConfig) -> Duration {
        let doubled = self.first_rto(config).saturating_mul(1 << self.doublings);
        doubled.min(config.most_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_measurements_and_doubles() {
        let config = ReliableConfig {
            least_rto: Duration::from_millis(3),
            ..ReliableConfig::default()
        };
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto(&config), config.first_rto);
        for _ in 0..100 {
            rtt.measured(Duration::from_millis(8));
        }
        let settled = rtt.rto(&config);
        let expected = Duration::from_millis(8) + config.ack_delay;
        assert!(
            settled >= expected && settled < expected * 11 / 10,
            "{settled:?}"
        );
        rtt.expired();
        rtt.expired();
        assert_eq!(rtt.rto(&config), settled * 4);
        assert_eq!(rtt.first_rto(&config), settled);
        for _ in 0..100 {
            rtt.expired();
        }
        assert_eq!(rtt.rto(&config), config.most_rto);
        rtt.progress();
        assert_eq!(rtt.rto(&config), settled);
        for _ in 0..100 {
            rtt.measured(Duration::from_micros(10));
        }
        assert_eq!(rtt.rto(&config), config.least_rto);
    }
}
