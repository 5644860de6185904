//! Collective operations, and answers in parts, that go on while their callers do something else.
//!
//! Handlers may not send, so they only record the messages that have come. Every poll ends with a
//! look whether an operation is pending; if so, the polling thread sends the messages that have
//! become possible, as far as there is room, and completes the operations that are over. It never
//! waits here.

use super::collective::Collectives;
use super::core::Engine;
use super::deferred::Deferred;
use super::named::Named;
use super::outgoing::Queue;
use super::quiescence::{self, Quiescence};
use super::thread::ThreadCtx;
use super::vis::Notices;
use argonet_am::{AmError, HandlerTable, Message};
use argonet_base::JobRank;
use argonet_conduit::{Conduit, SendError};
use argonet_event::{Completion, Event};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::Arc;

/// The longest sleep of a thread while something of its rank waits for room at a peer: the peer
/// sends no wakeup for that.
pub(super) const STUCK_SLEEP: Duration = Duration::from_millis(1);

/// Kinds of operations, as bits.
pub(super) mod kind {
    /// The barrier with names.
    pub(in super::super) const NAMED: u32 = 2;
    /// A handler has recorded a complaint that ends the job.
    pub(in super::super) const COMPLAINT: u32 = 8;
    /// What handlers have left to be sent in parts.
    pub(in super::super) const OUTGOING: u32 = 16;
    /// Collective operations of teams.
    pub(in super::super) const COLLECTIVES: u32 = 32;
    /// Notices of non-contiguous puts that are to be sent to peers.
    pub(in super::super) const VIS: u32 = 128;
    /// Those of teams that go by cells, besides.
    pub(in super::super) const CELLS: u32 = 256;
    /// Looking for a job that cannot end.
    pub(in super::super) const QUIESCENCE: u32 = 512;
    /// Client code that handlers have left to a later time.
    pub(in super::super) const DEFERRED: u32 = 1024;
}

/// State of all operations that go on in the background.
#[derive(Default)]
pub(super) struct Background {
    /// Kinds of which an operation is under way at this rank.
    ///
    /// Each bit changes under the lock of its kind.
    pending: AtomicU32,
    /// Another number after each step, for threads about to sleep.
    epoch: AtomicU32,
    complaint: Mutex<Option<String>>,
    pub(super) named: Named,
    pub(super) collectives: Collectives,
    pub(super) outgoing: Queue,
    pub(super) notices: Notices,
    pub(super) quiescence: Quiescence,
    pub(super) deferred: Deferred,
}

impl Background {
    pub(super) fn register(self: &Arc<Self>, handlers: &mut HandlerTable) -> Result<(), AmError> {
        super::named::register(self, handlers)?;
        quiescence::register(self, handlers)?;
        super::collective::register(self, handlers)
    }

    /// Kinds of which something is pending.
    #[inline(always)]
    pub(super) fn pending(&self) -> u32 {
        self.pending.load(Ordering::Relaxed)
    }

    /// An operation of that kind has begun.
    ///
    /// The caller holds the kind's lock.
    pub(super) fn begin(&self, kind: u32) {
        self.pending.fetch_or(kind, Ordering::Relaxed);
    }

    /// The last operation of that kind is over.
    ///
    /// The caller holds the kind's lock, and has [`stepped`](Self::stepped).
    pub(super) fn end(&self, kind: u32) {
        // Release: a thread that sees that nothing is pending sees the step that ended it.
        self.pending.fetch_and(!kind, Ordering::Release);
    }

    /// Whether no handler has left anything that is not all sent.
    ///
    /// Loads before this call stay before it, and loads after it stay after it. The first fence
    /// pairs with what a handler did before it left something, the second with
    /// [`end`](Self::end) by a thread that has sent the last part.
    pub(super) fn nothing_outgoing(&self) -> bool {
        fence(Ordering::Acquire);
        let nothing = self.pending() & kind::OUTGOING == 0;
        fence(Ordering::Acquire);
        nothing
    }

    /// Something has been sent or completed.
    ///
    /// The caller holds the kind's lock, so that a thread which finds nothing to do after it sees
    /// the new number.
    pub(super) fn stepped(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// The epoch that [`stepped_since`](Self::stepped_since) compares with.
    ///
    /// A thread reads it before it tests the condition that it waits for.
    #[inline(always)]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether another thread may have completed something after the epoch was `seen`.
    ///
    /// Asked after a poll.
    pub(super) fn stepped_since(&self, seen: u32) -> bool {
        // The poll may have skipped the locks because nothing was pending any more.
        fence(Ordering::Acquire);
        self.epoch() != seen
    }

    /// Whether something waits for room at a peer.
    pub(super) fn is_stuck(&self) -> bool {
        let flags = [
            (kind::NAMED, &self.named.stuck),
            (kind::COLLECTIVES, &self.collectives.stuck),
            (kind::OUTGOING, &self.outgoing.stuck),
            (kind::VIS, &self.notices.stuck),
            (kind::QUIESCENCE, &self.quiescence.stuck),
        ];
        let pending = self.pending();
        // A flag may be older than the end of its kind's last operation.
        let is_set = |(kind, stuck): (u32, &AtomicBool)| {
            pending & kind != 0 && stuck.load(Ordering::Relaxed)
        };
        pending != 0
            && (flags.into_iter().any(is_set)
                || pending & kind::COLLECTIVES != 0 && self.collectives.any_in_hand())
    }

    /// Makes the next poll end the job; for handlers, which cannot.
    pub(super) fn complain(&self, message: String) {
        self.complaint.lock().get_or_insert(message);
        self.begin(kind::COMPLAINT);
    }
}

/// The result of one look at the operations of a kind.
#[derive(Default)]
pub(super) struct Steps {
    /// Messages sent and operations completed.
    pub(super) taken: usize,
    /// Whether something could not be sent.
    pub(super) stuck: bool,
}

impl Steps {
    /// Ends the look.
    ///
    /// The caller holds the kind's lock.
    pub(super) fn publish(self, background: &Background, stuck: &AtomicBool) -> usize {
        stuck.store(self.stuck, Ordering::Relaxed);
        if self.taken > 0 {
            background.stepped();
        }
        self.taken
    }
}

impl<C: Conduit> Engine<C> {
    /// Goes on with pending operations, without waiting; returns how much could be done.
    ///
    /// A poll just before has taken `before` messages. Deferred code runs if `runs_deferred` says
    /// so; that may wait.
    #[cold]
    #[inline(never)]
    pub(super) fn advance(&self, ctx: &ThreadCtx, before: usize, runs_deferred: bool) -> usize {
        let pending = self.background.pending();
        if before == 0 && self.exit_mark.is_set() {
            self.boot.attend();
        }
        if pending & kind::COMPLAINT != 0 {
            // A copy: it takes a while, and handlers of other threads take the lock meanwhile.
            let complaint = self.background.complaint.lock().clone();
            if let Some(message) = complaint {
                self.fatal_for_several(&message);
            }
        }
        let mut taken = 0;
        if self.losses.is_time(before) {
            taken += self.take_losses(ctx);
        }
        if pending & kind::NAMED != 0 {
            taken += self.advance_named();
        }
        if pending & kind::COLLECTIVES != 0 {
            taken += self.advance_collectives(ctx);
        }
        if pending & kind::OUTGOING != 0 {
            taken += self.advance_outgoing();
        }
        if pending & kind::VIS != 0 {
            taken += self.advance_notices();
        }
        if pending & kind::QUIESCENCE != 0 {
            self.background.quiescence.did(before + taken);
            taken += self.advance_quiescence();
        }
        if pending & kind::DEFERRED != 0 && runs_deferred {
            taken += self.run_deferred(ctx);
        }
        taken
    }

    /// Sends a message if there is room; says whether it has.
    pub(super) fn send_now(&self, to: JobRank, message: &Message<'_>, steps: &mut Steps) -> bool {
        match self.conduit.request(to, message) {
            Ok(()) => steps.taken += 1,
            // What is under way with the peer is about to be given up.
            Err(SendError::Message(error)) if self.lost_by(&error).is_some() => {
                steps.stuck = true;
                return false;
            }
            Err(SendError::Message(error)) => self.fatal_am(error),
            Err(_) => {
                steps.stuck = true;
                return false;
            }
        }
        true
    }

    /// Completes the event of an operation of one part.
    pub(super) fn finish(&self, event: Event, steps: &mut Steps) {
        if let Err(error) = self.events.complete(event, Completion::Remote, 1) {
            self.fatal(&format!("a collective operation ends wrongly: {error}"));
        }
        steps.taken += 1;
    }

    /// Rounds of a dissemination: after as many, each rank has heard of all.
    pub(super) fn rounds(&self) -> usize {
        (u32::BITS - self.size.saturating_sub(1).leading_zeros()) as usize
    }

    /// The rank to which this one sends in a round of a dissemination.
    pub(super) fn target_in(&self, round: usize) -> JobRank {
        JobRank(self.wrap(u64::from(self.rank.0) + (1 << round)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stuck_does_not_outlast_its_kind() {
        let background = Background::default();
        background.begin(kind::COLLECTIVES);
        background.collectives.stuck.store(true, Ordering::Relaxed);
        assert!(background.is_stuck());
        // Another thread has stored it after the last call was complete.
        background.end(kind::COLLECTIVES);
        background.begin(kind::NAMED);
        assert!(!background.is_stuck());
        background.named.stuck.store(true, Ordering::Relaxed);
        assert!(background.is_stuck());
    }
}
