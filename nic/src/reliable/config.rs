//! Sizes and times of an endpoint.

use super::datagram::{HEADER_BYTES, SEAL_BYTES};
use core::time::Duration;

/// Most datagrams under way to a peer, and most that a peer keeps which came early: as many as an
/// acknowledgement can name one by one.
pub(super) const SPAN: u32 = 128;

/// Longest payload of a UDP datagram over IPv4.
const MOST_DATAGRAM_BYTES: usize = 65_507;

/// Least bytes of a record that every endpoint takes.
const LEAST_RECORD_BYTES: usize = 256;

/// Sizes and times of an endpoint.
///
/// Both sides of a link have the same sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReliableConfig {
    /// Longest datagram, without the headers of UDP and below.
    ///
    /// 1472 fits Ethernet frames of 1500 bytes with IPv4.
    pub datagram_bytes: usize,
    /// Most bytes under way to a peer, and most that are kept of early records of a peer.
    pub window_bytes: usize,
    /// Retransmission timer before the first measurement.
    pub first_rto: Duration,
    /// Its least value; more than an acknowledgement waits.
    pub least_rto: Duration,
    /// Its greatest value.
    pub most_rto: Duration,
    /// How long an acknowledgement waits for a datagram to ride on.
    pub ack_delay: Duration,
    /// After how much silence a watched peer is asked whether it lives.
    pub probe_after: Duration,
    /// After how much silence a peer is lost that should have answered.
    pub give_up_after: Duration,
}

impl Default for ReliableConfig {
    fn default() -> Self {
        Self {
            datagram_bytes: 1472,
            window_bytes: 1 << 20,
            first_rto: Duration::from_millis(200),
            least_rto: Duration::from_millis(20),
            most_rto: Duration::from_secs(2),
            ack_delay: Duration::from_millis(2),
            probe_after: Duration::from_secs(1),
            give_up_after: Duration::from_secs(20),
        }
    }
}

impl ReliableConfig {
    /// Longest record, with or without a seal.
    #[must_use]
    pub fn record_bytes(&self, sealed: bool) -> usize {
        let tail = if sealed { SEAL_BYTES } else { 0 };
        self.datagram_bytes.saturating_sub(HEADER_BYTES + tail)
    }

    /// The first fault of the sizes and times, if there is one.
    pub(super) fn objection(&self) -> Option<&'static str> {
        if self.record_bytes(true) < LEAST_RECORD_BYTES {
            return Some("datagrams shorter than 336 bytes");
        }
        if self.datagram_bytes > MOST_DATAGRAM_BYTES {
            return Some("datagrams longer than UDP has, 65507 bytes");
        }
        if self.window_bytes < self.datagram_bytes {
            return Some("a window that no datagram fits");
        }
        if self.ack_delay >= self.least_rto {
            return Some("a retransmission timer that does not wait for late acknowledgements");
        }
        if self.least_rto > self.most_rto
            || self.first_rto > self.most_rto
            || self.most_rto > self.give_up_after
        {
            return Some(
                "a retransmission timer beyond its greatest value, or beyond that at which peers are lost",
            );
        }
        if self.probe_after.is_zero() || self.probe_after > self.give_up_after {
            return Some("probes at once, or later than peers are lost");
        }
        None
    }
}
