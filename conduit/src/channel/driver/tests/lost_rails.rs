//! Further connections that end, fall silent, or are of the past.

use super::rails::{LIMIT, connect, rail, settle, sizes, transfers};
use super::*;
use std::time::Instant;

fn wanted(rank: &Rank) -> Vec<u16> {
    rank.queue.wanted_rails.lock().clone()
}

#[test]
fn a_lost_rail_is_asked_for_again() {
    let mut ranks = two(sizes());
    let held = connect(&ranks, 1, 1);
    transfers(&mut ranks, 3);
    // The wishes of before have been granted.
    ranks[0].queue.wanted_rails.lock().clear();
    let _ = rustix::net::shutdown(&held[0], rustix::net::Shutdown::Both);
    settle(&mut ranks, "it is asked for", |ranks| {
        wanted(&ranks[0]) == [1]
    });
    connect(&ranks, 1, 2);
    transfers(&mut ranks, 3);
    assert_eq!(wanted(&ranks[0]), [1]);
}

// spec B1: a rail without an error of its own is left out when its host is silent.
#[test]
fn a_rail_to_a_silent_host_is_given_up_and_asked_for_again() {
    let limited = ChannelSizes {
        silent_time: Duration::from_millis(200),
        ..sizes()
    };
    let mut ranks = two(limited);
    let held = connect(&ranks, 1, 1);
    transfers(&mut ranks, 20);
    ranks[0].queue.wanted_rails.lock().clear();
    held.iter().for_each(silent::deafen);
    // The beginning of something, of which the other host acknowledges nothing.
    rustix::io::write(&held[0], &[0]).unwrap();
    settle(&mut ranks, "it is asked for", |ranks| {
        wanted(&ranks[0]) == [1]
    });
    connect(&ranks, 1, 2);
    transfers(&mut ranks, 3);
    assert!(ranks.iter().all(|rank| rank.seen.broken.is_empty()));
}

// spec B9: a rail that was given up is not read.
#[test]
fn a_rail_of_an_old_incarnation_is_not_read() {
    let mut ranks = two(sizes());
    let _held = connect(&ranks, 1, 2);
    transfers(&mut ranks, 3);
    // It was made before the one that is used, and is reported after it; and once more the same.
    for incarnation in [1, 2] {
        let [here, mut old] = pair();
        old.write_all(&[0xff; 64]).unwrap();
        ranks[0].queue.push(rail(1, 1, here, incarnation));
        transfers(&mut ranks, 3);
        assert!(ranks[0].seen.broken.is_empty(), "incarnation {incarnation}");
    }
}

/// The data of a get is half here when the peer refuses the get, and its place is the user's again.
#[test]
fn nothing_is_written_for_a_get_that_was_refused() {
    const LEN: usize = 400;
    let [here, mut main] = pair();
    let mut a = Rank::new(0, sizes(), Some(connection(1, here, 1)));
    let [here, mut beside] = pair();
    a.queue.push(rail(1, 1, here, 1));
    let mut place = vec![9; LEN];
    a.get(64, &mut place, 1);
    // Its name: the first turn, the first place.
    let op = 1 << 16;
    let body = Fields {
        offset: 64,
        op,
        wanted: u8::from(Kind::Got).into(),
        ..Fields::default()
    };
    let head = HeadBytes::new(Kind::Body, 0, &[], LEN, &body);
    let whole = [head.as_bytes(), &[7; LEN]].concat();
    let (first, rest) = whole.split_at(whole.len() / 2);
    beside.write_all(first).unwrap();
    let begun = Instant::now();
    let placing = |a: &Rank| {
        let inbound = a.tcp.core.used(1).unwrap().inbound.lock();
        let mut rails = inbound.rails.iter();
        rails.any(|rail| rail.receive_stream.placing().is_some())
    };
    while !placing(&a) {
        a.poll();
        assert!(begun.elapsed() < LIMIT, "{:?}", a.seen.broken);
    }
    let refusal = Fields {
        offset: 64,
        rest: LEN as u64,
        segment: 100,
        op,
        ..Fields::default()
    };
    let refusal = HeadBytes::new(Kind::Refused, 0, &[], 0, &refusal);
    main.write_all(refusal.as_bytes()).unwrap();
    until(&mut a, "the refusal", |seen| !seen.broken.is_empty());
    place.fill(5);
    // It may be closed already.
    let _ = beside.write_all(rest);
    for _ in 0..2000 {
        a.poll();
    }
    assert!(place == [5; LEN], "the place was written");
    let [AmError::OutsideSegment { .. }] = a.seen.broken.as_slice() else {
        panic!("{:?}", a.seen.broken)
    };
}
