//! Both directions of a channel of a link.

use super::config::ReliableConfig;
use super::receiver::Receiver;
use super::sender::Sender;
use super::seq::Seq;
use core::time::Duration;

/// Records after which an acknowledgement waits for nothing (RFC 5681, 4.2).
const OWED: u32 = 2;

// spec U11: loss is judged by arrivals on the same channel.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// An acknowledgement is to be sent, now or by that time.
    pub(super) ack_now: bool,
    pub(super) ack_at: Option<Duration>,
    /// Since when the acknowledgement of a record is owed.
    pub(super) waiting_since: Option<Duration>,
    /// The record that is being sent in chunks, and how much of it was sent.
    pub(super) chunked: (Seq, usize),
}

impl Sequence {
    pub(super) fn new([first, first_in]: [Seq; 2], config: &ReliableConfig) -> Self {
        Self {
            sender: Sender::new(first, config),
            receiver: Receiver::new(first_in, config),
            ack_now: false,
            ack_at: None,
            waiting_since: None,
            chunked: (first, 0),
        }
    }

    /// A datagram of the peer's was good, whose acknowledgement had something new or not.
    ///
    /// A peer that is heard but never gets a record is lost, too: the path carries no datagram of
    /// that length.
    pub(super) fn heard(&mut self, now: Duration, has_progress: bool) {
        if self.sender.is_idle() {
            self.waiting_since = None;
        } else if has_progress || !self.sender.is_missing_any() {
            self.waiting_since = Some(now);
        }
    }

    /// The peer wants an acknowledgement, at once or with the next datagram.
    pub(super) fn owe(&mut self, now: Duration, at_once: bool, config: &ReliableConfig) {
        if at_once || self.receiver.owed >= OWED || self.receiver.has_gap() {
            self.ack_now = true;
        } else {
            self.ack_at.get_or_insert(now + config.ack_delay);
        }
    }

    /// All that came of the peer is acknowledged.
    pub(super) fn acknowledged(&mut self) {
        self.ack_now = false;
        self.ack_at = None;
        self.receiver.owed = 0;
    }

    /// Whether an acknowledgement is to be sent.
    pub(super) fn owes(&self) -> bool {
        self.ack_now || self.ack_at.is_some()
    }

    /// When to look at it again, but for what is owed by the peer.
    pub(super) fn deadline(&self) -> Option<Duration> {
        if self.sender.is_idle() {
            return self.ack_at;
        }
        earliest([self.sender.timer, self.ack_at])
    }

    /// Sends an acknowledgement that is due now.
    pub(super) fn flush(&mut self) {
        if self.ack_at.take().is_some() {
            self.ack_now = true;
        }
    }
}

/// The earliest of times that there are.
pub(super) fn earliest<const N: usize>(times: [Option<Duration>; N]) -> Option<Duration> {
    times.into_iter().flatten().min()
}
