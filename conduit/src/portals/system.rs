//! The system queue: messages of one word, beside all others.
//!
//! Credits called back and the end of the job ride on it.

use super::core::{Again, Portals};
use super::roles::{self, Role};
use crate::conduit::{Completion, OpToken, Sink};
use crate::exit::Way;
use argonet_am::credit::{Bank, CreditError};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Answer, Frame, Heard, Question, Slot, SystemQueue};
use argonet_am::{AmError, Delivery};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Event, EventKind, NicError, Outcome, Part, Portals as Interface, Target,
};
use core::time::Duration;
use std::time::Instant;

impl<N: Interface> Portals<N> {
    /// Sends a word.
    ///
    /// At most one question and one answer are under way between two ranks, so nothing is to be
    /// waited for.
    // spec P12
    pub(super) fn put_system(&self, to: JobRank, word: u64) -> Result<(), NicError> {
        let nothing = Part {
            offset_bytes: 0,
            len_bytes: 0,
        };
        let target = Target {
            rank: to,
            portal: roles::SYSTEM,
            bits: 0,
            offset_bytes: 0,
        };
        self.nic
            .put_region(self.system, nothing, self.ack(), target, word)
    }

    /// Takes an event of the system queue.
    pub(super) fn system_event<S: Sink + ?Sized>(&self, event: &Event, sink: &mut S) {
        match (event.kind, Role::of(event.user)) {
            (EventKind::PutEnd, Some((Role::System, _))) if event.outcome == Outcome::Done => {
                if let Err(error) = self.hear(event.peer, event.header) {
                    sink.on_error(error);
                }
            }
            (EventKind::Ack, Some((Role::SentSystem, _))) if event.outcome == Outcome::NoMatch => {
                self.send_again(Again::System(event.peer, event.header));
            }
            _ => {}
        }
    }

    pub(super) fn hear(&self, from: JobRank, word: u64) -> Result<(), AmError> {
        let unknown = || self.broken(from, RecordError::Kind((word >> 56) as u8));
        if from.0 >= self.ranks {
            return Err(unknown());
        }
        let peer = self.peer(from);
        let mut guard = peer.state.lock();
        let state = &mut *guard;
        // Interfaces lose nothing: the queue keeps no questions to be repeated.
        let mut queue = SystemQueue::new(Duration::ZERO);
        let heard = queue.handle_recv(Duration::ZERO, from.0, &mut state.slot, Frame(word));
        let heard = heard.map_err(|_| unknown())?;
        let (sends, back) = match heard {
            Heard::Question(Question::Revoke(revoke)) => {
                let (Some(credit), Some(bank)) = (&mut state.credit, &self.bank) else {
                    return Err(unknown());
                };
                let back = credit.revoke(revoke, bank);
                self.show(state);
                let answer = SystemQueue::answer(&mut state.slot, Answer::Return(back));
                (Some(answer), None)
            }
            Heard::Question(Question::Exit(_)) => {
                let answer = SystemQueue::answer(&mut state.slot, Answer::Exiting);
                (Some(answer), None)
            }
            Heard::Repeated(answer) => (Some(answer), None),
            Heard::Answered(answer) => (None, Some(answer)),
            Heard::AnsweredAndNext(answer, next) => (Some(next), Some(answer)),
            Heard::Stale => return Ok(()),
        };
        if let Some(Answer::Return(back)) = back {
            let (Some(credit), Some(bank)) = (&mut state.credit, &self.bank) else {
                return Err(unknown());
            };
            let account = |error| self.broken(from, account(error));
            credit.returned(back, bank).map_err(account)?;
            self.show(state);
        }
        drop(guard);
        self.exits.heard(from, heard);
        // The rank that has asked waits for it.
        if let Some(frame) = sends
            && self.put_system(from, frame.0).is_err()
        {
            self.send_once_more(Again::System(from, frame.0));
        }
        Ok(())
    }
}

/// Exits are reported to all ranks that this conduit leads to.
///
/// It does not see which have gone.
// spec P13
impl<N: Interface + Send + Sync> Way for Portals<N> {
    fn ask(&self, rank: JobRank, until: Instant, ask: &mut dyn FnMut(&mut Slot) -> Option<Frame>) {
        let Some(mut state) = self.peer(rank).state.try_lock_until(until) else {
            return;
        };
        let frame = ask(&mut state.slot);
        drop(state);
        if let Some(frame) = frame {
            // A rank that the interface does not reach is waited for in vain, for a bounded time.
            let _ = self.put_system(rank, frame.0);
        }
    }

    fn listen(&self, _open: &[u32]) {
        self.take_system(&mut Deaf);
        self.try_again_at_times(|_| {});
    }

    fn has_left(&self, rank: JobRank) -> bool {
        let state = self.peer(rank).state.try_lock();
        state.is_some_and(|state| !state.slot.has_exit_waiting())
    }

    fn is_gone(&self, _rank: JobRank) -> bool {
        false
    }
}

/// For a rank that ends, to which nothing matters any more but answers.
struct Deaf;

impl Sink for Deaf {
    fn deliver(&mut self, _delivery: &mut Delivery<'_>) {
        unreachable!("no message comes over the system queue");
    }

    fn completed(&mut self, _op: OpToken, _completion: Completion) {}

    fn on_error(&mut self, _error: AmError) {}
}

/// The error of an impossible count of credits.
pub(super) fn account(error: CreditError) -> RecordError {
    match error {
        CreditError::Account { what, got, most } => RecordError::Account {
            what,
            got: got.into(),
            most: most.into(),
        },
        _ => RecordError::Kind(0),
    }
}

/// Asks peers to give credits back, if a peer lacks some.
///
/// No peer's lock may be held.
// spec P11
#[inline]
pub(super) fn scavenge<N: Interface>(portals: &Portals<N>, bank: &Bank) {
    bank.scavenge(
        |rank, look| {
            if rank < portals.ranks
                && let Some(mut state) = portals.peer(JobRank(rank)).state.try_lock()
                && !state.slot.is_busy()
                && let Some(credit) = &mut state.credit
            {
                look(credit);
            }
        },
        |rank, revoke| {
            let rank = JobRank(rank);
            let mut queue = SystemQueue::new(Duration::ZERO);
            let mut state = portals.peer(rank).state.lock();
            let question = Question::Revoke(revoke);
            let frame = queue.ask(Duration::ZERO, rank.0, &mut state.slot, question);
            drop(state);
            if let Some(frame) = frame
                && portals.put_system(rank, frame.0).is_err()
            {
                portals.send_once_more(Again::System(rank, frame.0));
            }
        },
    );
}
