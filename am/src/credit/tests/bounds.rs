//! Values at a limit, and what is reported.

use super::super::*;
use super::{Pair, bank, rules};
use crate::record::RecordError;

/// A request's tag.
fn tag(count: u16, extra: u16) -> Tag {
    Tag {
        epoch: false,
        extra,
        count,
    }
}

fn by_the_text() -> Rules {
    Rules {
        form: Form::WIDE,
        ..Rules::of_the_text()
    }
}

#[test]
fn shares_leave_the_pot_one_by_one() {
    let bank = bank(4, 10, 7, rules());
    assert_eq!(bank.untouched(), 3 * 10);
    let _ = Peer::new(&bank).unwrap();
    assert_eq!(bank.untouched(), 2 * 10);
    let all = [(); 2].map(|()| Peer::new(&bank).is_some());
    assert_eq!((all, bank.untouched()), ([true; 2], 0));
    assert!(Peer::new(&bank).is_none());
}

#[test]
fn by_the_text_a_bank_that_has_just_what_is_wanted_lends_it() {
    let bank = bank(2, 10, 50, by_the_text());
    let there = u16::try_from(bank.banked()).unwrap();
    assert_eq!(bank.lend(there + 1).count(), 0);
    assert_eq!(bank.lend(there).count(), there);
    assert_eq!((bank.banked(), bank.lend(1).count()), (0, 0));
}

#[test]
fn by_the_text_a_bank_is_low_below_the_limit() {
    let short_by = |missing: u32| {
        let (share, low) = (10, 100);
        let first = bank(2, share, low, by_the_text());
        let rules = Rules {
            low: first.banked() + missing,
            ..by_the_text()
        };
        bank(2, share, low, rules).wanted_back()
    };
    assert_eq!((short_by(0), short_by(1)), (0, u32::MAX));
}

#[test]
fn the_text_has_no_mends_and_the_same_limits() {
    let expected = Rules {
        mends: Mends::NONE,
        ..Rules::default()
    };
    assert_eq!(Rules::of_the_text(), expected);
}

#[test]
fn a_bank_is_short_once_credits_were_not_there() {
    let bank_of = |dynamic, mends| {
        let rules = Rules {
            dynamic,
            mends,
            ..rules()
        };
        bank(2, 10, 50, rules)
    };
    let asked = bank_of(true, Mends::ALL);
    assert!(!asked.is_short() && !asked.is_missing());
    asked.miss(0);
    assert!(!asked.is_short());
    asked.miss(3);
    assert!(asked.is_short() && asked.is_missing());
    assert_eq!(asked.wanted_back(), 3);
    assert!(!asked.is_short(), "a walk has taken that up");
    assert!(bank_of(true, Mends::NONE).is_short(), "each walk looks");
    let fixed = bank_of(false, Mends::ALL);
    fixed.miss(3);
    assert!(!fixed.is_short() && !bank_of(false, Mends::NONE).is_short());
}

#[test]
fn the_part_of_a_wish_that_is_not_there_is_called_in() {
    let mut pair = Pair::new(10, 0, rules());
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    let wanted = 200;
    let lent = lender.asks(wanted, 0, bank);
    assert!(lent < wanted);
    assert_eq!(bank.wanted_back(), u32::from(wanted - lent));
}

#[test]
fn a_peer_is_listed_once_however_often_it_is_lent_to() {
    let rules = Rules {
        least: 10,
        ..rules()
    };
    let mut pair = Pair::new(10, 500, rules);
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    assert_eq!(bank.listed(), 0);
    // A peer that gets nothing has no more than the least.
    let banked = bank.lend(u16::try_from(bank.banked()).unwrap());
    assert_eq!((lender.asks(5, 0, bank), bank.listed()), (0, 0));
    bank.take_back(banked);
    for _ in 0..3 {
        assert!(lender.asks(5, 0, bank) > 0);
        assert_eq!(bank.listed(), 1);
    }
}

#[test]
fn by_the_text_a_wish_beyond_a_limit_is_refused_whole() {
    let rules = Rules {
        most: 60,
        lend_limit: 20,
        ..by_the_text()
    };
    let lent = |wishes: &[u16]| {
        let mut pair = Pair::new(10, 500, rules);
        let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
        Vec::from_iter(wishes.iter().map(|wanted| lender.asks(*wanted, 0, bank)))
    };
    assert_eq!(lent(&[50]), [50]);
    assert_eq!(lent(&[51]), [0], "a peer may have 60");
    // What was lent in this epoch is looked at before, so the wish that exceeds it is met.
    assert_eq!(lent(&[20, 20, 1]), [20, 20, 0]);
}

#[test]
fn without_dynamic_credits_a_wish_is_not_met() {
    let rules = Rules {
        dynamic: false,
        ..rules()
    };
    let mut pair = Pair::new(10, 100, rules);
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    assert_eq!(lender.asks(5, 0, bank), 0);
    let debt = lender.arrived(tag(2, 5), bank).unwrap();
    assert_eq!(lender.reply(debt, 0, bank), tag(2, 0));
    assert_eq!(bank.moved(), Moved::default());
}

#[test]
fn a_request_that_wants_nothing_is_no_wish() {
    let mut pair = Pair::new(10, 100, rules());
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    assert_eq!(lender.asks(0, 0, bank), 0);
    let debt = lender.arrived(tag(2, 0), bank).unwrap();
    assert_eq!(lender.reply(debt, 0, bank), tag(2, 0));
    // So the peer may still be asked to give back.
    assert_eq!(lender.asked_for, 0);
    let _ = lender.asks(1, 0, bank);
    assert_eq!(lender.asked_for, 1);
}

#[test]
fn a_request_that_found_no_room_is_not_owed() {
    let mut pair = Pair::new(10, 100, rules());
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    let kept = lender.arrived(tag(3, 0), bank).unwrap();
    let debt = lender.arrived(tag(7, 0), bank).unwrap();
    assert_eq!(lender.figures().owed, 10);
    let back = lender.overflowed(debt);
    assert_eq!(back, PushedBack { count: 7, loan: 10 });
    assert_eq!(lender.figures().owed, 3);
    let _ = lender.reply(kept, 0, bank);
    assert_eq!(lender.figures().owed, 0);
}

#[test]
fn a_loan_beyond_what_counts_hold_is_reported_with_the_room() {
    let mut pair = Pair::new(300, 100, rules());
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    let _ = borrower.request(1, &mut Attempt::default(), bank).unwrap();
    let refused = borrower.replied(tag(1, u16::MAX), bank).unwrap_err();
    let expected = CreditError::Account {
        what: "are lent",
        got: u32::from(u16::MAX),
        most: u32::from(u16::MAX) - 300,
    };
    assert_eq!(refused, expected);
}

#[test]
fn the_lenders_word_may_lend_as_much_as_fits() {
    let mut pair = Pair::new(10, 100, rules());
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    let room = bank.rules().most - 10;
    assert!(borrower.hears(false, room + 1, 0, bank).is_err());
    borrower.hears(false, room, 0, bank).unwrap();
    assert_eq!(borrower.figures().held, bank.rules().most);
}

#[test]
fn epochs_are_reported_once_beside_a_stream() {
    let mut pair = Pair::new(10, 100, rules());
    let (peer, bank) = (&mut pair.peers[0], &pair.banks[0]);
    assert!(!peer.reports_epoch(bank));
    bank.arrived(8);
    assert!(peer.reports_epoch(bank));
    assert!(!peer.reports_epoch(bank));
}

#[test]
fn records_are_refused_with_the_numbers_of_the_account() {
    for (width, most) in [(1, 1), (8, 0xff), (64, u64::MAX), (0, 1), (99, u64::MAX)] {
        let error = RecordError::from(CreditError::Form { bits: 5, width });
        let what = "a credit field has the bits";
        assert_eq!(error, RecordError::Account { what, got: 5, most });
    }
}

/// A space in chunks that are used again, and one of credits alone.
#[test]
fn a_space_has_the_buffers_that_its_bytes_make() {
    let chunk = u64::from(Costs::OF_TEXT.chunk_bytes);
    for (chunks, buffers, each) in [(67, 2, 33), (68, 17, 4), (170, 17, 10), (1, 2, 0)] {
        let space = Space::within(chunks * chunk + chunk - 1, Costs::OF_TEXT);
        assert_eq!((space.buffers, space.chunks), (buffers, each), "{chunks}");
        let bytes = u64::from(buffers * each) * chunk;
        let credited = space.credits() * u64::from(Costs::OF_TEXT.granularity);
        assert_eq!(space.bytes(), bytes);
        assert_eq!(space.slack_bytes(), bytes - credited);
    }
    let plain = Costs {
        recycles: false,
        ..Costs::OF_TEXT
    };
    let granularity = u64::from(plain.granularity);
    let space = Space::within(10 * granularity + granularity - 1, plain);
    assert_eq!((space.buffers, space.chunks), (1, 10));
    assert_eq!((space.credits(), space.slack_bytes()), (10, 0));
}

#[test]
fn all_of_a_space_can_be_shared() {
    let rules = Rules::default();
    for nodes in [1, 2, 5, 64, 1000] {
        let plan = Plan::new(nodes, &rules, Wishes::default()).unwrap();
        let shared = plan.all_shared(&rules);
        let peers = u64::from(shared.peers());
        assert_eq!((shared.nodes(), shared.total()), (nodes, plan.total()));
        let expected = (plan.total() / peers).min(u64::from(rules.most));
        assert_eq!(u64::from(shared.share()), expected);
        let rest = u64::from(shared.bank());
        assert!(rest < peers || shared.share() == rules.most, "{shared}");
    }
}

#[test]
fn a_plan_is_printed_with_its_numbers() {
    let plan = Plan::new(5, &Rules::default(), Wishes::default()).unwrap();
    let (text, space) = (plan.to_string(), plan.space());
    for part in [
        format!("5 ranks: {} credits for each of 4 peers", plan.share()),
        format!("{} in the bank, {} in all", plan.bank(), plan.total()),
        format!("{} buffers of {} chunks", space.buffers, space.chunks),
    ] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
}

/// The limits of small and large jobs: `3 x most x 20` credits, and a tenth of them in the bank.
#[test]
fn the_table_says_up_to_how_many_credits_there_are() {
    let (rules, table) = (Rules::default(), Plan::table(&Rules::default()));
    let ceiling = 3 * 20 * u64::from(rules.most);
    assert!(
        table.contains(&format!("up to {ceiling} credits")),
        "{table}"
    );
    // The last job in which every peer has the most, and the first in which none has.
    let peers = (0..).take_while(|peers| {
        let all = u64::from(rules.most) * peers;
        all + all.div_ceil(9) <= ceiling
    });
    let last = u32::try_from(peers.count()).unwrap() - 1;
    let share = |peers: u32| {
        let plan = Plan::new(peers + 1, &rules, Wishes::default()).unwrap();
        (plan.share(), plan.total())
    };
    assert_eq!(share(last).0, rules.most);
    let (less, total) = share(last + 1);
    assert!(less < rules.most && total >= ceiling, "{less}, {total}");
}
