//! Both channels between two ranks, and the times when something has to be done.

use super::channel::Channel;
use super::config::{ReliableConfig, carried};
use super::datagram::{HEADER_BYTES, SEAL_BYTES};
use super::fault::PathFault;
use super::mtu::{PathMtu, Search};
use super::path::{JUMBO_BYTES, Path, Question};
use super::seal::Keys;
use super::seq::Seq;
use super::sequence::{Sequence, earliest};
use core::time::Duration;

/// The order in which an endpoint sends.
// spec U3: retransmissions first; and before data what is short or waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Records of either channel that were lost.
    Again = 0,
    /// Records of the command channel, questions and announcements.
    Command = 1,
    /// Acknowledgements that ride on no datagram.
    Acknowledgement = 2,
    /// Records of the data channel.
    Data = 3,
}

impl Order {
    pub(super) const ALL: [Self; 4] = [
        Self::Again,
        Self::Command,
        Self::Acknowledgement,
        Self::Data,
    ];
    /// All that do not wait for company.
    pub(super) const PROMPT: [Self; 3] = [Self::Again, Self::Command, Self::Data];
}

/// The next datagram of a link, and the channel that it is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// This record of the sender.
    Record(Channel, usize),
    /// The next chunk of it.
    Chunk(Channel, usize),
    Probe(Channel),
    Leave(Channel),
    Ack(Channel),
    Search(Search),
    Ask(Question),
}

impl Due {
    pub(super) fn channel(self) -> Channel {
        match self {
            Self::Search(_) | Self::Ask(_) => Channel::Command,
            Self::Record(channel, _)
            | Self::Chunk(channel, _)
            | Self::Probe(channel)
            | Self::Leave(channel)
            | Self::Ack(channel) => channel,
        }
    }

    /// Whether it has room for bits that name what is kept.
    fn names_more(self) -> bool {
        matches!(
            self,
            Self::Probe(_) | Self::Leave(_) | Self::Ack(_) | Self::Ask(Question::Short)
        )
    }

    /// Whether the peer has to answer it, or is lost.
    fn wants_answer(self) -> bool {
        matches!(self, Self::Record(..) | Self::Chunk(..) | Self::Probe(_))
    }
}

/// A time in which nothing comes.
struct Silence {
    fault: PathFault,
    since: Duration,
    end: Duration,
    /// The peer is lost then; otherwise it is doubted.
    is_last: bool,
}

/// What is wrong with a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) fault: PathFault,
    /// How long that has been so.
    pub(super) silent: Duration,
    /// The peer is lost; otherwise it is doubted.
    pub(super) is_lost: bool,
}

#[derive(Debug)]
pub(super) struct Link {
    /// By channel.
    pub(super) sequences: [Sequence; 2],
    /// Where datagrams are sealed.
    pub(super) keys: Option<Box<Keys>>,
    pub(super) mtu: PathMtu,
    pub(super) path: Path,
    /// Whether the driver wants to know when the peer is lost, though nothing is under way to it.
    pub(super) watched: bool,
    /// The peer is to be asked, about this channel above all.
    probe_now: Option<Channel>,
    /// It was asked, or the watch began, then.
    asked_at: Duration,
    heard_at: Duration,
    /// Since when the answer to a question is owed.
    waiting_since: Option<Duration>,
    /// The driver knows that nothing comes.
    is_doubted: bool,
    /// When it has found out that nothing will.
    refused_at: Option<Duration>,
    /// The peer is to be sent [`Due::Leave`].
    leave_now: bool,
    /// Whether this rank has said that it ends.
    ///
    /// Every acknowledgement says it again from then on, as one announcement may be lost.
    has_left: bool,
    /// Whether the peer has said that it ends.
    pub(super) peer_left: bool,
    /// The numbers that its next records would have had then.
    last: Option<[Seq; 2]>,
    /// When the timers have it looked at.
    pub(super) armed: Option<Duration>,
    /// Whether it is among those that have something to send, by [`Order`].
    pub(super) listed: [bool; Order::ALL.len()],
}

impl Link {
    /// `first` are the first numbers of records to the peer, and from it.
    pub(super) fn new(
        first: [Seq; 2],
        keys: Option<Box<Keys>>,
        now: Duration,
        config: &ReliableConfig,
    ) -> Self {
        Self {
            sequences: Channel::BOTH.map(|_| Sequence::new(first, config)),
            keys,
            mtu: PathMtu::new(config),
            path: Path::default(),
            watched: false,
            probe_now: None,
            asked_at: now,
            heard_at: now,
            waiting_since: None,
            is_doubted: false,
            refused_at: None,
            leave_now: false,
            has_left: false,
            peer_left: false,
            last: None,
            armed: None,
            listed: [false; Order::ALL.len()],
        }
    }

    pub(super) fn of(&mut self, channel: Channel) -> &mut Sequence {
        &mut self.sequences[channel.index()]
    }

    fn is_idle(&self) -> bool {
        let [command, data] = &self.sequences;
        command.sender.is_idle() && data.sender.is_idle()
    }

    pub(super) fn watch(&mut self, on: bool, now: Duration) {
        if on && !self.watched {
            self.asked_at = now;
        }
        self.watched = on;
    }

    /// A datagram of the peer's was good, and its acknowledgements have been taken; which of them
    /// had something new, and whether one of this rank's has come there.
    pub(super) fn heard(
        &mut self,
        now: Duration,
        has_progress: [bool; 2],
        says_heard: bool,
        config: &ReliableConfig,
    ) {
        // A peer that was silent may say something before it has read what it was sent: what it
        // answers counts from then on.
        let quiet = config.unheard_after.min(config.give_up_after) / 2;
        let before = self.heard_at;
        self.path.came(now, says_heard, config);
        self.heard_at = now;
        self.waiting_since = None;
        (self.is_doubted, self.refused_at) = (false, None);
        for (sequence, has_progress) in self.sequences.iter_mut().zip(has_progress) {
            let since = sequence.waiting_since;
            let was_silent = since.is_some_and(|since| now >= since.max(before) + quiet);
            sequence.heard(now, has_progress || was_silent);
        }
    }

    /// Longest record that reaches the peer whole.
    pub(super) fn record_bytes(&self) -> usize {
        carried(self.mtu.bytes(), self.keys.is_some())
    }

    /// A record that the path may not take goes in chunks.
    pub(super) fn fit(&mut self, due: Due, now: Duration, config: &ReliableConfig) -> Due {
        let Due::Record(channel, index) = due else {
            return due;
        };
        let sender = &self.sequences[channel.index()].sender;
        let least = carried(config.datagram_bytes, self.keys.is_some());
        let Some((_, len)) = sender.look(index).filter(|(_, len)| *len > least) else {
            return due;
        };
        if sender.is_stuck(index) {
            self.mtu.suspect(now, config);
        }
        let is_doubtful = self.mtu.is_suspect() && sender.was_sent(index);
        match len <= self.record_bytes() && !is_doubtful {
            true => due,
            false => Due::Chunk(channel, index),
        }
    }

    /// A trial has reached the peer.
    pub(super) fn reached(&mut self, bytes: u16, config: &ReliableConfig) {
        self.path.reached(bytes.into());
        if self.mtu.reached(bytes, config) {
            self.resize();
        }
    }

    /// Datagrams have another length now.
    fn resize(&mut self) {
        let bytes = self.mtu.bytes();
        for sequence in &mut self.sequences {
            sequence.sender.resize(bytes);
        }
    }

    /// The next datagram of this order.
    pub(super) fn due(&self, order: Order, config: &ReliableConfig) -> Option<Due> {
        let [command, data] = &self.sequences;
        let first = |channel, due: Option<usize>| due.map(|index| Due::Record(channel, index));
        match order {
            Order::Again => first(Channel::Command, command.sender.due_again())
                .or_else(|| first(Channel::Data, data.sender.due_again())),
            Order::Command => first(Channel::Command, command.sender.due_first())
                .or_else(|| self.probe_now.map(Due::Probe))
                .or_else(|| {
                    self.leave_now
                        .then(|| Due::Leave(self.owes_now().unwrap_or(Channel::Data)))
                })
                .or_else(|| self.mtu.due(config).map(Due::Search))
                .or_else(|| self.path.due().map(Due::Ask)),
            Order::Acknowledgement => self.due_acknowledgement(),
            Order::Data => first(Channel::Data, data.sender.due_first()),
        }
    }

    /// The channel whose acknowledgement is due.
    fn owes_now(&self) -> Option<Channel> {
        let mut both = Channel::BOTH.into_iter();
        both.find(|channel| self.sequences[channel.index()].ack_now)
    }

    fn due_acknowledgement(&self) -> Option<Due> {
        let channel = self.owes_now()?;
        // It rides on data that is sent next.
        if self.sequences[1].sender.due_first().is_some() && self.rides(channel, Channel::Data) {
            return None;
        }
        Some(match self.has_left {
            true => Due::Leave(channel),
            false => Due::Ack(channel),
        })
    }

    /// Whether a record of channel `on` names all that came on channel `of`.
    fn rides(&self, of: Channel, on: Channel) -> bool {
        let receiver = &self.sequences[of.index()].receiver;
        match of == on {
            true => !receiver.keeps_more(),
            false => !receiver.keeps_any(),
        }
    }

    /// Which channels have records here that this datagram does not name.
    pub(super) fn partial(&self, due: Due) -> [bool; 2] {
        let on = due.channel();
        Channel::BOTH.map(|of| {
            let has_room = of == on && due.names_more();
            !has_room && !self.rides(of, on)
        })
    }

    /// A datagram is sent; each acknowledges, as far as it names what has come.
    pub(super) fn sent(&mut self, due: Due, partial: [bool; 2], now: Duration) {
        // A trial may be longer than the path takes.
        let may_be_lost = matches!(
            due,
            Due::Search(Search::Trial(_)) | Due::Ask(Question::Full)
        );
        for (sequence, partial) in self.sequences.iter_mut().zip(partial) {
            if !partial && !may_be_lost {
                sequence.acknowledged();
            }
        }
        self.path.sent(now, due.wants_answer());
        match due {
            Due::Ack(_) => {}
            Due::Ask(question) => self.path.asked(question),
            Due::Search(search) => self.mtu.sent(search),
            Due::Leave(_) => self.leave_now = false,
            Due::Probe(_) => {
                self.probe_now = None;
                self.asked_at = now;
                self.waiting_since.get_or_insert(now);
            }
            Due::Record(channel, _) | Due::Chunk(channel, _) => {
                self.of(channel).waiting_since.get_or_insert(now);
            }
        }
    }

    /// Whether an acknowledgement is to be sent now.
    pub(super) fn acks_now(&self) -> bool {
        self.owes_now().is_some()
    }

    /// Whether all that was to be sent was sent and has arrived.
    ///
    /// A peer that has left is owed nothing: it takes no records and waits for no acknowledgements.
    pub(super) fn is_drained(&self) -> bool {
        let owes = self.sequences.iter().any(Sequence::owes);
        self.peer_left || (self.is_idle() && !owes)
    }

    /// The peer says that it ends, and which numbers its next records would have.
    pub(super) fn peer_leaves(&mut self, next: [Seq; 2]) {
        self.peer_left = true;
        let last = self.last.get_or_insert(next);
        for (last, next) in last.iter_mut().zip(next) {
            if next.distance(*last) > 0 {
                *last = next;
            }
        }
    }

    /// Whether the peer has said that it ends, and all its records up to then were taken.
    ///
    /// It takes nothing more and waits for nothing.
    pub(super) fn has_ended(&self) -> bool {
        self.last.is_some_and(|last| {
            let mut both = self.sequences.iter().zip(last);
            both.all(|(sequence, last)| sequence.receiver.next().distance(last) >= 0)
        })
    }

    /// Announces to the peer that this rank ends.
    pub(super) fn leave(&mut self) {
        self.leave_now = true;
        self.has_left = true;
    }

    /// When to look at it again.
    pub(super) fn deadline(&self, config: &ReliableConfig) -> Option<Duration> {
        let [command, data] = &self.sequences;
        if self.has_ended() {
            return earliest([command.ack_at, data.ack_at]);
        }
        earliest([
            command.deadline(),
            data.deadline(),
            self.trouble_at(config),
            self.probe_at(config),
            self.mtu.deadline(),
            self.path.deadline(),
        ])
    }

    /// When the peer is lost or doubted, if nothing happens until then.
    fn trouble_at(&self, config: &ReliableConfig) -> Option<Duration> {
        if config.is_patient {
            return None;
        }
        let no_progress = |channel| self.no_progress(channel, config).map(|(_, end)| end);
        earliest([
            no_progress(Channel::Command),
            no_progress(Channel::Data),
            self.silence(config).map(|silence| silence.end),
            self.path.deaf_since().map(|[_, known]| known),
        ])
    }

    fn probe_at(&self, config: &ReliableConfig) -> Option<Duration> {
        let quiet_since = self.asked_at.max(self.heard_at);
        (self.watched && self.is_idle()).then(|| quiet_since + config.probe_after)
    }

    /// The length of the oldest datagram of a channel, if none so long is known to have arrived and
    /// it was sent again in vain.
    ///
    /// On one host, where the first length is longer than frames, they are lost for other reasons.
    fn doubtful(&self, channel: Channel, config: &ReliableConfig) -> Option<usize> {
        if config.datagram_bytes > JUMBO_BYTES {
            return None;
        }
        let tail = if self.keys.is_some() { SEAL_BYTES } else { 0 };
        let around = HEADER_BYTES + tail;
        let longest = self.sequences.iter().map(|s| s.sender.longest()).max()?;
        let sender = &self.sequences[channel.index()].sender;
        let (bytes, sends) = (around + sender.oldest()?, sender.sends_of_oldest());
        let doubts = self.path.doubts(bytes, around + longest, sends);
        doubts.then_some(bytes)
    }

    /// The length of such datagrams, if the peer answers others meanwhile.
    fn too_long(&self, channel: Channel, config: &ReliableConfig) -> Option<usize> {
        let since = self.sequences[channel.index()].waiting_since?;
        let limit = config.unheard_after.min(config.give_up_after);
        let answers = self.heard_at >= since + limit / 2;
        self.doubtful(channel, config).filter(|_| answers)
    }

    /// Since when a peer that answers has acknowledged nothing new of a channel, and when it is
    /// lost by that.
    fn no_progress(
        &self,
        channel: Channel,
        config: &ReliableConfig,
    ) -> Option<(Duration, Duration)> {
        let sequence = &self.sequences[channel.index()];
        let since = sequence.waiting_since?;
        let limit = config.give_up_after;
        let is_short = Path::is_sure(sequence.sender.sends_of_oldest())
            && self.too_long(channel, config).is_some();
        if is_short {
            return Some((since, since + config.unheard_after.min(limit)));
        }
        let answers = self.heard_at >= since + limit / 2;
        answers.then_some((since, since + limit))
    }

    /// Since when nothing has come of a peer that should have answered, and until when that is
    /// borne.
    fn silence(&self, config: &ReliableConfig) -> Option<Silence> {
        let [command, data] = self.sequences.each_ref().map(|s| s.waiting_since);
        let limit = config.give_up_after;
        let (fault, since, first_end) = match self.path.is_heard() {
            true => {
                let owed = earliest([self.waiting_since, command, data])?;
                let since = owed.max(self.heard_at);
                (PathFault::Silent, since, since + limit)
            }
            false => {
                let [since, asked] = self.path.unheard_since()?;
                let limit = match config.stopped_for.is_zero() {
                    true => limit,
                    false => limit.min(config.unheard_after),
                };
                let end = (since + limit).max(asked + limit / 10);
                (PathFault::Unheard, since, end)
            }
        };
        let last_end = since + limit.max(config.stopped_for);
        let end = match self.is_doubted {
            true => self.refused_at.unwrap_or(last_end),
            false => first_end,
        };
        Some(Silence {
            fault,
            since,
            end,
            is_last: self.is_doubted || first_end >= last_end,
        })
    }

    /// Whether something of this rank's waits to be acknowledged, and since when nothing of it was;
    /// else when the peer was heard last.
    pub(super) fn waits_since(&self) -> (bool, Duration) {
        // What has arrived is kept until a rank that computes takes it.
        let owes = |sequence: &Sequence| {
            let since = sequence.waiting_since;
            since.filter(|_| sequence.sender.is_missing_any())
        };
        let [command, data] = self.sequences.each_ref().map(owes);
        let owed = earliest([self.waiting_since, command, data]);
        (owed.is_some(), owed.unwrap_or(self.heard_at))
    }

    /// The longer time of both channels after which something is sent again for the first time.
    pub(super) fn first_rto(&self, config: &ReliableConfig) -> Duration {
        let [command, data] = &self.sequences;
        let of = |sequence: &Sequence| sequence.sender.first_rto(config);
        of(command).max(of(data))
    }

    /// The driver knows that a peer which was doubted is not there; whether it was.
    pub(super) fn refuse(&mut self, now: Duration) -> bool {
        self.refused_at = self.is_doubted.then_some(now);
        self.is_doubted
    }

    /// Whether nothing has come since the peer was doubted.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_doubted
    }

    /// This process has not run for so long: meanwhile no peer was silent.
    pub(super) fn paused(&mut self, time: Duration) {
        self.path.paused(time);
        let [command, data] = &mut self.sequences;
        let all = [
            &mut self.waiting_since,
            &mut command.waiting_since,
            &mut data.waiting_since,
        ];
        for since in all.into_iter().flatten() {
            *since += time;
        }
    }

    /// What is wrong with the path, if the peer is lost or doubted now.
    fn trouble(&self, now: Duration, config: &ReliableConfig) -> Option<Trouble> {
        if config.is_patient {
            return None;
        }
        let lost = |fault, since| {
            Some(Trouble {
                fault,
                silent: now.saturating_sub(since),
                is_lost: true,
            })
        };
        if let Some([since, _]) = self.path.deaf_since() {
            return lost(PathFault::OneWay, since);
        }
        for channel in Channel::BOTH {
            let no_progress = self.no_progress(channel, config);
            if let Some((since, _)) = no_progress.filter(|(_, end)| now >= *end) {
                let too_long = self.too_long(channel, config);
                let too_long = too_long.map(|bytes| PathFault::TooLong {
                    datagram_bytes: bytes,
                });
                return lost(too_long.unwrap_or(PathFault::Silent), since);
            }
        }
        let silence = self.silence(config).filter(|silence| now >= silence.end)?;
        let trouble = lost(silence.fault, silence.since)?;
        Some(Trouble {
            is_lost: silence.is_last,
            ..trouble
        })
    }

    /// Handles timers that are due; whether the peer is lost or doubted.
    pub(super) fn handle_timeout(
        &mut self,
        now: Duration,
        config: &ReliableConfig,
    ) -> Option<Trouble> {
        let has_ended = self.has_ended();
        let trouble = self.trouble(now, config).filter(|_| !has_ended);
        match &trouble {
            Some(trouble) if trouble.is_lost => return Some(*trouble),
            Some(_) => self.is_doubted = true,
            None => {}
        }
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        for channel in Channel::BOTH {
            let has_doubts = self.doubtful(channel, config).is_some();
            let sequence = self.of(channel);
            let sender = &mut sequence.sender;
            let has_expired = !has_ended && is_due(sender.timer);
            let must_ask = has_expired && (sender.expired(now, config) || has_doubts);
            if is_due(sequence.ack_at) {
                sequence.flush();
            }
            if must_ask {
                self.probe_now = Some(channel);
            }
        }
        if self.mtu.handle_timeout(now, config) {
            self.resize();
        }
        self.path.handle_timeout(now, config);
        if is_due(self.probe_at(config)) {
            self.probe_now = Some(Channel::Command);
            self.asked_at = now;
        }
        trouble
    }

    /// Sends acknowledgements that are due now.
    pub(super) fn flush(&mut self) {
        self.sequences.iter_mut().for_each(Sequence::flush);
    }

    /// How often the oldest record was sent that the peer has not acknowledged.
    pub(super) fn sends_of_oldest(&self) -> u32 {
        let [command, data] = &self.sequences;
        command
            .sender
            .sends_of_oldest()
            .max(data.sender.sends_of_oldest())
    }
}
