//! Lengths of datagrams that follow the path (RFC 8899).

use super::wire::World;
use super::{CONFIG, FROM, TO, endpoint};
use crate::reliable::datagram::{Header, Kind};
use crate::reliable::{Channel, Counts, ReliableConfig, Seal};
use core::time::Duration;

const LONGER: &[usize] = &[1400, 4000, 9000];

const PATH: ReliableConfig = ReliableConfig {
    longer_datagrams: LONGER,
    window_bytes: 200_000,
    ..CONFIG
};

/// Bytes of the longest record to the peer, and of what stands around it in a datagram.
fn datagram_bytes(world: &World, seal: Option<&Seal>) -> usize {
    let around = if seal.is_some() { 72 + 16 } else { 72 };
    world.ends[0].record_bytes_to(TO) + around
}

/// How often a burst of records is sent.
const OFTEN: Duration = Duration::from_millis(3);
const SELDOM: Duration = Duration::from_millis(40);

/// Sends bursts of records of full length on both channels, as room permits, for a while.
fn stream(world: &mut World, every: Duration, lasts: Duration, sent: &mut [Vec<Vec<u8>>; 2]) {
    let until = world.now + lasts;
    while world.now < until {
        for channel in Channel::BOTH {
            let mut burst = 4;
            while burst > 0 && world.ends[0].room(TO, channel) {
                let n = sent[channel.index()].len();
                let bytes = vec![n as u8; world.ends[0].record_bytes_to(TO)];
                let fill = |place: &mut [u8]| place.copy_from_slice(&bytes);
                let now = world.now;
                let submitted = world.ends[0].submit(now, TO, channel, bytes.len(), fill);
                submitted.unwrap();
                sent[channel.index()].push(bytes);
                burst -= 1;
            }
        }
        let next = world.now + every;
        world.run(next.min(until));
    }
}

fn counts(world: &World) -> Counts {
    world.ends[0].counts()
}

fn seals() -> [Option<Seal>; 3] {
    let secret = b"secret";
    [
        None,
        Some(Seal::from_secret(secret)),
        Some(Seal::encrypting(secret)),
    ]
}

#[test]
fn datagrams_become_as_long_as_the_path_takes() {
    for seal in seals() {
        let mut world = World::new(PATH, 2, seal.as_ref(), 0);
        world.faults.mtu = 5000;
        let mut sent = [vec![], vec![]];
        // Records that are shorter than datagrams give no reason to look.
        let room = world.ends[0].record_bytes();
        let short = world.ends[0].submit(world.now, TO, Channel::Data, room - 1, |_| {});
        short.unwrap();
        world.run(Duration::from_millis(50));
        assert_eq!(counts(&world).trials, 0);
        world.got[1][0][1].clear();
        stream(&mut world, OFTEN, Duration::from_millis(50), &mut sent);
        assert_eq!(datagram_bytes(&world, seal.as_ref()), 4000);
        // The longest is tried three times.
        stream(&mut world, SELDOM, Duration::from_millis(400), &mut sent);
        assert_eq!(counts(&world).trials, 3 + 2);
        // The path takes more: that is found at the next search.
        world.faults.mtu = 0;
        stream(&mut world, SELDOM, Duration::from_secs(1), &mut sent);
        assert_eq!(datagram_bytes(&world, seal.as_ref()), 9000);
        assert_eq!(counts(&world).trials, 3 + 2 + 1);
        world.run(world.now + Duration::from_secs(700));
        stream(&mut world, OFTEN, Duration::from_millis(10), &mut sent);
        world.run(world.now + Duration::from_secs(1));
        let last = counts(&world);
        assert_eq!((last.trials, last.chunks, last.sent_again), (6, 0, 0));
        assert!(world.got[1][0] == sent);
        // The peer has sent nothing, and answered each that came.
        assert_eq!(world.ends[1].counts().trials, 0);
        assert!(world.ends.iter().all(|end| end.is_drained()));
    }
}

/// spec U1: chunks of a record.
#[test]
fn where_the_path_takes_less_records_in_flight_go_in_chunks() {
    for (seed, seal) in (0..).zip(seals()) {
        let mut world = World::new(PATH, 2, seal.as_ref(), seed);
        let mut sent = [vec![], vec![]];
        stream(&mut world, OFTEN, Duration::from_millis(50), &mut sent);
        assert_eq!(datagram_bytes(&world, seal.as_ref()), 9000);
        world.faults.mtu = 1000;
        world.faults.drop = 50;
        world.faults.duplicate = 50;
        world.faults.jitter_us = 100;
        stream(&mut world, SELDOM, Duration::from_secs(1), &mut sent);
        assert_eq!(datagram_bytes(&world, seal.as_ref()), 1000);
        let fallen = counts(&world);
        assert!(fallen.chunks >= 9, "{fallen:?}");
        let came = world.got[1][0][1].len();
        stream(&mut world, OFTEN, Duration::from_millis(400), &mut sent);
        assert!(world.got[1][0][1].len() > came + 100, "it goes on");
        // A little more is found by the search that follows.
        world.faults.mtu = 1400;
        stream(&mut world, SELDOM, Duration::from_secs(3), &mut sent);
        assert_eq!(datagram_bytes(&world, seal.as_ref()), 1400);
        world.faults = super::wire::Faults::default();
        world.run(world.now + Duration::from_secs(2));
        assert!(world.got[1][0] == sent, "all has come, once and in order");
        assert!(world.ends.iter().all(|end| end.is_drained()));
    }
}

/// A path that loses datagrams of all lengths is not one that takes no long ones.
#[test]
fn losses_of_every_length_shorten_nothing() {
    let mut world = World::new(PATH, 2, None, 7);
    let mut sent = [vec![], vec![]];
    stream(&mut world, OFTEN, Duration::from_millis(50), &mut sent);
    world.faults.drop = 100;
    world.faults.jitter_us = 50;
    stream(&mut world, SELDOM, Duration::from_secs(5), &mut sent);
    let after = counts(&world);
    assert!(after.sent_again > 100, "{after:?}");
    assert_eq!(datagram_bytes(&world, None), 9000);
    assert!(after.chunks < after.sent_again, "{after:?}");
}

#[test]
fn a_path_that_changes_often_is_tried_less_and_less_often() {
    let mut world = World::new(PATH, 2, None, 7);
    let mut sent = [vec![], vec![]];
    let mut falls = 0;
    for round in 0..100 {
        world.faults.mtu = [0, 1000][round % 2];
        let before = datagram_bytes(&world, None);
        stream(&mut world, SELDOM, Duration::from_millis(600), &mut sent);
        falls += u32::from(datagram_bytes(&world, None) < before);
    }
    // In a minute: after 1 s, 2 s, 4 s...
    assert!((1..=6).contains(&falls), "{falls}");
    let trials = counts(&world).trials;
    assert!(trials <= 12 * 7, "{trials}");
    world.faults.mtu = 0;
    world.run(world.now + Duration::from_secs(2));
    assert!(world.got[1][0] == sent);
}

#[test]
fn an_end_that_tries_no_lengths_sends_no_trials_and_answers_those_of_others() {
    let mut world = World::new(CONFIG, 2, None, 0);
    let mut sent = [vec![], vec![]];
    stream(&mut world, OFTEN, Duration::from_millis(100), &mut sent);
    assert_eq!(counts(&world).trials, 0);
    // Windows that hold few long ones.
    let config = ReliableConfig {
        window_bytes: 8 * 4000,
        ..PATH
    };
    let mut world = World::new(config, 2, None, 0);
    stream(&mut world, OFTEN, Duration::from_millis(100), &mut sent);
    assert_eq!(datagram_bytes(&world, None), 4000);
    assert_eq!(counts(&world).trials, 2);
}

/// An answer counts if its length was asked for.
#[test]
fn answers_that_were_not_asked_for_change_nothing() {
    let now = Duration::ZERO;
    let mut from = endpoint(PATH, 0, 2, None);
    let mut to = endpoint(PATH, 1, 2, None);
    let full = from.record_bytes();
    // A trial, which the target answers.
    from.submit(now, TO, Channel::Data, full, |_| {}).unwrap();
    let mut trials = vec![];
    while let Some(transmit) = from.poll_transmit(now) {
        let (header, _) = Header::read(transmit.bytes).unwrap();
        assert_eq!(transmit.is_trial, header.kind == Kind::Trial);
        if transmit.is_trial {
            trials.push(transmit.bytes.to_vec());
        }
    }
    let lengths: Vec<usize> = trials.iter().map(Vec::len).collect();
    assert_eq!(lengths, LONGER);
    to.handle_recv(now, &mut trials[1], |_, _| true).unwrap();
    to.handle_recv(now, &mut trials[0], |_, _| true).unwrap();
    let answer = to.poll_transmit(now).unwrap().bytes.to_vec();
    assert_eq!(to.poll_transmit(now), None, "one answer, of the longest");
    assert_eq!(answer[72..], 4000_u16.to_le_bytes());
    for (len, expected) in [(0, 1000), (9001, 1000), (u16::MAX, 1000), (4000, 4000)] {
        let mut other = answer.clone();
        other[72..].copy_from_slice(&u16::to_le_bytes(len));
        from.handle_recv(now, &mut other, |_, _| true).unwrap();
        assert_eq!(from.record_bytes_to(TO) + 72, expected);
    }
    // One that was overtaken by a longer one, and one without a search.
    let mut late = answer.clone();
    late[72..].copy_from_slice(&1400_u16.to_le_bytes());
    from.handle_recv(now, &mut late, |_, _| true).unwrap();
    assert_eq!(from.record_bytes_to(TO) + 72, 4000);
    let mut unasked = answer;
    unasked[8..16].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    let (own, peer) = (super::INCARNATIONS[0], super::INCARNATIONS[1]);
    unasked[16..24].copy_from_slice(&own.to_le_bytes());
    unasked[24..32].copy_from_slice(&peer.to_le_bytes());
    unasked[32..48].fill(0);
    to.handle_recv(now, &mut unasked, |_, _| true);
    assert_eq!(to.record_bytes_to(FROM) + 72, 1000);
}
