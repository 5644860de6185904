//! State that a rank keeps about one other.

use super::bank::Bank;
use super::purse::Credits;

/// It was asked to give back and has not answered.
pub(super) const ASKED: u8 = 1;
/// It gave nothing back in this epoch.
pub(super) const GAVE_NOTHING: u8 = 2;
/// It is on the scavenge list.
pub(super) const LISTED: u8 = 4;
/// This rank has asked the peer for credits and waits for the outcome; only with
/// [`Mends::one_question`](super::Mends::one_question).
pub(super) const ASKING: u8 = 8;

/// Credits between this rank and another, both ways.
///
/// 28 bytes; needed from the first use on.
///
/// It belongs to the stream of the peer: code that has `&mut Peer` holds the stream's lock or owns
/// the stream.
// spec P16: together with the slot of the system queue below 40 bytes a peer.
#[derive(Debug)]
pub struct Peer {
    // As borrower, of credits of the peer. The text's SendCredits, SendInuse, SendMax, SendStalls,
    // SendRevoked.
    pub(super) held: u16,
    pub(super) in_use: u16,
    pub(super) peak: u16,
    /// Most in use in the epochs before, of those in which requests were sent; only with
    /// [`Mends::patience`](super::Mends::patience).
    pub(super) past: u16,
    pub(super) stalls: u16,
    pub(super) gave_back: u16,
    /// Credits that are still to be asked for, with the requests that come.
    pub(super) wanting: u16,
    // As lender, of credits of this rank. The text's LoanCredits; how much of it requests have used
    // that were not yet answered; LoanRequested, LoanGiven.
    pub(super) loan: Credits,
    pub(super) owed: u16,
    pub(super) asked_for: u16,
    pub(super) given: u16,
    /// Low bits of the epoch in which the lender's numbers were decayed last.
    pub(super) decayed: u16,
    /// Low bits of the last epoch whose end was reported to the peer.
    pub(super) reported: u16,
    pub(super) marks: u8,
    /// Epochs of the lender without a request to it.
    pub(super) quiet: u8,
}

static_assertions::const_assert!(size_of::<Peer>() <= 28);

/// The state of a peer, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Credits of the peer that this rank holds.
    pub held: u16,
    /// Of them in use.
    pub in_use: u16,
    /// Most that were in use lately.
    pub peak: u16,
    /// Stalls lately; decays.
    pub stalls: u16,
    /// Credits of this rank that the peer holds.
    pub loan: u16,
    /// Of them used by requests that were not answered yet.
    pub owed: u16,
}

impl Peer {
    /// The peer at its first use: both sides hold the share of the plan.
    ///
    /// `None` if all peers of the plan have been made.
    #[must_use]
    pub fn new(bank: &Bank) -> Option<Peer> {
        let loan = bank.share()?;
        // Untouched so far, so nothing is to decay; but epochs that ended were not reported to it.
        let listed = bank.plan().share() > bank.rules().least;
        Some(Peer {
            held: bank.plan().share(),
            in_use: 0,
            peak: 0,
            past: 0,
            quiet: 0,
            stalls: 0,
            gave_back: 0,
            wanting: 0,
            loan,
            owed: 0,
            asked_for: 0,
            given: 0,
            decayed: bank.epoch() as u16,
            reported: 0,
            marks: if listed { LISTED } else { 0 },
        })
    }

    /// Its state.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            held: self.held,
            in_use: self.in_use,
            peak: self.peak.max(self.past),
            stalls: self.stalls,
            loan: self.loan.count(),
            owed: self.owed,
        }
    }

    /// Whether to report to the peer that an epoch has ended here.
    ///
    /// One report stands for all that have ended since.
    ///
    /// Only low bits are kept, so after exactly 65,536 epochs without a message nothing is
    /// reported; the next epoch is.
    #[inline]
    pub(super) fn report_epoch(&mut self, bank: &Bank) -> bool {
        let epoch = bank.epoch() as u16;
        let news = self.reported != epoch;
        self.reported = epoch;
        news
    }

    /// The peer has ended an epoch: the counts of sending to it decay.
    pub(super) fn decay_sending(&mut self, bank: &Bank) {
        let shift = bank.rules().decay_shift;
        self.decay_peak(bank);
        self.stalls >>= shift;
        self.gave_back >>= shift;
        self.wanting >>= shift;
        // A refused question may be asked again: other peers have given credits back in this epoch.
        self.marks &= !ASKING;
    }

    /// A partner that seldom sends, beside busy ones that end epochs quickly, would lose all that
    /// it needs between two bursts.
    ///
    /// So an epoch without a request says nothing about what is needed, until there were many.
    fn decay_peak(&mut self, bank: &Bank) {
        let rules = bank.rules();
        if !rules.mends.patience {
            self.peak >>= rules.decay_shift;
        } else if self.quiet == 0 {
            self.past = self.peak.max(self.past >> rules.decay_shift);
            self.peak = self.in_use;
            self.quiet = 1;
        } else if self.quiet < rules.patience {
            self.quiet += 1;
        } else {
            self.past >>= rules.decay_shift;
            self.peak = self.in_use;
        }
    }

    /// Decays the lender's numbers by all epochs that have ended since they were last looked at, so
    /// that the end of an epoch walks over no peers.
    ///
    /// Only low bits are kept: after exactly 65,536 epochs they decay one epoch late, which
    /// withholds a loan for that long.
    #[inline]
    pub(super) fn decay_lending(&mut self, bank: &Bank) {
        let ended = (bank.epoch() as u16).wrapping_sub(self.decayed);
        if ended != 0 {
            self.decayed = self.decayed.wrapping_add(ended);
            let shift = (u32::from(ended) * bank.rules().decay_shift).min(16);
            self.asked_for = (u32::from(self.asked_for) >> shift) as u16;
            self.given = (u32::from(self.given) >> shift) as u16;
            self.marks &= !GAVE_NOTHING;
        }
    }
}
