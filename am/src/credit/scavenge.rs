//! Calling credits back from peers that do not use them.

use super::bank::Bank;
use super::error::CreditError;
use super::peer::{ASKED, GAVE_NOTHING, LISTED, Peer};
use super::purse::Credits;
use core::ops::Range;
use std::collections::VecDeque;

/// A lender wants credits back.
///
/// Travels in the system queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revoke {
    /// The lender has ended an epoch.
    pub epoch: bool,
    /// How many are wanted; 65,535 is as many as possible.
    pub wanted: u16,
}

/// The answer to [`Revoke`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Return {
    /// The borrower has ended an epoch.
    pub epoch: bool,
    /// How many it gives back.
    pub count: u16,
}

/// Ranks that hold more than the least, in the order in which they are asked.
#[derive(Debug)]
pub(super) struct List {
    me: u32,
    ranks: VecDeque<u32>,
    /// Ranks that hold more since the start and were not looked at yet: no memory for each of them.
    fresh: Range<u32>,
}

impl List {
    pub(super) fn new(me: u32, fresh: u32) -> Self {
        Self {
            me,
            ranks: VecDeque::new(),
            fresh: 0..fresh,
        }
    }

    pub(super) fn add(&mut self, rank: u32) {
        self.ranks.push_back(rank);
    }

    pub(super) fn len(&self) -> usize {
        self.ranks.len() + self.fresh.len()
    }

    fn next(&mut self) -> Option<u32> {
        let me = self.me;
        let fresh = self.fresh.find(|rank| *rank != me);
        fresh.or_else(|| self.ranks.pop_front())
    }
}

/// Outcome of looking at a rank in a walk.
enum Look {
    /// It is asked.
    Ask(Revoke),
    /// Passed over; it stays on the list.
    Pass,
    /// It holds no more than the least.
    Leave,
}

impl Bank {
    /// Ranks on the scavenge list.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.list().len()
    }

    /// Asks peers to give credits back, if the bank needs them.
    ///
    /// To be called after replies, without a stream's lock; returns at once if there is nothing to
    /// do or another thread is at it.
    ///
    /// `visit(rank, look)` calls `look` with the peer's state if it can have it *now*: not if the
    /// stream's lock is held elsewhere, and not if a system message to that peer is still
    /// unanswered. `send` sends a [`Revoke`] to a rank.
    ///
    /// Passed over are: this rank; ranks that cannot be visited; those that were asked and have not
    /// answered; those that gave nothing in this epoch; those that wanted more in this epoch. A
    /// peer that holds no more than the least leaves the list. The next walk goes on behind the
    /// last one, so all are asked in turn.
    // spec P11: the walk.
    pub fn scavenge(
        &self,
        mut visit: impl FnMut(u32, &mut dyn FnMut(&mut Peer)),
        mut send: impl FnMut(u32, Revoke),
    ) {
        let mut wanted = self.wanted_back();
        if wanted == 0 {
            return;
        }
        let Some(mut list) = self.try_list() else {
            return;
        };
        let looks = (list.len() as u64).min(self.rules().walk_looks.into());
        let mut targets = 0;
        for _ in 0..looks {
            if targets == self.rules().walk_targets || wanted == 0 {
                break;
            }
            let Some(rank) = list.next() else { break };
            let mut found = Look::Pass;
            visit(rank, &mut |peer| found = self.look(peer));
            match found {
                Look::Leave => continue,
                Look::Pass => {}
                Look::Ask(revoke) => {
                    targets += 1;
                    if self.rules().mends.as_many_as_needed {
                        wanted = wanted.saturating_sub(revoke.wanted.into());
                    }
                    send(rank, revoke);
                }
            }
            list.add(rank);
        }
        if targets == 0 {
            self.found_none();
        }
    }

    fn look(&self, peer: &mut Peer) -> Look {
        peer.decay_lending(self);
        let above = peer.loan.count().saturating_sub(self.rules().least);
        if above == 0 {
            peer.marks &= !LISTED;
            return Look::Leave;
        }
        if peer.marks & (ASKED | GAVE_NOTHING) != 0 || peer.asked_for > 0 {
            return Look::Pass;
        }
        peer.marks |= ASKED;
        // The first hundred that are missing are seldom the last, and a peer will hardly miss
        // credits that it has not used for long.
        let wanted = if self.rules().mends.as_many_as_needed {
            above
        } else {
            u16::MAX
        };
        Look::Ask(Revoke {
            epoch: peer.report_epoch(self),
            wanted,
        })
    }
}

impl Peer {
    /// The answer to a [`Revoke`] has come; its credits are banked.
    ///
    /// A borrower that believes to hold more than it was lent may give back more than there is. The
    /// least, and the credits that requests here have used, stay lent then, so that the borrower
    /// can always go on.
    ///
    /// # Errors
    /// An answer without a question.
    pub fn returned(&mut self, answer: Return, bank: &Bank) -> Result<(), CreditError> {
        if self.marks & ASKED == 0 {
            return Err(CreditError::Account {
                what: "are given back without a question",
                got: answer.count.into(),
                most: 0,
            });
        }
        let stays = bank.rules().least.max(self.owed);
        let free = self.loan.count().saturating_sub(stays);
        let credits = self.loan.split(answer.count.min(free));
        let credits = credits.unwrap_or(Credits::NONE);
        self.marks &= !ASKED;
        if answer.epoch {
            self.decay_sending(bank);
        }
        self.decay_lending(bank);
        if credits.count() == 0 {
            self.marks |= GAVE_NOTHING;
        }
        bank.take_back(credits);
        Ok(())
    }
}
