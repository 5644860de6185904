//! A lender and a borrower.

use super::super::*;
use super::{Pair, bank, rules};

#[test]
fn used_credits_come_back_and_none_move() {
    let mut pair = Pair::new(8, 100, rules());
    for _ in 0..100 {
        let reply = pair.round(4, &mut Attempt::default()).unwrap();
        assert_eq!((reply.count, reply.extra), (4, 0));
    }
    assert_eq!(pair.banks[1].moved(), Moved::default());
    assert_eq!(pair.peers[0].available(), 8);
}

#[test]
fn all_credits_can_be_used() {
    // The text's `ncredit < credits_avail` is read as more than is available.
    let mut pair = Pair::new(4, 0, rules());
    assert!(pair.round(4, &mut Attempt::default()).is_some());
}

// spec P10: a stall asks for more, and the reply lends it.
#[test]
fn a_stall_is_answered_with_a_loan() {
    let text = Rules {
        mends: Mends::NONE,
        ..rules()
    };
    let mut pair = Pair::new(8, 100, text);
    let reply = pair.stalled_round(6, 5);
    assert_eq!(reply.extra, 3, "the credits that the message lacked");
    assert_eq!(pair.peers[0].figures().held, 11);
    assert_eq!(pair.peers[1].figures().loan, 11);
    assert_eq!(pair.banks[1].moved().lent, 3);
    let mut ahead = Pair::new(8, 100, rules());
    assert_eq!(
        ahead.stalled_round(6, 5).extra,
        8,
        "as much again as it holds"
    );
    let more = Rules {
        ask_times: 7,
        ..rules()
    };
    let mut ahead = Pair::new(8, 100, more);
    assert_eq!(
        ahead.stalled_round(6, 5).extra,
        30,
        "seven times as much, but no more than a quarter of the bank"
    );
    assert!(
        ahead.banks[1].is_missing(),
        "credits that were not lent are called in"
    );
}

#[test]
fn the_field_the_most_and_the_epoch_limit_a_loan() {
    let byte = Rules {
        form: Form::BYTE,
        ..rules()
    };
    let mut pair = Pair::new(100, 500, byte);
    assert_eq!(pair.stalled_round(100, 60).extra, 7);
    let narrow = Rules {
        most: 103,
        ..rules()
    };
    let mut pair = Pair::new(100, 500, narrow);
    assert_eq!(pair.stalled_round(100, 60).extra, 3);
    assert_eq!(pair.stalled_round(100, 60).extra, 0);
    let slow = Rules {
        lend_limit: 20,
        epoch_requests: 1000,
        ..rules()
    };
    let mut pair = Pair::new(100, 500, slow);
    assert_eq!(pair.stalled_round(100, 60).extra, 20);
    assert_eq!(pair.stalled_round(120, 60).extra, 0);
    // Four of the credits that were given still count after an epoch.
    while pair.banks[1].epoch() == 0 {
        pair.round(1, &mut Attempt::default()).unwrap();
    }
    assert_eq!(pair.stalled_round(120, 60).extra, 15);
}

#[test]
fn a_loan_is_at_most_a_quarter_or_by_the_text_all_or_nothing() {
    let mut pair = Pair::new(100, 0, rules());
    let there = pair.banks[1].banked();
    let reply = pair.stalled_round(100, 100);
    assert_eq!(u32::from(reply.extra), there / 4);
    // The least is given as long as it is there.
    let mut last = 0;
    while pair.banks[1].banked() > 0 {
        let held = pair.peers[0].figures().held;
        last = pair.stalled_round(held, 100).extra;
    }
    assert!((1..=4).contains(&last), "{last}");
    let text = Rules {
        mends: Mends::NONE,
        form: Form::WIDE,
        ..rules()
    };
    let mut pair = Pair::new(100, 0, text);
    assert!(pair.banks[1].banked() < 100);
    assert_eq!(pair.stalled_round(100, 100).extra, 0);
}

#[test]
fn without_dynamic_credits_nothing_moves() {
    let mut pair = Pair::new(
        8,
        100,
        Rules {
            dynamic: false,
            ..rules()
        },
    );
    assert_eq!(
        pair.stalled_round(6, 5),
        Tag {
            epoch: false,
            extra: 0,
            count: 5
        }
    );
    pair.banks[1].scavenge(
        |_, _| panic!("no peer is looked at"),
        |_, _| panic!("no peer is asked"),
    );
}

#[test]
fn an_epoch_is_reported_once_and_decays_what_is_kept() {
    let mut pair = Pair::new(
        64,
        100,
        Rules {
            mends: Mends::NONE,
            ..rules()
        },
    );
    pair.round(64, &mut Attempt::default()).unwrap();
    assert_eq!(pair.peers[0].figures().peak, 64);
    let reported: Vec<bool> = (0..24)
        .map(|_| pair.round(1, &mut Attempt::default()).unwrap().epoch)
        .collect();
    assert_eq!(
        reported.iter().filter(|reported| **reported).count(),
        3,
        "{reported:?}"
    );
    assert_eq!(pair.peers[0].figures().peak, 1);
}

// spec P10: stalls and wishes count for an epoch, however many there were.
#[test]
fn after_an_epoch_a_stall_is_over() {
    for (one_epoch, back) in [(true, 10), (false, 0)] {
        let mends = Mends {
            one_epoch,
            ..Mends::ALL
        };
        let mut pair = Pair::new(
            20,
            100,
            Rules {
                mends,
                most: 20,
                ..rules()
            },
        );
        let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
        for _ in 0..9 {
            assert!(
                borrower
                    .request(21, &mut Attempt::default(), bank)
                    .is_none()
            );
        }
        let mut revoke = Revoke {
            epoch: false,
            wanted: 10,
        };
        assert_eq!(borrower.revoke(revoke, bank).count, 0, "it stalled lately");
        revoke.epoch = true;
        assert_eq!(borrower.revoke(revoke, bank).count, back);
        let lender = &mut pair.peers[1];
        for _ in 0..9 {
            assert_eq!(lender.asks(5, 0, &pair.banks[1]), 0, "it has the most");
        }
        assert_eq!(lender.asked_for, if one_epoch { 1 } else { 9 });
    }
}

// spec P10: a slow partner beside a busy one keeps the credits that it needs.
#[test]
fn the_peak_of_a_quiet_partner_decays_after_many_epochs_only() {
    let patient = Rules {
        patience: 3,
        ..rules()
    };
    let mut pair = Pair::new(64, 100, patient);
    pair.round(64, &mut Attempt::default()).unwrap();
    let revoke = Revoke {
        epoch: true,
        wanted: u16::MAX,
    };
    let mut left = Vec::new();
    for _ in 0..6 {
        pair.peers[0].revoke(revoke, &pair.banks[0]);
        left.push(pair.peers[0].figures().held);
    }
    assert_eq!(left, [64, 64, 64, 16, 4, 4]);
    // Epochs with little use count at once: the last one, and a part of those before.
    let mut pair = Pair::new(64, 100, patient);
    pair.round(64, &mut Attempt::default()).unwrap();
    for _ in 0..2 {
        pair.peers[0].revoke(
            Revoke {
                wanted: 0,
                ..revoke
            },
            &pair.banks[0],
        );
        pair.round(2, &mut Attempt::default()).unwrap();
    }
    assert_eq!(pair.peers[0].figures().peak, 16);
}

// spec P10: overflow is pushed back, never fatal.
#[test]
fn a_request_without_credits_is_pushed_back_and_corrects_its_sender() {
    let mut pair = Pair::new(8, 0, rules());
    // As if a reply had come twice.
    pair.peers[0].held += 5;
    let attempt = &mut Attempt::default();
    let first = pair.peers[0].request(8, attempt, &pair.banks[0]).unwrap();
    let second = pair.peers[0].request(5, attempt, &pair.banks[0]).unwrap();
    let debt = pair.peers[1].arrived(first, &pair.banks[1]).unwrap();
    let back = pair.peers[1].arrived(second, &pair.banks[1]).unwrap_err();
    assert_eq!(back, PushedBack { count: 5, loan: 8 });
    pair.peers[0].pushed_back(back).unwrap();
    assert_eq!((pair.peers[0].held, pair.peers[0].available()), (8, 0));
    let reply = pair.peers[1].reply(debt, 0, &pair.banks[1]);
    pair.peers[0].replied(reply, &pair.banks[0]).unwrap();
    assert!(pair.round(5, attempt).is_some());
    // The space may be full though the loan is kept: the same way.
    let tag = pair.peers[0]
        .request(3, &mut Attempt::default(), &pair.banks[0])
        .unwrap();
    let debt = pair.peers[1].arrived(tag, &pair.banks[1]).unwrap();
    let back = pair.peers[1].overflowed(debt);
    pair.peers[0].pushed_back(back).unwrap();
    assert_eq!(pair.peers[0].available(), 8);
}

#[test]
fn impossible_replies_and_returns_are_refused() {
    let mut pair = Pair::new(8, 0, rules());
    let tag = |count, extra| Tag {
        epoch: false,
        extra,
        count,
    };
    let bank = &pair.banks[0];
    assert!(
        pair.peers[0].replied(tag(1, 0), bank).is_err(),
        "nothing is in use"
    );
    assert!(
        pair.peers[0].replied(tag(0, u16::MAX), bank).is_err(),
        "16 bits overflow"
    );
    assert!(
        pair.peers[0]
            .pushed_back(PushedBack { count: 1, loan: 8 })
            .is_err()
    );
    let unasked = Return {
        epoch: false,
        count: 0,
    };
    assert!(pair.peers[0].returned(unasked, bank).is_err());
    assert_eq!(pair.peers[0].figures().held, 8);
}

#[test]
fn counts_of_sixteen_bits_saturate_at_their_end() {
    let wide = Rules {
        most: u16::MAX,
        lend_limit: u16::MAX,
        revoke_limit: u16::MAX,
        mends: Mends {
            one_epoch: false,
            ..Mends::ALL
        },
        ..rules()
    };
    let mut pair = Pair::new(u16::MAX.into(), 10, wide);
    pair.peers[0].stalls = u16::MAX;
    let mut attempt = Attempt::default();
    let all = pair.peers[0]
        .request(u16::MAX, &mut Attempt::default(), &pair.banks[0])
        .unwrap();
    assert!(
        pair.peers[0]
            .request(1, &mut attempt, &pair.banks[0])
            .is_none()
    );
    assert_eq!(pair.peers[0].stalls, u16::MAX);
    let debt = pair.peers[1].arrived(all, &pair.banks[1]).unwrap();
    // One more than all 16 bits is more than was lent.
    let one = Tag {
        epoch: false,
        extra: 0,
        count: 1,
    };
    assert!(pair.peers[1].arrived(one, &pair.banks[1]).is_err());
    pair.peers[1].asked_for = u16::MAX;
    pair.peers[1].given = u16::MAX;
    let reply = pair.peers[1].reply(Debt { wanted: 9, ..debt }, 0, &pair.banks[1]);
    assert_eq!(reply.extra, 0, "a loan ends at the most");
    assert_eq!(pair.peers[1].asked_for, u16::MAX);
    pair.peers[0].replied(reply, &pair.banks[0]).unwrap();
    let revoke = Revoke {
        epoch: true,
        wanted: u16::MAX,
    };
    pair.peers[0].gave_back = u16::MAX;
    assert_eq!(pair.peers[0].revoke(revoke, &pair.banks[0]).count, 0);
}

#[test]
fn epochs_are_reported_beyond_sixteen_bits() {
    let quick = Rules {
        epoch_requests: 1,
        ..rules()
    };
    let mut pair = Pair::new(8, 10, quick);
    for round in 0..70_000 {
        let reply = pair.round(1, &mut Attempt::default()).unwrap();
        assert!(reply.epoch, "round {round}");
    }
    // Unlucky: 65,536 epochs without a message look like none. The next is reported.
    let third = bank(3, 8, 10, quick);
    let (mut busy, mut quiet) = (Peer::new(&third).unwrap(), Peer::new(&third).unwrap());
    quiet.given = 100;
    let one = Tag {
        epoch: false,
        extra: 0,
        count: 1,
    };
    let mut end = |third: &Bank| {
        let debt = busy.arrived(one, third).unwrap();
        let _ = busy.reply(debt, 1, third);
    };
    for _ in 0..65_536 {
        end(&third);
    }
    quiet.decay_lending(&third);
    assert!(!quiet.report_epoch(&third) && quiet.given == 100);
    end(&third);
    quiet.decay_lending(&third);
    assert!(quiet.report_epoch(&third) && quiet.given == 25);
}
