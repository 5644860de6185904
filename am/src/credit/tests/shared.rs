//! State that several threads share, and the sum of all credits.

use super::super::*;
use super::{bank, rules};
use proptest::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn sum(bank: &Bank, peers: &[Peer]) -> u64 {
    let lent: u64 = peers.iter().map(|p| u64::from(p.figures().loan)).sum();
    u64::from(bank.banked()) + bank.untouched() + lent
}

// spec P10: streams share the bank; no credit is lost or made.
#[test]
fn threads_lend_and_call_back_without_losing_a_credit() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 3000;
    let bank = bank(THREADS * 4 + 1, 8, 50, rules());
    let total = bank.plan().total();
    let streams: Vec<Mutex<Peer>> = (0..THREADS * 4)
        .map(|_| Mutex::new(Peer::new(&bank).unwrap()))
        .collect();
    let requests = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = |thread: u32| {
            let (bank, streams, requests) = (&bank, &streams, &requests);
            move || {
                for round in 0..ROUNDS {
                    let rank = (thread + round * 7) % (THREADS * 4);
                    let tag = Tag {
                        epoch: round % 5 == 0,
                        extra: (round % 9) as u16,
                        count: 1,
                    };
                    let mut peer = streams[rank as usize].lock().unwrap();
                    let debt = peer.arrived(tag, bank).unwrap();
                    requests.fetch_add(1, Ordering::Relaxed);
                    let _ = peer.reply(debt, rank + 1, bank);
                    drop(peer);
                    let mut asked = Vec::new();
                    bank.scavenge(
                        |rank, look| {
                            if let Ok(mut peer) = streams[rank as usize - 1].try_lock() {
                                look(&mut peer);
                            }
                        },
                        |rank, revoke| asked.push((rank, revoke)),
                    );
                    for (rank, revoke) in asked {
                        let mut peer = streams[rank as usize - 1].lock().unwrap();
                        let count = revoke
                            .wanted
                            .min(peer.figures().loan - 4)
                            .min(round as u16 % 6);
                        peer.returned(
                            Return {
                                epoch: false,
                                count,
                            },
                            bank,
                        )
                        .unwrap();
                    }
                }
            }
        };
        let handles: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(work(thread)))
            .collect();
        for handle in handles {
            handle.join().unwrap();
        }
    });
    let peers: Vec<Peer> = streams
        .into_iter()
        .map(|stream| stream.into_inner().unwrap())
        .collect();
    assert_eq!(sum(&bank, &peers), total);
    assert_eq!(u64::from(bank.epoch()), requests.into_inner() / 8);
    let moved = bank.moved();
    assert!(moved.lent > 500 && moved.returned > 200, "{moved:?}");
}

// spec P10: one stream ends an epoch, late, while others count on and fill the next.
#[test]
fn epochs_that_others_fill_meanwhile_end_too() {
    let bank = bank(2, 8, 50, rules());
    assert!(!bank.takes_last(7));
    assert!(bank.takes_last(1));
    for _ in 0..9 {
        assert!(!bank.takes_last(1), "another stream is at it");
    }
    bank.end_epochs();
    assert_eq!(bank.epoch(), 2);
    bank.arrived(6);
    assert_eq!(bank.epoch(), 2);
    bank.arrived(1);
    assert_eq!(bank.epoch(), 3);
}

proptest! {
    // spec P9: grants never exceed the receive space, for any numbers that peers send.
    #[test]
    fn no_sequence_of_messages_makes_a_credit(
        steps in prop::collection::vec((0u8..5, 0usize..6, any::<u16>(), any::<u16>(), any::<bool>()), 1..200),
        mended: bool,
        share in 4u32..40,
    ) {
        let mends = if mended { Mends::ALL } else { Mends::NONE };
        let bank = bank(7, share, 60, Rules { mends, low: 50, ..rules() });
        let total = bank.plan().total();
        prop_assert_eq!(total, bank.plan().space().credits());
        let mut peers: Vec<Peer> = (0..6).map(|_| Peer::new(&bank).unwrap()).collect();
        prop_assert!(Peer::new(&bank).is_none(), "a share for a rank that is not there");
        let mut debts: Vec<Vec<Debt>> = (0..6).map(|_| Vec::new()).collect();
        for (step, at, a, b, epoch) in steps {
            let peer = &mut peers[at];
            match step {
                0 | 1 => {
                    let tag = Tag { epoch, extra: a % 100, count: if step == 0 { b % 5 } else { b } };
                    match peer.arrived(tag, &bank) {
                        Ok(debt) => debts[at].push(debt),
                        Err(back) => prop_assert_eq!(back.loan, peer.figures().loan),
                    }
                }
                2 => if let Some(debt) = debts[at].pop() {
                    let _ = peer.reply(debt, at as u32 + 1, &bank);
                },
                3 => { let _ = peer.returned(Return { epoch, count: a % 50 }, &bank); }
                _ => bank.scavenge(|rank, look| look(&mut peers[rank as usize - 1]), |_, _| ()),
            }
            prop_assert_eq!(sum(&bank, &peers), total);
            for (peer, debts) in peers.iter().zip(&debts) {
                let figures = peer.figures();
                let owed: u64 = debts.iter().map(|debt| u64::from(debt.count())).sum();
                prop_assert_eq!(u64::from(figures.owed), owed);
                prop_assert!(figures.owed <= figures.loan && figures.loan <= 400);
            }
        }
    }
}
