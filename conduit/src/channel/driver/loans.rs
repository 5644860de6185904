//! Credits that a rank and a peer have lent each other.

use super::core::Core;
use super::peer::{Outbound, Peer};
use crate::channel::frame::Fields;
use crate::channel::rail::Rails;
use crate::channel::stream::{Credits, Grant, Parked, SendStream};
use crate::channel::{CREDIT_BYTES, credits};
use crate::shown_bank::ShownBank;
use crate::system_queue::question;
use argonet_am::credit::{self, Bank, Return, Revoke};
use argonet_am::record::RecordError;
use argonet_base::JobRank;

/// Credits between this rank and a peer, both ways.
///
/// Windows follow them.
pub(super) struct Loans {
    pub(super) peer: credit::Peer,
    /// Low bits of the credits that the peer has lent since the beginning.
    heard: u16,
    /// Bytes of requests sent when the use was looked at last.
    noted: u64,
    /// The same when a request had to wait last.
    stalled_at: Option<u64>,
    /// Others can see that nothing is in use, and all else as it is.
    shows_rest: bool,
    /// Requests that had to wait, since the beginning.
    pub(super) stalls: u64,
}

impl Loans {
    /// Both sides hold the share.
    ///
    /// `None` without flow control.
    pub(super) fn new(bank: &Bank) -> Option<Box<Self>> {
        let peer = credit::Peer::new(bank)?;
        Some(Box::new(Self {
            peer,
            heard: 0,
            noted: 0,
            stalled_at: None,
            shows_rest: false,
            stalls: 0,
        }))
    }

    /// Bytes that this rank may have under way.
    fn window(&self) -> usize {
        usize::from(self.peer.figures().held) * CREDIT_BYTES
    }

    /// Shows the credits between this rank and the peer.
    fn show(&self, peer: JobRank, in_use: u16, bank: &ShownBank) {
        let figures = credit::Figures {
            in_use,
            ..self.peer.figures()
        };
        bank.show_peer(peer, figures, self.stalls);
    }

    /// Bytes that the peer may have under way.
    fn its_window(&self) -> usize {
        usize::from(self.peer.figures().loan) * CREDIT_BYTES
    }

    /// Records the credits in use, and their peak, before the borrower's machine reads them: at the
    /// lender's word, at its question, and at a stall.
    #[cold]
    fn note(&mut self, grant: &mut Grant, reserved: usize) {
        let (used, _) = grant.totals();
        let has_sent = used != self.noted;
        self.noted = used;
        self.peer.uses(credits(grant.take_peak()), has_sent);
        self.peer
            .uses(credits(grant.in_use() + reserved as u64), has_sent);
    }

    /// Whether a control frame says anything of credits.
    #[inline]
    fn is_news(&self, (epoch, fields): (bool, &Fields)) -> bool {
        epoch || fields.wanted != 0 || fields.op as u16 != self.heard
    }

    /// A request of so many bytes does not fit the window.
    ///
    /// Returns the credits to ask for.
    #[cold]
    pub(super) fn stall(
        &mut self,
        charge: usize,
        reserved: usize,
        grant: &mut Grant,
        bank: &Bank,
    ) -> u16 {
        let (used, _) = grant.totals();
        // Nothing was sent since: it is the same request, tried again.
        let is_new = self.stalled_at != Some(used);
        self.stalled_at = Some(used);
        self.stalls += u64::from(is_new);
        self.note(grant, reserved);
        let needed = grant.in_use() + (charge + reserved) as u64;
        let lacked = credits(needed).saturating_sub(self.peer.figures().held);
        self.peer.lacks(lacked, is_new, bank)
    }

    /// Takes news of credits from a control frame; returns the window of the peer if it has
    /// changed.
    ///
    /// # Errors
    /// The counts are impossible.
    #[cold]
    fn control(
        &mut self,
        from: u32,
        (epoch, fields): (bool, &Fields),
        reserved: usize,
        (grant, send_stream): (&mut Grant, &mut SendStream),
        bank: &Bank,
    ) -> Result<Option<usize>, RecordError> {
        self.note(grant, reserved);
        grant.handle(fields.rest)?;
        self.shows_rest = false;
        let lent = (fields.op as u16).wrapping_sub(self.heard);
        self.heard = fields.op as u16;
        let in_use = credits(grant.in_use() + reserved as u64);
        let heard = self.peer.hears(epoch, lent, in_use, bank);
        heard?;
        grant.set_window(self.window());
        let asked = self.peer.asks(fields.wanted as u16, from, bank);
        send_stream.report_credits(|credits| credits.lend(asked));
        Ok((asked > 0).then(|| self.its_window()))
    }

    /// The peer asks for credits back; returns those that it gets.
    #[cold]
    pub(super) fn revoke(
        &mut self,
        revoke: Revoke,
        reserved: usize,
        grant: &mut Grant,
        bank: &Bank,
    ) -> Return {
        self.shows_rest = false;
        self.note(grant, reserved);
        let back = self.peer.revoke(revoke, bank);
        grant.set_window(self.window());
        back
    }

    /// The peer has given credits back: its window.
    ///
    /// # Errors
    /// Those are more than it could.
    #[cold]
    pub(super) fn returned(
        &mut self,
        back: Return,
        parked: &Parked,
        bank: &Bank,
    ) -> Result<usize, RecordError> {
        self.shows_rest = false;
        self.peer.owes(credits(parked.owed()));
        let most = self.peer.most_back(bank);
        if back.count > most {
            return Err(RecordError::Account {
                what: "credits are given back",
                got: back.count.into(),
                most: most.into(),
            });
        }
        self.peer.returned(back, bank)?;
        Ok(self.its_window())
    }
}

impl<R: Rails> Core<R> {
    /// Takes the fields of a peer's control frame; its new window if that has changed.
    ///
    /// # Errors
    /// The counts are impossible.
    #[inline]
    pub(super) fn control(
        &self,
        peer: &Peer<R>,
        (epoch, fields): (bool, &Fields),
    ) -> Result<Option<usize>, RecordError> {
        let outbound = &mut *peer.outbound.lock();
        outbound.send_stream.acknowledge(fields.offset)?;
        let mut window = None;
        if let (Some(loans), Some(bank)) = (&mut outbound.loans, &self.bank)
            && loans.is_news((epoch, fields))
        {
            let reserved = outbound.reserved.charge;
            let stream = (&mut outbound.grant, &mut outbound.send_stream);
            let said = (epoch, fields);
            window = loans.control(peer.rank.0, said, reserved, stream, bank)?;
            if window.is_some() {
                bank.show();
            }
        } else {
            outbound.grant.handle(fields.rest)?;
        }
        outbound.taken();
        outbound.go_on(&self.sizes);
        Ok(window)
    }

    /// At the end of a poll of a peer: the end of an epoch is reported to the peer with the next
    /// acknowledgement; others can see the loans.
    #[inline]
    pub(super) fn look_at_credits(
        &self,
        peer: &Peer<R>,
        outbound: &mut Outbound<R>,
        bank: &ShownBank,
        parked: &Parked,
    ) {
        let Some(loans) = &mut outbound.loans else {
            return;
        };
        if loans.peer.reports_epoch(bank) {
            outbound.send_stream.report_credits(Credits::end_epoch);
            bank.show();
        }
        // In a job that waits for each answer nothing is ever in use here.
        let bytes = outbound.grant.in_use() + outbound.reserved.charge as u64;
        let rests = bytes | parked.owed() == 0;
        if !(rests && loans.shows_rest) {
            loans.shows_rest = rests;
            loans.peer.owes(credits(parked.owed()));
            loans.show(peer.rank, credits(bytes), bank);
        }
    }

    /// At the first use of a peer.
    #[cold]
    pub(super) fn gauge_first(&self, peer: &Peer<R>) {
        if let Some(bank) = &self.bank
            && let Some(loans) = &peer.outbound.lock().loans
        {
            bank.show();
            loans.show(peer.rank, 0, bank);
        }
    }

    /// A request has no room in the window: more is asked for.
    #[cold]
    pub(super) fn lack(&self, peer: &Peer<R>, outbound: &mut Outbound<R>, charge: usize) {
        let reserved = outbound.reserved.charge;
        if let (Some(bank), Some(loans)) = (&self.bank, &mut outbound.loans)
            && !outbound.grant.allows(charge, reserved)
        {
            let wanted = loans.stall(charge, reserved, &mut outbound.grant, bank);
            loans.shows_rest = false;
            outbound
                .send_stream
                .report_credits(|credits| credits.want(wanted));
            let in_use = credits(outbound.grant.in_use() + reserved as u64);
            loans.show(peer.rank, in_use, bank);
        }
    }

    /// Asks peers to give credits back, if a peer lacks some.
    ///
    /// The caller holds no lock of a peer.
    #[inline]
    pub(super) fn scavenge(&self) {
        let Some(bank) = &self.bank else { return };
        bank.call_back(
            |rank, look| {
                // A peer that was never used holds its share, and there is nothing to ask over; a
                // peer that another thread uses is passed over.
                if let Some(peer) = self.used(rank.0)
                    && let Some(mut outbound) = peer.outbound.try_lock()
                    && outbound.failed.is_none()
                    && !outbound.slot.is_busy()
                    && let Some(loans) = &mut outbound.loans
                {
                    look(&mut loans.peer);
                }
            },
            |rank, asked| {
                let Some(peer) = self.used(rank.0) else {
                    return;
                };
                let outbound = &mut *peer.outbound.lock();
                if let Some(frame) = question(rank, &mut outbound.slot, asked) {
                    outbound
                        .send_stream
                        .report_credits(|credits| credits.ask(frame));
                    if outbound.wire.is_none() {
                        self.connect_for(peer, outbound);
                        self.helper.gather();
                    }
                    self.flush(peer, outbound);
                }
            },
        );
    }
}
