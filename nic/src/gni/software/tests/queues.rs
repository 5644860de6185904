//! Completion queues.

use super::{FaultRules, Pair, SHAPE, data, is_came};
use crate::gni::{EventKind, Gni, GniError, Operation, Shape};
use core::sync::atomic::{AtomicBool, Ordering};

/// Has `b` get an event by a put of nothing.
fn notify(pair: &Pair) {
    let mut put = pair.a.post(&pair.b, Operation::Put, 0, 0, 0);
    put.remote_event = true;
    pair.a.fma(&put).unwrap();
    assert!(pair.a.next().is_some());
}

#[test]
fn a_queue_that_was_full_says_so_once_and_goes_on() {
    for events in [1, 2, 64] {
        let pair = Pair::with(SHAPE, events, true, FaultRules::default());
        for _ in 0..100 {
            (0..events).for_each(|_| notify(&pair));
            for _ in 0..events {
                assert!(is_came(pair.b.next(), data(1).remote));
            }
            assert!(pair.b.next().is_none());
            (0..events + 3).for_each(|_| notify(&pair));
            let lost = pair.b.nic.next_event(&pair.b.queue);
            assert!(matches!(lost, Err(GniError::Overrun { .. })));
            for _ in 0..events {
                assert!(is_came(pair.b.next(), data(1).remote));
            }
            assert!(!pair.b.nic.has_event(&pair.b.queue) && pair.b.next().is_none());
        }
    }
}

#[test]
fn posts_find_room_or_are_refused() {
    let pair = Pair::with(SHAPE, 4, true, FaultRules::default());
    let put = pair.a.post(&pair.b, Operation::Put, 0, 0, 8);
    for _ in 0..10 {
        for _ in 0..4 {
            pair.a.fma(&put).unwrap();
        }
        assert!(matches!(pair.a.fma(&put), Err(GniError::Busy { .. })));
        assert!(matches!(pair.a.rdma(&put, &[]), Err(GniError::Busy { .. })));
        assert!(pair.a.next().is_some());
        pair.a.rdma(&put, &[]).unwrap();
        assert_eq!(std::iter::from_fn(|| pair.a.next()).count(), 4);
    }
}

#[test]
fn queues_are_made_again_and_know_their_events() {
    let pair = Pair::closed(4, true, FaultRules::default());
    let nic = &pair.b.nic;
    let limits = nic.limits();
    for round in 0..50 {
        let queues: Vec<_> = (1..limits.queues)
            .map(|_| nic.create_queue(1 << (round % 5)).unwrap())
            .collect();
        let none = nic.create_queue(4);
        assert!(matches!(none, Err(GniError::NoSpace { .. })));
        let memory = super::register(nic, 64, 64, queues.last());
        let mut put = pair.a.post(&pair.b, Operation::Put, 0, 0, 8);
        put.remote.handle = memory;
        put.remote_event = true;
        pair.a.fma(&put).unwrap();
        assert!(pair.a.next().is_some());
        drop(nic.next_event(&queues[0]));
        let last = queues.last().unwrap();
        assert!(is_came(nic.next_event(last).unwrap(), data(1).remote));
        // An event that lies in it goes with it.
        pair.a.fma(&put).unwrap();
        drop(queues);
        let queues: Vec<_> = (1..limits.queues)
            .map(|_| nic.create_queue(8).unwrap())
            .collect();
        // The memory has the queue of before.
        pair.a.fma(&put).unwrap();
        assert!(queues.iter().all(|queue| !nic.has_event(queue)));
        assert!(pair.a.next().is_some() && pair.a.next().is_some());
        nic.deregister(memory).unwrap();
    }
    for events in [0, limits.events + 1] {
        assert!(matches!(
            nic.create_queue(events),
            Err(GniError::NoSpace { .. })
        ));
    }
}

#[test]
fn many_producers_lose_nothing() {
    const EACH: u32 = 20_000;
    for events in [2_u32, 1 << 17] {
        let config = crate::gni::software::SoftwareConfig {
            queue_events: 1 << 17,
            ..super::config(5)
        };
        let file = super::file();
        let owner = super::open(&file, config, 0, FaultRules::default());
        let queue = owner.create_queue(events).unwrap();
        let memory = super::register(&owner, 0, super::BUFFERS, Some(&queue));
        let peers: Vec<_> = (1..5)
            .map(|rank| super::open(&file, config, rank, FaultRules::default()))
            .collect();
        let done = AtomicBool::new(false);
        let (mut counts, mut overruns) = ([0_u32; 5], 0_u32);
        std::thread::scope(|scope| {
            let producers: Vec<_> = (1..)
                .zip(&peers)
                .map(|(rank, nic)| {
                    scope.spawn(move || {
                        let queue = nic.create_queue(4).unwrap();
                        let from = crate::gni::EventData {
                            local: 0,
                            remote: rank,
                        };
                        let to = nic
                            .create_endpoint(&queue, super::address(0), from)
                            .unwrap();
                        let post = crate::gni::Post {
                            operation: Operation::Amo {
                                amo: crate::gni::Amo::Add,
                                bits: crate::gni::AmoBits::Eight,
                                operands: [1, 0],
                                fetch: false,
                            },
                            local: super::memory(nic, 0),
                            remote: crate::gni::RemotePlace {
                                handle: memory,
                                offset: u64::from(rank) * 64,
                            },
                            len_bytes: 8,
                            id: 0,
                            remote_event: true,
                            fence: false,
                        };
                        for _ in 0..EACH {
                            // SAFETY: an atomic operation has no local memory.
                            unsafe { nic.post_fma(&to, &post) }.unwrap();
                            assert!(nic.next_event(&queue).unwrap().is_some());
                        }
                    })
                })
                .collect();
            let end = scope.spawn(|| {
                for producer in producers {
                    producer.join().unwrap();
                }
                done.store(true, Ordering::SeqCst);
            });
            loop {
                let last = done.load(Ordering::SeqCst);
                match owner.next_event(&queue) {
                    Ok(Some(event)) => {
                        assert!(matches!(event.kind, EventKind::Came));
                        counts[event.data as usize] += 1;
                    }
                    Ok(None) if last => break,
                    Ok(None) => std::thread::yield_now(),
                    Err(GniError::Overrun { .. }) => overruns += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            end.join().unwrap();
        });
        for (rank, count) in (1..).zip(&counts[1..]) {
            let carried = super::read(&owner, rank * 64, 8);
            assert_eq!(carried, u64::from(EACH).to_ne_bytes());
            assert!(*count <= EACH);
            assert!(
                *count == EACH || overruns != 0,
                "{counts:?} without an overrun"
            );
            assert!(overruns == 0 || events == 2, "there was room for all");
        }
        assert!(!owner.has_event(&queue));
    }
}

#[test]
fn events_come_one_by_one_from_several_threads() {
    const ROUNDS: u64 = 30_000;
    let shape = Shape {
        messages: 16,
        message_bytes: 8,
    };
    let pair = Pair::with(shape, 64, true, FaultRules::default());
    let (a, b) = (&pair.a, &pair.b);
    let taken = core::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                while !a.send(0, &n.to_ne_bytes()) {
                    std::thread::yield_now();
                }
            }
        });
        // At most 16 are not released, so the queue has room for all.
        for _ in 0..2 {
            scope.spawn(|| {
                while taken.load(Ordering::Relaxed) < ROUNDS {
                    match b.next() {
                        Some(_) => {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                        None => std::thread::yield_now(),
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut released = 0;
            while released < ROUNDS {
                // Not before its event was taken, so no more than 16 are in the queue.
                if taken.load(Ordering::Relaxed) > released && b.take().is_some() {
                    released += 1;
                } else {
                    std::thread::yield_now();
                }
            }
        });
    });
    assert_eq!(taken.load(Ordering::Relaxed), ROUNDS);
    assert!(b.next().is_none());
}
