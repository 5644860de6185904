//! Calls by cells: the way of a call through its rounds.
//!
//! A call that waits goes through its rounds in the caller's thread. One that is started goes as
//! far as it can at once, and polls go on with it.
//!
//! A round gets its number when its call is made. A member enters a round when it has entered all
//! rounds with lower numbers, and reads others' cells when it has finished these.
#![allow(unsafe_code)]

use super::call::{Call, Kind};
use super::cell_round::CellRound;
use super::pool::stages;
use super::shared_team::SharedTeam;
use super::started::{BackEnd, Started};
use crate::Team;
use crate::background::{Steps, kind};
use crate::core::{Engine, Injection};
use crate::events::OpError;
use crate::mismatch::{Called, MismatchCheck};
use crate::shared_memory::{CellMembers, CellPlace, LOOKS_AT_OTHERS};
use crate::thread::ThreadCtx;
use argonet_am::AmError;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, SharedCells, ThreadMode};
use argonet_event::{Completions, Event};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::vec;

/// Looks at awaited cells before a started call gets an event: they cost less than the event.
///
/// With the pauses between them they last as long as a round of two ranks. There is one look where
/// ranks share processors, as the awaited rank may need this one.
const LOOKS: u32 = 20;

/// A call by cells that is started.
pub(super) struct CellCall {
    shared: Arc<SharedTeam>,
    /// The round that it is in.
    round: CellRound,
    /// Those after it.
    later: vec::IntoIter<CellRound>,
}

impl CellCall {
    /// The team's cells, and the number of the round that it is in before it goes on.
    pub(super) fn first_round(&self) -> (Arc<SharedTeam>, u64) {
        (Arc::clone(&self.shared), self.round.number)
    }

    /// Whether a poll can enter the round, or read the next cell.
    ///
    /// A hint for a thread without the call lock.
    fn can_advance(&self, cells: SharedCells<'_>) -> bool {
        let Self { shared, round, .. } = self;
        let is_oldest = shared.is_oldest(round);
        if !round.entered {
            return shared.is_next(round)
                && (is_oldest || round.stage.is_none())
                && shared.may_enter(cells, round);
        }
        let come = |place: CellPlace| cells.look(place.slot, place.rank, place.call).is_some();
        is_oldest && shared.awaited(round).is_none_or(come)
    }

    /// Whether a member that it waits for may need this thread's processor.
    fn needs_processor(&self, cells: SharedCells<'_>) -> bool {
        let Self { shared, round, .. } = self;
        let (slot, awaited) = (shared.group.slot, shared.awaited_members(round));
        // A call that waits for room waits for all other members.
        shared.is_oldest(round)
            && (!round.entered || cells.needs_processor(slot, awaited, round.number))
    }
}

impl<C: Conduit> Engine<C> {
    /// A started call by cells has been given up, as a member is lost: no call of its team comes
    /// after it.
    pub(super) fn give_up_cells(&self, call: &CellCall) {
        let _lock = self.lock_calls(&call.shared);
        call.shared.give_up();
    }

    /// Starts a call by cells; see `collective_start`.
    ///
    /// `Event::DONE` if it is complete.
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_by_cells(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        (cells, shared): (SharedCells<'_>, &Arc<SharedTeam>),
        call: Call,
    ) -> Result<Event, OpError> {
        let lock = self.lock_calls(shared);
        let mut round = shared.round(call, None);
        if shared.is_idle() && self.enter_round(cells, shared, &mut round, 0) {
            let looks = match self.may_fold_under_lock(&call) {
                false => 0,
                true if self.waits.are_crowded() => 1,
                true => LOOKS,
            };
            for _ in 0..looks {
                if self.read_cells(ctx, cells, shared, &mut round) {
                    self.finish_round(cells, shared, &round);
                    return Ok(Event::DONE);
                }
                // Time, however fast the compiler has made a look.
                argonet_base::cpu::relax();
            }
        }
        let shared = Arc::clone(shared);
        let call = CellCall {
            shared,
            round,
            later: Vec::new().into_iter(),
        };
        self.start_rounds(ctx, team, call, lock)
    }

    /// Starts a call through pools, as [`start_by_cells`](Self::start_by_cells).
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_pooled(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        (cells, shared): (SharedCells<'_>, &Arc<SharedTeam>),
        call: Call,
        scratch: usize,
    ) -> Result<Event, OpError> {
        let lock = self.lock_calls(shared);
        let stages = stages(shared, &call, scratch).into_iter();
        let rounds: Vec<_> = stages
            .map(|stage| shared.round(call, Some(stage)))
            .collect();
        let mut later = rounds.into_iter();
        let Some(mut round) = later.next() else {
            return Ok(Event::DONE);
        };
        if shared.is_idle() && shared.may_enter(cells, &round) {
            // The first stage gives, and combines nothing.
            self.begin_stage(ctx, cells, shared, &round);
            self.enter_round(cells, shared, &mut round, 0);
        }
        let shared = Arc::clone(shared);
        let call = CellCall {
            shared,
            round,
            later,
        };
        self.start_rounds(ctx, team, call, lock)
    }

    /// Leaves a call to polls.
    fn start_rounds(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: CellCall,
        lock: Option<MutexGuard<'_, ()>>,
    ) -> Result<Event, OpError> {
        let round = &call.round;
        call.shared.begin(round.number);
        let called = Called::of_team(team.key, round.before, round.call.label());
        let back_end = BackEnd::Cells(call);
        let started = Started::new(Arc::clone(team), called, false, None, back_end);
        let started = {
            let mut list = self.background.collectives.started.lock();
            self.leave_to_polls(&mut list, started)
        };
        drop(lock);
        // Polls while there is none, and perhaps completes the call.
        // Its memory is used from here on, so no error may return.
        let event = self.handle(ctx, Completions::REMOTE, Injection::Blocking);
        let event = event.unwrap_or_else(|error| self.cannot_wait(&error));
        self.give_event(&started, event);
        Ok(event)
    }

    /// A call by cells that waits for its end: no event and no allocation.
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of a member.
    pub(super) unsafe fn wait_by_cells(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &SharedTeam),
        call: Call,
    ) -> Result<(), AmError> {
        let what = match call.kind {
            Kind::Barrier => WaitFor::Barrier,
            _ => WaitFor::Collective,
        };
        let _lock = self.lock_calls_when_idle(ctx, shared, what)?;
        self.go_through(ctx, cells, shared, shared.round(call, None), what)
    }

    /// A call through pools that waits for its end, as [`wait_by_cells`](Self::wait_by_cells).
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of a member.
    pub(super) unsafe fn wait_pooled(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &SharedTeam),
        call: Call,
        scratch: usize,
    ) -> Result<(), AmError> {
        let what = WaitFor::Collective;
        let _lock = self.lock_calls_when_idle(ctx, shared, what)?;
        for stage in stages(shared, &call, scratch) {
            self.go_through(ctx, cells, shared, shared.round(call, Some(stage)), what)?;
        }
        Ok(())
    }

    /// The call lock, when no call is under way that was started.
    #[inline(always)]
    fn lock_calls_when_idle<'n>(
        &self,
        ctx: &ThreadCtx,
        shared: &'n SharedTeam,
        what: WaitFor,
    ) -> Result<Option<MutexGuard<'n, ()>>, AmError> {
        loop {
            let lock = self.lock_calls(shared);
            if shared.is_idle() {
                return Ok(lock);
            }
            drop(lock);
            let mut wait = self.waiting_for_cell(Waiting::new(what));
            while !shared.is_idle() {
                self.unless_lost(|lost| shared.group.members.contains(&lost))?;
                wait.pause(ctx);
            }
        }
    }

    /// Enters a round, and waits for its end.
    ///
    /// The caller has the call lock.
    ///
    /// # Errors
    /// [`AmError::PeerLost`] of a member.
    #[inline(always)]
    fn go_through(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        mut round: CellRound,
        what: WaitFor,
    ) -> Result<(), AmError> {
        if round.stage.is_some() || !self.enter_round(cells, shared, &mut round, 0) {
            let mut wait = self.waiting_for_cell(Waiting::new(what));
            let may_enter = || shared.may_enter(cells, &round);
            while !may_enter() {
                self.unless_lost(|lost| shared.group.members.contains(&lost))?;
                wait.pause_unless(ctx, &may_enter);
            }
            self.begin_stage(ctx, cells, shared, &round);
            let entered = self.enter_round(cells, shared, &mut round, 0);
            debug_assert!(entered, "no other call uses the room");
        }
        self.poll_between(ctx, round.number);
        let mut lasts = MismatchCheck::default();
        while let Some(place) = shared.awaited(&round) {
            let entry = match cells.look(place.slot, place.rank, place.call) {
                Some(entry) => entry,
                None => {
                    let waiting = Waiting::on(what, place.rank);
                    let label = || round.call.label();
                    let called = || Called::of_team(shared.key, round.before, label());
                    let check = || {
                        self.check_for_mismatch(cells, shared, &round, place);
                        self.check_mismatch(&mut lasts, place.rank, &called);
                    };
                    let members = CellMembers {
                        awaited: shared.awaited_members(&round),
                        all: &shared.group.members,
                    };
                    self.wait_for_cell(ctx, cells, place, members, waiting, check)?
                }
            };
            self.take_entry(ctx, cells, &mut round, place, entry);
        }
        self.end_stage(ctx, cells, shared, &round);
        self.finish_round(cells, shared, &round);
        Ok(())
    }

    /// Goes on with a call as far as it goes; whether it is complete.
    pub(super) fn advance_cells(
        &self,
        ctx: &ThreadCtx,
        CellCall {
            shared,
            round,
            later,
        }: &mut CellCall,
        steps: &mut Steps,
    ) -> bool {
        let Some(cells) = self.conduit.shared_cells() else {
            return false;
        };
        loop {
            // Others need not wait until the calls before are complete here.
            if !round.entered && !self.enter_next(ctx, cells, shared, round, steps) {
                return false;
            }
            if !shared.is_oldest(round) {
                return false;
            }
            if !self.read_cells(ctx, cells, shared, round) {
                if let Some(place) = shared.awaited(round) {
                    self.check_for_mismatch(cells, shared, round, place);
                }
                return false;
            }
            self.end_stage(ctx, cells, shared, round);
            let next = later.next();
            {
                let _lock = self.lock_calls(shared);
                self.finish_round(cells, shared, round);
                shared.end(round, next.is_none());
            }
            let Some(next) = next else {
                return true;
            };
            *round = next;
            steps.taken += 1;
        }
    }

    /// Enters a round of a started call, if those before have been and there is room; whether it is
    /// entered.
    fn enter_next(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &mut CellRound,
        steps: &mut Steps,
    ) -> bool {
        // Before the lock is tried, which the call that comes next needs.
        if !shared.is_next(round) {
            return false;
        }
        let _lock = if round.stage.is_some() {
            // A stage begins with work on the results of the one before, and holds no lock for it.
            if !shared.is_oldest(round) || !shared.may_enter(cells, round) {
                return false;
            }
            self.begin_stage(ctx, cells, shared, round);
            self.lock_calls(shared)
        } else if self.mode == ThreadMode::Par {
            match shared.group.call_lock.try_lock() {
                None => return false,
                lock => lock,
            }
        } else {
            None
        };
        if !shared.is_next(round) || !shared.may_enter(cells, round) {
            return false;
        }
        let unfinished = shared.unfinished(round);
        let entered = self.enter_round(cells, shared, round, unfinished);
        shared.publish_calls(cells);
        steps.taken += usize::from(entered);
        entered
    }

    /// Yields the processor, unless a cell comes first that a call by cells waits for.
    ///
    /// Looks for cells only where no awaited rank needs this processor to write them.
    pub(crate) fn give_way(&self) {
        if self.background.pending() & kind::CELLS != 0
            && let Some(cells) = self.conduit.shared_cells()
            && !self.any_by_cells(|call| call.needs_processor(cells))
        {
            for _ in 0..LOOKS_AT_OTHERS {
                if self.cells_can_advance() {
                    return;
                }
                argonet_base::cpu::relax();
            }
        }
        self.conduit.yield_now();
    }

    /// Whether a thread that is about to sleep has something to do for calls by cells.
    pub(crate) fn cells_can_advance(&self) -> bool {
        if self.background.pending() & kind::CELLS == 0 {
            return false;
        }
        let Some(cells) = self.conduit.shared_cells() else {
            return false;
        };
        self.any_by_cells(|call| call.can_advance(cells))
    }
}
