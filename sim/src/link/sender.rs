//! The sending half of one end: queue, window, loss detection.

use super::config::LinkConfig;
use super::frame::{DATA, FIRST, FrameError, Header, LAST};
use super::rtt::Rtt;
use std::collections::VecDeque;

/// Bytes of a message that stay with their submitter until they are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// The submitter's name for them.
    pub token: u64,
    /// How many.
    pub len: usize,
}

/// A message to send. Not empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Its first bytes, which the link keeps.
    pub head: Vec<u8>,
    /// Its other bytes. They are read, perhaps several times, until they are acknowledged.
    pub tail: Option<Tail>,
}

impl Outgoing {
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.map_or(0, |tail| tail.len)
    }

    /// Writes the bytes from `at` on; the tail's come from `read(token, offset, buffer)`.
    fn fill(&self, at: usize, out: &mut [u8], read: &mut dyn FnMut(u64, usize, &mut [u8])) {
        let from_head = self.head.len().saturating_sub(at).min(out.len());
        let (first, rest) = out.split_at_mut(from_head);
        first.copy_from_slice(&self.head[at.min(self.head.len())..][..from_head]);
        if let Some(tail) = self.tail
            && !rest.is_empty()
        {
            read(tail.token, at + from_head - self.head.len(), rest);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Sent, and nothing is known of it.
    Sent,
    /// Arrived out of order.
    Arrived,
    /// To be sent again.
    Lost,
}

/// A part of a message that has been sent and not acknowledged cumulatively.
#[derive(Debug)]
struct Part {
    /// Number of the message, counted like parts from the beginning of the connection.
    message: u64,
    at: usize,
    len: usize,
    last: bool,
    sent_ns: u64,
    sends: u32,
    state: State,
}

/// What a pass may still send again, and everything under way.
#[derive(Debug)]
pub(super) struct Sender {
    /// Messages of which not everything is acknowledged.
    messages: VecDeque<Outgoing>,
    /// Number of `messages[0]`.
    first_message: u64,
    /// The next byte to be sent for the first time: message and place.
    next_message: u64,
    next_at: usize,
    /// Parts from number `unacknowledged` on.
    parts: VecDeque<Part>,
    unacknowledged: u64,
    /// The receiver takes numbers below this.
    limit: u64,
    /// Congestion window, in parts; grows by one a round trip and is halved by a loss.
    congestion: u32,
    acknowledged_in_window: u32,
    /// Losses of parts below this number belong to one event.
    recovery_until: u64,
    rtt: Rtt,
    /// When the latest part was sent of those that have arrived.
    latest_arrived_sent_ns: u64,
    /// When the oldest part counts as unanswered: the retransmission timer starts there.
    timer_from_ns: u64,
    resends_left: u32,
    /// Tokens whose bytes are not needed any more.
    pub(super) finished: VecDeque<u64>,
    pub(super) resent: u64,
    pub(super) expiries: u64,
}

impl Sender {
    pub(super) fn new(config: &LinkConfig) -> Self {
        Self {
            messages: VecDeque::new(),
            first_message: 0,
            next_message: 0,
            next_at: 0,
            parts: VecDeque::new(),
            unacknowledged: 0,
            limit: u64::from(config.recv_parts),
            congestion: config.send_parts.min(16),
            acknowledged_in_window: 0,
            recovery_until: 0,
            rtt: Rtt::new(),
            latest_arrived_sent_ns: 0,
            timer_from_ns: 0,
            resends_left: config.resends_per_pass,
            finished: VecDeque::new(),
            resent: 0,
            expiries: 0,
        }
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Messages submitted, and those of them that are acknowledged, from the beginning.
    pub(super) fn totals(&self) -> (u64, u64) {
        let acknowledged = self.first_message;
        (acknowledged + self.messages.len() as u64, acknowledged)
    }

    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn submit(&mut self, message: Outgoing) {
        self.messages.push_back(message);
    }

    fn next_seq(&self) -> u64 {
        self.unacknowledged + self.parts.len() as u64
    }

    fn has_new(&self) -> bool {
        self.next_message < self.first_message + self.messages.len() as u64
    }

    /// A new pass begins.
    pub(super) fn begin_pass(&mut self, config: &LinkConfig) {
        self.resends_left = config.resends_per_pass;
    }

    /// Whether the receiver's closed window is all that keeps new parts from being sent.
    pub(super) fn is_shut_out(&self) -> bool {
        self.has_new() && self.parts.is_empty() && self.next_seq() >= self.limit
    }

    pub(super) fn has_unacknowledged(&self) -> bool {
        !self.messages.is_empty()
    }

    pub(super) fn rto_ns(&self, config: &LinkConfig) -> u64 {
        self.rtt.rto_ns(config)
    }

    pub(super) fn probe_expired(&mut self) {
        self.rtt.expired();
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// It acknowledges what was not sent.
    pub(super) fn acknowledged(
        &mut self,
        header: &Header,
        now_ns: u64,
        config: &LinkConfig,
    ) -> Result<(), FrameError> {
        let next = self.next_seq();
        let beyond = header
            .ack
            .checked_add(64 - u64::from(header.sack.leading_zeros()));
        if header.ack > next
            || (header.sack != 0 && beyond.is_none_or(|last| last >= next))
            || header.window > 64
        {
            return Err(FrameError::Acknowledgement);
        }
        // An old frame that was overtaken cannot take back what a later one has given.
        self.limit = self.limit.max(header.ack + u64::from(header.window));
        let mut progress = false;
        let mut measured = None;
        while self.unacknowledged < header.ack {
            let Some(part) = self.parts.pop_front() else {
                break;
            };
            self.unacknowledged += 1;
            progress = true;
            self.arrived(&part, now_ns, &mut measured);
            if part.last {
                self.first_message += 1;
                let message = self.messages.pop_front();
                if let Some(tail) = message.and_then(|message| message.tail) {
                    self.finished.push_back(tail.token);
                }
            }
        }
        for bit in 0..64 {
            let seq = header.ack + 1 + bit;
            if header.sack >> bit & 1 == 0 || seq < self.unacknowledged {
                continue;
            }
            let index = (seq - self.unacknowledged) as usize;
            if index < self.parts.len() && self.parts[index].state != State::Arrived {
                self.parts[index].state = State::Arrived;
                progress = true;
                let (sent_ns, sends) = (self.parts[index].sent_ns, self.parts[index].sends);
                self.note(sent_ns, sends, now_ns, &mut measured);
            }
        }
        if let Some(rtt_ns) = measured {
            self.rtt.measured(rtt_ns);
        }
        if progress {
            self.rtt.progress();
            self.timer_from_ns = now_ns;
            self.grow(config);
        }
        Ok(())
    }

    fn arrived(&mut self, part: &Part, now_ns: u64, measured: &mut Option<u64>) {
        if part.state != State::Arrived {
            self.note(part.sent_ns, part.sends, now_ns, measured);
        }
    }

    fn note(&mut self, sent_ns: u64, sends: u32, now_ns: u64, measured: &mut Option<u64>) {
        // Which of several sendings has arrived is not known, so they neither measure nor tell
        // that others are late.
        if sends == 1 {
            *measured = Some(now_ns.saturating_sub(sent_ns));
            self.latest_arrived_sent_ns = self.latest_arrived_sent_ns.max(sent_ns);
        }
        self.acknowledged_in_window += 1;
    }

    fn grow(&mut self, config: &LinkConfig) {
        if self.acknowledged_in_window >= self.congestion {
            self.acknowledged_in_window = 0;
            self.congestion = (self.congestion + 1).min(config.send_parts);
        }
    }

    /// Time has passed: finds what is lost.
    pub(super) fn handle_timeout(&mut self, now_ns: u64, config: &LinkConfig) {
        let patience = self.rtt.patience_ns();
        let (latest, from) = (self.latest_arrived_sent_ns, self.unacknowledged);
        let mut highest_lost = None;
        for (i, part) in self.parts.iter_mut().enumerate() {
            let overtaken = part.state == State::Sent && part.sent_ns < latest;
            if overtaken && part.sent_ns + patience <= now_ns {
                part.state = State::Lost;
                highest_lost = Some(from + i as u64);
            }
        }
        if let Some(seq) = highest_lost
            && seq >= self.recovery_until
        {
            self.recovery_until = self.next_seq();
            self.congestion = (self.congestion / 2).max(1);
        }
        if self.rto_deadline(config).is_some_and(|at| at <= now_ns) {
            self.expiries += 1;
            self.rtt.expired();
            self.timer_from_ns = now_ns;
            self.congestion = 1;
            self.recovery_until = self.next_seq();
            for part in &mut self.parts {
                if part.state == State::Sent {
                    part.state = State::Lost;
                }
            }
        }
    }

    fn rto_deadline(&self, config: &LinkConfig) -> Option<u64> {
        let waits = self.parts.iter().any(|part| part.state == State::Sent);
        waits.then(|| self.timer_from_ns + self.rtt.rto_ns(config))
    }

    /// When [`handle_timeout`](Self::handle_timeout) finds something.
    pub(super) fn poll_timeout(&self, config: &LinkConfig) -> Option<u64> {
        let patience = self.rtt.patience_ns();
        let overtaken = self
            .parts
            .iter()
            .find(|part| part.state == State::Sent && part.sent_ns < self.latest_arrived_sent_ns);
        let overtaken = overtaken.map(|part| part.sent_ns + patience);
        // Lost parts for which this pass had no more sendings.
        let more = (self.resends_left == 0 && self.wants_resend()).then_some(0);
        [overtaken, self.rto_deadline(config), more]
            .into_iter()
            .flatten()
            .min()
    }

    fn in_flight(&self) -> usize {
        let sent = |part: &&Part| part.state == State::Sent;
        self.parts.iter().filter(sent).count()
    }

    fn wants_resend(&self) -> bool {
        self.in_flight() < self.congestion as usize
            && self.parts.iter().any(|part| part.state == State::Lost)
    }

    /// The next part to send: its number and flags, its message and place.
    pub(super) fn next(&mut self, now_ns: u64, config: &LinkConfig) -> Option<Ready> {
        let in_flight = self.in_flight();
        if in_flight >= self.congestion as usize {
            return None;
        }
        if in_flight == 0 {
            // Nothing was waited for: the timer runs from now.
            self.timer_from_ns = now_ns;
        }
        if let Some(i) = self.parts.iter().position(|p| p.state == State::Lost) {
            if self.resends_left == 0 {
                return None;
            }
            self.resends_left -= 1;
            self.resent += 1;
            let part = &mut self.parts[i];
            part.state = State::Sent;
            part.sent_ns = now_ns;
            part.sends = part.sends.saturating_add(1);
            return Some(self.ready(i));
        }
        if !self.has_new()
            || self.next_seq() >= self.limit
            || self.parts.len() >= config.send_parts as usize
        {
            return None;
        }
        let message = &self.messages[(self.next_message - self.first_message) as usize];
        let len = config.part_bytes.min(message.len() - self.next_at);
        let last = self.next_at + len == message.len();
        self.parts.push_back(Part {
            message: self.next_message,
            at: self.next_at,
            len,
            last,
            sent_ns: now_ns,
            sends: 1,
            state: State::Sent,
        });
        if last {
            self.next_message += 1;
            self.next_at = 0;
        } else {
            self.next_at += len;
        }
        Some(self.ready(self.parts.len() - 1))
    }

    fn ready(&self, index: usize) -> Ready {
        let part = &self.parts[index];
        let first = if part.at == 0 { FIRST } else { 0 };
        let last = if part.last { LAST } else { 0 };
        Ready {
            seq: self.unacknowledged + index as u64,
            flags: DATA | first | last,
            message: part.message,
            at: part.at,
            len: part.len,
        }
    }

    /// Writes the bytes of a part.
    pub(super) fn fill(
        &self,
        ready: &Ready,
        out: &mut [u8],
        read: &mut dyn FnMut(u64, usize, &mut [u8]),
    ) {
        let index = (ready.message - self.first_message) as usize;
        self.messages[index].fill(ready.at, out, read);
    }
}

/// A part that is to be sent now.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) seq: u64,
    pub(super) flags: u8,
    message: u64,
    at: usize,
    pub(super) len: usize,
}
