//! The side that sends requests.

use super::bank::Bank;
use super::error::CreditError;
use super::form::Tag;
use super::lender::PushedBack;
use super::peer::{ASKING, Peer};
use super::scavenge::{Return, Revoke};

/// One request from its first attempt until it is sent, with the credits that it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attempt {
    lacked: u16,
    stalled: bool,
}

impl Attempt {
    /// Whether it had to wait.
    #[must_use]
    pub fn has_stalled(&self) -> bool {
        self.stalled
    }
}

impl Peer {
    /// Credits that can be used now.
    #[inline]
    #[must_use]
    pub fn available(&self) -> u16 {
        // More in use than held is possible after a lender has corrected the credits held.
        self.held.saturating_sub(self.in_use)
    }

    /// Pays for a request.
    ///
    /// `None`: there are not enough; call again with the same attempt when a reply or a loan has
    /// come.
    #[inline]
    pub fn request(&mut self, cost: u16, attempt: &mut Attempt, bank: &Bank) -> Option<Tag> {
        let available = self.available();
        if cost > available {
            self.stall(cost - available, attempt, bank);
            return None;
        }
        self.in_use += cost;
        self.peak = self.peak.max(self.in_use);
        self.quiet = 0;
        let extra = if attempt.stalled || self.wanting != 0 {
            self.ask_with(cost, attempt, bank)
        } else {
            0
        };
        Some(Tag {
            epoch: self.report_epoch(bank),
            extra,
            count: cost,
        })
    }

    #[cold]
    pub(super) fn stall(&mut self, lacked: u16, attempt: &mut Attempt, bank: &Bank) {
        if !attempt.stalled {
            *attempt = Attempt {
                lacked,
                stalled: true,
            };
            let most = bank.rules().most_counted();
            self.stalls = self.stalls.saturating_add(1).min(most);
        }
    }

    /// Credits to ask for with a request that has just been paid for.
    #[cold]
    fn ask_with(&mut self, cost: u16, attempt: &Attempt, bank: &Bank) -> u16 {
        // No other is under way, so a burst begins. The last burst has ended without the credits
        // that it still wanted.
        if bank.rules().mends.one_burst && self.in_use == cost {
            self.wanting = 0;
        }
        self.ask(attempt, bank)
    }

    /// Credits to ask for with a request that has stalled, or that goes after one that has.
    #[cold]
    pub(super) fn ask(&mut self, attempt: &Attempt, bank: &Bank) -> u16 {
        let rules = bank.rules();
        if !rules.dynamic || self.marks & ASKING != 0 {
            return 0;
        }
        // No more than it could be lent.
        let room = rules.most.saturating_sub(self.held);
        let mut wanted = if attempt.stalled { attempt.lacked } else { 0 };
        if rules.mends.ask_ahead {
            if attempt.stalled {
                let ahead = self.held.saturating_mul(rules.ask_times);
                self.wanting = self.wanting.max(ahead);
            }
            wanted = wanted.max(self.wanting);
        }
        let extra = wanted.min(room).min(rules.form.most_extra());
        self.wanting = self.wanting.min(room).saturating_sub(extra);
        // Requests that stall before the answer is here lack the same credits. A narrow field asks
        // for so little at once that it needs the next ones, too.
        if rules.mends.one_question && extra != 0 && rules.form.most_extra() >= rules.most {
            self.marks |= ASKING;
        }
        extra
    }

    /// A reply has come: its credits can be used again, and some in addition.
    ///
    /// # Errors
    /// More come back than were used; more are lent than counts hold.
    #[inline]
    pub fn replied(&mut self, tag: Tag, bank: &Bank) -> Result<(), CreditError> {
        if tag.epoch {
            self.decay_sending(bank);
        }
        if tag.count > self.in_use {
            return Err(CreditError::Account {
                what: "come back with a reply",
                got: tag.count.into(),
                most: self.in_use.into(),
            });
        }
        let Some(held) = self.held.checked_add(tag.extra) else {
            return Err(CreditError::Account {
                what: "are lent",
                got: tag.extra.into(),
                most: (u16::MAX - self.held).into(),
            });
        };
        self.in_use -= tag.count;
        self.held = held;
        self.heard(tag.extra);
        Ok(())
    }

    /// The lender has lent so much, and the credits in use are now known.
    ///
    /// Where none is in use, the question was answered, too.
    #[inline]
    pub(super) fn heard(&mut self, lent: u16) {
        if lent > 0 || self.in_use == 0 {
            self.marks &= !ASKING;
        }
    }

    /// A request was refused, as the lender has lent less than is used here: its credits are no
    /// longer in use, and no more are held than are lent.
    ///
    /// The request is to be paid for and sent again.
    ///
    /// # Errors
    /// More come back than were used.
    pub fn pushed_back(&mut self, back: PushedBack) -> Result<(), CreditError> {
        if back.count > self.in_use {
            return Err(CreditError::Account {
                what: "come back with a refusal",
                got: back.count.into(),
                most: self.in_use.into(),
            });
        }
        self.in_use -= back.count;
        // A loan under way to us may be part of it, and makes us hold too much once more: then
        // there is another refusal, and the next correction. It never makes us hold too little.
        self.held = self.held.min(back.loan);
        self.heard(0);
        Ok(())
    }

    /// The lender wants credits back.
    // spec P11: credits that are given back.
    pub fn revoke(&mut self, revoke: Revoke, bank: &Bank) -> Return {
        if revoke.epoch {
            self.decay_sending(bank);
        }
        let rules = bank.rules();
        // The text leaves out the credits in use; a decayed peak may be below them.
        let keep = rules.least.max(self.peak).max(self.past).max(self.in_use);
        let spare = self.held.saturating_sub(keep);
        let allowance = rules.revoke_limit.saturating_sub(self.gave_back);
        let count = if self.stalls > 0 {
            0
        } else {
            spare.min(allowance).min(revoke.wanted)
        };
        self.held -= count;
        self.gave_back = self.gave_back.saturating_add(count);
        Return {
            epoch: self.report_epoch(bank),
            count,
        }
    }
}
