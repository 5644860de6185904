//! The system queue: messages of one word, beside all others.

use super::core::{Again, Portals};
use super::peer::State;
use super::roles::{self, Role};
use crate::conduit::{Completion, OpToken, Sink};
use crate::exit::Way;
use crate::shown_bank::ShownBank;
use crate::system_queue::{Asker, question, take};
use argonet_am::credit::{Return, Revoke};
use argonet_am::record::RecordError;
use argonet_am::system_queue::{Frame, Slot};
use argonet_am::{AmError, Delivery};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Ack, Event, EventKind, NicError, Outcome, Part, Portals as Interface, Target,
};
use core::sync::atomic::Ordering;
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
        if !self.synchronous {
            return self
                .nic
                .put_region(self.system, nothing, Ack::Event, target, word);
        }
        let answer = self.nic.put_answered(self.system, nothing, target, word)?;
        self.look_for_end(to, answer.outcome);
        Ok(())
    }

    /// A rank that takes no more words has come to its end.
    fn look_for_end(&self, rank: JobRank, outcome: Outcome) {
        if let Outcome::Refused | Outcome::Disabled | Outcome::PeerDied = outcome {
            self.peer(rank).has_ended.store(true, Ordering::Relaxed);
        }
    }

    /// Takes an event of the system queue.
    pub(super) fn system_event<S: Sink + ?Sized>(&self, event: &Event, sink: &mut S) {
        match (event.kind, Role::of(event.user)) {
            (EventKind::PutEnd, Some((Role::System, _))) if event.outcome == Outcome::Done => {
                if let Err(error) = self.hear(event.peer, event.header) {
                    sink.on_error(error);
                }
            }
            (EventKind::Ack, Some((Role::SentSystem, _))) => match event.outcome {
                Outcome::NoMatch => self.send_again(Again::System(event.peer, event.header)),
                outcome => self.look_for_end(event.peer, outcome),
            },
            _ => {}
        }
    }

    /// Sends a frame for which a peer or this rank waits.
    fn say(&self, to: JobRank, frame: Frame) {
        if self.put_system(to, frame.0).is_err() {
            self.send_once_more(Again::System(to, frame.0));
        }
    }

    pub(super) fn hear(&self, from: JobRank, word: u64) -> Result<(), AmError> {
        let broken = |cause| self.broken(from, cause);
        let unknown = RecordError::Kind((word >> 56) as u8);
        if from.0 >= self.ranks {
            return Err(broken(unknown));
        }
        let mut state = self.peer(from).state.lock();
        let mut beside = Beside {
            bank: self.bank.as_ref(),
            state: &mut state,
            sends: None,
        };
        let heard = take(from, word, unknown, &mut beside).map_err(broken)?;
        let sends = beside.sends;
        drop(state);
        self.exits.heard(from, heard);
        if let Some(frame) = sends {
            self.say(from, frame);
        }
        Ok(())
    }

    /// Credits are called back if a peer lacks some.
    ///
    /// No peer's lock may be held.
    #[inline]
    pub(super) fn balance(&self) {
        let Some(bank) = &self.bank else { return };
        bank.call_back(
            |rank, look| {
                if rank.0 < self.ranks
                    && let Some(mut state) = self.peer(rank).state.try_lock()
                    && !state.slot.is_busy()
                    && let Some(credit) = &mut state.credit
                {
                    look(credit);
                }
            },
            |rank, asked| {
                let frame = question(rank, &mut self.peer(rank).state.lock().slot, asked);
                if let Some(frame) = frame {
                    self.say(rank, frame);
                }
            },
        );
    }
}

/// A peer, and the frame that is to be sent to it.
struct Beside<'a> {
    bank: Option<&'a ShownBank>,
    state: &'a mut State,
    sends: Option<Frame>,
}

impl Asker for Beside<'_> {
    fn slot(&mut self) -> &mut Slot {
        &mut self.state.slot
    }

    fn revoke(&mut self, revoke: Revoke) -> Option<Return> {
        let bank = self.bank?;
        let back = self.state.credit.as_mut()?.revoke(revoke, bank);
        self.state.show(bank);
        Some(back)
    }

    fn returned(&mut self, back: Return) -> Result<(), RecordError> {
        // Without flow control nothing was asked for.
        if let (Some(credit), Some(bank)) = (&mut self.state.credit, self.bank) {
            credit.returned(back, bank)?;
            self.state.show(bank);
        }
        Ok(())
    }

    fn answer(&mut self, frame: Frame) {
        self.sends = Some(frame);
    }

    fn ask(&mut self, frame: Frame) {
        self.sends = Some(frame);
    }
}

/// Exits are reported to all ranks that this conduit leads to, and those that have gone are not
/// waited for.
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

    fn is_gone(&self, rank: JobRank) -> bool {
        let peer = self.peers.used(rank.0);
        peer.is_some_and(|peer| peer.has_ended.load(Ordering::Relaxed))
            || self.nic.lost(rank).is_some()
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
