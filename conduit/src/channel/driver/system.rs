//! The system queue over rails: frames of one word beside the stream.
//!
//! Credits called back and the end of the job ride on it.

use super::core::Core;
use super::idle::Closing;
use super::peer::Peer;
use super::peer_poll::Served;
use crate::channel::frame::Kind;
use crate::channel::rail::Rails;
use crate::channel::stream::{Credits, Parked};
use crate::exit::Way;
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Answer, Frame, Heard, Question, Slot, SystemQueue};
use argonet_base::JobRank;
use core::time::Duration;
use std::time::Instant;

impl<R: Rails> Core<R> {
    /// Takes a message of the system queue; the peer's new window if that has changed.
    ///
    /// # Errors
    /// It is none, or is impossible.
    // spec P12
    #[cold]
    pub(super) fn system(
        &self,
        peer: &Peer<R>,
        parked: &Parked,
        word: u64,
    ) -> Result<Option<usize>, RecordError> {
        let unknown = RecordError::Kind(Kind::System.into());
        let mut guard = peer.outbound.lock();
        let outbound = &mut *guard;
        // Streams lose nothing but with their rail, after which questions are written again:
        // the queue keeps none.
        let mut queue = SystemQueue::new(Duration::ZERO);
        let heard = queue.handle_recv(Duration::ZERO, peer.rank.0, &mut outbound.slot, Frame(word));
        let heard = heard.map_err(|_| unknown)?;
        let (answer, back, next) = match heard {
            Heard::Question(Question::Revoke(revoke)) => {
                let (Some(loans), Some(bank)) = (&mut outbound.loans, &self.bank) else {
                    return Err(unknown);
                };
                let reserved = outbound.reserved.charge;
                let back = loans.revoke(revoke, reserved, &mut outbound.grant, bank);
                self.gauge_bank(bank);
                (Some(Answer::Return(back)), None, None)
            }
            Heard::Question(Question::Exit(_)) => (Some(Answer::Exiting), None, None),
            Heard::Repeated(answer) => {
                outbound
                    .send_stream
                    .report_credits(|credits| credits.answer(answer));
                return Ok(None);
            }
            Heard::Answered(answer) => (None, Some(answer), None),
            Heard::AnsweredAndNext(answer, next) => (None, Some(answer), Some(next)),
            Heard::Stale => return Ok(None),
        };
        if let Some(answer) = answer {
            let answer = SystemQueue::answer(&mut outbound.slot, answer);
            outbound
                .send_stream
                .report_credits(|credits| credits.answer(answer));
        }
        let mut window = None;
        if let Some(answer) = back {
            outbound.send_stream.report_credits(Credits::answered);
            if let Some(next) = next {
                outbound
                    .send_stream
                    .report_credits(|credits| credits.ask(next));
            }
            if let Answer::Return(back) = answer {
                let (Some(loans), Some(bank)) = (&mut outbound.loans, &self.bank) else {
                    return Err(unknown);
                };
                window = Some(loans.returned(back, parked, bank)?);
                self.gauge_bank(bank);
            }
        }
        drop(guard);
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
