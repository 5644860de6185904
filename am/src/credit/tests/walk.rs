//! Calling credits back.

use super::super::*;
use super::{bank, rules};
use crate::credit::peer::{ASKED, GAVE_NOTHING};

/// A bank, and a peer for every rank but 0.
struct Walk {
    bank: Bank,
    peers: Vec<Option<Peer>>,
    locked: Vec<u32>,
    /// Peers that were looked at.
    looks: usize,
}

impl Walk {
    fn new(nodes: u32, share: u32, rules: Rules) -> Self {
        let bank = bank(nodes, share, 0, rules);
        let peers = (0..nodes)
            .map(|rank| (rank > 0).then(|| Peer::new(&bank).unwrap()))
            .collect();
        let locked = Vec::new();
        Self {
            bank,
            peers,
            locked,
            looks: 0,
        }
    }

    fn of(&mut self, rank: u32) -> &mut Peer {
        self.peers[rank as usize].as_mut().unwrap()
    }

    /// One walk for so many missing credits.
    ///
    /// Returns the ranks that were asked, and for how many.
    fn walk(&mut self, missing: u16) -> Vec<(u32, u16)> {
        self.bank.miss(missing);
        let mut asked = Vec::new();
        let (peers, locked, looks) = (&mut self.peers, &self.locked, &mut self.looks);
        self.bank.scavenge(
            |rank, look| {
                assert_ne!(rank, 0, "a rank does not ask itself");
                *looks += 1;
                if !locked.contains(&rank) {
                    look(peers[rank as usize].as_mut().unwrap());
                }
            },
            |rank, revoke| asked.push((rank, revoke.wanted)),
        );
        asked
    }

    fn answer(&mut self, rank: u32, count: u16) {
        let answer = Return {
            epoch: false,
            count,
        };
        let peer = self.peers[rank as usize].as_mut().unwrap();
        peer.returned(answer, &self.bank).unwrap();
    }

    fn end_epoch(&mut self) {
        let epoch = self.bank.epoch();
        while self.bank.epoch() == epoch {
            self.bank.count_request();
        }
    }
}

// spec P11: fair, and not without need.
#[test]
fn ranks_are_asked_in_turn_for_all_they_can_spare_but_no_more_than_needed() {
    let mut walk = Walk::new(
        12,
        14,
        Rules {
            walk_targets: 3,
            ..rules()
        },
    );
    assert_eq!(walk.walk(0), []);
    assert_eq!(walk.walk(25), [(1, 10), (2, 10), (3, 10)]);
    assert_eq!(walk.walk(15), [(4, 10), (5, 10)]);
    for rank in 1..=5 {
        walk.answer(rank, 2);
    }
    assert_eq!(walk.walk(1000), [(6, 10), (7, 10), (8, 10)]);
    assert_eq!(walk.walk(1000), [(9, 10), (10, 10), (11, 10)]);
    assert_eq!(walk.walk(1000), [(1, 8), (2, 8), (3, 8)], "around");
    assert_eq!(walk.bank.moved().returned, 10);
    assert_eq!(walk.bank.listed(), 11);
}

// spec P11: the reasons to pass a peer over.
#[test]
fn peers_with_a_reason_are_passed_over() {
    let mut walk = Walk::new(8, 6, rules());
    walk.locked = vec![1];
    walk.of(2).marks |= ASKED;
    walk.of(3).marks |= GAVE_NOTHING;
    walk.of(4).asked_for = 1;
    let all = walk.of(5).loan.split(2).unwrap();
    walk.bank.take_back(all);
    assert_eq!(walk.walk(100), [(6, 2), (7, 2)]);
    assert_eq!(walk.bank.listed(), 6, "5 holds the least and has left");
    walk.answer(6, 0);
    walk.answer(7, 2);
    assert_eq!(walk.walk(100), [], "6 gave nothing, 7 holds the least");
    let looks = walk.looks;
    assert_eq!(walk.walk(100), []);
    assert_eq!(walk.looks, looks, "not again in this epoch");
    walk.end_epoch();
    walk.locked.clear();
    let again = walk.walk(100);
    assert_eq!(
        again,
        [(3, 2), (4, 2), (6, 2), (1, 2)],
        "the count of 1 has decayed"
    );
}

#[test]
fn a_loan_puts_a_peer_on_the_list_again() {
    let mut walk = Walk::new(3, 6, rules());
    for rank in [1, 2] {
        let above = walk.of(rank).loan.split(2).unwrap();
        walk.bank.take_back(above);
    }
    assert_eq!(walk.walk(9), []);
    assert_eq!(walk.bank.listed(), 0);
    let peer = walk.peers[1].as_mut().unwrap();
    assert_eq!(peer.asks(2, 1, &walk.bank), 2);
    assert_eq!(walk.bank.listed(), 1);
    walk.end_epoch();
    assert_eq!(walk.walk(9), [(1, 2)]);
}

#[test]
fn answers_report_epochs() {
    let mut walk = Walk::new(3, 64, rules());
    walk.of(1).uses(64, true);
    walk.of(1).uses(0, false);
    let all = Revoke {
        epoch: false,
        wanted: u16::MAX,
    };
    for _ in 0..9 {
        assert_eq!(walk.of(1).figures().peak, 64);
        walk.of(1).marks |= ASKED;
        let answer = Return {
            epoch: true,
            count: 0,
        };
        let peer = walk.peers[1].as_mut().unwrap();
        peer.returned(answer, &walk.bank).unwrap();
    }
    assert_eq!(walk.of(1).figures().peak, 16);
    let peer = walk.peers[1].as_mut().unwrap();
    assert_eq!(peer.revoke(all, &walk.bank).count, 48);
}

#[test]
fn by_the_text_a_low_bank_is_enough() {
    let text = Rules {
        mends: Mends::NONE,
        low: 5000,
        walk_targets: 2,
        ..rules()
    };
    let mut walk = Walk::new(6, 14, text);
    assert_eq!(walk.walk(0), [(1, u16::MAX), (2, u16::MAX)]);
    let enough = Rules { low: 0, ..text };
    assert_eq!(Walk::new(6, 14, enough).walk(9), []);
}

// spec P11: credits that a borrower gives back.
#[test]
fn a_borrower_keeps_what_it_used_and_gives_little_at_a_time() {
    let own = bank(
        2,
        100,
        0,
        Rules {
            revoke_limit: 30,
            mends: Mends::NONE,
            ..rules()
        },
    );
    let revoke = |epoch| Revoke {
        epoch,
        wanted: u16::MAX,
    };
    let mut peer = Peer::new(&own).unwrap();
    let tag = peer.request(80, &mut Attempt::default(), &own).unwrap();
    assert_eq!(
        peer.revoke(revoke(false), &own).count,
        20,
        "80 were used lately"
    );
    assert_eq!(peer.revoke(revoke(true), &own).count, 0, "80 are in use");
    peer.replied(Tag { extra: 0, ..tag }, &own).unwrap();
    // 20 of this epoch became 5, the peak of 80 became 20.
    assert_eq!(peer.revoke(revoke(false), &own).count, 25);
    assert_eq!(peer.revoke(revoke(false), &own).count, 0);
    assert_eq!(
        peer.revoke(
            Revoke {
                epoch: true,
                wanted: 7
            },
            &own
        )
        .count,
        7
    );
    let mut attempt = Attempt::default();
    assert!(peer.request(60, &mut attempt, &own).is_none());
    assert_eq!(peer.revoke(revoke(false), &own).count, 0, "it has stalled");
    for _ in 0..8 {
        peer.revoke(revoke(true), &own);
    }
    assert_eq!(peer.figures().held, 4, "the least stays");
}

#[test]
fn more_than_is_free_cannot_be_given_back() {
    let mut walk = Walk::new(3, 14, rules());
    let used = Tag {
        epoch: false,
        extra: 0,
        count: 10,
    };
    let Walk { bank, peers, .. } = &mut walk;
    let debt = peers[1].as_mut().unwrap().arrived(used, bank).unwrap();
    assert_eq!(walk.walk(20), [(1, 10), (2, 10)]);
    walk.answer(1, 5);
    assert_eq!(walk.of(1).figures().loan, 10, "10 are in use");
    walk.answer(2, 14);
    assert_eq!(walk.of(2).figures().loan, 4, "the least stays");
    let peer = walk.peers[1].as_mut().unwrap();
    assert_eq!(peer.reply(debt, 1, &walk.bank).count, 10);
    let answer = Return {
        epoch: false,
        count: 0,
    };
    assert!(walk.of(1).marks & ASKED == 0);
    let refused = walk.peers[1].as_mut().unwrap().returned(answer, &walk.bank);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("without a question")
    );
}
