//! Both directions of records between two ranks, and the times when something has to be done.

use super::config::ReliableConfig;
use super::receiver::Receiver;
use super::seal::Keys;
use super::sender::Sender;
use super::seq::Seq;
use core::time::Duration;

/// Records after which an acknowledgement waits for nothing (RFC 5681, 4.2).
const OWED: u32 = 2;

/// The next datagram of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// This record of the sender.
    Record(usize),
    Probe,
    Leave,
    Ack,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// Where datagrams are sealed.
    pub(super) keys: Option<Box<Keys>>,
    /// An acknowledgement is to be sent, now or by that time.
    ack_now: bool,
    ack_at: Option<Duration>,
    /// Whether the driver wants to know when the peer is lost, though nothing is under way to it.
    pub(super) watched: bool,
    /// The peer is to be asked; it was asked, or the watch began, then.
    probe_now: bool,
    asked_at: Duration,
    heard_at: Duration,
    /// Since when an answer is owed.
    waiting_since: Option<Duration>,
    /// The peer is to be sent [`Due::Leave`].
    leave_now: bool,
    /// Whether this rank has said that it ends.
    ///
    /// Every acknowledgement says it again from then on, as one announcement may be lost.
    has_left: bool,
    /// Whether the peer has said that it ends.
    pub(super) peer_left: bool,
    /// The number that its next record would have had then.
    last: Option<Seq>,
    /// When the timers have it looked at.
    pub(super) armed: Option<Duration>,
    /// Whether it is among those that have something to send.
    pub(super) listed: bool,
}

impl Link {
    pub(super) fn new(
        [first, first_in]: [Seq; 2],
        keys: Option<Box<Keys>>,
        now: Duration,
        config: &ReliableConfig,
    ) -> Self {
        Self {
            sender: Sender::new(first, config),
            receiver: Receiver::new(first_in, config),
            keys,
            ack_now: false,
            ack_at: None,
            watched: false,
            probe_now: false,
            asked_at: now,
            heard_at: now,
            waiting_since: None,
            leave_now: false,
            has_left: false,
            peer_left: false,
            last: None,
            armed: None,
            listed: false,
        }
    }

    pub(super) fn watch(&mut self, on: bool, now: Duration) {
        if on && !self.watched {
            self.asked_at = now;
        }
        self.watched = on;
    }

    /// A datagram of the peer's was good, and its acknowledgement has been taken, which had
    /// something new or not.
    ///
    /// A peer that is heard but never gets a record is lost, too: the path carries no datagram of
    /// that length.
    pub(super) fn heard(&mut self, now: Duration, has_progress: bool) {
        self.heard_at = now;
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

    pub(super) fn due(&self) -> Option<Due> {
        if let Some(index) = self.sender.due() {
            Some(Due::Record(index))
        } else if self.probe_now {
            Some(Due::Probe)
        } else if self.leave_now {
            Some(Due::Leave)
        } else {
            let ack = if self.has_left { Due::Leave } else { Due::Ack };
            self.ack_now.then_some(ack)
        }
    }

    /// A datagram is sent; each acknowledges, as far as it names what has come.
    pub(super) fn sent(&mut self, due: Due, now: Duration) {
        if !matches!(due, Due::Record(_)) || !self.receiver.keeps_more() {
            self.ack_now = false;
            self.ack_at = None;
            self.receiver.owed = 0;
        }
        match due {
            Due::Ack => return,
            Due::Leave => {
                self.leave_now = false;
                return;
            }
            Due::Probe => {
                self.probe_now = false;
                self.asked_at = now;
            }
            Due::Record(_) => {}
        }
        self.waiting_since.get_or_insert(now);
    }

    /// Whether all that was to be sent was sent and has arrived.
    ///
    /// A peer that has left is owed nothing: it takes no records and waits for no acknowledgements.
    pub(super) fn is_drained(&self) -> bool {
        self.peer_left || (self.sender.is_idle() && !self.ack_now && self.ack_at.is_none())
    }

    /// The peer says that it ends, and which number its next record would have.
    pub(super) fn peer_leaves(&mut self, next: Seq) {
        self.peer_left = true;
        if self.last.is_none_or(|last| next.distance(last) > 0) {
            self.last = Some(next);
        }
    }

    /// Whether the peer has said that it ends, and all its records up to then were taken.
    ///
    /// It takes nothing more and waits for nothing.
    pub(super) fn has_ended(&self) -> bool {
        let next = self.receiver.next();
        self.last.is_some_and(|last| next.distance(last) >= 0)
    }

    /// Announces to the peer that this rank ends.
    pub(super) fn leave(&mut self) {
        self.leave_now = true;
        self.has_left = true;
    }

    /// When to look at it again.
    pub(super) fn deadline(&self, config: &ReliableConfig) -> Option<Duration> {
        if self.has_ended() {
            return self.ack_at;
        }
        let give_up = self.waiting_since.map(|since| since + config.give_up_after);
        let times = [
            self.sender.timer,
            self.ack_at,
            self.probe_at(config),
            give_up,
        ];
        times.into_iter().flatten().min()
    }

    fn probe_at(&self, config: &ReliableConfig) -> Option<Duration> {
        let quiet_since = self.asked_at.max(self.heard_at);
        (self.watched && self.sender.is_idle()).then(|| quiet_since + config.probe_after)
    }

    /// Handles timers that are due; whether the peer is lost, silent for how long.
    pub(super) fn handle_timeout(
        &mut self,
        now: Duration,
        config: &ReliableConfig,
    ) -> Option<Duration> {
        let silent = self.waiting_since.filter(|_| !self.has_ended());
        let silent = silent.map(|since| now.saturating_sub(since));
        if let Some(silent) = silent.filter(|silent| *silent >= config.give_up_after) {
            return Some(silent);
        }
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if !self.has_ended() && is_due(self.sender.timer) && self.sender.expired(now, config) {
            self.probe_now = true;
        }
        if is_due(self.ack_at) {
            self.ack_now = true;
            self.ack_at = None;
        }
        if is_due(self.probe_at(config)) {
            self.probe_now = true;
            self.asked_at = now;
        }
        None
    }

    /// Sends an acknowledgement that is due now.
    pub(super) fn flush(&mut self) {
        if self.ack_at.take().is_some() {
            self.ack_now = true;
        }
    }
}
