//! Windows that are lent: they follow use, none is lost, and together they are no more than the
//! receive space.

use super::*;
use crate::PeerCredits;
use crate::channel::CREDIT_BYTES;
use crate::channel::ChannelCredits;
use crate::channel::driver::loans::Loans;
use crate::channel::frame::LARGEST_CHARGE;
use crate::channel::stream::{Grant, Parked};
use argonet_am::credit::{Bank, Figures, Return, Revoke};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

const SHARE: u16 = LARGEST_CHARGE.div_ceil(CREDIT_BYTES) as u16;
const BANK: u32 = 300;

fn sizes() -> ChannelSizes {
    let credits = ChannelCredits {
        most: 1000,
        epoch_requests: 8,
        share: Some(SHARE.into()),
        bank: Some(BANK),
        ..ChannelCredits::default()
    };
    ChannelSizes {
        credits: Some(credits),
        ..ChannelSizes::default()
    }
}

/// Three ranks; each pair has a connection.
struct Job {
    ranks: Vec<Rank>,
    incarnation: u64,
    handled_due: [usize; 3],
}

impl Job {
    fn new(sizes: ChannelSizes) -> Self {
        let mut job = Self {
            ranks: (0..3).map(|rank| Rank::new(rank, sizes, None)).collect(),
            incarnation: 0,
            handled_due: [0; 3],
        };
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            job.connect(one, other);
        }
        job
    }

    /// Another connection between the two; bytes on their way over the one before are lost.
    fn connect(&mut self, one: u32, other: u32) {
        self.incarnation += 1;
        let [here, there] = pair();
        let received = |at: &Rank, from: u32| {
            let peer = at.tcp.core.used(from);
            peer.map_or(0, |peer| peer.inbound.lock().complete())
        };
        let [a, b] = [one, other].map(|rank| &self.ranks[rank as usize]);
        let taken = [received(a, other), received(b, one)];
        let with = |peer, socket: TcpStream, received| {
            Made::Rail(NewRail {
                id: RailId {
                    peer: JobRank(peer),
                    number: 0,
                },
                rail: socket.into(),
                incarnation: self.incarnation,
                received,
            })
        };
        // Adopted at once: nothing more is taken from the old connection.
        a.queue.push(with(other, here, taken[1]));
        b.queue.push(with(one, there, taken[0]));
        a.tcp.core.take_made();
        b.tcp.core.take_made();
    }

    fn send(&mut self, from: u32, to: u32, len: usize) -> bool {
        let bytes = vec![7; len];
        let message = Message {
            handler: NOTE,
            args: &[],
            payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
        };
        let sent = self.ranks[from as usize].tcp.request(JobRank(to), &message);
        if sent.is_ok() {
            self.handled_due[to as usize] += 1;
        }
        sent.is_ok()
    }

    fn poll(&mut self) {
        for rank in &mut self.ranks {
            rank.poll();
            assert_eq!(rank.seen.broken, []);
        }
    }

    /// Sends so many messages; others poll only when there is no room.
    fn burst(&mut self, from: u32, to: u32, count: usize) {
        let (mut sent, mut tries) = (0, 0);
        while sent < count {
            if self.send(from, to, 40_000) {
                sent += 1;
                tries = 0;
            } else {
                self.poll();
                tries += 1;
                assert!(tries < IDLE, "no room comes");
                std::thread::yield_now();
            }
        }
    }

    /// Until everything was handled and reported.
    fn settle(&mut self) {
        for tries in 0.. {
            self.poll();
            let handled = self.ranks.iter().map(|rank| rank.seen.messages);
            let all = handled.eq(self.handled_due);
            let quiet = |rank: &Rank| {
                rank.tcp.core.all_used().all(|peer| {
                    let outbound = peer.outbound.lock();
                    !outbound.slot.is_busy()
                        && outbound.send_stream.ack_due() == 0
                        && !outbound.send_stream.wants_to_write()
                })
            };
            if all
                && self
                    .ranks
                    .iter()
                    .all(|rank| rank.tcp.is_quiescent() && quiet(rank))
            {
                return;
            }
            assert!(
                tries < IDLE,
                "{:?} of {:?}",
                self.ranks[1].seen.messages,
                self.handled_due
            );
            std::thread::yield_now();
        }
    }

    fn figures(&self, at: u32, of: u32) -> Figures {
        let peer = self.ranks[at as usize].tcp.core.used(of).unwrap();
        let outbound = peer.outbound.lock();
        outbound.loans.as_ref().unwrap().peer.figures()
    }

    /// The gauges show the right figures when nothing is in use.
    fn check_gauges(&self, at: u32, of: u32) {
        let gauges = self.ranks[at as usize].tcp.gauges().unwrap();
        let shown = gauges.report().peers.into_iter();
        let shown = shown.filter(|shown| shown.peer == of).map(|shown| {
            let PeerCredits {
                held,
                lent,
                in_use,
                owed,
                ..
            } = shown;
            [held, lent, in_use, owed]
        });
        let Figures { held, loan, .. } = self.figures(at, of);
        assert!(
            shown.eq([[held, loan, 0, 0]]),
            "gauges of rank {at} for rank {of}"
        );
    }

    /// All credits are somewhere, and both sides of each loan agree.
    ///
    /// Of a job that is settled.
    fn check(&self) {
        for (lender, rank) in (0..).zip(&self.ranks) {
            let bank = rank.tcp.core.bank.as_ref().unwrap();
            let mut sum = u64::from(bank.banked()) + bank.untouched();
            for borrower in (0..3).filter(|other| *other != lender) {
                let lent = self.figures(lender, borrower).loan;
                sum += u64::from(lent);
                let held = self.figures(borrower, lender).held;
                assert_eq!(held, lent, "loan of rank {lender} to rank {borrower}");
                self.check_gauges(lender, borrower);
                let there = self.ranks[borrower as usize].tcp.core.used(lender).unwrap();
                let here = rank.tcp.core.used(borrower).unwrap();
                let window = usize::from(lent) * CREDIT_BYTES;
                assert!(there.outbound.lock().grant.allows(window, 0));
                assert!(!there.outbound.lock().grant.allows(window + 1, 0));
                assert!(here.inbound.lock().parked.arrive(window).is_ok());
                here.inbound.lock().parked.handle(window);
                assert!(here.inbound.lock().parked.arrive(window + 1).is_err());
            }
            assert_eq!(sum, bank.plan().total(), "credits of rank {lender}");
        }
    }
}

#[test]
fn a_stalled_peer_is_lent_more_and_a_silent_one_gives_back() {
    let mut job = Job::new(sizes());
    job.burst(0, 1, 40);
    job.settle();
    let lent = job.figures(1, 0).loan;
    assert!(lent > SHARE, "rank 0 has stalled, and has {lent}");
    // Rank 2 takes the credits that are left, and then those that rank 0 does not need any more.
    let mut rounds = 0;
    while job.figures(1, 0).loan == lent {
        job.burst(2, 1, 10);
        rounds += 1;
        assert!(rounds < 200, "nothing was given back");
    }
    job.settle();
    assert!(job.figures(1, 2).loan > SHARE);
    assert_eq!(job.figures(1, 0).held, SHARE, "rank 1 has sent nothing");
    assert_eq!(job.figures(2, 0).held, SHARE);
    job.check();
}

#[test]
fn with_nothing_moving_shares_stay() {
    let mut fixed = sizes();
    if let Some(credits) = &mut fixed.credits {
        credits.dynamic = false;
    }
    let mut job = Job::new(fixed);
    job.burst(0, 1, 40);
    job.burst(2, 1, 40);
    job.settle();
    job.check();
    assert_eq!(job.figures(1, 0).loan, SHARE);
    let peer = job.ranks[0].tcp.core.used(1).unwrap();
    assert!(peer.outbound.lock().loans.as_ref().unwrap().stalls > 0);
}

#[test]
fn epochs_are_reported_to_senders() {
    let mut job = Job::new(sizes());
    job.burst(0, 1, 40);
    job.settle();
    let peak = job.figures(0, 1).peak;
    assert!(peak > SHARE / 2, "{peak}");
    // Each epoch, of 8 requests, leaves a quarter of the credits in use before.
    for _ in 0..100 {
        assert!(job.send(0, 1, 10));
        job.settle();
    }
    assert!(job.figures(0, 1).peak < peak / 4);
}

/// Rank 1 of three, with 400 credits a peer and none in the bank, and its side of the stream to a
/// peer.
fn half() -> (Bank, Box<Loans>, Grant, Parked) {
    let credits = ChannelCredits {
        share: Some(400),
        bank: Some(0),
        ..ChannelCredits::default()
    };
    let bank = Bank::new(1, credits.plan(3).unwrap(), credits.rules());
    let loans = Loans::new(&bank).unwrap();
    let window = 400 * CREDIT_BYTES;
    (bank, loans, Grant::new(window), Parked::new(window))
}

const REVOKE: Revoke = Revoke {
    epoch: false,
    wanted: u16::MAX,
};

#[test]
fn credits_in_use_are_not_given_back() {
    let (bank, mut loans, mut grant, _) = half();
    // 300 credits and a byte, sent since the lender said anything; 20 more are being prepared.
    grant.use_up(300 * CREDIT_BYTES + 1);
    let reserved = 20 * CREDIT_BYTES;
    let back = loans.revoke(REVOKE, reserved, &mut grant, &bank);
    assert_eq!(back.count, 400 - 321);
    assert_eq!(loans.peer.figures().held, 321);
    assert!(grant.allows(reserved, 0));
    assert!(!grant.allows(21 * CREDIT_BYTES, 0));
}

// spec P11: SendMax is the peak of the credits in use, also if the lender has said nothing of
// credits meanwhile.
#[test]
fn the_peak_of_credits_in_use_is_not_given_back() {
    let (bank, mut loans, mut grant, _) = half();
    grant.use_up(300 * CREDIT_BYTES);
    grant.handle(300 * CREDIT_BYTES as u64).unwrap();
    grant.use_up(310 * CREDIT_BYTES);
    grant.handle(400 * CREDIT_BYTES as u64).unwrap();
    grant.handle(610 * CREDIT_BYTES as u64).unwrap();
    loans.revoke(REVOKE, 0, &mut grant, &bank);
    assert_eq!(loans.peer.figures().held, 310);
}

#[test]
fn no_more_is_taken_back_than_can_be_free() {
    for (count, due) in [(100, true), (101, false)] {
        let (bank, mut loans, _, mut parked) = half();
        // Another peer lacks credits that the bank does not have, so this one is asked.
        let mut other = Loans::new(&bank).unwrap();
        assert_eq!(other.peer.asks(200, 2, &bank), 0);
        bank.scavenge(
            |rank, look| {
                if rank == 0 {
                    look(&mut loans.peer)
                }
            },
            |_, _| {},
        );
        // 299 credits and a byte have come and wait.
        parked.arrive(299 * CREDIT_BYTES + 1).unwrap();
        let back = Return {
            epoch: false,
            count,
        };
        let taken = loans.returned(back, &parked, &bank);
        if due {
            assert_eq!(taken, Ok(300 * CREDIT_BYTES));
            assert_eq!(bank.banked(), 100);
        } else {
            assert!(matches!(taken, Err(RecordError::Account { most: 100, .. })));
        }
    }
}

/// Connections that break at any time lose no credits, and make none.
#[test]
fn credits_outlive_connections() {
    let seeds = super::seeds();
    let mut moved = 0;
    for seed in 0..seeds {
        let mut random = Xoshiro256StarStar::seed_from_u64(seed);
        let mut draw = |below: u64| (random.next_u64() % below) as u32;
        let mut job = Job::new(sizes());
        let busiest = draw(3);
        for _ in 0..200 {
            let from = draw(3);
            let to = (from + 1 + draw(2)) % 3;
            match draw(16) {
                0 => job.connect(from.min(to), from.max(to)),
                1..4 => {
                    job.ranks[from as usize].poll();
                }
                4..6 => job.poll(),
                _ => {
                    let to = if from == busiest { to } else { busiest };
                    let _ = job.send(from, to, 10_000 + draw(50_000) as usize);
                }
            }
        }
        job.settle();
        job.check();
        let banks = job
            .ranks
            .iter()
            .map(|rank| rank.tcp.core.bank.as_ref().unwrap());
        moved += banks.map(|bank| bank.moved().returned).sum::<u64>();
    }
    assert!(moved > 0 || seeds < 10, "nothing was ever given back");
}
