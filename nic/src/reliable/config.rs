//! Sizes and times of an endpoint.

use super::datagram::{CHUNK_BYTES, HEADER_BYTES, MOST_CHUNKS, SEAL_BYTES};
use core::time::Duration;

/// Most datagrams of a channel under way to a peer, and most that a peer keeps which came early.
///
/// An acknowledgement names them one by one, a bit each.
pub(super) const SPAN: u32 = 4096;

/// Places for records of a peer that stay allocated while it has none.
pub(super) const FEW: usize = 128;

/// The least that a datagram counts in windows: the system keeps about so much for a short one that
/// has arrived, and the sender has a buffer for it.
const LEAST_COST_BYTES: usize = 768;

/// Longest datagram between hosts where nothing is known of the path: it passes wherever IPv6 does,
/// whose frames have 1,280 bytes, of which headers take 48.
pub const FIRST_DATAGRAM_BYTES: usize = 1232;

/// Longest payload of a UDP datagram over IPv4.
const MOST_DATAGRAM_BYTES: usize = 65_507;

/// Least bytes of a record that every endpoint takes.
const LEAST_RECORD_BYTES: usize = 256;

/// Sizes and times of an endpoint.
///
/// Both sides of a link have the same sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReliableConfig {
    /// Longest datagram to a peer before longer ones are known to reach it, without the headers of
    /// UDP and below.
    ///
    /// 1472 fits Ethernet frames of 1500 bytes with IPv4.
    pub datagram_bytes: usize,
    /// Longer datagrams that are tried with each peer to which much is sent, ascending.
    ///
    /// Those longer than an eighth of the window are not. Where there are none, the MTU of the path
    /// is not looked for.
    pub longer_datagrams: &'static [usize],
    /// Most bytes of a channel under way to a peer, and most that are kept of early records of a
    /// peer's channel.
    ///
    /// Short datagrams count as 768 bytes.
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
    /// After how much silence a peer is lost that should have answered, or doubted.
    pub give_up_after: Duration,
    /// After how much silence a peer is doubted that was never heard, and after how long a length
    /// is lost that never arrived, where it is shorter.
    pub unheard_after: Duration,
    /// How long a peer that is doubted may be silent, where it is longer than `give_up_after`: its
    /// process may be stopped, and says nothing then.
    ///
    /// Zero: no peer is doubted.
    pub stopped_for: Duration,
    /// No peer is lost or doubted for what its path does: it is there again when it is heard, as
    /// another rail goes on meanwhile.
    pub is_patient: bool,
}

impl Default for ReliableConfig {
    fn default() -> Self {
        Self {
            datagram_bytes: 1472,
            longer_datagrams: &[],
            window_bytes: 1 << 20,
            first_rto: Duration::from_millis(200),
            least_rto: Duration::from_millis(20),
            most_rto: Duration::from_secs(2),
            ack_delay: Duration::from_millis(2),
            probe_after: Duration::from_secs(1),
            give_up_after: Duration::from_secs(20),
            unheard_after: Duration::from_secs(10),
            stopped_for: Duration::ZERO,
            is_patient: false,
        }
    }
}

/// Longest record that a datagram has, with or without a seal.
pub(super) fn carried(datagram_bytes: usize, sealed: bool) -> usize {
    let tail = if sealed { SEAL_BYTES } else { 0 };
    datagram_bytes.saturating_sub(HEADER_BYTES + tail)
}

impl ReliableConfig {
    /// Longest record that reaches every peer whole, with or without a seal.
    #[must_use]
    pub fn record_bytes(&self, sealed: bool) -> usize {
        carried(self.datagram_bytes, sealed)
    }

    /// Longest record that may reach some peer whole.
    #[must_use]
    pub fn most_record_bytes(&self, sealed: bool) -> usize {
        carried(self.most_datagram_bytes(), sealed)
    }

    /// Longer datagrams that are tried.
    pub(super) fn lengths(&self) -> &'static [usize] {
        let most = self.window_bytes / 8;
        let count = self
            .longer_datagrams
            .partition_point(|bytes| *bytes <= most);
        &self.longer_datagrams[..count]
    }

    /// Longest datagram of all.
    pub(super) fn most_datagram_bytes(&self) -> usize {
        self.lengths()
            .last()
            .copied()
            .unwrap_or(self.datagram_bytes)
    }

    /// Most datagrams between the first that a peer has not taken and the last that was sent: no
    /// more than an acknowledgement has room to name.
    pub(super) fn span(&self) -> u32 {
        let bits = 8 * self.record_bytes(true);
        SPAN.min(u32::try_from(bits).unwrap_or(SPAN))
    }

    /// The bytes of a record in windows.
    pub(super) fn cost(&self, len: usize) -> usize {
        len.max(LEAST_COST_BYTES.min(self.datagram_bytes))
    }

    /// The first fault of the sizes and times, if there is one.
    pub(super) fn objection(&self) -> Option<&'static str> {
        if self.record_bytes(true) < LEAST_RECORD_BYTES {
            return Some("datagrams shorter than 344 bytes");
        }
        let ascends = |pair: &[usize]| pair.first() < pair.last();
        let longer = self.longer_datagrams;
        if !longer.windows(2).all(ascends)
            || longer.first() <= Some(&self.datagram_bytes) && !longer.is_empty()
        {
            return Some("longer datagrams that do not ascend from the first length");
        }
        if self.most_datagram_bytes() > MOST_CHUNKS * (self.record_bytes(true) - CHUNK_BYTES) {
            return Some("longer datagrams than 64 short ones have room for");
        }
        if self.most_datagram_bytes() > MOST_DATAGRAM_BYTES {
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
        if self.unheard_after.is_zero() {
            return Some("peers that are lost before they can be heard");
        }
        if self.probe_after.is_zero() || self.probe_after > self.give_up_after {
            return Some("probes at once, or later than peers are lost");
        }
        None
    }
}
