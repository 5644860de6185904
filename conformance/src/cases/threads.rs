//! Several threads of a rank: counts and contents are right whichever thread sends and polls.

use super::{Case, par};
use crate::bench::{Bench, Want};
use crate::log::{Log, NOTE};
use crate::mail::Mail;
use crate::rig::{Job, Rig};
use crate::watchdog::Stop;
use argonet_am::MessageClass;
use argonet_base::JobRank;
use argonet_conduit::{Conduit, PrepareRequest, SendError, ThreadMode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    let case = |name, run| Case {
        name,
        applies: par,
        run,
    };
    vec![
        case("threads_share_a_class", threads_share_a_class),
        case("threads_with_different_peers", threads_with_different_peers),
        case("threads_both_ways", threads_both_ways),
        case("threads_negotiate", threads_negotiate),
        Case {
            name: "threads_in_turn",
            applies: |promises| promises.threads != ThreadMode::Seq,
            run: threads_in_turn,
        },
    ]
}

/// Messages that a thread sends before it waits for the other senders to have sent as many.
const BURST: usize = 32;

/// A thread that sends `count` messages, as many as all of its case.
struct Sender {
    from: u32,
    to: u32,
    count: u32,
    /// By prepare and commit, for messages that allow it.
    negotiates: bool,
}

fn sender(from: u32, to: u32, count: u32) -> Sender {
    Sender {
        from,
        to,
        count,
        negotiates: false,
    }
}

/// Message `n` of thread `thread`: tags differ between threads, all sizes and kinds mix.
fn mail(thread: usize, n: u32) -> Mail {
    let note = Mail::note(n << 4 | thread as u32);
    match n % 5 {
        0 => note,
        1 => note.medium(n as usize % 300).echo(),
        2 => note.args(5),
        3 => note.medium(n as usize % 40).args(3),
        _ => note.asks_short(),
    }
}

/// Message `n` of a thread that negotiates: mostly mediums, which it can.
fn negotiable(thread: usize, n: u32) -> Mail {
    let note = Mail::note(n << 4 | thread as u32);
    if n.is_multiple_of(8) {
        note.asks_short()
    } else {
        note.medium(1 + n as usize % 30)
    }
}

/// Runs the senders, which poll their own rank while there is no room and after they have sent, and
/// a thread for each rank of `pollers`, until all is handled; then compares.
fn run<R: Rig>(
    bench: &mut Bench<R>,
    senders: &[Sender],
    pollers: &[u32],
    mail: fn(usize, u32) -> Mail,
) {
    // Several threads have no order among each other.
    bench.promises.ordered = false;
    for (thread, plan) in senders.iter().enumerate() {
        for n in 0..plan.count {
            bench.owe(plan.from, plan.to, mail(thread, n));
        }
    }
    let (mut requests, mut replies) = (0, 0);
    for (thread, plan) in senders.iter().enumerate() {
        requests += u64::from(plan.count);
        let asking = (0..plan.count).filter(|&n| mail(thread, n).reply_entry().is_some());
        replies += asking.count() as u64;
    }
    let all: Vec<u32> = bench.ranks().collect();
    let stop = Stop::default();
    // Senders that have come to the next burst.
    let bursts_begun = AtomicUsize::new(0);
    let shared: &Bench<R> = bench;
    let done = || {
        let sum = |class: fn(&crate::watchdog::Counts) -> u64| -> u64 {
            all.iter()
                .map(|&rank| class(shared.board.counts(rank as usize)))
                .sum()
        };
        stop.stopped()
            || sum(|counts| counts.requests.load(Ordering::Relaxed)) >= requests
                && sum(|counts| counts.replies.load(Ordering::Relaxed)) >= replies
    };
    let poll = |rank: u32, log: &mut Log| {
        let taken = shared.at(rank).poll(log);
        assert_eq!(log.faults, [""; 0]);
        if taken == 0 {
            shared.job.advance();
            std::thread::yield_now();
        }
    };
    let logs: Vec<(u32, Log)> = std::thread::scope(|scope| {
        let (stop, arrived, done, poll) = (&stop, &bursts_begun, &done, &poll);
        let sending = senders.iter().enumerate().map(|(thread, plan)| {
            scope.spawn(move || {
                let _guard = stop.guard();
                let (endpoint, to) = (shared.at(plan.from), JobRank(plan.to));
                let mut log = shared.new_log(plan.from);
                // Made before, so that the threads do little but send.
                let ready = (0..plan.count).map(|n| Ready::new(mail(thread, n), plan.negotiates));
                let ready: Vec<Ready> = ready.collect();
                for (n, one) in ready.iter().enumerate() {
                    if n % BURST == 0 {
                        // All begin at once, so that they meet even where the machine is busy.
                        arrived.fetch_add(1, Ordering::Relaxed);
                        let all = (n / BURST + 1) * senders.len();
                        let mut looks = 0;
                        while arrived.load(Ordering::Relaxed) < all && !stop.stopped() {
                            looks += 1;
                            if looks % 4096 == 0 {
                                // Senders without room wait for this rank.
                                poll(plan.from, &mut log);
                            }
                            std::hint::spin_loop();
                        }
                    }
                    while !stop.stopped() {
                        match one.send(endpoint, to) {
                            Ok(()) => break,
                            Err(SendError::Full) => poll(plan.from, &mut log),
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                while !done() {
                    poll(plan.from, &mut log);
                }
                (plan.from, log)
            })
        });
        let sending: Vec<_> = sending.collect();
        let polling = pollers.iter().map(|&rank| {
            scope.spawn(move || {
                let _guard = stop.guard();
                let mut log = shared.new_log(rank);
                while !done() {
                    poll(rank, &mut log);
                }
                (rank, log)
            })
        });
        let polling: Vec<_> = polling.collect();
        let threads = sending.into_iter().chain(polling);
        threads
            .map(|thread| thread.join().expect("a thread of the case failed"))
            .collect()
    });
    for (rank, log) in logs {
        bench.merge(rank, log);
    }
    bench.account();
}

/// A message with its arguments and payload.
struct Ready {
    mail: Mail,
    args: Vec<u32>,
    bytes: Vec<u8>,
    negotiate: bool,
}

impl Ready {
    fn new(mail: Mail, negotiate: bool) -> Self {
        let (args, bytes) = (mail.arguments(), mail.payload());
        Self {
            mail,
            args,
            bytes,
            negotiate,
        }
    }

    /// Sends it once; by prepare and commit, now and then after a cancel, where a thread negotiates
    /// and the message allows it.
    fn send<C: Conduit>(&self, over: &C, to: JobRank) -> Result<(), SendError> {
        let entry = self.mail.entry();
        if !self.negotiate || entry.handler != NOTE.0 || entry.len == 0 {
            return self.mail.try_send_with(over, to, &self.args, &self.bytes);
        }
        let want = PrepareRequest {
            to,
            class: MessageClass::Request,
            nargs: entry.nargs,
            least: entry.len,
            most: entry.len + 100,
            offset: None,
        };
        if entry.tag.is_multiple_of(3) {
            over.cancel(over.prepare(&want)?);
        }
        let mut prepared = over.prepare(&want)?;
        // SAFETY: the conduit is borrowed.
        let written = unsafe { prepared.buffer() }.copy_from(0, &self.bytes);
        written.expect("the buffer has at least the bytes asked for");
        over.commit(prepared, NOTE, &self.args, entry.len);
        Ok(())
    }
}

// spec T6: threads share a stream.
fn threads_share_a_class<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let senders = [
        sender(0, 1, 60_000),
        sender(0, 1, 60_000),
        sender(0, 1, 60_000),
    ];
    run(&mut bench, &senders, &[1, 1], mail);
}

fn threads_with_different_peers<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    run(
        &mut bench,
        &[sender(0, 1, 10_000), sender(0, 2, 10_000)],
        &[1, 2],
        mail,
    );
}

/// Also to itself.
fn threads_both_ways<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).cramped());
    let senders = [
        sender(0, 1, 6000),
        sender(0, 0, 6000),
        sender(1, 0, 6000),
        sender(1, 0, 6000),
    ];
    run(&mut bench, &senders, &[], mail);
}

fn threads_negotiate<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let negotiator = Sender {
        negotiates: true,
        ..sender(0, 1, 60_000)
    };
    let senders = [negotiator, sender(0, 1, 60_000)];
    run(&mut bench, &senders, &[1], negotiable);
}

/// Several threads, one at a time: one sends, another polls for the messages.
fn threads_in_turn<R: Rig>(rig: &R) {
    const EACH: u32 = 1000;
    let mut bench = Bench::new(rig, Want::ranks(2));
    bench.promises.ordered = false;
    let turn = Mutex::new(&mut bench);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let turn = &turn;
            scope.spawn(move || {
                for n in 0..EACH {
                    let mut bench = turn.lock().expect("no thread of the case has failed");
                    let from = thread as u32 % 2;
                    bench.send(from, 1 - from, mail(thread, n));
                }
            });
        }
    });
    bench.account();
}
