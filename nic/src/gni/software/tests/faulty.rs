//! Faults on demand.

use super::{FaultRules, Pair, SHAPE, ended, is_came, read, write};
use crate::gni::{Failure, Gni, GniError, Operation, Post};

fn rules() -> FaultRules {
    FaultRules {
        seed: 42,
        late_calls: 8,
        ..FaultRules::default()
    }
}

/// Puts `0..count` to words of their own; how each has ended, in the order of their ends.
fn puts(pair: &Pair, count: u64, fence: bool) -> Vec<(u64, Result<(), Failure>)> {
    let mut ends = Vec::new();
    let mut take = || {
        while let Some(event) = pair.a.next() {
            let (id, _, result) = ended(Some(event));
            let there = read(&pair.b.nic, id * 8, 8) == (id + 1).to_ne_bytes();
            match result {
                Ok(()) => assert!(there, "{id} was carried"),
                Err(Failure::Transient) => assert!(!there, "{id} was not carried"),
                Err(_) => {}
            }
            ends.push((id, result));
        }
        ends.len() as u64
    };
    for id in 0..count {
        write(&pair.a.nic, id * 8, &(id + 1).to_ne_bytes());
        let put = Post {
            id,
            fence,
            ..pair.a.post(&pair.b, Operation::Put, id * 8, id * 8, 8)
        };
        loop {
            match pair.a.rdma(&put, &[]) {
                Ok(()) => break,
                Err(GniError::Busy { .. }) => take(),
                Err(error) => panic!("{error}"),
            };
        }
    }
    for _ in 0..1000 {
        if take() == count {
            break;
        }
        pair.a.nic.wait(&[&pair.a.queue], None, &|| false);
    }
    assert_eq!(ends.len() as u64, count, "each ends once");
    ends
}

#[test]
fn posts_fail_as_the_seed_says() {
    let faults = FaultRules {
        transient: 200_000,
        fatal: 100_000,
        ..rules()
    };
    let run = || {
        let pair = Pair::with(SHAPE, 64, true, faults);
        let ends = puts(&pair, 500, false);
        let fatal = std::iter::from_fn(|| pair.a.nic.next_failure()).count();
        let of = |failure| ends.iter().filter(|(_, end)| *end == Err(failure)).count();
        assert_eq!(fatal, of(Failure::Fatal));
        assert!((60..140).contains(&of(Failure::Transient)));
        assert!((20..80).contains(&fatal), "{fatal}");
        ends
    };
    assert_eq!(run(), run());
}

#[test]
fn posts_end_late_and_in_another_order_but_not_before_a_fence() {
    let faults = FaultRules {
        late: 300_000,
        reorder: 300_000,
        ..rules()
    };
    let ids = |fence| {
        let pair = Pair::with(SHAPE, 64, true, faults);
        let ends = puts(&pair, 400, fence);
        ends.iter().map(|(id, _)| *id).collect::<Vec<_>>()
    };
    let in_order: Vec<u64> = (0..400).collect();
    assert_ne!(ids(false), in_order);
    assert_eq!(ids(true), in_order);
}

#[test]
fn events_of_peers_are_lost_with_an_overrun() {
    let faults = FaultRules {
        overrun: 300_000,
        ..rules()
    };
    let pair = Pair::with(SHAPE, 64, true, faults);
    let (mut came, mut lost) = (0, 0);
    for _ in 0..400 {
        assert!(pair.a.send(1, b"x"));
        match pair.b.nic.next_event(&pair.b.queue) {
            Ok(event) => {
                assert!(is_came(event, super::data(1).remote));
                came += 1;
            }
            Err(GniError::Overrun { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(pair.b.take().is_some());
    }
    assert_eq!(came + lost, 400);
    assert!((60..180).contains(&lost), "{lost}");
}

#[test]
fn messages_find_no_credit_by_chance() {
    let faults = FaultRules {
        no_credit: 500_000,
        ..rules()
    };
    let pair = Pair::with(SHAPE, 64, true, faults);
    let mut refused = 0;
    for n in 0..200_u8 {
        while !pair.a.send(n, &[n]) {
            refused += 1;
        }
        assert_eq!(pair.b.take(), Some((n, vec![n])));
    }
    assert!((100..300).contains(&refused), "{refused}");
}

#[test]
fn lost_datagrams_arrive_when_they_are_posted_again() {
    let faults = FaultRules {
        lose_datagram: 500_000,
        ..rules()
    };
    let pair = Pair::with(SHAPE, 64, true, faults);
    let (a, b) = (&pair.a.nic, &pair.b.nic);
    let mut lost = 0;
    for n in 0..100 {
        b.post_datagram(None, n, b"b").unwrap();
        loop {
            a.post_datagram(Some(super::address(1)), n, b"a").unwrap();
            if b.next_datagram().is_some() {
                break;
            }
            lost += 1;
            assert!(a.next_datagram().is_none());
            a.cancel_datagram(n).unwrap();
        }
        assert_eq!(a.next_datagram().unwrap().id, n);
    }
    assert!((50..200).contains(&lost), "{lost}");
}

#[test]
fn posts_whose_memory_goes_meanwhile_end_so() {
    let faults = FaultRules {
        reorder: 1_000_000,
        ..rules()
    };
    let pair = Pair::with(SHAPE, 64, true, faults);
    for id in 0..10 {
        let put = Post {
            id,
            ..pair.a.post(&pair.b, Operation::Put, 0, 0, 8)
        };
        pair.a.rdma(&put, &[put]).unwrap();
    }
    pair.b.nic.deregister(pair.b.memory).unwrap();
    let mut gone = 0;
    for _ in 0..100 {
        if let Some(event) = pair.a.next() {
            gone += u32::from(ended(Some(event)).2 == Err(Failure::Gone));
        }
    }
    assert!(gone > 0);
}

#[test]
fn posts_that_are_held_back_go_with_their_queue() {
    let faults = FaultRules {
        reorder: 1_000_000,
        late_calls: 1000,
        ..rules()
    };
    let pair = Pair::with(SHAPE, 64, true, faults);
    pair.a
        .fma(&pair.a.post(&pair.b, Operation::Put, 0, 0, 8))
        .unwrap();
    let Pair { a, b } = pair;
    let super::End {
        nic,
        queue,
        endpoint,
        ..
    } = a;
    drop((queue, endpoint));
    for _ in 0..2000 {
        nic.wait(&[], None, &|| false);
    }
    drop(b);
}
