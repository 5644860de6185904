//! The side that owns the receive space.

use super::bank::Bank;
use super::form::Tag;
use super::peer::{LISTED, Peer};
use super::purse::Credits;

/// Credits that the reply to a request owes its sender.
///
/// The debt goes into the token of the request; dropping it would lose credits of the sender.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "the reply gives credits back"]
pub struct Debt {
    pub(super) count: u16,
    pub(super) wanted: u16,
}

impl Debt {
    /// Credits of the request.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }
}

/// A request for which its sender had no credits.
///
/// It was not taken; it is sent back with this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushedBack {
    /// The cost of the request.
    pub count: u16,
    /// Credits that the sender holds according to the lender.
    pub loan: u16,
}

impl Peer {
    /// A request has come.
    ///
    /// # Errors
    /// [`PushedBack`] if its sender uses more than was lent to it, so that receive space others
    /// have been promised stays theirs.
    #[inline]
    pub fn arrived(&mut self, tag: Tag, bank: &Bank) -> Result<Debt, PushedBack> {
        if tag.epoch {
            self.decay_sending(bank);
        }
        let loan = self.loan.count();
        let Some(owed) = self
            .owed
            .checked_add(tag.count)
            .filter(|owed| *owed <= loan)
        else {
            return Err(PushedBack {
                count: tag.count,
                loan,
            });
        };
        self.owed = owed;
        bank.count_request();
        Ok(Debt {
            count: tag.count,
            wanted: tag.extra,
        })
    }

    /// The receive space was full although the loan was kept, or the request fell into no buffer:
    /// the debt is void, and the request goes back to its sender.
    // spec P10: overflow is pushed back and resent.
    pub fn overflowed(&mut self, debt: Debt) -> PushedBack {
        self.owed -= debt.count;
        PushedBack {
            count: debt.count,
            loan: self.loan.count(),
        }
    }

    /// The request was handled; returns the tag of its reply.
    ///
    /// `rank` is the peer's, for the list of peers that may be asked to give back.
    ///
    /// Call [`Bank::scavenge`] next, when no stream's lock is held.
    #[inline]
    pub fn reply(&mut self, debt: Debt, rank: u32, bank: &Bank) -> Tag {
        self.owed -= debt.count;
        let extra = if debt.wanted > 0 && bank.rules().dynamic {
            self.lend(debt.wanted, rank, bank)
        } else {
            0
        };
        Tag {
            epoch: self.report_epoch(bank),
            extra,
            count: debt.count,
        }
    }

    #[cold]
    pub(super) fn lend(&mut self, wanted: u16, rank: u32, bank: &Bank) -> u16 {
        self.decay_lending(bank);
        let rules = bank.rules();
        self.asked_for = self.asked_for.saturating_add(1).min(rules.most_counted());
        let wanted = wanted.min(rules.form.most_extra());
        let room = rules.most.saturating_sub(self.loan.count());
        let (possible, allowed) = if rules.mends.in_part {
            let allowance = rules.lend_limit.saturating_sub(self.given);
            // The first to ask does not get all.
            let quarter = u16::try_from(bank.banked() / 4).unwrap_or(u16::MAX);
            let possible = wanted.min(room).min(allowance);
            (possible, possible.min(quarter.max(rules.least)))
        } else if wanted <= room && self.given <= rules.lend_limit {
            (wanted, wanted)
        } else {
            (0, 0)
        };
        let credits = bank.lend(allowed);
        let got = credits.count();
        bank.miss(possible - got);
        self.given = self.given.saturating_add(got);
        // `allowed` leaves room below `most`, which fits.
        let joined: Result<(), Credits> = self.loan.join(credits);
        debug_assert!(joined.is_ok(), "a loan above the most a peer");
        if self.loan.count() > rules.least && self.marks & LISTED == 0 {
            self.marks |= LISTED;
            bank.list().add(rank);
        }
        got
    }
}
