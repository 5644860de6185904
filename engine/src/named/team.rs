//! The barrier with names of a team that is not all ranks: a reduce-to-all that combines the names.
#![allow(unsafe_code)]

use super::super::collective::{Call, Folding, Kind, Signature};
use super::super::core::Engine;
use super::super::events::OpError;
use super::super::team::{Team, TeamKey};
use super::super::thread::ThreadCtx;
use super::{Agreed, Name, NamedError, Verdict};
use argonet_am::AmError;
use argonet_conduit::Conduit;
use argonet_event::Event;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// This member's name, and then the combined name of all.
///
/// Atomics, as the operation writes them from elsewhere.
type Words = [AtomicU32; 2];

#[derive(Debug)]
struct Entered {
    event: Event,
    /// Leaked if the team goes before the operation is complete, which writes there.
    words: ManuallyDrop<Arc<Words>>,
}

#[derive(Debug, Default)]
struct State {
    entered: Option<Entered>,
    /// Name of the last barrier that was complete.
    last: Option<i32>,
}

/// State of a member's barriers with names of a team.
#[derive(Clone, Debug, Default)]
pub(crate) struct TeamBarrier(Arc<Mutex<State>>);

/// [`FoldFn`](crate::FoldFn) that combines names.
///
/// # Safety
/// `count` pairs of words lie at both places, the second of which may be written; any alignment.
unsafe fn agree(_: [*const (); 2], left: *const u8, right: *mut u8, count: usize) {
    let (left, right) = (left.cast::<[u32; 2]>(), right.cast::<[u32; 2]>());
    for at in 0..count {
        // SAFETY: this function's contract.
        unsafe {
            let agreed = Agreed::from_args(left.add(at).read_unaligned());
            let other = Agreed::from_args(right.add(at).read_unaligned());
            right.add(at).write_unaligned(agreed.with(other).to_args());
        }
    }
}

impl Entered {
    /// The error of a barrier that ends without an agreement.
    fn cut_short(self, error: OpError) -> NamedError {
        if let OpError::Am(AmError::PeerLost { .. }) = error {
            // The event is complete.
            drop(ManuallyDrop::into_inner(self.words));
        }
        own(error)
    }
}

/// The errors of a call: its own event is waited for once, and so has none.
fn own(error: OpError) -> NamedError {
    match error {
        OpError::Am(error) => error.into(),
        other => unreachable!("an event of the library's own: {other}"),
    }
}

impl<C: Conduit> Engine<C> {
    /// Enters the barrier with names of a team, as [`named_notify`](Self::named_notify) that of all
    /// ranks.
    ///
    /// Collective over the team; counts as a collective operation of it, but for the team of all
    /// ranks, whose barrier is that of all ranks.
    ///
    /// # Errors
    /// As [`named_notify`](Self::named_notify).
    pub fn team_notify(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        name: Name,
    ) -> Result<(), NamedError> {
        if team.key == TeamKey::WORLD {
            return self.named_notify(ctx, name);
        }
        let mut state = team.named.0.lock();
        if state.entered.is_some() {
            return Err(NamedError::AlreadyNotified { rank: self.rank });
        }
        let words = Arc::new(Agreed::from(name).to_args().map(AtomicU32::new));
        let at = Arc::as_ptr(&words).cast_mut().cast::<u8>();
        let call = Call {
            unit: size_of::<Words>(),
            count: 1,
            src: at,
            dst: at,
            folding: Some(Folding {
                is_client_code: false,
                function: agree,
                context: [core::ptr::null(); 2],
                ordered: false,
                signature: Signature::NAMES,
            }),
            ..Call::of(Kind::ReduceAll)
        };
        let words = ManuallyDrop::new(words);
        // SAFETY: the words are given back when the event is complete, and not before; no other
        // code accesses them meanwhile.
        let event = match unsafe { self.collective_start(ctx, team, call) } {
            Ok(event) => event,
            // No call of a broken team begins.
            Err(error @ OpError::Am(AmError::PeerLost { .. })) => {
                drop(ManuallyDrop::into_inner(words));
                return Err(own(error));
            }
            Err(error) => return Err(own(error)),
        };
        state.entered = Some(Entered { event, words });
        Ok(())
    }

    /// As [`named_try`](Self::named_try), of a team.
    ///
    /// # Errors
    /// As there.
    pub fn team_try(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        name: Name,
    ) -> Result<Option<Verdict>, NamedError> {
        if team.key == TeamKey::WORLD {
            return self.named_try(ctx, name);
        }
        ctx.permit_collective("a barrier", self.rank)?;
        let entered = self.entered_of(team)?;
        self.progress(ctx);
        match self.peek(ctx, entered.event) {
            Ok(true) => Ok(Some(leave(team, entered, name))),
            Ok(false) => {
                team.named.0.lock().entered = Some(entered);
                Ok(None)
            }
            Err(error) => Err(entered.cut_short(error)),
        }
    }

    /// As [`named_wait`](Self::named_wait), of a team.
    ///
    /// # Errors
    /// As there.
    pub fn team_wait(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        name: Name,
    ) -> Result<Verdict, NamedError> {
        if team.key == TeamKey::WORLD {
            return self.named_wait(ctx, name);
        }
        ctx.permit_collective("a barrier", self.rank)?;
        let entered = self.entered_of(team)?;
        match self.wait(ctx, entered.event) {
            Ok(()) => Ok(leave(team, entered, name)),
            Err(error) => Err(entered.cut_short(error)),
        }
    }

    /// As [`named_result`](Self::named_result), of a team.
    #[must_use]
    pub fn team_result(&self, team: &Team) -> Option<i32> {
        if team.key == TeamKey::WORLD {
            return self.named_result();
        }
        team.named.0.lock().last
    }

    /// Takes the barrier that this member has entered.
    fn entered_of(&self, team: &Team) -> Result<Entered, NamedError> {
        let entered = team.named.0.lock().entered.take();
        if entered.is_none() {
            // Its barrier was never begun.
            self.unless_broken(team)?;
        }
        entered.ok_or(NamedError::NotNotified { rank: self.rank })
    }
}

/// Leaves a barrier that is complete.
fn leave(team: &Team, entered: Entered, name: Name) -> Verdict {
    let words = ManuallyDrop::into_inner(entered.words);
    let agreed = Agreed::from_args([0, 1].map(|at: usize| words[at].load(Ordering::Relaxed)));
    team.named.0.lock().last = agreed.id();
    agreed.verdict(name)
}
