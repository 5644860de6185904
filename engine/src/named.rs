//! The barrier of GASNet-1: notify, then wait or try, and ranks may give it a name that must match.
//!
//! Dissemination, as the other barriers. Its messages carry the combined name of the ranks that
//! have entered. Combining is idempotent, so a rank may count twice where the number of ranks is no
//! power of two. A rank is at most one barrier ahead of another: two sets of slots, used in turn,
//! are enough. Where ranks share memory they read each other's cells instead, and nothing goes on
//! in the background.

mod team;

pub(super) use team::TeamBarrier;

use super::background::{Background, Steps, kind};
use super::core::Engine;
use super::limits::internal;
use super::shared_memory::{Group, NamedCall};
use super::thread::ThreadCtx;
use super::traced::{Between, span};
use super::tree::ROUNDS;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, SharedCells};
use argonet_trace::{Kind, What};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// The name that a rank gives a barrier when it enters it, or when it waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// Matches every name.
    Anonymous,
    /// Matches the same and anonymous ones.
    Id(i32),
    /// Matches nothing: makes the barrier a mismatch.
    Mismatch,
    /// A promise that no rank gives a name, so that nothing needs to match.
    ///
    /// Here that saves nothing over [`Anonymous`](Self::Anonymous).
    Unnamed,
}

/// Whether names matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The names of all ranks did, and the one that this rank waited with.
    Match,
    /// Two ranks gave different names or one gave [`Name::Mismatch`], which is reported to all
    /// ranks; or this rank waited with another name than the barrier has.
    Mismatch,
}

/// Why a call on the barrier with names was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamedError {
    /// Where it was called.
    #[error(transparent)]
    Am(#[from] AmError),
    /// A second notify without a wait, or a try that succeeded, between.
    #[error("rank {rank}: a barrier notify before the wait for the previous one")]
    AlreadyNotified {
        /// The rank.
        rank: JobRank,
    },
    /// A wait or try that no notify precedes.
    #[error("rank {rank}: a barrier wait or try without a notify before it")]
    NotNotified {
        /// The rank.
        rank: JobRank,
    },
}

/// The combined name of some ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Agreed {
    Nothing,
    Id(i32),
    Mismatch,
}

impl From<Name> for Agreed {
    fn from(name: Name) -> Self {
        match name {
            Name::Anonymous | Name::Unnamed => Self::Nothing,
            Name::Id(id) => Self::Id(id),
            Name::Mismatch => Self::Mismatch,
        }
    }
}

impl Agreed {
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, agreed) | (agreed, Self::Nothing) => agreed,
            (Self::Id(a), Self::Id(b)) if a == b => self,
            _ => Self::Mismatch,
        }
    }

    /// The name that ranks gave, if they agree on one.
    fn id(self) -> Option<i32> {
        match self {
            Self::Id(id) => Some(id),
            Self::Nothing | Self::Mismatch => None,
        }
    }

    /// The verdict for a rank that waits with a name.
    fn verdict(self, name: Name) -> Verdict {
        match self.with(name.into()) {
            Self::Mismatch => Verdict::Mismatch,
            Self::Nothing | Self::Id(_) => Verdict::Match,
        }
    }

    /// As two arguments of a message, of which the first is never 0.
    pub(super) fn to_args(self) -> [u32; 2] {
        match self {
            Self::Nothing => [1, 0],
            Self::Id(id) => [2, id.cast_unsigned()],
            Self::Mismatch => [3, 0],
        }
    }

    pub(super) fn from_args([tag, id]: [u32; 2]) -> Self {
        match tag {
            1 => Self::Nothing,
            2 => Self::Id(id.cast_signed()),
            _ => Self::Mismatch,
        }
    }
}

/// The message that has come in a round: 0 if none, else both arguments.
#[derive(Default)]
struct Slot(AtomicU64);

impl Slot {
    fn fill(&self, [tag, id]: [u32; 2]) {
        let word = u64::from(tag) << 32 | u64::from(id);
        self.0.store(word, Ordering::Release);
    }

    /// Empties it for the barrier after the next.
    fn take(&self) -> Option<Agreed> {
        let word = self.0.load(Ordering::Acquire);
        (word != 0).then(|| {
            self.0.store(0, Ordering::Relaxed);
            Agreed::from_args([(word >> 32) as u32, word as u32])
        })
    }
}

/// State of the barrier with names.
#[derive(Default)]
pub(super) struct Named {
    /// By parity of the barrier and round.
    ///
    /// Handlers fill them, and the thread that advances the barrier empties them.
    slots: [[Slot; ROUNDS]; 2],
    state: Mutex<BarrierState>,
    /// Whether the barrier that this rank has entered is complete; written under the lock.
    complete: AtomicBool,
    pub(super) stuck: AtomicBool,
    notified: Between,
}

#[derive(Default)]
struct BarrierState {
    parity: u32,
    stage: Stage,
    /// Name of the last barrier that was complete.
    last: Option<i32>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Outside,
    Entered {
        agreed: Agreed,
        round: usize,
        /// Whether the message of that round has been sent.
        sent: bool,
    },
    /// The same by cells.
    Cells(NamedCall),
    Complete(Agreed),
}

pub(super) fn register(
    background: &Arc<Background>,
    handlers: &mut HandlerTable,
) -> Result<(), AmError> {
    let this = Arc::clone(background);
    let run = move |delivery: &mut Delivery<'_>| {
        let round = delivery.arg(0) as usize % ROUNDS;
        let slot = &this.named.slots[delivery.arg(1) as usize & 1][round];
        slot.fill([delivery.arg(2), delivery.arg(3)]);
    };
    handlers.register_internal(internal::NAMED, "argonet::named", Box::new(run))
}

impl<C: Conduit> Engine<C> {
    /// Enters the barrier under a name.
    ///
    /// Collective; does not wait. Counts for no other kind of barrier.
    ///
    /// # Errors
    /// [`NamedError::AlreadyNotified`]; [`AmError::Restricted`] inside a handler;
    /// [`AmError::PeerLost`] after any loss.
    pub fn named_notify(&self, ctx: &ThreadCtx, name: Name) -> Result<(), NamedError> {
        ctx.permit_collective("a barrier", self.rank)?;
        let _span = span(ctx, Kind::BarrierNotify);
        {
            let mut state = self.background.named.state.lock();
            // A loss after this gives the barrier up, under the same lock.
            self.unless_any_lost()?;
            let Stage::Outside = state.stage else {
                return Err(NamedError::AlreadyNotified { rank: self.rank });
            };
            if let Some((cells, group)) = self.named_group() {
                state.stage = Stage::Cells(NamedCall::take(cells, group, name.into()));
                self.background.named.notified.note();
                return Ok(());
            }
            state.stage = Stage::Entered {
                agreed: name.into(),
                round: 0,
                sent: false,
            };
            self.background.begin(kind::NAMED);
        }
        self.advance_named();
        self.background.named.notified.note();
        Ok(())
    }

    /// Polls once, and leaves the barrier if all ranks have entered it; `None` if not.
    ///
    /// # Errors
    /// [`NamedError::NotNotified`]; [`AmError::Restricted`] inside a handler;
    /// [`AmError::PeerLost`] of a barrier that a loss has cut short.
    pub fn named_try(&self, ctx: &ThreadCtx, name: Name) -> Result<Option<Verdict>, NamedError> {
        ctx.permit_collective("a barrier", self.rank)?;
        self.entered()?;
        let mut span = span(ctx, Kind::BarrierTry);
        self.progress_and_run(ctx, true);
        self.read_named_cells();
        let complete = self.background.named.complete.load(Ordering::Acquire);
        if let Some(span) = &mut span {
            span.describe(What::Value(complete.into()));
        }
        if !complete {
            self.unless_any_lost()?;
            return Ok(None);
        }
        self.leave(name).map(Some)
    }

    /// Polls until all ranks have entered the barrier, and leaves it.
    ///
    /// # Errors
    /// As [`named_try`](Self::named_try).
    pub fn named_wait(&self, ctx: &ThreadCtx, name: Name) -> Result<Verdict, NamedError> {
        ctx.permit_collective("a barrier", self.rank)?;
        self.entered()?;
        self.background.named.notified.report(ctx);
        let _span = span(ctx, Kind::BarrierWait);
        let complete = &self.background.named.complete;
        let complete = || {
            self.read_named_cells();
            complete.load(Ordering::Acquire)
        };
        if !complete() {
            let mut wait = self.waiting_for_cell(Waiting::new(WaitFor::Barrier));
            while !complete() {
                self.unless_any_lost()?;
                wait.pause_unless(ctx, &|| self.named_cell_has_come());
            }
        }
        self.leave(name)
    }

    fn named_group(&self) -> Option<(SharedCells<'_>, &Group)> {
        Some((self.conduit.shared_cells()?, &self.groups.as_ref()?.named))
    }

    /// Reads the cells that have come of a barrier by cells, and notices that all ranks have
    /// entered.
    fn read_named_cells(&self) {
        let Some((cells, group)) = self.named_group() else {
            return;
        };
        let mut state = self.background.named.state.lock();
        if let Stage::Cells(call) = &mut state.stage
            && let Some(agreed) = call.look(cells, group)
        {
            state.stage = Stage::Complete(agreed);
            let complete = &self.background.named.complete;
            complete.store(true, Ordering::Release);
        }
    }

    /// Whether another look at the cells is worth it.
    fn named_cell_has_come(&self) -> bool {
        let Some((cells, group)) = self.named_group() else {
            return false;
        };
        match &self.background.named.state.lock().stage {
            Stage::Cells(call) => call.has_come(cells, group),
            _ => true,
        }
    }

    /// The name that ranks gave the barrier that this one has left last; `None` if no rank gave
    /// one, if names did not match, and before the first barrier.
    pub fn named_result(&self) -> Option<i32> {
        self.background.named.state.lock().last
    }

    fn entered(&self) -> Result<(), NamedError> {
        match self.background.named.state.lock().stage {
            Stage::Outside => {
                // One that was given up, or that was never begun.
                self.unless_any_lost()?;
                Err(NamedError::NotNotified { rank: self.rank })
            }
            Stage::Entered { .. } | Stage::Cells(_) | Stage::Complete(_) => Ok(()),
        }
    }

    /// A rank is lost: the barrier that is under way has no end, even if the others still enter it.
    pub(super) fn give_up_named(&self) {
        let named = &self.background.named;
        let mut state = named.state.lock();
        match state.stage {
            Stage::Outside | Stage::Complete(_) => return,
            Stage::Cells(_) => {}
            Stage::Entered { .. } => {
                named.stuck.store(false, Ordering::Relaxed);
                self.background.end(kind::NAMED);
            }
        }
        state.stage = Stage::Outside;
    }

    /// Leaves a barrier that is complete.
    fn leave(&self, name: Name) -> Result<Verdict, NamedError> {
        let named = &self.background.named;
        let mut state = named.state.lock();
        // Another thread may have left it, and that is the client's mistake.
        let Stage::Complete(agreed) = state.stage else {
            return Err(NamedError::NotNotified { rank: self.rank });
        };
        state.stage = Stage::Outside;
        state.parity ^= 1;
        state.last = agreed.id();
        named.complete.store(false, Ordering::Relaxed);
        Ok(agreed.verdict(name))
    }

    /// Sends the messages that have become possible, and notices that all ranks have entered.
    pub(super) fn advance_named(&self) -> usize {
        let named = &self.background.named;
        let mut guard = named.state.lock();
        let state = &mut *guard;
        let Stage::Entered {
            agreed,
            round,
            sent,
        } = &mut state.stage
        else {
            return 0;
        };
        let mut steps = Steps::default();
        while *round < self.rounds() {
            let [tag, id] = agreed.to_args();
            let message = Message {
                handler: internal::NAMED,
                args: &[*round as u32, state.parity, tag, id],
                payload: Payload::None,
            };
            *sent = *sent || self.send_now(self.target_in(*round), &message, &mut steps);
            if !*sent {
                break;
            }
            let Some(theirs) = named.slots[state.parity as usize][*round].take() else {
                break;
            };
            *agreed = agreed.with(theirs);
            *round += 1;
            *sent = false;
        }
        let complete = *round == self.rounds();
        if complete {
            state.stage = Stage::Complete(*agreed);
            named.complete.store(true, Ordering::Release);
            steps.taken += 1;
        }
        let taken = steps.publish(&self.background, &named.stuck);
        if complete {
            self.background.end(kind::NAMED);
        }
        taken
    }
}
