//! Calls by cells that are started, or waited for: at once as far as they go, then by polls, in the
//! order of the calls.
//!
//! Combinations may be the client's code, which may wait for another thread that calls into the
//! library. So a poll goes on with a copy of a team's oldest call, and holds no lock meanwhile; the
//! call is marked, and other threads pass by.
#![allow(unsafe_code)]

use super::call::{Call, Kind};
use super::cell_round::CellRound;
use super::pool::stages;
use super::shared_team::{Pending, SharedTeam};
use crate::background::{Steps, kind};
use crate::core::{Engine, Injection};
use crate::events::OpError;
use crate::mismatch::{Called, MismatchCheck, Sequence};
use crate::shared_memory::LOOKS_AT_OTHERS;
use crate::thread::ThreadCtx;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, SharedCells, ThreadMode};
use argonet_event::{Completions, Event};
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Looks at the cell that a started call waits for before it is left to polls: less than an event
/// costs.
///
/// One where the rank that is waited for may wait for this processor.
const LOOKS: u32 = 33;

impl<C: Conduit> Engine<C> {
    /// Starts a call by cells; see `collective_start`.
    ///
    /// `Event::DONE` if it is complete.
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_by_cells(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &Arc<SharedTeam>),
        call: Call,
    ) -> Result<Event, OpError> {
        let turn = self.turn(shared);
        let mut round = shared.round(call, None);
        if shared.is_idle() && self.enter_round(cells, shared, &mut round, 0) {
            let looks = match self.may_fold_in_turn(&call) {
                false => 0,
                true if self.waits.are_crowded() => 1,
                true => LOOKS,
            };
            for _ in 0..looks {
                if self.read_cells(ctx, cells, shared, &mut round) {
                    self.finish_round(cells, shared, &round);
                    return Ok(Event::DONE);
                }
            }
        }
        self.start_rounds(ctx, shared, vec![round], turn)
    }

    /// Starts a call through pools, as [`start_by_cells`](Self::start_by_cells).
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_pooled(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &Arc<SharedTeam>),
        call: Call,
        scratch: usize,
    ) -> Result<Event, OpError> {
        let turn = self.turn(shared);
        let stages = stages(shared, &call, scratch).into_iter();
        let mut rounds: Vec<_> = stages
            .map(|stage| shared.round(call, Some(stage)))
            .collect();
        if shared.is_idle() && shared.may_enter(cells, &rounds[0]) {
            // The first stage gives, and combines nothing.
            self.begin_stage(ctx, cells, shared, &rounds[0]);
            self.enter_round(cells, shared, &mut rounds[0], 0);
        }
        self.start_rounds(ctx, shared, rounds, turn)
    }

    /// Leaves the rounds of a call, which follow each other, to polls.
    fn start_rounds(
        &self,
        ctx: &ThreadCtx,
        shared: &Arc<SharedTeam>,
        rounds: Vec<CellRound>,
        turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<Event, OpError> {
        let number = rounds.last().map_or(0, |round| round.number);
        {
            let mut queue = shared.queue.lock();
            shared
                .pending
                .fetch_add(rounds.len() as u32, Ordering::Release);
            let event = None;
            queue.extend(rounds.into_iter().map(|round| Pending {
                round,
                event,
                in_hand: false,
            }));
        }
        {
            let mut busy = self.background.shared.busy.lock();
            if !busy.iter().any(|other| Arc::ptr_eq(other, shared)) {
                busy.push(Arc::clone(shared));
            }
            self.background.begin(kind::CELLS);
        }
        drop(turn);
        // Polls while there is none, and perhaps completes the call.
        let event = self.handle(ctx, Completions::REMOTE, Injection::Blocking)?;
        let mut queue = shared.queue.lock();
        match queue
            .iter_mut()
            .find(|pending| pending.round.number == number)
        {
            Some(pending) => pending.event = Some(event),
            None => self.finish(event, &mut Steps::default()),
        }
        Ok(event)
    }

    /// A call by cells that waits for its end: no event and no allocation.
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    pub(super) unsafe fn wait_by_cells(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &SharedTeam),
        call: Call,
    ) {
        let what = match call.kind {
            Kind::Barrier => WaitFor::Barrier,
            _ => WaitFor::Collective,
        };
        let _turn = self.turn_when_idle(ctx, shared, what);
        self.go_through(ctx, cells, shared, shared.round(call, None), what);
    }

    /// A call through pools that waits for its end, as [`wait_by_cells`](Self::wait_by_cells).
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    pub(super) unsafe fn wait_pooled(
        &self,
        ctx: &ThreadCtx,
        (cells, shared): (SharedCells<'_>, &SharedTeam),
        call: Call,
        scratch: usize,
    ) {
        let what = WaitFor::Collective;
        let _turn = self.turn_when_idle(ctx, shared, what);
        for stage in stages(shared, &call, scratch) {
            self.go_through(ctx, cells, shared, shared.round(call, Some(stage)), what);
        }
    }

    /// The turn, when no call is under way that was started.
    #[inline(always)]
    fn turn_when_idle<'n>(
        &self,
        ctx: &ThreadCtx,
        shared: &'n SharedTeam,
        what: WaitFor,
    ) -> Option<MutexGuard<'n, ()>> {
        loop {
            let turn = self.turn(shared);
            if shared.is_idle() {
                return turn;
            }
            drop(turn);
            let mut wait = self.waiting_for_cell(Waiting::new(what));
            while !shared.is_idle() {
                wait.pause(ctx);
            }
        }
    }

    /// Enters a round, and waits for its end.
    ///
    /// The caller has the turn.
    #[inline(always)]
    fn go_through(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        mut round: CellRound,
        what: WaitFor,
    ) {
        if round.stage.is_some() || !self.enter_round(cells, shared, &mut round, 0) {
            let mut wait = self.waiting_for_cell(Waiting::new(what));
            let may_enter = || shared.may_enter(cells, &round);
            while !may_enter() {
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
                    let called = || Called {
                        sequence: Sequence::Team(shared.key),
                        number: round.before,
                        label: round.call.label(),
                    };
                    let check = || {
                        self.check_for_mismatch(cells, shared, &round, place);
                        self.check_mismatch(&mut lasts, place.rank, &called);
                    };
                    let awaited = shared.awaited_members(&round);
                    self.wait_for_cell(ctx, cells, place, awaited, waiting, check)
                }
            };
            self.take_entry(ctx, cells, &mut round, place, entry);
        }
        self.end_stage(ctx, cells, shared, &round);
        self.finish_round(cells, shared, &round);
    }

    /// Goes on with calls by cells that are not complete; how much could be done.
    pub(crate) fn advance_cells(&self, ctx: &ThreadCtx) -> usize {
        let Some(cells) = self.conduit.shared_cells() else {
            return 0;
        };
        let all = &self.background.shared.busy;
        let (mut taken, mut at) = (0, 0);
        loop {
            let Some(shared) = all.lock().get(at).map(Arc::clone) else {
                break;
            };
            taken += self.advance_queue(ctx, cells, &shared);
            at += 1;
        }
        let mut busy = all.lock();
        busy.retain(|shared| !shared.is_idle());
        if busy.is_empty() {
            self.background.end(kind::CELLS);
        }
        taken
    }

    /// Goes on with the calls of a team; how much could be done.
    fn advance_queue(&self, ctx: &ThreadCtx, cells: SharedCells<'_>, shared: &SharedTeam) -> usize {
        let mut steps = Steps::default();
        while let Some(mut round) = self.take_in_hand(cells, shared, &mut steps) {
            let is_complete = self.go_on_with(ctx, cells, shared, &mut round);
            self.put_back(cells, shared, round, is_complete, &mut steps);
            if !is_complete {
                break;
            }
        }
        steps.taken
    }

    /// Enters calls as far as there is room, and takes the oldest in hand: no other thread goes on
    /// with it until it is put back.
    fn take_in_hand(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        steps: &mut Steps,
    ) -> Option<CellRound> {
        let _turn = match self.mode {
            ThreadMode::Par => Some(shared.group.turn.try_lock()?),
            _ => None,
        };
        let mut queue = shared.queue.lock();
        // Others need not wait until those before are complete here.
        for at in 0..queue.len() {
            if queue[at].round.entered {
                continue;
            }
            if queue[at].in_hand {
                break;
            }
            // Before anything that follows a call by messages is entered.
            shared.publish_calls(cells, &queue);
            let round = &mut queue[at].round;
            // A stage begins with work on the results of the one before.
            if round.stage.is_some() || !self.enter_round(cells, shared, round, at as u64) {
                break;
            }
            steps.taken += 1;
        }
        shared.publish_calls(cells, &queue);
        let oldest = queue.front_mut()?;
        let round = &oldest.round;
        if oldest.in_hand || !(round.entered || shared.may_enter(cells, round)) {
            return None;
        }
        oldest.in_hand = true;
        Some(oldest.round.clone())
    }

    /// Goes on with the call that this thread has in hand; whether it is complete.
    ///
    /// Holds no lock while it combines.
    fn go_on_with(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &mut CellRound,
    ) -> bool {
        if !round.entered {
            self.begin_stage(ctx, cells, shared, round);
            let _turn = self.turn(shared);
            let mut queue = shared.queue.lock();
            shared.publish_calls(cells, &queue);
            let entered = self.enter_round(cells, shared, round, 0);
            debug_assert!(entered, "the oldest call is entered first");
            if let Some(oldest) = queue.front_mut() {
                oldest.round.entered = entered;
            }
            shared.publish_calls(cells, &queue);
        }
        if !self.read_cells(ctx, cells, shared, round) {
            if let Some(place) = shared.awaited(round) {
                self.check_for_mismatch(cells, shared, round, place);
            }
            return false;
        }
        self.end_stage(ctx, cells, shared, round);
        true
    }

    /// Gives the call that this thread has in hand back to its team, or ends it.
    fn put_back(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: CellRound,
        is_complete: bool,
        steps: &mut Steps,
    ) {
        let _turn = self.turn(shared);
        let mut queue = shared.queue.lock();
        if !is_complete {
            if let Some(oldest) = queue.front_mut() {
                (oldest.round, oldest.in_hand) = (round, false);
            }
            return;
        }
        self.finish_round(cells, shared, &round);
        match queue.front().and_then(|oldest| oldest.event) {
            Some(event) => self.finish(event, steps),
            None => steps.taken += 1,
        }
        // Before other threads can see that no thread has it in hand.
        self.background.stepped();
        queue.pop_front();
        shared.pending.fetch_sub(1, Ordering::Release);
        shared.publish_calls(cells, &queue);
    }

    /// Lets another rank run, unless all ranks that the oldest calls by cells wait for have other
    /// processors: then this thread looks at their cells a little longer first.
    pub(crate) fn give_way(&self) {
        if self.background.pending() & kind::CELLS != 0
            && let Some(cells) = self.conduit.shared_cells()
            && !self.cells_need_processor(cells)
        {
            for _ in 0..LOOKS_AT_OTHERS {
                if self.cells_have_come() {
                    return;
                }
                argonet_base::cpu::relax();
            }
        }
        self.conduit.yield_now();
    }

    /// Whether a rank that an oldest call by cells waits for may need this processor.
    fn cells_need_processor(&self, cells: SharedCells<'_>) -> bool {
        let Some(busy) = self.background.shared.busy.try_lock() else {
            return true;
        };
        busy.iter().any(|shared| shared.needs_processor(cells))
    }

    /// Whether a thread that is about to sleep has something to do for calls by cells.
    pub(crate) fn cells_have_come(&self) -> bool {
        if self.background.pending() & kind::CELLS == 0 {
            return false;
        }
        let Some(cells) = self.conduit.shared_cells() else {
            return false;
        };
        match self.background.shared.busy.try_lock() {
            Some(busy) => busy.iter().any(|shared| shared.has_come(cells)),
            None => true,
        }
    }
}
