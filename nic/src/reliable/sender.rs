//! The outgoing half of a channel.

use super::config::{FEW, ReliableConfig};
use super::congestion::Congestion;
use super::datagram::{HEADER_BYTES, NAMED};
use super::pool::{Pool, Record};
use super::rtt::Rtt;
use super::seq::Seq;
use core::time::Duration;
use std::collections::VecDeque;

/// A datagram is lost when one that was sent so many later has arrived (RFC 9002, 6.1.1).
const REORDERED: u64 = 3;

/// Sends of a record after which the path may be one that does not take it.
const STUCK: u32 = 3;

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

/// A record that the peer has not acknowledged cumulatively: what usNIC's text calls a segment.
#[derive(Debug)]
struct Unacknowledged {
    state: State,
    /// Until it has arrived.
    record: Option<Record>,
    /// Bytes in windows.
    cost: usize,
    sends: u32,
    /// Which of all sends of the link the last one was, and when.
    order: u64,
    sent_at: Duration,
}

/// What a peer has: all records before `ack`, and of those from there on the ones that bits name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement<'a> {
    pub(super) ack: Seq,
    /// A bit for each of the first 128 records from `ack` on.
    pub(super) selective: u128,
    /// Bits for the records after those.
    pub(super) more: &'a [u8],
    /// The datagram had no room for all bits: the peer may have records that no bit names, so the
    /// sender judges no loss by it.
    pub(super) partial: bool,
}

impl Acknowledgement<'_> {
    /// Whether it names no record behind the first that is missing.
    #[inline]
    fn names_nothing(&self) -> bool {
        self.selective == 0 && self.more.is_empty()
    }

    /// Places behind `ack` that it names.
    fn named(&self) -> impl Iterator<Item = usize> {
        let more = self.more.iter().enumerate();
        let more = more.flat_map(|(at, byte)| set(u128::from(*byte)).map(move |bit| 8 * at + bit));
        set(self.selective).chain(more.map(|bit| NAMED as usize + bit))
    }

    /// Places behind `ack` up to the last that it names.
    fn reach(&self) -> usize {
        match self.more.iter().rposition(|byte| *byte != 0) {
            None => (u128::BITS - self.selective.leading_zeros()) as usize,
            Some(at) => {
                let bits = u8::BITS - self.more[at].leading_zeros();
                NAMED as usize + 8 * at + bits as usize
            }
        }
    }
}

/// The places of bits that are set.
fn set(mut bits: u128) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let at = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(at as usize)
    })
}

/// What an acknowledgement has brought.
#[derive(Default)]
struct News {
    any: bool,
    bytes: usize,
    trip: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Sender {
    /// The number of the first record.
    base: Seq,
    /// Records that the peer has not acknowledged cumulatively, in order; those not sent yet are
    /// the last.
    unacknowledged: VecDeque<Unacknowledged>,
    queued: usize,
    lost: usize,
    /// No lost record is before this place.
    first_lost: usize,
    under_way: usize,
    under_way_bytes: usize,
    /// Of all records: what has arrived before its turn is kept by the peer, in no more room than
    /// a window.
    span_bytes: usize,
    /// The number of the next send; retransmissions count.
    order: u64,
    /// Records of the last sends, up to `order`: those that are not yet judged lost or arrived.
    sends: VecDeque<Seq>,
    /// The last send that has arrived.
    arrived: u64,
    /// The same of records that were longer than the shortest datagrams have room for.
    long_arrived: u64,
    /// Bytes of the longest record that has arrived.
    longest: usize,
    /// Longest datagram where nothing is known of the path.
    least_bytes: usize,
    /// The window has shrunk for all losses of sends before this one.
    recovery: u64,
    rtt: Rtt,
    congestion: Congestion,
    /// Longest datagram.
    datagram_bytes: usize,
    /// The retransmission timer.
    pub(super) timer: Option<Duration>,
}

impl Sender {
    pub(super) fn new(first: Seq, config: &ReliableConfig) -> Self {
        Self {
            base: first,
            unacknowledged: VecDeque::new(),
            queued: 0,
            lost: 0,
            first_lost: usize::MAX,
            under_way: 0,
            under_way_bytes: 0,
            span_bytes: 0,
            order: 1,
            sends: VecDeque::new(),
            arrived: 0,
            long_arrived: 0,
            longest: 0,
            least_bytes: config.datagram_bytes,
            recovery: 0,
            rtt: Rtt::default(),
            congestion: Congestion::new(config.datagram_bytes, config.window_bytes),
            datagram_bytes: config.datagram_bytes,
            timer: None,
        }
    }

    // spec U4: a window of numbers that are acknowledged cumulatively.
    /// Whether another record may be submitted.
    pub(super) fn has_room(&self, config: &ReliableConfig) -> bool {
        let one = self.datagram_bytes;
        let waiting = self.under_way_bytes + self.queued * one;
        self.unacknowledged.len() < config.span() as usize
            && self.lost == 0
            && self.span_bytes + one <= config.window_bytes
            && (waiting == 0 || waiting + one <= self.congestion.window_bytes())
    }

    /// Whether the peer has acknowledged all records that were submitted.
    pub(super) fn is_idle(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    /// See [`Rtt::first_rto`].
    pub(super) fn first_rto(&self, config: &ReliableConfig) -> Duration {
        self.rtt.first_rto(config)
    }

    /// Whether a record that was sent has not arrived.
    pub(super) fn is_missing_any(&self) -> bool {
        self.under_way + self.lost > 0
    }

    /// How often the oldest record was sent.
    pub(super) fn sends_of_oldest(&self) -> u32 {
        self.unacknowledged.front().map_or(0, |entry| entry.sends)
    }

    /// Bytes of the oldest record.
    pub(super) fn oldest(&self) -> Option<usize> {
        self.look(0).map(|(_, len)| len)
    }

    /// Bytes of the longest record that has arrived.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn next(&self) -> Seq {
        self.base
            .plus((self.unacknowledged.len() - self.queued) as u32)
    }

    /// The number that the next submitted record has.
    pub(super) fn end(&self) -> Seq {
        self.base.plus(self.unacknowledged.len() as u32)
    }

    pub(super) fn submit(&mut self, record: Record, config: &ReliableConfig) {
        let cost = config.cost(record.len());
        self.span_bytes += cost;
        self.queued += 1;
        self.unacknowledged.push_back(Unacknowledged {
            state: State::Queued,
            record: Some(record),
            cost,
            sends: 0,
            order: 0,
            sent_at: Duration::ZERO,
        });
    }

    /// Which record is to be sent again now.
    #[inline]
    pub(super) fn due_again(&self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let first = self.first_lost;
        let cost = self.unacknowledged.get(first)?.cost;
        let fits = self.under_way_bytes == 0
            || self.under_way_bytes + cost <= self.congestion.window_bytes();
        fits.then_some(first)
    }

    /// Which record is to be sent for the first time now: none before all that were lost.
    #[inline]
    pub(super) fn due_first(&self) -> Option<usize> {
        let is_due = self.lost == 0 && self.queued > 0;
        is_due.then(|| self.unacknowledged.len() - self.queued)
    }

    /// Takes note that a record is sent that is due; its number, and whether it was sent before.
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
        let entry = self.unacknowledged.get_mut(index)?;
        match entry.state {
            State::Queued => self.queued -= 1,
            State::Lost => self.lost -= 1,
            State::UnderWay | State::Arrived => return None,
        }
        entry.state = State::UnderWay;
        self.under_way += 1;
        self.under_way_bytes += entry.cost;
        entry.order = self.order;
        self.order += 1;
        self.sends.push_back(seq);
        entry.sent_at = now;
        let again = entry.sends != 0;
        entry.sends = entry.sends.saturating_add(1);
        self.seek_lost();
        Some((seq, again))
    }

    /// The number of a record and its bytes, if it has not arrived.
    pub(super) fn look(&self, index: usize) -> Option<(Seq, usize)> {
        let entry = self.unacknowledged.get(index)?;
        Some((self.base.plus(index as u32), entry.record.as_ref()?.len()))
    }

    /// Whether a record was sent.
    pub(super) fn was_sent(&self, index: usize) -> bool {
        let sent = |entry: &Unacknowledged| entry.sends > 0;
        self.unacknowledged.get(index).is_some_and(sent)
    }

    /// Whether a record was lost some times, and no long one has arrived that was sent later.
    pub(super) fn is_stuck(&self, index: usize) -> bool {
        let stuck =
            |entry: &Unacknowledged| entry.sends >= STUCK && self.long_arrived < entry.order;
        self.unacknowledged.get(index).is_some_and(stuck)
    }

    /// Datagrams are so long from now on.
    pub(super) fn resize(&mut self, datagram_bytes: usize) {
        self.datagram_bytes = datagram_bytes;
        self.congestion.resize(datagram_bytes);
    }

    /// The record of a record that has not arrived.
    pub(super) fn record(&mut self, index: usize) -> Option<&mut Record> {
        self.unacknowledged.get_mut(index)?.record.as_mut()
    }

    /// Goes on to the first lost record.
    fn seek_lost(&mut self) {
        if self.lost == 0 {
            self.first_lost = usize::MAX;
            return;
        }
        let state = |at: usize| self.unacknowledged.get(at).map(|entry| entry.state);
        let mut at = self.first_lost;
        while state(at).is_some_and(|state| state != State::Lost) {
            at += 1;
        }
        self.first_lost = at;
    }

    /// Whether the peer can have what it acknowledges.
    #[inline]
    pub(super) fn is_possible(&self, acknowledgement: &Acknowledgement<'_>) -> bool {
        let Ok(gone) = usize::try_from(acknowledgement.ack.distance(self.base)) else {
            // An old one that was overtaken.
            return true;
        };
        let sent = self.unacknowledged.len() - self.queued;
        let kept = sent.checked_sub(gone);
        kept.is_some_and(|kept| acknowledgement.names_nothing() || acknowledgement.reach() <= kept)
    }

    /// Takes an acknowledgement that [is possible](Self::is_possible); whether it has something
    /// new.
    pub(super) fn acknowledged(
        &mut self,
        acknowledgement: &Acknowledgement<'_>,
        now: Duration,
        config: &ReliableConfig,
        pool: &mut Pool,
    ) -> bool {
        let ack = acknowledgement.ack;
        let Ok(gone) = usize::try_from(ack.distance(self.base)) else {
            return false;
        };
        if gone == 0 && acknowledgement.names_nothing() {
            return false;
        }
        let mut news = News {
            any: gone > 0,
            ..News::default()
        };
        let named = acknowledgement.named().map(|place| gone + place);
        for index in (0..gone).chain(named) {
            self.arrive(index, &mut news, now, pool);
        }
        let passed = self.unacknowledged.drain(..gone);
        self.span_bytes -= passed.map(|entry| entry.cost).sum::<usize>();
        self.base = ack;
        self.first_lost = self.first_lost.saturating_sub(gone);
        if let Some(trip) = news.trip {
            self.rtt.measured(trip);
        }
        if news.any {
            self.rtt.progress();
            self.congestion.arrived(news.bytes);
            self.timer = (!self.is_idle()).then(|| now + self.rtt.rto(config));
        }
        if !acknowledgement.partial {
            self.find_losses();
        }
        // Also of a peer that names less than it has in every acknowledgement.
        while self
            .sends
            .front()
            .is_some_and(|seq| seq.distance(self.base) < 0)
        {
            self.sends.pop_front();
        }
        self.seek_lost();
        if self.is_idle() && self.unacknowledged.capacity() > FEW {
            self.unacknowledged = VecDeque::new();
            self.sends = VecDeque::new();
        }
        news.any
    }

    /// The peer has a record that was sent.
    fn arrive(&mut self, index: usize, news: &mut News, now: Duration, pool: &mut Pool) {
        let Some(entry) = self.unacknowledged.get_mut(index) else {
            return;
        };
        match entry.state {
            State::Arrived | State::Queued => return,
            State::Lost => self.lost -= 1,
            State::UnderWay => {
                self.under_way -= 1;
                self.under_way_bytes -= entry.cost;
            }
        }
        entry.state = State::Arrived;
        news.any = true;
        news.bytes += entry.cost;
        if let Some(record) = entry.record.take() {
            self.longest = self.longest.max(record.len());
            if HEADER_BYTES + record.len() > self.least_bytes {
                self.long_arrived = self.long_arrived.max(entry.order);
            }
            pool.give_back(record);
        }
        if entry.order > self.arrived {
            self.arrived = entry.order;
            // It is unknown which copy of a record that was sent twice has arrived (Karn).
            news.trip = (entry.sends == 1).then(|| now.saturating_sub(entry.sent_at));
        }
    }

    /// A record counts as lost when one that was sent long enough after it has arrived.
    ///
    /// Each send is looked at once, when such a one has arrived.
    fn find_losses(&mut self) {
        let mut answer_for = false;
        loop {
            let order = self.order - self.sends.len() as u64;
            if order + REORDERED > self.arrived {
                break;
            }
            let Some(seq) = self.sends.pop_front() else {
                break;
            };
            let Ok(index) = usize::try_from(seq.distance(self.base)) else {
                continue;
            };
            let entry = self.unacknowledged.get_mut(index);
            if let Some(entry) = entry.filter(|entry| entry.state == State::UnderWay) {
                entry.state = State::Lost;
                self.lost += 1;
                self.under_way -= 1;
                self.under_way_bytes -= entry.cost;
                self.first_lost = self.first_lost.min(index);
                answer_for |= order >= self.recovery;
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
        for entry in &mut self.unacknowledged {
            if entry.state == State::UnderWay {
                entry.state = State::Lost;
                self.lost += 1;
            }
        }
        self.sends.clear();
        self.first_lost = 0;
        self.seek_lost();
        self.under_way = 0;
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
        let records = self
            .unacknowledged
            .drain(..)
            .filter_map(|entry| entry.record);
        records.for_each(|record| pool.give_back(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: ReliableConfig = ReliableConfig {
        datagram_bytes: 400,
        longer_datagrams: &[],
        window_bytes: 8_000,
        first_rto: Duration::from_millis(100),
        least_rto: Duration::from_millis(10),
        most_rto: Duration::from_secs(1),
        ack_delay: Duration::from_millis(2),
        probe_after: Duration::from_secs(1),
        give_up_after: Duration::from_secs(5),
        unheard_after: Duration::from_secs(5),
        stopped_for: Duration::ZERO,
        is_patient: false,
    };

    /// Counts and places are those of the states, and a record is there until it has arrived.
    fn check(sender: &Sender) {
        let bytes = |of: &dyn Fn(&Unacknowledged) -> bool| -> usize {
            let those = sender.unacknowledged.iter().filter(|entry| of(entry));
            those.map(|entry| entry.cost).sum()
        };
        let count = |state| {
            sender
                .unacknowledged
                .iter()
                .filter(|s| s.state == state)
                .count()
        };
        assert_eq!(sender.queued, count(State::Queued));
        assert_eq!(sender.lost, count(State::Lost));
        assert_eq!(sender.under_way, count(State::UnderWay));
        let is_lost = |entry: &Unacknowledged| entry.state == State::Lost;
        let first = sender.unacknowledged.iter().position(is_lost);
        assert_eq!(sender.first_lost, first.unwrap_or(usize::MAX));
        // A record that is under way is judged by its last send.
        let unjudged = sender.order - sender.sends.len() as u64;
        let under_way = |entry: &Unacknowledged| entry.state == State::UnderWay;
        for (at, entry) in sender.unacknowledged.iter().enumerate() {
            let send = entry.order.checked_sub(unjudged);
            let seq = send.and_then(|send| sender.sends.get(send as usize));
            assert!(!under_way(entry) || seq == Some(&sender.base.plus(at as u32)));
        }
        assert_eq!(sender.under_way_bytes, bytes(&under_way));
        assert_eq!(sender.span_bytes, bytes(&|_| true));
        assert!(sender.span_bytes <= CONFIG.window_bytes);
        for entry in &sender.unacknowledged {
            let is_here = entry.record.is_some();
            assert_eq!(is_here, entry.state != State::Arrived, "{entry:?}");
        }
        let queued_from = sender.unacknowledged.len() - sender.queued;
        let mut sent = sender.unacknowledged.iter().take(queued_from);
        assert!(sent.all(|entry| entry.state != State::Queued));
    }

    /// A peer that names less than it has in every acknowledgement costs no more memory for that.
    #[test]
    fn sends_that_are_acknowledged_are_forgotten_unjudged() {
        let config = ReliableConfig::default();
        let mut pool = Pool::new(config.datagram_bytes);
        let mut sender = Sender::new(Seq(u32::MAX - 1000), &config);
        let mut now = Duration::ZERO;
        for _ in 0..3000 {
            sender.submit(pool.record(0, 8).unwrap(), &config);
            let index = sender.due_first().unwrap();
            let (seq, _) = sender.send(index, now, &config).unwrap();
            now += Duration::from_micros(10);
            // One stays under way.
            let partial = Acknowledgement {
                ack: seq,
                selective: 0,
                more: &[],
                partial: true,
            };
            assert!(sender.is_possible(&partial));
            sender.acknowledged(&partial, now, &config, &mut pool);
            assert!(sender.sends.len() <= 2, "{}", sender.sends.len());
        }
    }

    /// spec U4: a window is as long as it is needed, and its places are given back.
    #[test]
    fn an_idle_peer_keeps_few_places() {
        let config = ReliableConfig {
            datagram_bytes: 60_000,
            ..ReliableConfig::default()
        };
        let mut pool = Pool::new(config.datagram_bytes);
        let mut sender = Sender::new(Seq(7), &config);
        let mut now = Duration::ZERO;
        while sender.has_room(&config) {
            sender.submit(pool.record(0, 8).unwrap(), &config);
            let index = sender.due_first().unwrap();
            sender.send(index, now, &config).unwrap();
        }
        let sent = sender.unacknowledged.len();
        assert!(sent > 1000 && sent <= config.window_bytes / 768, "{sent}");
        now += Duration::from_millis(1);
        let all = Acknowledgement {
            ack: sender.end(),
            selective: 0,
            more: &[],
            partial: false,
        };
        assert!(sender.acknowledged(&all, now, &config, &mut pool));
        assert!(sender.is_idle() && sender.unacknowledged.capacity() <= FEW);
        assert!(sender.sends.capacity() <= FEW);
    }

    /// What bits name, by what they are.
    #[test]
    fn acknowledgements_name_the_places_of_their_bits() {
        let of = |selective, more: &[u8]| {
            let acknowledgement = Acknowledgement {
                ack: Seq(0),
                selective,
                more,
                partial: false,
            };
            (acknowledgement.named().collect(), acknowledgement.reach())
        };
        let none: (Vec<usize>, usize) = (vec![], 0);
        assert_eq!(of(0, &[0, 0]), none);
        assert_eq!(of(5, &[]), (vec![0, 2], 3));
        assert_eq!(of(1 << 127, &[0, 0x81, 0]), (vec![127, 136, 143], 144));
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
                        sender.submit(pool.record(0, len).unwrap(), &CONFIG);
                    }
                    2 => {
                        if let Some(index) = sender.due_again().or(sender.due_first()) {
                            sender.send(index, now, &CONFIG).unwrap();
                        }
                    }
                    3 => {
                        let sent = (sender.unacknowledged.len() - sender.queued) as u64;
                        let gone = number % (sent + 1);
                        let left = sent - gone;
                        let beyond = u128::MAX.checked_shl(left as u32).unwrap_or(0);
                        let bits = u128::from(number) >> 8 & !beyond;
                        let ack = sender.base.plus(gone as u32);
                        let acknowledgement = Acknowledgement {
                            ack,
                            selective: bits,
                            more: &[],
                            partial: number & 1 == 1,
                        };
                        prop_assert!(sender.is_possible(&acknowledgement));
                        sender.acknowledged(&acknowledgement, now, &CONFIG, &mut pool);
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
