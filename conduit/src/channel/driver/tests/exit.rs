//! The end of the job over rails: reports, answers and refusals.

use super::*;
use crate::channel::AnyRails;
use crate::channel::ChannelCredits;
use crate::channel::driver::peer::Outbound;
use crate::exit::{ExitCounts, ExitReport};
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::Read;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// `Exit(7)`, the first question of a peer, and its answer.
const EXIT_7: u64 = 2 << 56 | 1 << 48 | 7;
const EXITING: u64 = 0x82 << 56 | 1 << 48;

/// Exits that a rank hears of.
pub(super) fn hearing(rank: &Rank) -> Arc<Mutex<Vec<(u32, u8)>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    rank.tcp
        .on_exit(Box::new(move |from, code| log.lock().push((from.0, code))));
    heard
}

pub(super) fn report(rank: &Rank, limit: Duration) -> ExitCounts {
    rank.tcp.report_exit(&ExitReport {
        code: 7,
        limit,
        spares: &|_| false,
    });
    rank.tcp.exits().unwrap()
}

/// Does something while another rank polls.
fn while_polled<R>(other: &mut Rank, act: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                other.poll();
                std::thread::yield_now();
            }
        });
        let result = act();
        done.store(true, Ordering::Relaxed);
        polling.join().expect("the other polls");
        result
    })
}

const ONE: ExitCounts = ExitCounts {
    reported: 1,
    confirmed: 1,
    heard: 0,
};

// spec P13
#[test]
fn connected_ranks_confirm_an_exit() {
    let without = ChannelSizes {
        credits: None,
        ..ChannelSizes::default()
    };
    for sizes in [ChannelSizes::default(), without] {
        let [a, mut b] = two(sizes);
        let heard = hearing(&b);
        // There is a third rank that has been used, and is not connected yet.
        a.tcp.core.peer_or_init(JobRank(2));
        assert_eq!(while_polled(&mut b, || report(&a, LONG)), ONE);
        assert_eq!(*heard.lock(), [(0, 7)]);
        assert_eq!(a.queue.wanted.lock().len(), 0);
        // A rank that heard of an exit reports it to no rank.
        let due = ExitCounts {
            heard: 1,
            ..ExitCounts::default()
        };
        assert_eq!(report(&b, LONG), due);
    }
}

#[test]
fn an_exit_waits_for_the_answer_to_the_question_before() {
    let credits = ChannelCredits {
        share: Some(400),
        bank: Some(0),
        ..ChannelCredits::default()
    };
    let [a, mut b] = two(ChannelSizes {
        credits: Some(credits),
        ..ChannelSizes::default()
    });
    let heard = hearing(&b);
    // Rank 2 lacks credits, so rank 1 is asked for some.
    let core = &a.tcp.core;
    let bank = core.bank.as_ref().unwrap();
    let (third, _) = core.peer_or_init(JobRank(2));
    let lacks = |outbound: &mut Outbound<AnyRails>| {
        outbound.loans.as_mut().unwrap().peer.asks(200, 2, bank)
    };
    assert_eq!(lacks(&mut third.outbound.lock()), 0);
    core.scavenge();
    assert!(core.used(1).unwrap().outbound.lock().slot.is_busy());
    assert_eq!(while_polled(&mut b, || report(&a, LONG)), ONE);
    assert_eq!(*heard.lock(), [(0, 7)]);
    assert!(bank.banked() > 0, "the first question was answered, too");
}

#[test]
fn a_thread_that_serves_confirms_for_a_rank_that_computes() {
    let [here, there] = pair();
    let sizes = ChannelSizes::default();
    let a = Rank::new(0, sizes, Some(connection(1, here, 1)));
    let b = Rank::with_progress(1, sizes, Some(connection(0, there, 1)));
    let heard = hearing(&b);
    assert_eq!(report(&a, LONG), ONE);
    assert_eq!(*heard.lock(), [(0, 7)]);
}

#[test]
fn a_peer_that_has_gone_is_not_waited_for() {
    let [here, there] = pair();
    let a = Rank::new(0, ChannelSizes::default(), Some(connection(1, here, 1)));
    drop(there);
    assert_eq!(report(&a, LONG), ONE);
}

/// As in a handler of a message of that peer.
#[test]
fn where_answers_cannot_be_read_the_wait_is_bounded() {
    let [a, mut b] = two(ChannelSizes::default());
    let heard = hearing(&b);
    let peer = a.tcp.core.used(1).unwrap();
    let handled = peer.inbound.lock();
    let counts = while_polled(&mut b, || report(&a, Duration::from_millis(20)));
    drop(handled);
    assert_eq!((counts.reported, counts.confirmed), (1, 0));
    until(&mut b, "news of the exit", |_| heard.lock().len() == 1);
}

#[test]
fn an_exit_that_is_repeated_is_acted_upon_once_and_answered_again() {
    let [here, mut there] = pair();
    let mut a = Rank::new(0, ChannelSizes::default(), Some(connection(1, here, 1)));
    let heard = hearing(&a);
    let fields = Fields {
        offset: EXIT_7,
        ..Fields::default()
    };
    let exit = HeadBytes::new(Kind::System, 0, &[], 0, &fields);
    let mut got = Vec::new();
    for answers in 1..=2 {
        there.write_all(exit.as_bytes()).unwrap();
        there.set_nonblocking(true).unwrap();
        let mut tries = 0;
        while got
            .windows(8)
            .filter(|word| **word == EXITING.to_le_bytes())
            .count()
            < answers
        {
            a.poll();
            let mut bytes = [0; 64];
            let count = there.read(&mut bytes).unwrap_or(0);
            got.extend_from_slice(&bytes[..count]);
            tries += 1;
            assert!(tries < IDLE, "no answer {answers} comes: {got:x?}");
            std::thread::yield_now();
        }
        there.set_nonblocking(false).unwrap();
    }
    assert_eq!(*heard.lock(), [(1, 7)]);
    assert_eq!(a.seen.broken, []);
}
