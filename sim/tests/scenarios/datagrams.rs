//! Two channels of datagrams between ranks.

use argonet_nic::reliable::{Channel, Counts, ReliableConfig};
use argonet_sim::datagrams::{DatagramShape, DatagramWorld, WireShape};
use core::time::Duration;

/// Tiny sends, and records of a long one of some 64 MiB.
const TINY: u64 = 10_000;
const LONG: u64 = 48_000;

fn shape(wire: WireShape) -> DatagramShape {
    DatagramShape {
        seed: 7,
        ranks: 2,
        link: ReliableConfig::default(),
        sealed: false,
        wire,
        records: [TINY, LONG],
        most_bytes: [8, 1400],
        pauses: 0,
        encrypted: false,
    }
}

/// A long send with 10,000 tiny ones behind its beginning; how many records of it had come with
/// the last tiny one, and counts of both ranks.
fn overtaken(wire: WireShape) -> (u64, [Counts; 2]) {
    let (command, data) = (Channel::Command, Channel::Data);
    let mut world = DatagramWorld::new(shape(wire)).unwrap();
    let mut overtaken = 0;
    loop {
        while world.passed(0, 1, data).0 < LONG && world.submit(0, 1, data) {}
        while world.passed(0, 1, data).1 > 100
            && world.passed(0, 1, command).0 < TINY
            && world.submit(0, 1, command)
        {}
        let until = world.now() + Duration::from_millis(1);
        world.step(until);
        assert!(world.now() < Duration::from_secs(60), "it does not end");
        if world.passed(0, 1, command).1 < TINY {
            overtaken = world.passed(0, 1, data).1;
        } else if world.passed(0, 1, data).1 == LONG {
            return (overtaken, [0, 1].map(|rank| world.counts(rank)));
        }
    }
}

/// spec U11: tiny sends overtake a long one, by which nothing is sent again.
#[test]
fn ten_thousand_tiny_sends_overtake_a_long_one_without_a_resend() {
    for ns_per_kilobyte in [80, 800] {
        let wire = WireShape {
            ns_per_kilobyte,
            ..WireShape::GOOD
        };
        let (overtaken, [from, to]) = overtaken(wire);
        assert!(overtaken < LONG / 2, "{overtaken} of {LONG} had come");
        assert_eq!((from.sent_again, to.repeated, to.no_room), (0, 0, 0));
    }
}

/// Where some are lost all come all the same.
///
/// Commands that are sent again leave by the queue of
/// data, where later ones overtake them, so that some are sent once more for nothing.
#[test]
fn tiny_sends_overtake_a_long_one_of_which_some_is_lost() {
    let wire = WireShape {
        drop: 1000,
        ..WireShape::GOOD
    };
    let (overtaken, [from, to]) = overtaken(wire);
    assert!(overtaken < LONG / 2, "{overtaken} of {LONG} had come");
    assert!((20..600).contains(&from.sent_again), "{from:?}");
    assert!(to.repeated < from.sent_again / 2, "{from:?} {to:?}");
}
