//! The service: several threads, the system's clock.

use super::super::service::{JoinService, Made};
use super::super::*;
use super::rig::{dead_address, key, loopback, same_bytes};
use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec};
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
            "it sleeps for ever"
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

/// Asked for again after it was given, it was lost.
#[test]
fn what_is_wanted_again_is_made_again() {
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

/// Threads wish under a lock that the fence takes; and what is closed is made anew only when it is wanted.
#[test]
fn wishes_may_be_made_under_any_lock() {
    let [a, b] = pair();
    let lock = parking_lot::Mutex::new(0u64);
    let fence = |_: JobRank, _: u16| *lock.lock();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| joined(&b, 0));
        let wisher = scope.spawn(|| {
            for _ in 0..1000 {
                let _held = lock.lock();
                a.want(JobRank(1), 0);
            }
        });
        while !wisher.is_finished() || !other.is_finished() {
            a.next(&fence).unwrap();
        }
        wisher.join().unwrap();
        other.join().unwrap();
    });
}
