//! The machine beside a stream that counts requests itself.

use super::*;

#[test]
fn requests_that_are_counted_at_once_end_all_their_epochs() {
    let bank = bank(2, 10, 10, rules());
    bank.arrived(7);
    assert_eq!(bank.epoch(), 0);
    bank.arrived(1);
    assert_eq!(bank.epoch(), 1);
    bank.arrived(3 * 8 + 7);
    assert_eq!(bank.epoch(), 4);
    bank.arrived(0);
    bank.arrived(1);
    assert_eq!(bank.epoch(), 5);
}

#[test]
fn a_borrower_asks_once_and_holds_the_loan() {
    let mut pair = Pair::new(10, 100, rules());
    let [borrower, lender] = &mut pair.peers;
    borrower.uses(8, true);
    let wanted = borrower.lacks(4, true, &pair.banks[0]);
    assert!(wanted >= 4);
    assert_eq!(
        borrower.lacks(4, false, &pair.banks[0]),
        0,
        "it waits still"
    );
    assert_eq!(borrower.figures().stalls, 1);
    // Other requests stall before the answer; words that lend nothing are none while something is
    // in use.
    borrower.hears(false, 0, 7, &pair.banks[0]).unwrap();
    assert_eq!(borrower.lacks(4, true, &pair.banks[0]), 0);
    let lent = lender.asks(wanted, 0, &pair.banks[1]);
    assert!(lent > 0 && lender.figures().loan == 10 + lent);
    borrower.hears(false, lent, 8, &pair.banks[0]).unwrap();
    assert_eq!(borrower.figures().held, 10 + lent);
    // It was heard, and so it may ask again; when nothing is in use any more it has heard, too.
    assert!(borrower.lacks(4, true, &pair.banks[0]) > 0);
    assert_eq!(borrower.lacks(4, true, &pair.banks[0]), 0);
    borrower.hears(false, 0, 0, &pair.banks[0]).unwrap();
    assert!(borrower.lacks(4, true, &pair.banks[0]) > 0);
    // More than any peer may be lent.
    assert!(borrower.hears(false, 400, 8, &pair.banks[0]).is_err());
    assert_eq!(borrower.figures().held, 10 + lent);
}

#[test]
fn the_peak_is_the_use_before_the_lenders_answer() {
    let mut pair = Pair::new(20, 100, rules());
    let (borrower, bank) = (&mut pair.peers[0], &pair.banks[0]);
    borrower.uses(15, true);
    borrower.hears(false, 0, 0, bank).unwrap();
    let all = Revoke {
        epoch: false,
        wanted: u16::MAX,
    };
    assert_eq!(borrower.revoke(all, bank).count, 5);
    assert_eq!(borrower.figures().held, 15);
    // Credits in use stay, and the lender takes no more back than the others.
    let (lender, bank) = (&mut pair.peers[1], &pair.banks[1]);
    lender.owes(12);
    assert_eq!(lender.most_back(bank), 8);
    lender.owes(0);
    assert_eq!(lender.most_back(bank), 16);
}
