//! Threads that sleep.

use super::{FaultRules, Pair, SHAPE, data};
use crate::gni::{Gni, Operation};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::time::Instant;

const ROUNDS: u32 = 20_000;

#[test]
fn no_wakeup_is_lost_between_two_that_answer_each_other() {
    for reports in [true, false] {
        let pair = Pair::with(SHAPE, 64, reports, FaultRules::default());
        std::thread::scope(|scope| {
            for (end, begins) in [(&pair.a, true), (&pair.b, false)] {
                scope.spawn(move || {
                    // Without a queue only the client knows what it waits for.
                    let come = || end.nic.receive(&end.endpoint).unwrap().is_some();
                    if begins {
                        assert!(end.send(0, b"first"));
                    }
                    for _ in 0..ROUNDS {
                        while !come() {
                            end.nic.wait(&[&end.queue], None, &come);
                            // Full if many messages were found without a look into it.
                            while !matches!(end.nic.next_event(&end.queue), Ok(None)) {}
                        }
                        assert!(end.take().is_some());
                        assert!(end.send(0, b"next"));
                    }
                });
            }
        });
    }
}

#[test]
fn several_threads_of_an_interface_are_woken() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    let turn = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let turn = &turn;
            scope.spawn(move || {
                for round in 0..2000 {
                    let mine = || turn.load(Ordering::SeqCst) == 3 * round + thread;
                    while !mine() {
                        a.nic.wait(&[], None, &mine);
                    }
                    turn.fetch_add(1, Ordering::SeqCst);
                    a.nic.wake();
                }
            });
        }
        // Others come and go.
        scope.spawn(|| {
            for _ in 0..2000 {
                a.nic
                    .wait(&[&a.queue], Some(Duration::from_micros(10)), &|| false);
                assert!(b.send(0, b"x"));
                while a.next().is_none() {}
                assert!(a.take().is_some());
            }
        });
    });
}

#[test]
fn own_posts_and_datagrams_end_a_sleep() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2000 {
                let event = loop {
                    match a.next() {
                        Some(event) => break event,
                        None => a.nic.wait(&[&a.queue], None, &|| false),
                    }
                };
                assert_eq!(event.data, data(1).local);
            }
            for n in 0..2000_u64 {
                while a
                    .nic
                    .post_datagram(Some(super::address(1)), n, b"a")
                    .is_err()
                {
                    std::thread::yield_now();
                }
                while a.nic.next_datagram().is_none() {
                    a.nic.wait(&[&a.queue], None, &|| false);
                }
            }
        });
        scope.spawn(|| {
            let put = a.post(b, Operation::Put, 0, 0, 8);
            for _ in 0..2000 {
                while a.fma(&put).is_err() {
                    std::thread::yield_now();
                }
            }
            for n in 0..2000 {
                b.nic.post_datagram(None, n, b"b").unwrap();
                while b.nic.next_datagram().is_none() {
                    b.nic.wait(&[], None, &|| false);
                }
            }
        });
    });
}

#[test]
fn a_sleep_ends_by_its_time() {
    let pair = Pair::new();
    let begun = Instant::now();
    let time = Duration::from_millis(20);
    pair.a.nic.wait(&[&pair.a.queue], Some(time), &|| false);
    assert!(begun.elapsed() >= Duration::from_millis(10));
    let word = pair.a.nic.shared.region.sleep_word(0);
    assert_eq!(word.load(Ordering::SeqCst) % 2, 0);
    // At once.
    pair.a.nic.wait(&[&pair.a.queue], None, &|| true);
    assert!(pair.b.send(0, b""));
    pair.a.nic.wait(&[&pair.a.queue], None, &|| false);
}
