//! The system queue over rails: frames of one word beside the stream.

use super::core::Core;
use super::idle::Closing;
use super::peer::{Outbound, Peer};
use super::peer_poll::Served;
use crate::channel::frame::Kind;
use crate::channel::rail::Rails;
use crate::channel::stream::{Credits, Parked};
use crate::exit::Way;
use crate::shown_bank::ShownBank;
use crate::system_queue::{Asker, take};
use argonet_am::credit::{Return, Revoke};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Frame, Slot};
use argonet_base::JobRank;
use std::time::Instant;

/// A peer, and its new window if that changes.
struct Beside<'a, R: Rails> {
    bank: Option<&'a ShownBank>,
    outbound: &'a mut Outbound<R>,
    parked: &'a Parked,
    window: Option<usize>,
}

impl<R: Rails> Asker for Beside<'_, R> {
    fn slot(&mut self) -> &mut Slot {
        &mut self.outbound.slot
    }

    fn revoke(&mut self, revoke: Revoke) -> Option<Return> {
        let outbound = &mut *self.outbound;
        let (loans, bank) = (outbound.loans.as_mut()?, self.bank?);
        let reserved = outbound.reserved.charge;
        let back = loans.revoke(revoke, reserved, &mut outbound.grant, bank);
        bank.show();
        Some(back)
    }

    fn returned(&mut self, back: Return) -> Result<(), RecordError> {
        // Without flow control nothing was asked for.
        if let (Some(loans), Some(bank)) = (&mut self.outbound.loans, self.bank) {
            self.window = Some(loans.returned(back, self.parked, bank)?);
            bank.show();
        }
        Ok(())
    }

    fn answered(&mut self) {
        let stream = &mut self.outbound.send_stream;
        stream.report_credits(Credits::answered);
    }

    fn answer(&mut self, frame: Frame) {
        let stream = &mut self.outbound.send_stream;
        stream.report_credits(|credits| credits.answer(frame));
    }

    fn ask(&mut self, frame: Frame) {
        let stream = &mut self.outbound.send_stream;
        stream.report_credits(|credits| credits.ask(frame));
    }
}

impl<R: Rails> Core<R> {
    /// Takes a message of the system queue; the peer's new window if that has changed.
    ///
    /// # Errors
    /// It is none, or is impossible.
    #[cold]
    pub(super) fn system(
        &self,
        peer: &Peer<R>,
        parked: &Parked,
        word: u64,
    ) -> Result<Option<usize>, RecordError> {
        let unknown = RecordError::Kind(Kind::System.into());
        let mut outbound = peer.outbound.lock();
        let mut beside = Beside {
            bank: self.bank.as_ref(),
            outbound: &mut outbound,
            parked,
            window: None,
        };
        let heard = take(peer.rank, word, unknown, &mut beside)?;
        let window = beside.window;
        drop(outbound);
        self.exits.heard(peer.rank, heard);
        Ok(window)
    }
}

/// An exit is reported to peers to which there is a rail: none is made for it.
///
/// Rails that were closed as nothing passed count as if they had never been made.
// spec P13
impl<R: Rails> Way for Core<R> {
    fn ask(&self, rank: JobRank, until: Instant, ask: &mut dyn FnMut(&mut Slot) -> Option<Frame>) {
        let Some(peer) = self.used(rank.0).filter(|peer| peer.rank != self.rank) else {
            return;
        };
        let Some(mut outbound) = peer.outbound.try_lock_until(until) else {
            return;
        };
        if outbound.wire.is_none() || outbound.failed.is_some() {
            return;
        }
        if let Some(frame) = ask(&mut outbound.slot) {
            outbound
                .send_stream
                .report_credits(|credits| credits.ask(frame));
            self.flush(peer, &mut outbound);
        }
    }

    fn listen(&self, open: &[u32]) {
        for peer in open.iter().filter_map(|rank| self.used(*rank)) {
            if self.serve(peer) != Served::Busy
                && let Some(mut outbound) = peer.outbound.try_lock()
                && outbound.is_unsent()
            {
                self.flush(peer, &mut outbound);
            }
        }
    }

    fn has_left(&self, rank: JobRank) -> bool {
        let outbound = self.used(rank.0).and_then(|peer| peer.outbound.try_lock());
        outbound.is_some_and(|outbound| !outbound.slot.has_exit_waiting() && !outbound.is_unsent())
    }

    /// Its rail has ended, and not by an agreement that came before the report.
    fn is_gone(&self, rank: JobRank) -> bool {
        let outbound = self.used(rank.0).and_then(|peer| peer.outbound.try_lock());
        outbound.is_some_and(|outbound| {
            let is_closed = matches!(outbound.closing, Closing::Closed | Closing::Reopening);
            outbound.failed.is_some() || outbound.wire.is_none() && !is_closed
        })
    }
}
