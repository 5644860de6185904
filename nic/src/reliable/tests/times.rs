//! Waits, and how long they last.

use super::wire::World;
use super::{CONFIG, FROM, TO, endpoint};
use crate::reliable::{Channel, ReliableConfig, ReliableError};
use argonet_base::JobRank;
use core::time::Duration;

fn submit(world: &mut World, bytes: &[u8]) -> Result<(), ReliableError> {
    let now = world.now;
    let fill = |place: &mut [u8]| place.copy_from_slice(bytes);
    world.ends[0].submit(now, TO, Channel::Data, bytes.len(), fill)
}

#[test]
fn an_acknowledgement_waits_for_company_but_not_for_ever() {
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"one").unwrap();
    world.run(Duration::from_millis(1));
    assert_eq!(world.got[1][0][1], [b"one"]);
    assert_eq!(world.ends[1].counts().sent, 0);
    assert!(!world.ends[1].is_drained());
    world.run(Duration::from_millis(3));
    assert_eq!(world.ends[1].counts().acknowledgements, 1);
    // The second of two is acknowledged at once.
    submit(&mut world, b"two").unwrap();
    submit(&mut world, b"three").unwrap();
    world.run(Duration::from_millis(4));
    assert_eq!(world.ends[1].counts().acknowledgements, 2);
    assert!(world.ends.iter().all(|end| end.is_drained()));
    assert_eq!(world.ends[0].counts().sent_again, 0);
    // One that goes with a record costs no datagram.
    submit(&mut world, b"four").unwrap();
    world.step(Duration::from_millis(5));
    let now = world.now;
    world.ends[1]
        .submit(now, FROM, Channel::Data, 0, |_| {})
        .unwrap();
    world.run(Duration::from_millis(20));
    assert_eq!(world.ends[1].counts().acknowledgements, 2);
    // An end that is about to stop acknowledges at once.
    submit(&mut world, b"five").unwrap();
    world.step(Duration::from_millis(21));
    world.ends[1].flush();
    assert!(!world.ends[1].is_drained());
    world.transmit();
    assert!(world.ends[1].is_drained());
}

#[test]
fn a_peer_that_has_left_is_owed_nothing() {
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"one").unwrap();
    world.run(Duration::from_millis(10));
    assert!(world.ends.iter().all(|end| end.is_drained()));
    // A rank that has gone takes no records.
    world.ends[1].leave();
    submit(&mut world, b"two").unwrap();
    world.transmit();
    assert_eq!(world.ends[1].counts().leaves, 1);
    assert!(!world.ends[0].has_left(TO) && !world.ends[0].is_drained());
    world.dead[1] = true;
    world.run(Duration::from_millis(20));
    assert!(world.ends[0].has_left(TO) && world.ends[0].is_drained());
    // It is said once, and later records are owed nothing, either.
    assert_eq!(world.ends[1].counts().leaves, 1);
    submit(&mut world, b"three").unwrap();
    assert!(world.ends[0].is_drained());
}

/// A rank that has left says so with each acknowledgement, and where its records end.
#[test]
fn a_lost_announcement_is_repeated_and_names_the_last_record() {
    let mut world = World::new(CONFIG, 2, None, 0);
    let now = world.now;
    world.ends[1]
        .submit(now, FROM, Channel::Data, 4, |_| {})
        .unwrap();
    world.ends[1].leave();
    world.faults.drop = 1000;
    world.transmit();
    world.faults.drop = 0;
    submit(&mut world, b"ask").unwrap();
    world.run(Duration::from_millis(10));
    let end = &world.ends[0];
    assert!(
        end.has_left(TO) && !end.has_ended(TO),
        "the record is not here yet"
    );
    world.run(Duration::from_secs(1));
    assert!(world.ends[0].has_ended(TO));
}

/// A running timer does not delay an earlier one.
#[test]
fn an_acknowledgement_is_not_held_up_by_records_in_flight() {
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"lost").unwrap();
    world.faults.drop = 1000;
    world.transmit();
    world.faults.drop = 0;
    let now = world.now;
    world.ends[1]
        .submit(now, FROM, Channel::Data, 0, |_| {})
        .unwrap();
    world.run(Duration::from_millis(5));
    assert_eq!(world.ends[0].counts().acknowledgements, 1);
}

#[test]
fn the_window_is_bounded_and_opens_with_acknowledgements() {
    let mut world = World::new(CONFIG, 2, None, 0);
    let record = [7; 900];
    let mut first = 0;
    while world.ends[0].room(TO, Channel::Data) {
        submit(&mut world, &record).unwrap();
        first += 1;
    }
    assert_eq!(first, 16, "the first window");
    let full = submit(&mut world, &record).unwrap_err();
    assert_eq!(
        full,
        ReliableError::Full {
            rank: FROM,
            peer: TO
        }
    );
    world.run(Duration::from_millis(5));
    let mut second = 0;
    while submit(&mut world, &record).is_ok() {
        second += 1;
    }
    assert!(second > first && second <= 44, "{second}");
}

/// spec U5: a loss that later arrivals show waits for no timer.
#[test]
fn an_overtaken_record_is_sent_again_before_its_timer() {
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"lost").unwrap();
    world.faults.drop = 1000;
    world.transmit();
    world.faults.drop = 0;
    for _ in 0..3 {
        submit(&mut world, b"behind").unwrap();
    }
    world.run(Duration::from_millis(8));
    assert_eq!(world.got[1][0][1].len(), 4);
    assert_eq!(world.got[1][0][1][0], b"lost");
    assert_eq!(world.ends[0].counts().sent_again, 1);
}

#[test]
fn timers_double_until_a_dead_peer_is_lost() {
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"hello").unwrap();
    world.dead[1] = true;
    let mut sends = Vec::new();
    let mut count = 0;
    while world.ends[0].lost(TO).is_none() {
        assert!(world.step(Duration::from_secs(10)), "nothing more happens");
        let sent = world.ends[0].counts().sent;
        if sent > count {
            count = sent;
            sends.push(world.now.as_millis());
        }
    }
    assert_eq!(sends, [0, 100, 300, 700, 1500, 2500, 3500, 4500]);
    assert_eq!(world.now, CONFIG.give_up_after);
    let lost = world.ends[0].poll_event().unwrap();
    assert_eq!((lost.rank, lost.peer, lost.sends), (FROM, TO, 8));
    assert_eq!(world.ends[0].poll_event(), None);
    for wanted in ["rank 0", "rank 1", "5.0 s", "8 sends"] {
        assert!(lost.to_string().contains(wanted), "{lost}");
    }
    assert!(!world.ends[0].room(TO, Channel::Data));
    assert_eq!(submit(&mut world, b"more"), Err(lost.into()));
    assert!(world.ends[0].is_drained());
    assert_eq!(world.ends[0].poll_timeout(), None);
}

#[test]
fn a_silent_peer_is_asked_and_lost_only_if_it_does_not_answer() {
    let mut world = World::new(CONFIG, 2, None, 0);
    world.ends[0].watch(Duration::ZERO, TO, true);
    world.run(Duration::from_secs(60));
    assert_eq!(world.ends[0].lost(TO), None);
    let probes = world.ends[0].counts().probes;
    assert!((55..=60).contains(&probes), "{probes} probes");
    world.dead[1] = true;
    world.run(Duration::from_secs(60) + CONFIG.probe_after + CONFIG.give_up_after);
    let lost = world.ends[0].lost(TO).expect("lost");
    assert_eq!(lost.sends, 0);
    // A watch begins with itself, not with the last word.
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"hello").unwrap();
    world.run(Duration::from_secs(10));
    world.ends[0].watch(world.now, TO, true);
    world.run(Duration::from_millis(10_900));
    assert_eq!(world.ends[0].counts().probes, 0);
    world.run(Duration::from_millis(11_100));
    assert_eq!(world.ends[0].counts().probes, 1);
    // A peer that is not watched is not probed.
    let mut world = World::new(CONFIG, 2, None, 0);
    submit(&mut world, b"hello").unwrap();
    world.run(Duration::from_secs(1));
    world.ends[0].watch(Duration::from_secs(1), TO, true);
    world.ends[0].watch(Duration::from_secs(1), TO, false);
    world.dead[1] = true;
    world.run(Duration::from_secs(60));
    assert_eq!(world.ends[0].counts().probes, 0);
    assert_eq!(world.ends[0].lost(TO), None);
}

/// All records have arrived, but a rank takes none; its acknowledgement once it does is lost.
#[test]
fn a_window_that_was_full_is_asked_for() {
    let mut world = World::new(CONFIG, 2, None, 0);
    world.accepts[1] = false;
    while submit(&mut world, &[1; 900]).is_ok() {}
    world.run(Duration::from_secs(1));
    assert_eq!(world.got[1][0][1].len(), 0);
    world.accepts[1] = true;
    world.take(1, 0);
    world.faults.drop = 1000;
    world.transmit();
    world.faults.drop = 0;
    assert_eq!(world.got[1][0][1].len(), 16);
    world.run(Duration::from_secs(4));
    assert!(world.ends[0].is_drained());
    assert!(world.ends[0].counts().probes > 0);
}

#[test]
fn a_peer_that_takes_nothing_is_sent_no_more_than_it_keeps() {
    let mut world = World::new(CONFIG, 2, None, 0);
    world.accepts[1] = false;
    let mut count = 0;
    for round in 1..=40 {
        while submit(&mut world, &[1; 900]).is_ok() {
            count += 1;
        }
        world.run(Duration::from_millis(5 * round));
    }
    assert_eq!(count, 44, "as many as the window has room for");
    let [from, to] = [0, 1].map(|end| world.ends[end].counts());
    assert_eq!((from.sent_again, to.no_room, to.repeated), (0, 0, 0));
    world.accepts[1] = true;
    world.take(1, 0);
    world.run(Duration::from_secs(1));
    assert_eq!(world.got[1][0][1].len(), 44);
    assert!(world.ends[0].is_drained());
}

#[test]
fn a_peer_that_is_heard_but_gets_nothing_is_lost() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    let mut now = Duration::ZERO;
    let abc = |place: &mut [u8]| place.copy_from_slice(b"abc");
    from.submit(now, TO, Channel::Data, 3, abc).unwrap();
    // It asks each second whether the first one lives.
    to.watch(now, FROM, true);
    while from.lost(TO).is_none() {
        now += Duration::from_millis(10);
        assert!(now < Duration::from_millis(5100), "it waits forever");
        // The path carries nothing of this direction.
        while from.poll_transmit(now).is_some() {}
        while let Some(transmit) = to.poll_transmit(now) {
            from.handle_recv(now, &mut transmit.bytes.to_vec(), |_, _| true);
        }
        from.handle_timeout(now);
        to.handle_timeout(now);
    }
    assert!(now >= Duration::from_secs(5) && from.counts().taken > 2);
}

#[test]
fn sizes_and_times_that_cannot_be_are_refused() {
    let good = CONFIG;
    let wrong = [
        ReliableConfig {
            datagram_bytes: 343,
            ..good
        },
        ReliableConfig {
            datagram_bytes: 70_000,
            window_bytes: 1 << 20,
            ..good
        },
        ReliableConfig {
            window_bytes: 999,
            ..good
        },
        ReliableConfig {
            ack_delay: good.least_rto,
            ..good
        },
        ReliableConfig {
            least_rto: Duration::from_secs(2),
            ..good
        },
        ReliableConfig {
            first_rto: Duration::from_secs(2),
            ..good
        },
        ReliableConfig {
            give_up_after: Duration::from_millis(900),
            ..good
        },
        ReliableConfig {
            probe_after: Duration::ZERO,
            ..good
        },
        ReliableConfig {
            probe_after: Duration::from_secs(6),
            ..good
        },
    ];
    for config in wrong {
        let error = crate::reliable::Endpoint::new(config, FROM, 1, None, 2).unwrap_err();
        assert!(error.to_string().contains("rank 0"), "{error}");
    }
    assert!(crate::reliable::Endpoint::new(good, FROM, 0, None, 2).is_err());
    let mut end = endpoint(good, 0, 2, None);
    let now = Duration::ZERO;
    let long = end.submit(now, TO, Channel::Data, end.record_bytes() + 1, |_| {
        panic!("it is filled")
    });
    assert!(
        matches!(long, Err(ReliableError::TooLong { .. })),
        "{long:?}"
    );
    let unknown = end.submit(now, JobRank(2), Channel::Data, 1, |_| {
        panic!("it is filled")
    });
    assert!(
        matches!(unknown, Err(ReliableError::Unknown { .. })),
        "{unknown:?}"
    );
    // A peer has one incarnation.
    end.know(TO, super::INCARNATIONS[1]).unwrap();
    end.know(TO, 99).unwrap_err();
    end.know(JobRank(2), 99).unwrap_err();
}
