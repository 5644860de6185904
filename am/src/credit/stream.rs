//! For conduits that count requests themselves, as bytes of a stream: the conduit reports now and
//! then how many credits are in use, and the machine answers how many either side may use.
//!
//! Nothing is done for each message.
//!
//! The use only grows until the lender reports how much it has handled. The conduit reports the use
//! just before it takes such a report, so the peak is exact.

use super::bank::Bank;
use super::borrower::Attempt;
use super::error::CreditError;
use super::peer::Peer;

impl Peer {
    /// Borrower: credits in use now, rounded up, and whether requests were sent since the last
    /// call.
    ///
    /// To be called before the lender's word is taken, and before [`revoke`](Self::revoke).
    pub fn uses(&mut self, in_use: u16, has_sent: bool) {
        self.in_use = in_use;
        self.peak = self.peak.max(in_use);
        if has_sent {
            self.quiet = 0;
        }
    }

    /// Borrower: a request lacks `lacked` credits and waits.
    ///
    /// `is_new`: it has not waited before.
    ///
    /// Returns the credits to ask the lender for; 0 is no question.
    #[cold]
    pub fn lacks(&mut self, lacked: u16, is_new: bool, bank: &Bank) -> u16 {
        if !is_new {
            return 0;
        }
        let mut attempt = Attempt::default();
        self.stall(lacked, &mut attempt, bank);
        self.ask(&attempt, bank)
    }

    /// Borrower: the lender's word has come, by which `in_use` credits are still in use and `lent`
    /// more are held.
    ///
    /// # Errors
    /// More are held than may be.
    pub fn hears(
        &mut self,
        epoch: bool,
        lent: u16,
        in_use: u16,
        bank: &Bank,
    ) -> Result<(), CreditError> {
        if epoch {
            self.decay_sending(bank);
        }
        let room = bank.rules().most.saturating_sub(self.held);
        if lent > room {
            return Err(CreditError::Account {
                what: "are lent",
                got: lent.into(),
                most: room.into(),
            });
        }
        self.in_use = in_use;
        self.held += lent;
        self.heard(lent);
        Ok(())
    }

    /// Lender: credits of requests that have come and were not handled, rounded up.
    ///
    /// To be called before [`returned`](Self::returned).
    pub fn owes(&mut self, owed: u16) {
        self.owed = owed;
    }

    /// Lender: rank `rank`, the peer, asks for credits.
    ///
    /// Returns how many it is lent.
    ///
    /// Call [`Bank::scavenge`] next, when no stream's lock is held.
    #[cold]
    pub fn asks(&mut self, wanted: u16, rank: u32, bank: &Bank) -> u16 {
        if wanted == 0 || !bank.rules().dynamic {
            return 0;
        }
        self.lend(wanted, rank, bank)
    }

    /// Lender and borrower: whether an epoch has ended here that was not reported to the peer.
    ///
    /// It counts as reported then.
    #[inline]
    pub fn reports_epoch(&mut self, bank: &Bank) -> bool {
        self.report_epoch(bank)
    }

    /// Lender: the most that the peer may give back: all but the least and the credits that are
    /// owed.
    #[must_use]
    pub fn most_back(&self, bank: &Bank) -> u16 {
        let stays = bank.rules().least.max(self.owed);
        self.loan.count().saturating_sub(stays)
    }
}

impl Bank {
    /// Whether [`scavenge`](Self::scavenge) would look for credits.
    #[inline]
    #[must_use]
    pub fn is_short(&self) -> bool {
        let rules = self.rules();
        rules.dynamic && (!rules.mends.on_demand || self.is_missing())
    }

    /// Requests have come, from any peer.
    #[inline]
    pub fn arrived(&self, requests: u32) {
        if requests != 0 {
            self.count_requests(requests);
        }
    }
}
