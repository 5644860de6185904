//! Paths that carry nothing, nothing in one direction, or no long datagrams.

use super::wire::World;
use super::{CONFIG, FROM, TO};
use crate::reliable::{Channel, PathFault, PathState, PeerUnreachable, ReliableConfig, Seal};
use core::time::Duration;

const PATH: ReliableConfig = ReliableConfig {
    unheard_after: Duration::from_secs(3),
    ..CONFIG
};

/// The same for a driver that bears peers which may be stopped.
const PATIENT: ReliableConfig = ReliableConfig {
    stopped_for: Duration::from_secs(60),
    ..PATH
};

const SECOND: Duration = Duration::from_secs(1);

fn world(seal: Option<&Seal>) -> World {
    World::new(PATH, 2, seal, 5)
}

/// Both ranks ask each other.
fn ask(world: &mut World, full: bool) {
    let now = world.now;
    world.ends[0].ask(now, TO, full);
    world.ends[1].ask(now, FROM, full);
}

fn states(world: &World) -> [PathState; 2] {
    [world.ends[0].path(TO), world.ends[1].path(FROM)]
}

fn sent(world: &World) -> u64 {
    world.ends.iter().map(|end| end.counts().sent).sum()
}

fn submit(world: &mut World, len: usize) {
    let now = world.now;
    let submitted = world.ends[0].submit(now, TO, Channel::Data, len, |place| place.fill(1));
    submitted.unwrap();
}

/// Goes on until a rank is lost; which loss, and when.
fn until_lost(world: &mut World) -> (PeerUnreachable, Duration) {
    loop {
        let losses = world.ends.iter_mut().find_map(|end| end.poll_event());
        if let Some(lost) = losses {
            return (lost, world.now);
        }
        let limit = world.now + 10 * SECOND;
        assert!(world.step(limit), "no peer is lost");
    }
}

fn patient() -> World {
    World::new(PATIENT, 2, None, 5)
}

/// Goes on until rank 0 doubts the other one; which doubt, and when.
fn until_doubted(world: &mut World) -> (PeerUnreachable, Duration) {
    loop {
        if let Some(doubt) = world.ends[0].poll_doubt() {
            assert!(world.ends[0].is_doubted(TO));
            return (doubt, world.now);
        }
        assert_eq!(world.ends[0].lost(TO), None, "without a doubt");
        let limit = world.now + 10 * SECOND;
        assert!(world.step(limit), "no peer is doubted");
    }
}

/// spec U10: the check at the start.
#[test]
fn a_check_of_a_good_path_takes_one_round_trip() {
    let secret = Seal::from_secret(b"of this job");
    for (full, most) in [(true, 8), (false, 4)] {
        let mut world = world(Some(&secret));
        assert_eq!(states(&world), [PathState::default(); 2]);
        ask(&mut world, full);
        world.run(Duration::from_millis(1));
        assert_eq!(states(&world), [PathState::WELL; 2]);
        let questions = sent(&world);
        assert!(questions <= most, "{questions} datagrams");
        // Nothing more is asked, and no peer is lost by it.
        world.run(30 * SECOND);
        assert_eq!(sent(&world), questions);
        assert_eq!(states(&world), [PathState::WELL; 2]);
    }
}

#[test]
fn questions_are_repeated_as_long_as_the_driver_wants() {
    let mut world = world(None);
    world.faults.drop = 1000;
    ask(&mut world, true);
    world.run(Duration::from_millis(10));
    world.faults.drop = 300;
    world.run(3 * SECOND);
    assert_eq!(states(&world), [PathState::WELL; 2]);
    // A peer that is not there yet is asked twice a second, and not lost.
    let mut world = World::new(PATH, 2, None, 5);
    world.dead[1] = true;
    let now = world.now;
    world.ends[0].ask(now, TO, true);
    world.run(60 * SECOND);
    let questions = sent(&world);
    assert!((230..=250).contains(&questions), "{questions}");
    assert_eq!(world.ends[0].lost(TO), None);
    world.ends[0].end_asking(TO);
    world.run(120 * SECOND);
    assert!(sent(&world) <= questions + 2);
    assert_eq!(world.ends[0].lost(TO), None);
}

#[test]
fn a_check_distinguishes_a_one_way_path_and_a_short_one_from_a_dead_one() {
    let waits = |world: &mut World| {
        ask(world, true);
        world.run(5 * SECOND);
        states(world)
    };
    let nothing = PathState::default();
    let heard = PathState {
        heard: true,
        ..nothing
    };
    let mut one_way = world(None);
    one_way.cut_off[1] = true;
    assert_eq!(waits(&mut one_way), [heard, nothing]);
    let mut short = world(None);
    short.faults.mtu = 900;
    let answered = PathState {
        answered: true,
        ..heard
    };
    assert_eq!(waits(&mut short), [answered; 2]);
    let mut dead = world(None);
    dead.cut_off = vec![true; 2];
    assert_eq!(waits(&mut dead), [nothing; 2]);
    // The driver decides what follows.
    for world in [one_way, short, dead] {
        assert!(world.ends[0].lost(TO).is_none() && world.ends[1].lost(FROM).is_none());
    }
}

/// spec U10: the check at the first use.
#[test]
fn a_peer_that_was_never_heard_is_doubted_sooner_than_one_that_was() {
    let mut unheard = patient();
    unheard.dead[1] = true;
    submit(&mut unheard, 100);
    let (doubt, when) = until_doubted(&mut unheard);
    assert_eq!(
        (doubt.peer, doubt.fault, when),
        (TO, PathFault::Unheard, 3 * SECOND)
    );
    assert_eq!(doubt.silent, 3 * SECOND);
    let text = doubt.to_string();
    for wanted in [
        "rank 0",
        "rank 1",
        "no datagram of it has come within 3.0 s",
        "sends",
    ] {
        assert!(text.contains(wanted), "{text}");
    }
    // Also one that is only watched.
    let mut watched = patient();
    watched.dead[1] = true;
    watched.ends[0].watch(Duration::ZERO, TO, true);
    let (doubt, when) = until_doubted(&mut watched);
    assert_eq!(doubt.fault, PathFault::Unheard);
    assert!(when < SECOND + PATH.give_up_after, "{when:?}");
    // One word of it is enough.
    let mut heard = patient();
    submit(&mut heard, 100);
    heard.run(SECOND);
    heard.dead[1] = true;
    submit(&mut heard, 100);
    let (doubt, when) = until_doubted(&mut heard);
    assert_eq!(doubt.fault, PathFault::Silent);
    assert_eq!(when, SECOND + PATH.give_up_after);
    // Nothing else is found out, and each is reported once.
    for (mut world, fault, end) in [
        (unheard, PathFault::Unheard, PATIENT.stopped_for),
        (heard, PathFault::Silent, SECOND + PATIENT.stopped_for),
    ] {
        let (lost, when) = until_lost(&mut world);
        assert_eq!((lost.fault, when), (fault, end));
        assert_eq!(world.ends[0].poll_doubt(), None);
    }
    // Where no peer is doubted, both are lost after the same time.
    let mut unheard = world(None);
    unheard.dead[1] = true;
    submit(&mut unheard, 100);
    let (lost, when) = until_lost(&mut unheard);
    assert_eq!((lost.fault, when), (PathFault::Unheard, PATH.give_up_after));
    assert_eq!(unheard.ends[0].poll_doubt(), None);
}

/// Another rail goes on meanwhile, so nothing that a path does is forever.
#[test]
fn a_patient_link_loses_no_peer_for_what_its_path_does() {
    let config = ReliableConfig {
        is_patient: true,
        ..PATH
    };
    let mut world = World::new(config, 2, None, 5);
    submit(&mut world, 100);
    world.run(SECOND);
    world.dead[1] = true;
    submit(&mut world, 100);
    let end = 10 * PATH.give_up_after;
    world.run(end);
    assert_eq!(world.ends[0].lost(TO), None);
    assert_eq!(world.ends[0].poll_doubt(), None);
    let (owed, since) = silent(&mut world).expect("it was used");
    assert!(owed && since <= 2 * SECOND, "{since:?}");
    world.dead[1] = false;
    world.run(end + 2 * config.most_rto + SECOND);
    let (owed, since) = silent(&mut world).expect("it was used");
    assert!(!owed && since > end, "{since:?}");
    assert_eq!(world.ends[1].poll_event(), None);
}

/// What the first end says of the second one now.
fn silent(world: &mut World) -> Option<(bool, Duration)> {
    let now = world.now;
    world.ends[0].silence(now, TO)
}

/// What has arrived there is kept, and waits for a rank that computes.
#[test]
fn a_peer_that_takes_nothing_is_not_silent() {
    let mut world = World::new(PATH, 2, None, 5);
    world.accepts[1] = false;
    let mut written = 0;
    while world.now < 10 * SECOND {
        while world.ends[0].room(TO, Channel::Data) && written < 600 {
            submit(&mut world, 100);
            written += 1;
        }
        world.step(world.now + SECOND);
        let (owed, since) = silent(&mut world).expect("it was used");
        let waits = world.now - since;
        assert!(!owed || waits < SECOND / 2, "{:?}: {waits:?}", world.now);
        if written == 600 && world.ends[0].is_drained() {
            break;
        }
    }
    assert!(written > 10, "{written}");
}

/// Nothing comes to it, though it is heard.
#[test]
fn a_peer_that_acknowledges_nothing_is_silent() {
    let mut world = World::new(PATH, 2, None, 5);
    submit(&mut world, 100);
    world.run(SECOND);
    world.cut_off[1] = true;
    submit(&mut world, 100);
    for tenth in 11..30 {
        // It has no answers, and so sends the same again and again.
        if world.ends[1].room(FROM, Channel::Command) {
            let now = world.now;
            let sent =
                world.ends[1].submit(now, FROM, Channel::Command, 9, |record| record.fill(1));
            sent.expect("there is room");
        }
        world.run(tenth * SECOND / 10);
    }
    assert!(!world.got[0][1][Channel::Command.index()].is_empty());
    let (owed, since) = silent(&mut world).expect("it was used");
    assert!(owed && world.now - since > SECOND, "{since:?}");
}

#[test]
fn a_peer_that_is_stopped_is_heard_again() {
    for was_heard in [false, true] {
        let mut world = patient();
        if was_heard {
            submit(&mut world, 100);
            world.run(SECOND);
        }
        for records in 1..3 {
            world.dead[1] = true;
            submit(&mut world, 100);
            until_doubted(&mut world);
            // It asks before it has read anything when it goes on.
            let now = world.now;
            world.ends[1].watch(now, FROM, true);
            let stopped = world.now + 50 * SECOND;
            world.run(stopped);
            world.dead[1] = false;
            world.run(stopped + 5 * SECOND);
            assert!(world.ends[0].is_drained() && !world.ends[0].is_doubted(TO));
            assert_eq!(world.got[1][0][1].len(), records + usize::from(was_heard));
        }
    }
}

#[test]
fn a_peer_that_the_driver_knows_to_be_gone_is_lost_at_once() {
    let mut world = patient();
    world.dead[1] = true;
    submit(&mut world, 100);
    world.run(2 * SECOND);
    // A word of the network is no evidence before.
    let now = world.now;
    world.ends[0].refuse(now, TO);
    let (_, when) = until_doubted(&mut world);
    world.run(when + SECOND);
    world.ends[0].refuse(when + SECOND, TO);
    assert_eq!(world.ends[0].poll_timeout(), Some(when + SECOND));
    let (lost, at) = until_lost(&mut world);
    assert_eq!((lost.fault, at), (PathFault::Unheard, when + SECOND));
    assert_eq!(lost.silent, at);
}

#[test]
fn a_pause_of_this_process_is_not_counted_where_it_asks_first() {
    let mut world = World::new(PATH, 2, None, 5);
    submit(&mut world, 100);
    world.run(SECOND);
    submit(&mut world, 100);
    world.transmit();
    world.now += 100 * SECOND;
    let (owed, since) = silent(&mut world).expect("it was used");
    assert!(owed && world.now - since < 2 * SECOND, "{since:?}");
}

/// A process that was stopped hears what has come meanwhile before it judges.
#[test]
fn a_pause_of_this_process_is_no_silence_of_the_peer() {
    for (pause, was_heard, hears_first) in [
        (4, false, false),
        (100, false, true),
        (100, true, false),
        (100, true, true),
    ] {
        let mut world = world(None);
        if was_heard {
            submit(&mut world, 900);
            world.run(Duration::from_millis(100));
        }
        world.faults.drop = 1000;
        for _ in 0..10 {
            submit(&mut world, 900);
            world.transmit();
        }
        world.run(SECOND);
        world.faults.drop = 0;
        world.now += pause * SECOND;
        let now = world.now;
        if hears_first {
            world.ends[0].handle_recv(now, &mut [0; 8], |_, _| true);
        }
        world.ends[0].handle_timeout(now);
        assert_eq!(world.ends[0].lost(TO), None);
        world.run(now + 5 * SECOND);
        assert!(world.ends[0].is_drained(), "after {pause} s");
        let records = 10 + usize::from(was_heard);
        assert_eq!(world.got[1][0][1].len(), records);
    }
}

#[test]
fn a_rank_that_is_not_heard_reports_it_before_the_other_one_gives_up() {
    let mut world = world(None);
    world.cut_off[0] = true;
    submit(&mut world, 100);
    let (lost, when) = until_lost(&mut world);
    assert_eq!((lost.rank, lost.peer), (TO, FROM));
    assert_eq!(lost.fault, PathFault::OneWay);
    assert!(when >= 2 * SECOND && when < 3 * SECOND, "{when:?}");
    assert!(lost.to_string().contains("one-way"), "{lost}");
    let (lost, when) = until_lost(&mut world);
    assert_eq!((lost.rank, lost.fault), (FROM, PathFault::Unheard));
    assert_eq!(when, PATH.give_up_after);
}

/// What has been late in one direction is no one-way path.
#[test]
fn answers_that_come_late_are_answers() {
    let mut world = world(None);
    world.cut_off[0] = true;
    submit(&mut world, 100);
    world.run(Duration::from_millis(1200));
    world.cut_off[0] = false;
    world.run(10 * SECOND);
    assert!(world.ends.iter().all(|end| end.is_drained()));
    // The last question said that nothing had come, and after its answer nothing was to be said.
    assert_eq!(world.ends[1].lost(FROM), None);
    assert!(!world.ends[1].path(FROM).answered);
    submit(&mut world, 100);
    world.run(20 * SECOND);
    assert!(world.ends[0].is_drained() && world.ends[1].path(FROM).answered);
}

#[test]
fn a_length_that_never_arrives_is_named_though_short_ones_do() {
    let secret = Seal::from_secret(b"of this job");
    for (seal, around) in [(None, 72), (Some(&secret), 88)] {
        let mut world = world(seal);
        world.faults.mtu = 700;
        submit(&mut world, 100);
        world.run(SECOND);
        assert!(world.ends[0].is_drained());
        submit(&mut world, 800);
        let (lost, when) = until_lost(&mut world);
        let datagram_bytes = 800 + around;
        assert_eq!(lost.fault, PathFault::TooLong { datagram_bytes });
        assert!(when >= 4 * SECOND && when < 5 * SECOND, "{when:?}");
        let text = lost.to_string();
        let wanted = format!("none of {datagram_bytes} bytes does");
        assert!(text.contains(&wanted) && text.contains("MTU"), "{text}");
    }
    // A length that has arrived before is waited for longer: the path may be cut for a while.
    let mut world = world(None);
    submit(&mut world, 800);
    world.run(SECOND);
    world.faults.mtu = 700;
    submit(&mut world, 800);
    world.run(5 * SECOND);
    assert_eq!(world.ends[0].lost(TO), None);
    world.faults.mtu = 0;
    world.run(8 * SECOND);
    assert!(world.ends[0].is_drained());
}

/// A peer that is dead answers no short ones, so its path is not at fault.
#[test]
fn a_peer_that_dies_before_it_gets_a_long_datagram_is_silent() {
    let mut world = world(None);
    submit(&mut world, 100);
    world.run(SECOND);
    world.dead[1] = true;
    submit(&mut world, 800);
    let (lost, when) = until_lost(&mut world);
    assert_eq!(
        (lost.fault, when),
        (PathFault::Silent, SECOND + PATH.give_up_after)
    );
}

/// A stranger makes no check pass or fail, and gets no answer.
#[test]
fn questions_of_strangers_and_repeated_ones_are_not_answered() {
    let secret = Seal::from_secret(b"of this job");
    let mut world = world(Some(&secret));
    ask(&mut world, true);
    let now = world.now;
    let mut questions = vec![];
    while let Some(transmit) = world.ends[0].poll_transmit(now) {
        questions.push(transmit.bytes.to_vec());
    }
    assert_eq!(
        questions.iter().map(Vec::len).collect::<Vec<_>>(),
        [88, 1000]
    );
    while world.ends[1].poll_transmit(now).is_some() {}
    let before = world.ends[1].counts();
    for question in &questions {
        // The code is missing, or another one.
        let mut open = question[..question.len() - 16].to_vec();
        open[5] &= !1;
        let mut forged = question.clone();
        forged[5] |= 32;
        for mut bytes in [open, forged] {
            assert_eq!(
                world.ends[1].handle_recv(now, &mut bytes, |_, _| true),
                None
            );
        }
    }
    assert_eq!(world.ends[1].poll_transmit(now), None);
    assert_eq!(world.ends[1].path(FROM), PathState::default());
    assert_eq!(world.ends[1].counts().forged, before.forged + 4);
    // The real ones are answered once.
    for question in &mut questions.clone() {
        let arrived = world.ends[1].handle_recv(now, question, |_, _| true);
        assert!(arrived.is_some());
    }
    let mut answers = 0;
    while let Some(transmit) = world.ends[1].poll_transmit(now) {
        answers += transmit.bytes.len();
    }
    let asked: usize = questions.iter().map(Vec::len).sum();
    assert!(answers > 0 && answers < asked, "{answers} of {asked} bytes");
    for question in &mut questions {
        let again = world.ends[1].handle_recv(now, question, |_, _| true);
        assert_eq!(again, None);
    }
    assert_eq!(world.ends[1].poll_transmit(now), None);
    assert_eq!(world.ends[1].counts().replayed, before.replayed + 2);
}
