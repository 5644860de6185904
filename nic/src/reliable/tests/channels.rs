//! The two channels between ranks, and the order in which an endpoint sends.

use super::wire::World;
use super::{FROM, TO, endpoint};
use crate::reliable::datagram::{Header, Kind};
use crate::reliable::{Channel, Endpoint, ReliableConfig};
use argonet_base::JobRank;
use core::time::Duration;
use std::collections::VecDeque;

const CONFIG: ReliableConfig = ReliableConfig {
    window_bytes: 64_000,
    ..super::CONFIG
};

fn submit(end: &mut Endpoint, now: Duration, channel: Channel, len: usize) {
    let submitted = end.submit(now, TO, channel, len, |place| place.fill(7));
    submitted.unwrap();
}

/// What an endpoint sends now: kind, channel and length of the record of each, and the queue that
/// it leaves by.
fn sent(end: &mut Endpoint, now: Duration) -> Vec<(Kind, Channel, usize, Channel)> {
    let next = || {
        let transmit = end.poll_transmit(now)?;
        let (header, len) = Header::read(transmit.bytes).expect("a datagram");
        Some((header.kind, header.channel, len, transmit.queue))
    };
    core::iter::from_fn(next).collect()
}

/// A rank that sends to another over two queues of an interface, each with a speed of its own.
struct Queues {
    ends: [Endpoint; 2],
    now: Duration,
    /// By channel: when what was sent last has passed, and what is on its way.
    passed: [Duration; 2],
    on_its_way: [VecDeque<(Duration, Vec<u8>)>; 2],
    came: [u64; 2],
    /// Datagrams of the data queue that are lost: one of so many.
    loses: Option<u64>,
    sent: u64,
}

/// Time that a datagram takes on the way, and by each queue before the next one follows.
const TRIP: Duration = Duration::from_micros(20);
const EACH: [Duration; 2] = [Duration::from_nanos(100), Duration::from_micros(50)];

impl Queues {
    fn new(config: ReliableConfig) -> Self {
        Self {
            ends: [0, 1].map(|rank| endpoint(config, rank, 2, None)),
            now: Duration::ZERO,
            passed: [Duration::ZERO; 2],
            on_its_way: Default::default(),
            came: [0; 2],
            loses: None,
            sent: 0,
        }
    }

    /// Sends what is due; what goes back arrives at once.
    fn transmit(&mut self) {
        while let Some(transmit) = self.ends[0].poll_transmit(self.now) {
            let queue = transmit.queue.index();
            self.sent += 1;
            let is_lost = |of: u64| queue == 1 && self.sent.is_multiple_of(of);
            if self.loses.is_some_and(is_lost) {
                continue;
            }
            self.passed[queue] = self.passed[queue].max(self.now) + EACH[queue];
            let arrives = self.passed[queue] + TRIP;
            self.on_its_way[queue].push_back((arrives, transmit.bytes.to_vec()));
        }
        while let Some(transmit) = self.ends[1].poll_transmit(self.now) {
            let mut bytes = transmit.bytes.to_vec();
            let arrived = self.ends[0].handle_recv(self.now, &mut bytes, |_, _| true);
            assert!(arrived.is_some());
        }
    }

    fn step(&mut self) {
        self.transmit();
        let arrivals = self.on_its_way.each_ref();
        let arrivals = arrivals.map(|way| way.front().map(|(at, _)| *at));
        let timers = self.ends.each_ref().map(|end| end.poll_timeout());
        let next = arrivals.into_iter().chain(timers).flatten().min();
        self.now = self.now.max(next.expect("something is due"));
        for end in &mut self.ends {
            end.handle_timeout(self.now);
        }
        for way in &mut self.on_its_way {
            while way.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, mut bytes) = way.pop_front().unwrap();
                let arrived = self.ends[1].handle_recv(self.now, &mut bytes, |_, _| true);
                let arrived = arrived.expect("good");
                self.came[arrived.channel.index()] += u64::from(arrived.record.is_some());
                for channel in Channel::BOTH {
                    while let Some(record) = self.ends[1].take(self.now, FROM, channel) {
                        self.came[channel.index()] += 1;
                        self.ends[1].recycle(record);
                    }
                }
            }
        }
    }

    /// A long send of so many records on the data channel, and after its first ones 10,000 tiny
    /// ones on the command channel; how many of the long one had come with the last tiny one.
    fn overtaken(&mut self, long: u64) -> u64 {
        const TINY: u64 = 10_000;
        let [mut tiny, mut data] = [0, 0];
        let mut overtaken = 0;
        while self.came != [TINY, long] {
            while data < long && self.ends[0].room(TO, Channel::Data) {
                submit(&mut self.ends[0], self.now, Channel::Data, 900);
                data += 1;
            }
            while data > 16 && tiny < TINY && self.ends[0].room(TO, Channel::Command) {
                submit(&mut self.ends[0], self.now, Channel::Command, 8);
                tiny += 1;
            }
            self.step();
            if self.came[0] < TINY {
                overtaken = self.came[1];
            }
            assert!(self.now < Duration::from_secs(60), "{:?}", self.came);
        }
        overtaken
    }
}

/// spec U2: two sequences. spec U11: 10,000 tiny sends overtake a long one, and nothing is sent
/// again.
#[test]
fn tiny_sends_overtake_a_long_one_without_a_resend() {
    let mut queues = Queues::new(CONFIG);
    let overtaken = queues.overtaken(4000);
    assert!(overtaken < 2000, "{overtaken} of 4000 had come before");
    let [from, to] = queues.ends.each_ref().map(|end| end.counts());
    assert_eq!((from.sent_again, to.repeated, to.no_room), (0, 0, 0));
}

/// What is lost of the data channel is sent again, and nothing of the command channel is.
#[test]
fn losses_of_one_channel_are_no_losses_of_the_other() {
    let mut queues = Queues::new(CONFIG);
    queues.loses = Some(50);
    let overtaken = queues.overtaken(4000);
    assert!(overtaken < 3000, "{overtaken} of 4000 had come before");
    let [from, to] = queues.ends.each_ref().map(|end| end.counts());
    assert!(from.sent_again > 10, "{from:?}");
    // Each loss is one of a record of data; a timer may send some more of those again.
    assert_eq!((to.no_room, to.impossible), (0, 0));
}

/// spec U3: what was lost is sent first and by the queue of data, then commands, then data.
/// spec U14: a record with priority is one of the channel of commands.
#[test]
fn lost_records_are_sent_before_commands_and_these_before_data() {
    let now = Duration::ZERO;
    let mut end = endpoint(CONFIG, 0, 2, None);
    submit(&mut end, now, Channel::Data, 500);
    submit(&mut end, now, Channel::Command, 8);
    let (command, data) = (Channel::Command, Channel::Data);
    let first = [
        (Kind::Data, command, 8, command),
        (Kind::Data, data, 500, data),
    ];
    assert_eq!(sent(&mut end, now), first);
    // Both are lost, and more is to be sent.
    submit(&mut end, now, Channel::Data, 501);
    submit(&mut end, now, Channel::Command, 9);
    let rto = end.poll_timeout().unwrap();
    end.handle_timeout(rto);
    let again = [
        (Kind::Data, command, 8, data),
        (Kind::Data, data, 500, data),
        (Kind::Data, command, 9, command),
        (Kind::Data, data, 501, data),
    ];
    assert_eq!(sent(&mut end, rto), again);
    assert_eq!(end.counts().sent_again, 2);
}

/// spec U3: ready peers are served in turn.
#[test]
fn peers_send_in_turn() {
    let config = ReliableConfig {
        datagram_bytes: 10_000,
        window_bytes: 400_000,
        ..CONFIG
    };
    let now = Duration::ZERO;
    let mut end = endpoint(config, 0, 3, None);
    for peer in [1, 2].map(JobRank) {
        for _ in 0..16 {
            let submitted = end.submit(now, peer, Channel::Data, 9000, |_| {});
            submitted.unwrap();
        }
    }
    let peers = core::iter::from_fn(|| end.poll_transmit(now).map(|transmit| transmit.peer.0));
    let peers: Vec<u32> = peers.collect();
    // 64 KiB, which a record passes.
    let turns: Vec<(u32, usize)> = peers
        .chunk_by(|a, b| a == b)
        .map(|turn| (turn[0], turn.len()))
        .collect();
    assert_eq!(turns, [(1, 8), (2, 8), (1, 8), (2, 8)]);
}

/// A command acknowledges data, too; where data is missing it says no more than up to where.
#[test]
fn a_datagram_acknowledges_both_channels() {
    let now = Duration::ZERO;
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    let mut records = Vec::new();
    for _ in 0..6 {
        submit(&mut from, now, Channel::Data, 100);
        records.push(from.poll_transmit(now).unwrap().bytes.to_vec());
    }
    let empty = |end: &mut Endpoint| {
        let submitted = end.submit(now, FROM, Channel::Command, 0, |_| {});
        submitted.unwrap();
    };
    to.handle_recv(now, &mut records[0], |_, _| true).unwrap();
    empty(&mut to);
    let mut command = to.poll_transmit(now).unwrap().bytes.to_vec();
    let (header, _) = Header::read(&command).unwrap();
    assert_eq!(
        (header.channel, header.partial),
        (Channel::Command, [false; 2])
    );
    assert!(to.poll_transmit(now).is_none(), "it is acknowledged");
    from.handle_recv(now, &mut command, |_, _| true).unwrap();
    // The second is overtaken by four, which the command cannot name.
    for late in &mut records[2..] {
        to.handle_recv(now, late, |_, _| true).unwrap();
    }
    empty(&mut to);
    let mut command = to.poll_transmit(now).unwrap().bytes.to_vec();
    let (header, _) = Header::read(&command).unwrap();
    assert_eq!(header.partial, [false, true]);
    from.handle_recv(now, &mut command, |_, _| true).unwrap();
    assert!(
        sent(&mut from, now)
            .iter()
            .all(|(kind, ..)| *kind == Kind::Ack)
    );
    // So an acknowledgement of data follows, by which the second is lost.
    let mut ack = to.poll_transmit(now).unwrap().bytes.to_vec();
    let (header, _) = Header::read(&ack).unwrap();
    assert_eq!((header.kind, header.channel), (Kind::Ack, Channel::Data));
    assert_eq!((header.selective, header.partial), (0b11110, [false; 2]));
    assert!(to.poll_transmit(now).is_none());
    from.handle_recv(now, &mut ack, |_, _| true).unwrap();
    let again = sent(&mut from, now);
    assert_eq!(again, [(Kind::Data, Channel::Data, 100, Channel::Data)]);
}

/// An acknowledgement rides on data that is sent anyway.
#[test]
fn an_acknowledgement_waits_for_data_that_is_sent_next() {
    let now = Duration::ZERO;
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    for _ in 0..2 {
        submit(&mut from, now, Channel::Command, 8);
        let mut bytes = from.poll_transmit(now).unwrap().bytes.to_vec();
        to.handle_recv(now, &mut bytes, |_, _| true).unwrap();
    }
    let submitted = to.submit(now, FROM, Channel::Data, 100, |_| {});
    submitted.unwrap();
    let sent = sent(&mut to, now);
    assert_eq!(sent, [(Kind::Data, Channel::Data, 100, Channel::Data)]);
    assert_eq!(to.counts().acknowledgements, 0);
}

/// A path that carries commands and nothing longer.
#[test]
fn a_peer_that_gets_commands_alone_is_lost() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    let mut now = Duration::ZERO;
    submit(&mut from, now, Channel::Data, 900);
    while from.lost(TO).is_none() {
        now += Duration::from_millis(10);
        assert!(now < Duration::from_millis(5100), "it waits forever");
        if from.room(TO, Channel::Command) {
            submit(&mut from, now, Channel::Command, 8);
        }
        while let Some(transmit) = from.poll_transmit(now) {
            if transmit.bytes.len() < 500 {
                to.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
            }
        }
        while let Some(transmit) = to.poll_transmit(now) {
            from.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
        }
        from.handle_timeout(now);
        to.handle_timeout(now);
    }
    assert!(to.counts().taken > 400, "{:?}", to.counts());
    let lost = from.poll_event().unwrap();
    assert!(lost.sends > 5, "{lost:?}");
}

/// The end of a rank names where the records of both channels end.
#[test]
fn a_rank_has_ended_when_all_records_of_both_channels_are_here() {
    let mut world = World::new(CONFIG, 2, None, 0);
    world.accepts[1] = false;
    let now = world.now;
    for channel in Channel::BOTH {
        submit(&mut world.ends[0], now, channel, 8);
    }
    world.ends[0].leave();
    world.run(Duration::from_millis(10));
    let mut has_ended = |channel| {
        let record = world.ends[1].take(Duration::from_millis(10), FROM, channel);
        record.expect("it is kept");
        world.ends[1].has_ended(FROM)
    };
    assert!(!has_ended(Channel::Data));
    assert!(has_ended(Channel::Command));
}

/// A channel whose records a rank does not take holds up no record of the other one.
#[test]
fn a_full_window_of_one_channel_leaves_the_other_open() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    let mut now = Duration::ZERO;
    let mut came = 0;
    for _ in 0..200 {
        now += Duration::from_millis(5);
        while from.room(TO, Channel::Data) {
            submit(&mut from, now, Channel::Data, 900);
        }
        submit(&mut from, now, Channel::Command, 8);
        while let Some(transmit) = from.poll_transmit(now) {
            let takes = |_, channel| channel == Channel::Command;
            let arrived = to.handle_recv(now, &mut transmit.bytes.to_vec(), takes);
            came += u32::from(arrived.is_some_and(|arrived| arrived.record.is_some()));
        }
        while let Some(transmit) = to.poll_transmit(now) {
            from.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
        }
        from.handle_timeout(now);
        to.handle_timeout(now);
    }
    assert_eq!(came, 200);
    let (from, to) = (from.counts(), to.counts());
    assert_eq!((from.sent_again, to.no_room, to.repeated), (0, 0, 0));
}
