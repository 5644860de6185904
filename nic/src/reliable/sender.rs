//! The outgoing half of a link.

use super::config::{ReliableConfig, SPAN};
use super::congestion::Congestion;
use super::pool::{Pool, Record};
use super::rtt::Rtt;
use super::seq::Seq;
use core::time::Duration;
use std::collections::VecDeque;

/// A datagram is lost when one that was sent so many later has arrived (RFC 9002, 6.1.1).
const REORDERED: u64 = 3;

// spec U12: a segment is in one of these and in no list beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not sent yet.
    Queued,
    UnderWay,
    /// To be sent again.
    Lost,
    /// The peer has it, and its buffer is not needed any more.
    Arrived,
}

#[derive(Debug)]
struct Segment {
    state: State,
    /// Until it has arrived.
    record: Option<Record>,
    len: usize,
    sends: u32,
    /// Which of all sends of the link the last one was, and when.
    order: u64,
    sent_at: Duration,
}

/// A peer acknowledges records that were never sent to it.
#[derive(Debug)]
pub(super) struct Impossible;

#[derive(Debug)]
pub(super) struct Sender {
    /// The number of the first segment.
    base: Seq,
    /// Records that the peer has not acknowledged cumulatively, in order; those not sent yet are
    /// the last.
    segments: VecDeque<Segment>,
    queued: usize,
    lost: usize,
    under_way_bytes: usize,
    /// Of all segments: what has arrived before its turn is kept by the peer, in no more room than
    /// a window.
    span_bytes: usize,
    /// Sends so far.
    order: u64,
    /// The last send that has arrived.
    arrived: u64,
    /// Losses of sends before this one have been answered for.
    recovery: u64,
    rtt: Rtt,
    congestion: Congestion,
    /// The retransmission timer.
    pub(super) timer: Option<Duration>,
}

impl Sender {
    pub(super) fn new(first: Seq, config: &ReliableConfig) -> Self {
        Self {
            base: first,
            segments: VecDeque::new(),
            queued: 0,
            lost: 0,
            under_way_bytes: 0,
            span_bytes: 0,
            order: 1,
            arrived: 0,
            recovery: 0,
            rtt: Rtt::default(),
            congestion: Congestion::new(config.datagram_bytes, config.window_bytes),
            timer: None,
        }
    }

    // spec U4: a window of numbers that are acknowledged cumulatively.
    /// Whether another record may be submitted.
    pub(super) fn has_room(&self, config: &ReliableConfig) -> bool {
        let one = config.datagram_bytes;
        let waiting = self.under_way_bytes + self.queued * one;
        self.segments.len() < SPAN as usize
            && self.lost == 0
            && self.span_bytes + one <= config.window_bytes
            && (waiting == 0 || waiting + one <= self.congestion.window_bytes())
    }

    /// Whether the peer owes an acknowledgement.
    pub(super) fn is_idle(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether a record that was sent has not arrived.
    pub(super) fn is_missing_any(&self) -> bool {
        let is_missing = |segment: &Segment| match segment.state {
            State::UnderWay | State::Lost => true,
            State::Queued | State::Arrived => false,
        };
        self.segments.iter().any(is_missing)
    }

    /// How often the oldest record was sent.
    pub(super) fn sends_of_oldest(&self) -> u32 {
        self.segments.front().map_or(0, |segment| segment.sends)
    }

    pub(super) fn next(&self) -> Seq {
        self.base.plus((self.segments.len() - self.queued) as u32)
    }

    /// The number that the next submitted record has.
    pub(super) fn end(&self) -> Seq {
        self.base.plus(self.segments.len() as u32)
    }

    pub(super) fn submit(&mut self, record: Record) {
        let len = record.len();
        self.span_bytes += len;
        self.queued += 1;
        self.segments.push_back(Segment {
            state: State::Queued,
            record: Some(record),
            len,
            sends: 0,
            order: 0,
            sent_at: Duration::ZERO,
        });
    }

    /// Which segment is to be sent now.
    pub(super) fn due(&self) -> Option<usize> {
        if self.lost == 0 {
            return (self.queued > 0).then(|| self.segments.len() - self.queued);
        }
        let is_lost = |segment: &Segment| segment.state == State::Lost;
        let first = self.segments.iter().position(is_lost)?;
        let len = self.segments.get(first)?.len;
        let fits = self.under_way_bytes == 0
            || self.under_way_bytes + len <= self.congestion.window_bytes();
        fits.then_some(first)
    }

    /// Takes note that a [`due`](Self::due) segment is sent; its number, and whether it was sent
    /// before.
    pub(super) fn send(
        &mut self,
        index: usize,
        now: Duration,
        config: &ReliableConfig,
    ) -> Option<(Seq, bool)> {
        let seq = self.base.plus(index as u32);
        if self.timer.is_none() {
            self.timer = Some(now + self.rtt.rto(config));
        }
        let segment = self.segments.get_mut(index)?;
        match segment.state {
            State::Queued => self.queued -= 1,
            State::Lost => self.lost -= 1,
            State::UnderWay | State::Arrived => return None,
        }
        segment.state = State::UnderWay;
        self.under_way_bytes += segment.len;
        segment.order = self.order;
        self.order += 1;
        segment.sent_at = now;
        let again = segment.sends != 0;
        segment.sends = segment.sends.saturating_add(1);
        Some((seq, again))
    }

    /// The record of a segment that has not arrived.
    pub(super) fn record(&mut self, index: usize) -> Option<&mut Record> {
        self.segments.get_mut(index)?.record.as_mut()
    }

    /// Takes an acknowledgement: the peer has all records before `ack`, and keeps those of the
    /// bits.
    ///
    /// Whether it has something new.
    pub(super) fn acknowledged(
        &mut self,
        ack: Seq,
        selective: u128,
        now: Duration,
        config: &ReliableConfig,
        pool: &mut Pool,
    ) -> Result<bool, Impossible> {
        let Ok(gone) = usize::try_from(ack.distance(self.base)) else {
            // An old one that was overtaken.
            return Ok(false);
        };
        let sent = self.segments.len() - self.queued;
        let kept = sent.checked_sub(gone).ok_or(Impossible)?;
        if kept < SPAN as usize && selective >> kept != 0 {
            return Err(Impossible);
        }
        let mut trip = None;
        let (mut arrived, mut arrived_bytes) = (gone > 0, 0);
        for index in 0..gone + (u128::BITS - selective.leading_zeros()) as usize {
            let has_arrived = index < gone || selective >> (index - gone) & 1 == 1;
            let Some(segment) = self.segments.get_mut(index).filter(|_| has_arrived) else {
                continue;
            };
            match segment.state {
                State::Arrived => continue,
                State::Lost => self.lost -= 1,
                State::UnderWay => self.under_way_bytes -= segment.len,
                // Excluded by the comparison with `sent`.
                State::Queued => return Err(Impossible),
            }
            segment.state = State::Arrived;
            arrived = true;
            if let Some(record) = segment.record.take() {
                pool.give_back(record);
            }
            arrived_bytes += segment.len;
            if segment.order > self.arrived {
                self.arrived = segment.order;
                // It is unknown which copy of a segment that was sent twice has arrived (Karn).
                trip = (segment.sends == 1).then(|| now.saturating_sub(segment.sent_at));
            }
        }
        let passed = self.segments.drain(..gone);
        self.span_bytes -= passed.map(|segment| segment.len).sum::<usize>();
        self.base = ack;
        if let Some(trip) = trip {
            self.rtt.measured(trip);
        }
        if arrived {
            self.rtt.progress();
            self.congestion.arrived(arrived_bytes);
            self.timer = (!self.is_idle()).then(|| now + self.rtt.rto(config));
            self.find_losses();
        }
        Ok(arrived)
    }

    /// A record counts as lost when one that was sent long enough after it has arrived.
    fn find_losses(&mut self) {
        let mut answer_for = false;
        for segment in &mut self.segments {
            if segment.state == State::UnderWay && segment.order + REORDERED <= self.arrived {
                segment.state = State::Lost;
                self.lost += 1;
                self.under_way_bytes -= segment.len;
                answer_for |= segment.order >= self.recovery;
            }
        }
        if answer_for {
            self.congestion.lost();
            self.recovery = self.order;
        }
    }

    /// The retransmission timer has fired: everything is sent again that may be lost.
    ///
    /// Whether there is nothing to send, so that the peer must be asked for an acknowledgement.
    pub(super) fn expired(&mut self, now: Duration, config: &ReliableConfig) -> bool {
        self.rtt.expired();
        self.timer = Some(now + self.rtt.rto(config));
        for segment in &mut self.segments {
            if segment.state == State::UnderWay {
                segment.state = State::Lost;
                self.lost += 1;
            }
        }
        self.under_way_bytes = 0;
        self.recovery = self.order;
        if self.lost == 0 {
            return self.queued == 0;
        }
        self.congestion.timed_out();
        false
    }

    /// Gives all buffers back.
    pub(super) fn dissolve(&mut self, pool: &mut Pool) {
        let records = self.segments.drain(..).filter_map(|segment| segment.record);
        records.for_each(|record| pool.give_back(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: ReliableConfig = ReliableConfig {
        datagram_bytes: 400,
        window_bytes: 4_000,
        first_rto: Duration::from_millis(100),
        least_rto: Duration::from_millis(10),
        most_rto: Duration::from_secs(1),
        ack_delay: Duration::from_millis(2),
        probe_after: Duration::from_secs(1),
        give_up_after: Duration::from_secs(5),
    };

    /// The counts are those of the states, and a record is there until it has arrived.
    fn check(sender: &Sender) {
        let bytes = |of: &dyn Fn(&Segment) -> bool| -> usize {
            let those = sender.segments.iter().filter(|segment| of(segment));
            those.map(|segment| segment.len).sum()
        };
        let count = |state| sender.segments.iter().filter(|s| s.state == state).count();
        assert_eq!(sender.queued, count(State::Queued));
        assert_eq!(sender.lost, count(State::Lost));
        let under_way = |segment: &Segment| segment.state == State::UnderWay;
        assert_eq!(sender.under_way_bytes, bytes(&under_way));
        assert_eq!(sender.span_bytes, bytes(&|_| true));
        assert!(sender.span_bytes <= CONFIG.window_bytes);
        for segment in &sender.segments {
            let is_here = segment.record.is_some();
            assert_eq!(is_here, segment.state != State::Arrived, "{segment:?}");
        }
        let queued_from = sender.segments.len() - sender.queued;
        let mut sent = sender.segments.iter().take(queued_from);
        assert!(sent.all(|segment| segment.state != State::Queued));
    }

    proptest! {
        /// spec U12: whatever is submitted, sent, acknowledged and lost.
        #[test]
        fn counts_are_those_of_the_states(
            steps in prop::collection::vec((0_u8..5, any::<u64>()), 1..200),
        ) {
            let mut pool = Pool::new(CONFIG.datagram_bytes);
            let mut sender = Sender::new(Seq(u32::MAX - 5), &CONFIG);
            let mut now = Duration::ZERO;
            for (step, number) in steps {
                now += Duration::from_millis(1);
                match step {
                    0 | 1 if sender.has_room(&CONFIG) => {
                        let len = (number % 300) as usize;
                        sender.submit(pool.record(0, len).unwrap());
                    }
                    2 => {
                        if let Some(index) = sender.due() {
                            sender.send(index, now, &CONFIG).unwrap();
                        }
                    }
                    3 => {
                        let sent = (sender.segments.len() - sender.queued) as u64;
                        let gone = number % (sent + 1);
                        let left = sent - gone;
                        let beyond = u128::MAX.checked_shl(left as u32).unwrap_or(0);
                        let bits = u128::from(number) >> 8 & !beyond;
                        let ack = sender.base.plus(gone as u32);
                        sender.acknowledged(ack, bits, now, &CONFIG, &mut pool).unwrap();
                    }
                    4 if sender.timer.is_some() => {
                        sender.expired(now, &CONFIG);
                    }
                    _ => {}
                }
                check(&sender);
            }
        }
    }
}
