//! How much may be under way (RFC 5681, in bytes).

/// Datagrams under way before anything is known of the network.
const FIRST_DATAGRAMS: usize = 16;

/// Datagrams under way in any case.
const LEAST_DATAGRAMS: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    datagram_bytes: usize,
    most_bytes: usize,
    window_bytes: usize,
    /// Below it the window doubles each round trip, above it grows by a datagram.
    threshold_bytes: usize,
}

impl Congestion {
    pub(super) fn new(datagram_bytes: usize, most_bytes: usize) -> Self {
        Self {
            datagram_bytes,
            most_bytes,
            window_bytes: (FIRST_DATAGRAMS * datagram_bytes).min(most_bytes),
            threshold_bytes: most_bytes,
        }
    }

    /// Datagrams are so long from now on.
    pub(super) fn resize(&mut self, datagram_bytes: usize) {
        self.datagram_bytes = datagram_bytes;
    }

    pub(super) fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// So many bytes have arrived.
    pub(super) fn arrived(&mut self, bytes: usize) {
        let more = if self.window_bytes < self.threshold_bytes {
            bytes
        } else {
            (self.datagram_bytes * bytes / self.window_bytes).max(1)
        };
        self.window_bytes = (self.window_bytes + more).min(self.most_bytes);
    }

    fn halve(&mut self) {
        let least = LEAST_DATAGRAMS * self.datagram_bytes;
        self.threshold_bytes = (self.window_bytes / 2).max(least).min(self.most_bytes);
    }

    /// Later datagrams have arrived and this one has not.
    pub(super) fn lost(&mut self) {
        self.halve();
        self.window_bytes = self.threshold_bytes;
    }

    /// Nothing has come back.
    pub(super) fn timed_out(&mut self) {
        self.halve();
        self.window_bytes = (LEAST_DATAGRAMS * self.datagram_bytes).min(self.most_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_halves_and_stays_within_its_limits() {
        let mut congestion = Congestion::new(1000, 64_000);
        assert_eq!(congestion.window_bytes(), 16_000);
        congestion.arrived(16_000);
        assert_eq!(congestion.window_bytes(), 32_000);
        congestion.lost();
        assert_eq!(congestion.window_bytes(), 16_000);
        // A datagram a round trip from here on.
        congestion.arrived(16_000);
        assert_eq!(congestion.window_bytes(), 17_000);
        congestion.timed_out();
        assert_eq!(congestion.window_bytes(), 2000);
        congestion.arrived(6500);
        assert_eq!(congestion.window_bytes(), 8500);
        congestion.arrived(8500);
        assert_eq!(congestion.window_bytes(), 9500);
        for _ in 0..1000 {
            congestion.arrived(64_000);
        }
        assert_eq!(congestion.window_bytes(), 64_000);
        for _ in 0..20 {
            congestion.lost();
        }
        assert_eq!(congestion.window_bytes(), 2000);
        let mut narrow = Congestion::new(1000, 1500);
        narrow.timed_out();
        narrow.lost();
        assert_eq!(narrow.window_bytes(), 1500);
    }
}
