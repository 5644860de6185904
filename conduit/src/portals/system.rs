//! The system queue: messages of one word, beside all others.

use super::core::{Again, Portals};
use super::roles::{self, Role};
use crate::conduit::Sink;
use argonet_am::AmError;
use argonet_am::credit::{Bank, CreditError};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Answer, Frame, Heard, Question, SystemQueue};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Event, EventKind, NicError, Outcome, Part, Portals as Interface, Target,
};
use core::time::Duration;

impl<N: Interface> Portals<N> {
    /// Sends a word. At most one question and one answer are under way between two ranks, so nothing is to be waited for.
    // seed P12
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
                    sink.broken(error);
                }
            }
            (EventKind::Ack, Some((Role::SentSystem, _)))
                if matches!(event.outcome, Outcome::NoMatch | Outcome::Disabled) =>
            {
                self.send_again(Again::System(event.peer, event.header));
            }
            _ => {}
        }
    }

    fn hear(&self, from: JobRank, word: u64) -> Result<(), AmError> {
        let unknown = || self.broken(from, RecordError::Kind((word >> 56) as u8));
        let Some(bank) = &self.bank else {
            return Err(unknown());
        };
        if from.0 >= self.ranks {
            return Err(unknown());
        }
        let peer = self.peer(from);
        let mut state = peer.state.lock();
        let state = &mut *state;
        let Some(credit) = &mut state.credit else {
            return Err(unknown());
        };
        // Interfaces lose nothing: the queue keeps no questions to be repeated.
        let mut queue = SystemQueue::new(Duration::ZERO);
        let heard = queue.handle_recv(Duration::ZERO, from.0, &mut state.slot, Frame(word));
        let answer = match heard.map_err(|_| unknown())? {
            Heard::Question(Question::Revoke(revoke)) => {
                let back = credit.revoke(revoke, bank);
                SystemQueue::answer(&mut state.slot, Answer::Return(back))
            }
            Heard::Repeated(answer) => answer,
            Heard::Answered(Answer::Return(back)) => {
                let account = |error| self.broken(from, account(error));
                return credit.returned(back, bank).map_err(account);
            }
            Heard::Stale => return Ok(()),
            // The end of a job goes through its launcher.
            _ => return Err(unknown()),
        };
        // Who has asked waits for it.
        if self.put_system(from, answer.0).is_err() {
            self.send_again(Again::System(from, answer.0));
        }
        Ok(())
    }
}

/// What a count of credits says that cannot be.
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

/// Asks peers to give credits back, if somebody lacks some. Nobody's lock may be held.
// seed P11
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
                portals.send_again(Again::System(rank, frame.0));
            }
        },
    );
}
