//! Polls are bounded, and sleeping ranks are woken.

use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::pattern::Dice;
use crate::rig::{Job, Promises, Rig};
use crate::watchdog::Stop;
use argonet_am::MessageClass;
use argonet_base::JobRank;
use argonet_conduit::{Conduit, PrepareRequest};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    let sleeps = |name, run| Case {
        name,
        applies: |promises: &Promises| promises.sleeps,
        run,
    };
    vec![
        always("a_poll_is_bounded", a_poll_is_bounded),
        always("has_work_sees_messages", has_work_sees_messages),
        always("quiescent_means_handled", quiescent_means_handled),
        sleeps("a_sleep_has_an_end", a_sleep_has_an_end),
        sleeps("an_arrival_ends_a_sleep", an_arrival_ends_a_sleep),
        sleeps("no_wake_up_is_lost", no_wake_up_is_lost),
        Case {
            name: "another_threads_poll_ends_a_sleep",
            applies: |promises| promises.sleeps && super::par(promises),
            run: another_threads_poll_ends_a_sleep,
        },
    ]
}

/// A sleep that lasts so long was not ended by an arrival.
const TOO_LONG: Duration = Duration::from_secs(20);

// spec P2
/// Floods one rank from all sides.
///
/// Every poll of the suite is checked to be bounded; here more messages wait than one poll may
/// take.
fn a_poll_is_bounded<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(4));
    for from in 0..4 {
        bench.fill(from, 0, |tag| Mail::note(tag).asks_short());
    }
    bench.account();
    // And with replies: rank 0 takes none until all have been sent.
    for to in 1..4 {
        bench.fill(0, to, |tag| Mail::note(tag).asks_short());
    }
    bench.quiet_among(&[1, 2, 3]);
    bench.account();
}

/// `has_work` is false when there is nothing, and true when a poll would take something.
fn has_work_sees_messages<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3).calm());
    let quiet = |bench: &mut Bench<R>| {
        bench.account();
        each(bench, "has no work", |endpoint| !endpoint.has_work());
    };
    quiet(&mut bench);
    for (from, to) in [(0, 1), (2, 1), (1, 1), (0, 2)] {
        bench.send(from, to, Mail::note(5).medium(100).asks_short());
        let others: Vec<u32> = bench.ranks().filter(|&rank| rank != to).collect();
        bench.until_among(&others, "a request can be seen", |bench| {
            bench.at(to).has_work()
        });
        bench.until_among(&[to], "the request", |bench| {
            bench.logs[to as usize].count() > 0
        });
        if from != to {
            bench.until_among(&[to], "a reply can be seen", |bench| {
                bench.at(from).has_work()
            });
        }
        quiet(&mut bench);
        bench.forget();
    }
}

/// Waits until each endpoint has been seen in a state, while nothing is sent.
///
/// Not all at the same time: wires talk now and then although there is nothing to say.
fn each<R: Rig>(bench: &mut Bench<R>, what: &str, is_so: fn(&<R::Job as Job>::Conduit) -> bool) {
    let mut waiting: Vec<u32> = bench.ranks().collect();
    bench.until(&format!("each {what}"), |bench| {
        waiting.retain(|&rank| !is_so(bench.at(rank)));
        waiting.is_empty()
    });
}

/// When all ranks are quiescent at the same time, everything has been handled, replies too; and
/// when everything has been handled, all are quiescent sooner or later.
fn quiescent_means_handled<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    let mut dice = Dice(7);
    let max = bench.at(0).limits().medium_request;
    let all: Vec<u32> = bench.ranks().collect();
    let quiescent = |bench: &Bench<R>| bench.ranks().all(|rank| bench.at(rank).is_quiescent());
    for tag in 0..300 {
        let (from, to) = (dice.below(3) as u32, dice.below(3) as u32);
        let mail = Mail::note(tag).medium(dice.below(max));
        let mail = if tag % 2 == 0 {
            mail.asks_short()
        } else {
            mail
        };
        // With no room nothing is sent.
        let _ = bench.try_send(from, to, mail);
        for _ in 0..dice.below(8) {
            let looks = [dice.below(3) as u32];
            bench.round(if tag % 3 == 0 { &looks } else { &all });
            assert!(
                !quiescent(&bench) || bench.all_here(),
                "all quiescent after message {tag}"
            );
            let mut alone = all.iter().filter(|_| bench.promises.quiescent_is_handled);
            let early = alone.find(|&&r| bench.at(r).is_quiescent() && !bench.handled_of(r));
            assert_eq!(early, None, "quiescent after message {tag}");
        }
        if tag % 50 == 0 {
            bench.until("all of it is here", |bench| bench.all_here());
            each(&mut bench, "is quiescent", Conduit::is_quiescent);
        }
    }
    bench.account();
    each(&mut bench, "is quiescent", Conduit::is_quiescent);
}

/// Nothing comes, and the sleep ends.
fn a_sleep_has_an_end<R: Rig>(rig: &R) {
    let bench = Bench::new(rig, Want::ranks(2));
    let endpoint = bench.at(0);
    for timeout in [
        Duration::ZERO,
        Duration::from_micros(50),
        Duration::from_millis(20),
    ] {
        let begun = Instant::now();
        endpoint.sleep(Some(timeout), endpoint.epoch());
        assert!(begun.elapsed() < TOO_LONG, "{timeout:?}");
    }
}

/// Sends message `n` of rank 0 in [`ping_pong`], in the way that is tried.
type Send<C> = fn(&C, u32);

fn request<C: Conduit>(over: &C, n: u32) {
    let sent = Mail::note(n).medium(8).try_send(over, JobRank(1));
    assert_eq!(sent, Ok(()), "one message at a time fits");
}

fn short<C: Conduit>(over: &C, n: u32) {
    let sent = Mail::note(n).try_send(over, JobRank(1));
    assert_eq!(sent, Ok(()), "one message at a time fits");
}

fn negotiated<C: Conduit>(over: &C, n: u32) {
    let want = PrepareRequest {
        to: JobRank(1),
        class: MessageClass::Request,
        nargs: 1,
        least: 0,
        most: 10,
        offset: None,
    };
    let prepare = || over.prepare(&want).expect("one message at a time fits");
    if n.is_multiple_of(3) {
        over.cancel(prepare());
    }
    over.commit(prepare(), crate::log::NOTE, &[n], 0);
}

/// Rank 0 sends and waits for the answer, rank 1 waits and answers; both sleep when there is
/// nothing, after looking a varying number of times, so that messages come before, in and after the
/// last look.
///
/// The answer is a reply to an asking short in every second round.
fn ping_pong<R: Rig>(bench: &Bench<R>, rounds: u32, send: Send<<R::Job as Job>::Conduit>) {
    let stop = Stop::default();
    std::thread::scope(|scope| {
        for me in [0, 1] {
            let (stop, endpoint) = (&stop, bench.at(me));
            let mut log = bench.new_log(me);
            scope.spawn(move || {
                let _guard = stop.guard();
                for n in 1..=rounds {
                    if me == 0 {
                        send(endpoint, n);
                    }
                    let (mut looks, mut asleep) = (n.wrapping_mul(2_654_435_761) >> 24, 0);
                    while log.requests[1 - me as usize].len() < n as usize {
                        let seen = endpoint.epoch();
                        if endpoint.poll(&mut log) > 0 || looks > 0 {
                            looks = looks.saturating_sub(1);
                            continue;
                        }
                        let begun = Instant::now();
                        endpoint.sleep(Some(TOO_LONG), seen);
                        asleep += u32::from(begun.elapsed() >= TOO_LONG);
                        assert!(
                            asleep == 0 && !stop.stopped(),
                            "round {n}: rank {me} was not woken"
                        );
                    }
                    if me == 1 {
                        let back = Mail::note(n).try_send(endpoint, JobRank(0));
                        assert_eq!(back, Ok(()), "one message at a time fits");
                    }
                }
                assert_eq!(log.faults, [""; 0]);
            });
        }
    });
}

fn an_arrival_ends_a_sleep<R: Rig>(rig: &R) {
    for send in [short, request, negotiated] {
        let bench = Bench::new(rig, Want::ranks(2));
        ping_pong(&bench, 1000, send);
    }
    // Replies: the requester sleeps, the other answers from a handler.
    let bench = Bench::new(rig, Want::ranks(2));
    let stop = Stop::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = stop.guard();
            let mut log = bench.new_log(1);
            while !stop.stopped() {
                if bench.at(1).poll(&mut log) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let _guard = stop.guard();
        let (mut log, endpoint) = (bench.new_log(0), bench.at(0));
        for n in 1..=1000 {
            let sent = Mail::note(n).asks_short().try_send(endpoint, JobRank(1));
            assert_eq!(sent, Ok(()), "one message at a time fits");
            while log.replies[1].len() < n as usize {
                let seen = endpoint.epoch();
                if endpoint.poll(&mut log) == 0 {
                    let begun = Instant::now();
                    endpoint.sleep(Some(TOO_LONG), seen);
                    assert!(
                        begun.elapsed() < TOO_LONG,
                        "reply {n} did not wake its requester"
                    );
                }
            }
        }
        stop.stop();
    });
}

fn no_wake_up_is_lost<R: Rig>(rig: &R) {
    let bench = Bench::new(rig, Want::ranks(2));
    ping_pong(&bench, 20_000, short);
}

/// A thread that looked before another thread's poll took the message would sleep forever.
fn another_threads_poll_ends_a_sleep<R: Rig>(rig: &R) {
    // The sender does nothing more.
    let mut bench = Bench::new(rig, Want::ranks(2).calm());
    for n in 0..100 {
        let seen = bench.at(0).epoch();
        bench.send(1, 0, Mail::note(n));
        let mut log = bench.new_log(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while log.count() == 0 {
                    bench.at(0).poll(&mut log);
                }
            });
        });
        // Something that is no message may follow.
        while bench.at(0).has_work() {
            bench.at(0).poll(&mut log);
        }
        bench.merge(0, log);
        bench.at(0).sleep(None, seen);
        assert_ne!(bench.at(0).epoch(), seen);
    }
    bench.account();
    sleeper_beside_a_poller(&bench);
}

/// One thread only sleeps, another only polls; each message is the last until the sleeper has seen
/// that it was handled, so that no other wakes it.
fn sleeper_beside_a_poller<R: Rig>(bench: &Bench<R>) {
    const COUNT: u64 = 2000;
    let requests = &bench.board.counts(0).requests;
    let before = requests.load(Ordering::Relaxed);
    let handled = || requests.load(Ordering::Relaxed) - before;
    let (seen_by_sleeper, stop) = (AtomicU64::new(0), Stop::default());
    let mut own = bench.new_log(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = stop.guard();
            let mut log = bench.new_log(0);
            while handled() < COUNT && !stop.stopped() {
                if bench.at(0).poll(&mut log) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            let _guard = stop.guard();
            for n in 1..=COUNT {
                loop {
                    let seen = bench.at(0).epoch();
                    if handled() >= n || stop.stopped() {
                        break;
                    }
                    let begun = Instant::now();
                    bench.at(0).sleep(Some(TOO_LONG), seen);
                    assert!(
                        begun.elapsed() < TOO_LONG,
                        "slept over another's poll of message {n}"
                    );
                }
                seen_by_sleeper.store(n, Ordering::Relaxed);
            }
        });
        for n in 0..COUNT {
            while seen_by_sleeper.load(Ordering::Relaxed) < n && !stop.stopped() {
                std::thread::yield_now();
            }
            while Mail::note(n as u32)
                .try_send(bench.at(1), JobRank(0))
                .is_err()
            {
                // The sender may get room by taking messages.
                bench.at(1).poll(&mut own);
                std::thread::yield_now();
            }
        }
    });
}
