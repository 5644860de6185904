//! Questions of a borrower for credits, and their decay by epochs.

use super::super::*;
use super::{Pair, rules};
use proptest::prelude::*;
use std::collections::VecDeque;

// spec P10: many requests that stall for the same credits ask for them once.
#[test]
fn stalled_requests_ask_for_the_same_credits_once() {
    // Four requests use all credits, and four more stall and go when one of the first has come
    // back. Returns what each of these asks for, and what another request would ask for that stalls
    // after each of their answers.
    let asks = |rules: Rules, banked| {
        let mut pair = Pair::new(4, banked, rules);
        let ([borrower, lender], [mine, its]) = (&mut pair.peers, &pair.banks);
        // The credits that rounding has added are lent to others.
        let others = its.lend((its.banked() - banked) as u16);
        assert_eq!(its.banked(), banked, "{others:?}");
        let mut under_way: VecDeque<Tag> = VecDeque::new();
        for _ in 0..4 {
            under_way.push_back(borrower.request(1, &mut Attempt::default(), mine).unwrap());
        }
        let mut answers = VecDeque::new();
        let mut asked = Vec::new();
        for _ in 0..4 {
            let attempt = &mut Attempt::default();
            assert!(borrower.request(1, attempt, mine).is_none());
            let request = under_way.pop_front().unwrap();
            let debt = lender.arrived(request, its).unwrap();
            borrower.replied(lender.reply(debt, 0, its), mine).unwrap();
            let request = borrower.request(1, attempt, mine).unwrap();
            asked.push(request.extra);
            under_way.push_back(request);
        }
        for request in under_way {
            let debt = lender.arrived(request, its).unwrap();
            answers.push_back(lender.reply(debt, 0, its));
        }
        for answer in answers {
            borrower.replied(answer, mine).unwrap();
            let attempt = &mut Attempt::default();
            borrower.stall(1, attempt, mine);
            let before = (borrower.marks, borrower.wanting);
            asked.push(borrower.ask(attempt, mine));
            (borrower.marks, borrower.wanting) = before;
        }
        asked
    };
    let long = Rules {
        epoch_requests: 100,
        ..rules()
    };
    assert_eq!(asks(long, 100), [4, 0, 0, 0, 8, 8, 8, 8]);
    // Nothing was lent: again when all has come back,
    assert_eq!(asks(long, 0), [4, 0, 0, 0, 0, 0, 0, 4]);
    // or in the next epoch of the lender, which the second answer reports.
    let short = Rules {
        epoch_requests: 6,
        ..long
    };
    assert_eq!(asks(short, 0), [4, 0, 0, 0, 0, 4, 4, 4]);
    let each = Rules {
        mends: Mends {
            one_question: false,
            ..Mends::ALL
        },
        ..long
    };
    assert_eq!(asks(each, 100)[..4], [4, 4, 4, 4]);
    // A byte asks for the rest with the requests that follow.
    let byte = Rules {
        form: Form::BYTE,
        ..long
    };
    assert_eq!(asks(byte, 100)[..4], [4, 4, 4, 4]);
}

#[test]
fn a_borrower_asks_for_no_more_than_the_most() {
    let narrow = Rules {
        most: 20,
        ..rules()
    };
    let mut pair = Pair::new(18, 100, narrow);
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    borrower.uses(18, true);
    assert_eq!(borrower.lacks(9, true, bank), 2);
}

// spec P10: requests report epochs, too.
#[test]
fn epochs_that_requests_report_decay_the_lenders_peak() {
    let mut pair = Pair::new(64, 100, rules());
    let [borrower, lender] = &mut pair.peers;
    lender.uses(64, true);
    lender.uses(0, false);
    assert_eq!(lender.figures().peak, 64);
    let report = |borrower: &mut Peer, lender: &mut Peer, epochs: u32| {
        pair.banks[0].arrived(8 * epochs);
        let request = borrower.request(1, &mut Attempt::default(), &pair.banks[0]);
        let request = request.unwrap();
        let debt = lender.arrived(request, &pair.banks[1]).unwrap();
        let reply = lender.reply(debt, 0, &pair.banks[1]);
        borrower.replied(reply, &pair.banks[0]).unwrap();
        (request.epoch, lender.figures().peak)
    };
    assert_eq!(report(borrower, lender, 0), (false, 64));
    // One epoch after the last use, and as many as patience has.
    for _ in 0..8 {
        assert_eq!(report(borrower, lender, 1), (true, 64));
    }
    assert_eq!(report(borrower, lender, 1), (true, 16));
}

#[test]
fn wanted_credits_decay_with_epochs() {
    let byte = Rules {
        form: Form::BYTE,
        ..rules()
    };
    let mut pair = Pair::new(64, 100, byte);
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    borrower.uses(64, true);
    assert_eq!(borrower.lacks(1, true, bank), 7);
    assert_eq!(borrower.wanting, 57);
    borrower.hears(true, 0, 64, bank).unwrap();
    assert_eq!(borrower.wanting, 14);
}

// Its question came back unread.
#[test]
fn a_borrower_pushed_back_may_ask_again() {
    let mut pair = Pair::new(8, 100, rules());
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    let stalled = |borrower: &mut Peer| {
        let mut attempt = Attempt::default();
        assert!(borrower.request(9, &mut attempt, bank).is_none());
        borrower.request(8, &mut attempt, bank).unwrap()
    };
    let request = stalled(borrower);
    assert_eq!(request.extra, 8);
    let back = PushedBack {
        count: request.count,
        loan: 8,
    };
    borrower.pushed_back(back).unwrap();
    assert_eq!(stalled(borrower).extra, 8);
}

/// A burst of requests of 4 credits, of which one more stalls than the 16 that the share of 64 is
/// good for, with fields of a byte.
///
/// Returns the requests that are still under way, without answers, and the credits that the stalled
/// request asks for.
fn burst_that_stalls(pair: &mut Pair) -> (VecDeque<Tag>, u16) {
    let mut under_way = VecDeque::new();
    for _ in 0..16 {
        let request = pair.peers[0].request(4, &mut Attempt::default(), &pair.banks[0]);
        under_way.push_back(request.unwrap());
    }
    let mut attempt = Attempt::default();
    let stalls = pair.peers[0].request(4, &mut attempt, &pair.banks[0]);
    assert!(stalls.is_none());
    answer(pair, under_way.pop_front().unwrap());
    let request = pair.peers[0].request(4, &mut attempt, &pair.banks[0]);
    let request = request.unwrap();
    under_way.push_back(request);
    (under_way, request.extra)
}

fn answer(pair: &mut Pair, request: Tag) {
    let debt = pair.peers[1].arrived(request, &pair.banks[1]).unwrap();
    let reply = pair.peers[1].reply(debt, 0, &pair.banks[1]);
    pair.peers[0].replied(reply, &pair.banks[0]).unwrap();
}

fn of_a_byte(one_burst: bool) -> Rules {
    Rules {
        form: Form::BYTE,
        epoch_requests: 1000,
        mends: Mends {
            one_burst,
            ..Mends::ALL
        },
        ..rules()
    }
}

// spec P10: no use, no movement.
#[test]
fn wanted_credits_end_with_their_burst() {
    for one_burst in [true, false] {
        let mut pair = Pair::new(64, 1000, of_a_byte(one_burst));
        let (mut under_way, asked) = burst_that_stalls(&mut pair);
        assert_eq!((asked, pair.peers[0].wanting), (7, 57));
        // The burst goes on: a request that has not waited asks for a part of the rest.
        answer(&mut pair, under_way.pop_front().unwrap());
        let goes_on = pair.peers[0].request(4, &mut Attempt::default(), &pair.banks[0]);
        assert_eq!((goes_on.unwrap().extra, pair.peers[0].wanting), (7, 50));
        under_way.push_back(goes_on.unwrap());
        for request in under_way {
            answer(&mut pair, request);
        }
        assert_eq!(pair.peers[0].in_use, 0);
        // The next has all that it needs.
        let first = pair.round(4, &mut Attempt::default()).unwrap();
        let expected = if one_burst { (0, 0) } else { (7, 43) };
        assert_eq!((first.extra, pair.peers[0].wanting), expected);
    }
}

#[test]
fn a_stalled_request_asks_after_its_burst_has_ended() {
    let mut pair = Pair::new(64, 1000, of_a_byte(true));
    let (mut under_way, _) = burst_that_stalls(&mut pair);
    while pair.peers[0].available() >= 4 {
        let request = pair.peers[0].request(4, &mut Attempt::default(), &pair.banks[0]);
        under_way.push_back(request.unwrap());
    }
    let mut attempt = Attempt::default();
    assert!(
        pair.peers[0]
            .request(4, &mut attempt, &pair.banks[0])
            .is_none()
    );
    for request in under_way {
        answer(&mut pair, request);
    }
    assert_eq!(pair.peers[0].in_use, 0);
    assert_eq!(pair.round(4, &mut attempt).unwrap().extra, 7);
    assert!(pair.peers[0].wanting > 0);
}

proptest! {
    // spec P10: a burst that fits moves nothing, and one that comes again fits at last.
    #[test]
    fn bursts_that_come_again_move_credits_no_more(
        form in prop::sample::select(vec![Form::BYTE, Form::WIDE, Form::new(1, 4).unwrap()]),
        share in 4u32..80,
        cost in 1u16..5,
        length in 1usize..80,
        epoch_requests in 4u32..200,
    ) {
        let rules = Rules { form, epoch_requests, ..rules() };
        let mut pair = Pair::new(share, 4000, rules);
        let mut have_stalled = true;
        for burst in 0.. {
            // Each that stalls is lent one credit at least.
            prop_assert!(burst <= length * usize::from(cost), "after {} bursts it still stalls", burst);
            let before = pair.banks[1].moved();
            let (mut under_way, mut stalls) = (VecDeque::new(), 0);
            for _ in 0..length {
                let mut attempt = Attempt::default();
                let request = loop {
                    if let Some(request) = pair.peers[0].request(cost, &mut attempt, &pair.banks[0]) {
                        break request;
                    }
                    answer(&mut pair, under_way.pop_front().unwrap());
                };
                stalls += usize::from(attempt.has_stalled());
                under_way.push_back(request);
            }
            for request in under_way {
                answer(&mut pair, request);
            }
            if stalls == 0 {
                prop_assert_eq!(pair.banks[1].moved(), before, "burst {} fits", burst);
                // And one after it.
                if !have_stalled {
                    break;
                }
            }
            have_stalled = stalls > 0;
        }
    }
}
