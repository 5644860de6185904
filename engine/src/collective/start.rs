//! Begins collective operations, and goes on with those that are under way.
#![allow(unsafe_code)]

use super::call::{BlockRanges, Call, Kind};
use super::message_call::MessageCall;
use super::plan::{Hoods, Situation, Task, exchange_v, plan};
use super::schedule::Schedule;
use super::shared_team::{SharedTeam, Standing};
use super::started::{BackEnd, Started};
use super::teams::Member;
use crate::Team;
use crate::background::Steps;
use crate::core::{Engine, Injection};
use crate::events::OpError;
use crate::mismatch::Called;
use crate::thread::ThreadCtx;
use crate::traced::span;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::{Conduit, SharedCells, ThreadMode};
use argonet_event::{Completions, Event};
use argonet_trace::What;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// The kind of a call in a trace.
fn trace_kind(kind: Kind) -> argonet_trace::Kind {
    match kind {
        Kind::Barrier | Kind::Window => argonet_trace::Kind::BarrierStart,
        Kind::Broadcast => argonet_trace::Kind::Broadcast,
        _ => argonet_trace::Kind::Collective,
    }
}

/// What moves the data of a call.
enum Way<'t> {
    /// Cells hold it.
    Cells(SharedCells<'t>, &'t Arc<SharedTeam>),
    /// It passes through pools, in rounds that cells announce.
    Pools(SharedCells<'t>, &'t Arc<SharedTeam>),
    /// The messages of its schedule.
    Messages,
}

impl Member {
    /// The steps of a call.
    fn schedule(&self, call: &Call, unequal: Option<&BlockRanges<'_>>) -> Schedule {
        let mut schedule = Schedule::default();
        if let Some(unequal) = unequal {
            let place = (self.team.size(), self.team.rank);
            exchange_v(call.kind, place, unequal, &mut schedule);
            return schedule;
        }
        let task = Task {
            kind: call.kind,
            root: call.root,
            unit: call.unit,
            count: call.count,
            ordered: call.folding.is_some_and(|folding| folding.ordered),
            all_sync: call.all_sync,
        };
        let tuning = self.tuning();
        let situation = |hoods| Situation {
            rank: self.team.rank,
            hoods,
            tuning: &tuning,
        };
        if task.ordered && !self.hoods.are_contiguous() {
            // Neighbors' values alone cannot be combined first.
            plan(
                &situation(&Hoods::one(self.team.size())),
                &task,
                &mut schedule,
            );
        } else {
            plan(&situation(&self.hoods), &task, &mut schedule);
        }
        schedule
    }
}

impl<C: Conduit> Engine<C> {
    /// Starts a collective operation of a team and returns the event of its completion at this
    /// member.
    ///
    /// Does not wait, but for a free handle. The n-th call of a member on a team goes with the n-th
    /// of the others, which call the same (kind, root, length, operation), or the job ends. Any
    /// number may be under way on each team, and their events may be waited for in any order.
    ///
    /// # Safety
    /// Until the event is complete, the source that the [`Kind`] of `call` names is readable and
    /// unchanged at `src`, and its target may be written at `dst`; the two are the same or do not
    /// overlap. `src` and `dst` are looked at nowhere else. The folding can be called by any
    /// thread, with its context.
    ///
    /// # Errors
    /// [`AmError::NoSuchRank`] for the root; [`AmError::Restricted`] inside a handler.
    pub unsafe fn collective_start(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
    ) -> Result<Event, OpError> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_call(ctx, team, call, None, false) }
    }

    /// Starts a call on blocks of any length, as
    /// [`collective_start`](Self::collective_start).
    ///
    /// # Safety
    /// As there: the blocks lie in the source and the target, which do not overlap.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Unless `call` is of an [unequal](Kind::is_unequal) kind, with an entry for each member, of
    /// which those of this one for itself have one length.
    pub unsafe fn unequal_start(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
        unequal: &BlockRanges<'_>,
    ) -> Result<Event, OpError> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_call(ctx, team, call, Some(unequal), false) }
    }

    /// A call on blocks of any length that is complete on return; polls.
    ///
    /// # Safety
    /// As [`unequal_start`](Self::unequal_start), until this returns.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub unsafe fn unequal_wait(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
        unequal: &BlockRanges<'_>,
    ) -> Result<(), OpError> {
        // SAFETY: the caller's promise; the wait ends without the operation's end with the job
        // alone.
        let event = unsafe { self.begin_call(ctx, team, call, Some(unequal), true) }?;
        self.wait_or_end(ctx, event)
    }

    /// As [`collective_start`](Self::collective_start), or of unequal blocks as
    /// [`unequal_start`](Self::unequal_start); `blocks` says that the caller does nothing
    /// before the event is complete.
    ///
    /// # Safety
    /// As there.
    unsafe fn begin_call(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
        unequal: Option<&BlockRanges<'_>>,
        blocks: bool,
    ) -> Result<Event, OpError> {
        ctx.permit_collective("a collective operation", self.rank)?;
        let mut span = span(ctx, trace_kind(call.kind));
        if let Some(span) = &mut span {
            let bytes = unequal.map_or(call.block(), |unequal| {
                unequal
                    .sent
                    .iter()
                    .flatten()
                    .map(ExactSizeIterator::len)
                    .sum()
            });
            span.describe(What::Bytes(bytes as u64));
        }
        if call.root >= team.size() {
            return Err(AmError::NoSuchRank {
                to: JobRank(call.root),
                size: team.size(),
                from: self.rank,
            }
            .into());
        }
        self.unless_broken(team)?;
        assert_eq!(
            unequal.is_some(),
            call.kind.is_unequal(),
            "unequal blocks have ranges, and others have none"
        );
        // SAFETY: the caller's promise.
        unsafe {
            match self.way_of(team, &call) {
                Way::Cells(cells, shared) => {
                    return self.start_by_cells(ctx, team, (cells, shared), call);
                }
                Way::Pools(cells, shared) => {
                    let scratch = self.tuning_of(team).scratch_bytes;
                    return self.start_pooled(ctx, team, (cells, shared), call, scratch);
                }
                Way::Messages => {}
            }
        }
        let Some(member) = self.background.collectives.member(team) else {
            self.fatal(&format!(
                "rank {}: a collective operation of a closed team",
                self.rank
            ));
        };
        // Ranges that cannot be are found before other members see the call.
        let schedule = member.schedule(&call, unequal);
        let shared = self.shared_team(team);
        let standing = shared.map(|(cells, shared)| self.publish_call_by_messages(cells, shared));
        if team.size() == 1 && call.kind == Kind::Barrier {
            return Ok(Event::DONE);
        }
        let event = self.handle(ctx, Completions::REMOTE, Injection::Blocking)?;
        let started = self.start_by_messages(&member, call, schedule, (event, blocks), standing);
        let mut steps = Steps::default();
        self.advance_one(ctx, &started, &mut steps);
        if steps.stuck {
            let stuck = &self.background.collectives.stuck;
            stuck.store(true, Ordering::Relaxed);
        }
        Ok(event)
    }

    /// Whether a call of a team goes by the messages of its schedule, and not through shared
    /// memory.
    pub fn goes_by_messages(&self, team: &Team, call: &Call) -> bool {
        matches!(self.way_of(team, call), Way::Messages)
    }

    /// The way of a call, the same at all members that call the same.
    #[inline(always)]
    fn way_of<'t>(&'t self, team: &'t Team, call: &Call) -> Way<'t> {
        match self.shared_team(team) {
            Some((cells, shared)) if call.fits_cell(team.size()) => Way::Cells(cells, shared),
            Some((cells, shared)) if shared.has_pool() && call.fits_pool() => {
                Way::Pools(cells, shared)
            }
            _ => Way::Messages,
        }
    }

    /// A collective operation of a team that is complete on return; polls.
    ///
    /// # Safety
    /// As [`collective_start`](Self::collective_start), until this returns.
    ///
    /// # Errors
    /// As [`collective_start`](Self::collective_start).
    pub unsafe fn collective_wait(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
    ) -> Result<(), OpError> {
        if ctx.is_free()
            && !ctx.runs_deferred()
            && call.root < team.size()
            && self.may_fold_under_lock(&call)
            && !self.losses.any()
        {
            // SAFETY: the caller's promise.
            unsafe {
                match self.way_of(team, &call) {
                    Way::Cells(cells, shared) => {
                        return Ok(self.wait_by_cells(ctx, (cells, shared), call)?);
                    }
                    Way::Pools(cells, shared) => {
                        let scratch = self.tuning_of(team).scratch_bytes;
                        return Ok(self.wait_pooled(ctx, (cells, shared), call, scratch)?);
                    }
                    Way::Messages => {}
                }
            }
        }
        // SAFETY: the caller's promise; the wait ends without the operation's end with the job
        // alone.
        let event = unsafe { self.begin_call(ctx, team, call, None, true) }?;
        self.wait_or_end(ctx, event)
    }

    /// Whether the call may be gone through under its team's call lock, which threads wait for: not
    /// where it runs client code, which may wait for them.
    #[inline(always)]
    pub(super) fn may_fold_under_lock(&self, call: &Call) -> bool {
        self.mode != ThreadMode::Par || !call.runs_client_code()
    }

    /// Gives a call by messages its number, after one of the library's own where that is due, and
    /// leaves it to polls.
    fn start_by_messages(
        &self,
        member: &Arc<Member>,
        call: Call,
        schedule: Schedule,
        (event, blocks): (Event, bool),
        standing: Option<Standing>,
    ) -> Arc<Started> {
        // Numbers and calls are in the same order.
        let mut list = self.background.collectives.started.lock();
        let mut mailbox = member.mailbox.lock();
        let is_window_due = mailbox.is_window_due();
        let mut start = |call: Call, schedule, (event, blocks), standing: Option<Standing>| {
            let (label, is_window) = (call.label(), call.kind == Kind::Window);
            let number = mailbox.call(self.rank, label, is_window);
            let number = number.unwrap_or_else(|message| self.fatal_for_several(&message));
            let before = standing.as_ref().map_or(number.into(), |at| at.before);
            let next = standing.map(|at| at.next_by_cells);
            let called = Called::of_team(member.team.key, before, label);
            let by_messages = MessageCall::new(member, number, call, schedule, next);
            let back_end = BackEnd::Messages(Box::new(by_messages));
            let team = Arc::clone(&member.team);
            let started = Started::new(team, called, blocks, event, back_end);
            self.leave_to_polls(&mut list, started)
        };
        if is_window_due {
            let window = Call::of(Kind::Window);
            start(window, member.schedule(&window, None), (None, false), None);
        }
        start(call, schedule, (Some(event), blocks), standing)
    }

    /// Enters a barrier of all ranks and returns the event that completes when all have entered as
    /// many.
    ///
    /// Collective; does not wait, but for a free handle. Events may be waited for in any order.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn barrier_start(&self, ctx: &ThreadCtx) -> Result<Event, OpError> {
        // SAFETY: a barrier touches no memory.
        unsafe { self.collective_start(ctx, self.world_team(), Call::of(Kind::Barrier)) }
    }

    /// Starts a broadcast of the root's `len` bytes at `src` to all ranks' `dst` and returns the
    /// event of its completion here, as [`collective_start`](Self::collective_start) does.
    ///
    /// # Safety
    /// As there; `src` is not looked at elsewhere than at the root.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn broadcast_start(
        &self,
        ctx: &ThreadCtx,
        root: JobRank,
        dst: *mut u8,
        src: *const u8,
        len: usize,
    ) -> Result<Event, OpError> {
        let call = Call {
            root: root.0,
            count: len,
            src,
            dst,
            ..Call::of(Kind::Broadcast)
        };
        // SAFETY: this function's contract.
        unsafe { self.collective_start(ctx, self.world_team(), call) }
    }

    /// Waits until all members of a team have called.
    ///
    /// Collective over the team; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn team_barrier(&self, ctx: &ThreadCtx, team: &Arc<Team>) -> Result<(), OpError> {
        // SAFETY: a barrier touches no memory.
        unsafe { self.collective_wait(ctx, team, Call::of(Kind::Barrier)) }
    }

    /// Gives all members of a team the `src` of all, one behind the other in the order of ranks.
    ///
    /// Collective over the team, all members with slices of the same lengths; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    ///
    /// # Panics
    /// If `dst` is not as long as the `src` of all members together.
    pub fn gather_all(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<(), OpError> {
        assert_eq!(
            src.len().checked_mul(team.size() as usize),
            Some(dst.len()),
            "gather_all gets a block of each member"
        );
        let call = Call {
            count: src.len(),
            src: src.as_ptr(),
            dst: dst.as_mut_ptr(),
            ..Call::of(Kind::GatherAll)
        };
        // SAFETY: both slices are borrowed until the call returns.
        unsafe { self.collective_wait(ctx, team, call) }
    }

    /// Gives all members of a team the root's `bytes`.
    ///
    /// Collective over the team, all members with slices of the same length; polls.
    ///
    /// # Errors
    /// [`AmError::NoSuchRank`] for the root; [`AmError::Restricted`] inside a handler.
    pub fn team_broadcast(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        root: u32,
        bytes: &mut [u8],
    ) -> Result<(), OpError> {
        let dst = bytes.as_mut_ptr();
        let call = Call {
            root,
            count: bytes.len(),
            src: dst,
            dst,
            ..Call::of(Kind::Broadcast)
        };
        // SAFETY: as above; source and target are the same.
        unsafe { self.collective_wait(ctx, team, call) }
    }
}
