//! The service: several threads, the system's clock.

use super::super::interfaces::Interface;
use super::super::service::{JoinService, Made};
use super::super::*;
use super::rig::{dead_address, key, loopback, same_bytes};
use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn joiner(me: u32, unreachable: Duration) -> Joiner {
    let mut config = JoinConfig::default();
    config.dial.unreachable_ns = unreachable.as_nanos() as u64;
    Joiner::new(config, key(), JobRank(me), 2, vec![loopback()]).unwrap()
}

/// Two services that know each other.
fn pair() -> [JoinService; 2] {
    let joiners: [Joiner; 2] = [0, 1].map(|me| joiner(me, Duration::from_secs(30)));
    let places = [0, 1].map(|n| Whereabouts {
        host: format!("host{n}"),
        addresses: joiners[n].addresses().to_vec(),
    });
    joiners.map(|joiner| {
        let places = places.clone();
        JoinService::new(joiner, Box::new(move |peer| places[peer.index()].clone())).unwrap()
    })
}

/// Sleeps on the descriptor until there is something.
fn wait_for(service: &JoinService, received: u64) -> Made {
    loop {
        if let Some(made) = service.next(&|_, _| received).unwrap() {
            return made;
        }
        let mut fds = [PollFd::from_borrowed_fd(
            service.descriptor(),
            PollFlags::IN,
        )];
        let wait = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        assert_eq!(
            rustix::event::poll(&mut fds, Some(&wait)),
            Ok(1),
            "it sleeps forever"
        );
    }
}

fn joined(service: &JoinService, received: u64) -> Joined {
    match wait_for(service, received) {
        Made::Joined(joined) => joined,
        Made::Unreachable(error) => panic!("{error}"),
    }
}

#[test]
fn threads_that_sleep_on_the_descriptor_are_woken() {
    let [a, b] = pair();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| joined(&b, 5));
        a.want(JobRank(1), 0);
        a.want(JobRank(1), 0);
        let mine = joined(&a, 6);
        let its = other.join().unwrap();
        assert_eq!((mine.received, its.received), (5, 6));
        same_bytes(&mine.socket, &its.socket);
    });
    assert!(a.next(&|_, _| 0).unwrap().is_none());
}

#[test]
fn a_rank_listens_at_the_addresses_that_it_is_given_later() {
    let [a, _b] = pair();
    let other = Interface {
        address: [127, 0, 0, 9].into(),
        ..loopback()
    };
    let lists = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&lists);
    // The system refuses the first time, and the address is not of this host the second time.
    let a = a.with_own(Box::new(move || {
        let mut other = other.clone();
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => return None,
            1 => other.address = [192, 0, 2, 77].into(),
            _ => {}
        }
        Some(vec![other])
    }));
    let before = a.addresses();
    assert!(a.next(&|_, _| 0).unwrap().is_none());
    assert_eq!(a.addresses(), before);
    a.readdress();
    let begun = std::time::Instant::now();
    let is_due = |seconds| {
        let mut fds = [PollFd::from_borrowed_fd(a.descriptor(), PollFlags::IN)];
        let wait = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut fds, Some(&wait)).unwrap() > 0
    };
    while a.addresses() == before {
        assert!(is_due(20), "nothing is tried again");
        assert!(a.next(&|_, _| 0).unwrap().is_none());
    }
    assert_eq!(a.addresses()[0].ip().to_string(), "127.0.0.9");
    let waited = begun.elapsed().as_secs_f64();
    assert!((1.9..20.0).contains(&waited), "{waited}");
    assert_eq!(lists.load(Ordering::Relaxed), 3);
    assert!(!is_due(0), "it is tried once more");
}

/// A wish made while others are taken makes the descriptor readable once, for the next look.
#[test]
fn the_descriptor_is_not_readable_without_a_wish() {
    const ROUNDS: u32 = 2000;
    let [a, _b] = pair();
    // Both threads count their steps; they spin, as the race lies between two instructions.
    let counts = [AtomicU32::new(0), AtomicU32::new(0)];
    let meet = |me: usize, count: u32| {
        counts[me].store(count, Ordering::SeqCst);
        let mut looks = 0;
        while counts[1 - me].load(Ordering::SeqCst) < count {
            looks += 1;
            match looks % 20_000 {
                0 => std::thread::yield_now(),
                _ => core::hint::spin_loop(),
            }
        }
    };
    let rung = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            for round in 0..ROUNDS {
                meet(1, 2 * round + 1);
                (0..round % 64).for_each(|_| core::hint::spin_loop());
                a.close(JobRank(1), 1);
                meet(1, 2 * round + 2);
            }
        });
        let rings = |round: &u32| {
            a.close(JobRank(1), 2);
            meet(0, 2 * round + 1);
            assert!(a.next(&|_, _| 0).unwrap().is_none());
            meet(0, 2 * round + 2);
            assert!(a.next(&|_, _| 0).unwrap().is_none());
            let mut fds = [PollFd::from_borrowed_fd(a.descriptor(), PollFlags::IN)];
            rustix::event::poll(&mut fds, Some(&Timespec::default())) != Ok(0)
        };
        // All of them, as the other thread must not wait for this one.
        let rung = (0..ROUNDS).filter(rings).count();
        other.join().unwrap();
        rung
    });
    assert_eq!(rung, 0, "rounds of {ROUNDS}");
}

/// Both ends have closed it: the lower rank, too, asks at once, where it leaves a lost one to the
/// higher rank for a while.
///
/// Wishes are granted in their order.
#[test]
fn a_connection_that_was_closed_is_made_again() {
    let [a, b] = pair();
    let meet = |closes: bool| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                if closes {
                    b.close(JobRank(0), 0);
                }
                joined(&b, 0)
            });
            a.want(JobRank(1), 0);
            if closes {
                a.close(JobRank(1), 0);
                a.want(JobRank(1), 0);
            }
            let mine = joined(&a, 0);
            let its = other.join().unwrap();
            same_bytes(&mine.socket, &its.socket);
            assert_eq!(mine.incarnation, its.incarnation);
            mine.incarnation
        })
    };
    let first = meet(false);
    let next = meet(true);
    assert!(next > first, "{first} is followed by {next}");
}

/// Asked for again after it was given, it was lost.
#[test]
fn a_connection_wanted_again_is_made_again() {
    let [a, b] = pair();
    b.want(JobRank(0), 0);
    let mut last = 0;
    for round in 0..20u64 {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| joined(&b, 100 + round));
            let mine = joined(&a, round);
            let its = other.join().unwrap();
            assert!(mine.incarnation == its.incarnation && mine.incarnation > last);
            assert_eq!((mine.received, its.received), (100 + round, round));
            last = mine.incarnation;
        });
        let who = if round % 2 == 0 { (&a, 1) } else { (&b, 0) };
        who.0.want(JobRank(who.1), 0);
    }
}

#[test]
fn the_end_of_waiting_comes_through_the_descriptor() {
    let lonely = joiner(0, Duration::from_millis(300));
    let dead = dead_address();
    let place = Whereabouts {
        host: "host1".into(),
        addresses: vec![dead],
    };
    let service = JoinService::new(lonely, Box::new(move |_| place.clone())).unwrap();
    service.want(JobRank(1), 0);
    match wait_for(&service, 0) {
        Made::Unreachable(error) => assert!(error.to_string().contains("on host1"), "{error}"),
        Made::Joined(_) => panic!("with whom?"),
    }
}

/// The thread that wishes may hold a lock that a fence waits for.
#[test]
fn wishes_may_be_made_while_a_fence_waits() {
    let [a, b] = pair();
    let a = Arc::new(a);
    a.want(JobRank(1), 0);
    let fence = |_: JobRank, _: u16| {
        let (done, is_done) = std::sync::mpsc::channel();
        let service = Arc::clone(&a);
        let wisher = std::thread::spawn(move || {
            service.want(JobRank(1), 0);
            done.send(()).unwrap();
        });
        let waited = is_done.recv_timeout(Duration::from_secs(20));
        assert!(waited.is_ok(), "a wish waits for the fence");
        wisher.join().unwrap();
        9
    };
    a.next(&fence).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| joined(&b, 0));
        while !other.is_finished() {
            a.next(&|_, _| 9).unwrap();
        }
        assert_eq!(other.join().unwrap().received, 9);
    });
}

/// The wakeup: a thread that sleeps on the descriptor wakes for a wish of another thread.
#[test]
fn a_wish_makes_the_descriptor_readable() {
    let [a, _b] = pair();
    let ready = || {
        let mut fds = [PollFd::from_borrowed_fd(a.descriptor(), PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut fds, Some(&at_once)).unwrap() == 1
    };
    assert!(!ready());
    a.close(JobRank(1), 0);
    assert!(ready());
    assert!(a.next(&|_, _| 0).unwrap().is_none());
    assert!(!ready(), "the wakeup is still there");
}
