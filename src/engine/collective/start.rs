//! Begins collective operations, and goes on with those that are under way.
#![allow(unsafe_code)]

use super::call::{Call, Kind};
use super::flight::Flight;
use super::plan::{Hoods, Shape, Task, plan};
use super::schedule::Schedule;
use super::teams::Member;
use crate::engine::Team;
use crate::engine::background::{Steps, kind};
use crate::engine::core::{Engine, Outlook};
use crate::engine::events::OpError;
use crate::engine::thread::ThreadCtx;
use crate::engine::watch::span;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_event::{Event, Parts};
use argonet_trace::What;
use std::sync::Arc;

impl Member {
    /// The steps of a call.
    fn schedule(&self, call: &Call) -> Schedule {
        let task = Task {
            kind: call.kind,
            root: call.root,
            unit: call.unit,
            count: call.count,
            ordered: call.folding.is_some_and(|folding| folding.ordered),
            meets: call.meets,
        };
        let mut schedule = Schedule::default();
        let shape = |hoods| Shape {
            rank: self.team.rank,
            hoods,
            tuning: &self.tuning,
        };
        if task.ordered && !self.hoods.are_contiguous() {
            // Neighbours' values alone cannot be combined first.
            plan(&shape(&Hoods::one(self.team.size())), &task, &mut schedule);
        } else {
            plan(&shape(&self.hoods), &task, &mut schedule);
        }
        schedule
    }
}

impl<C: Conduit> Engine<C> {
    /// Starts a collective operation of a team and returns the event of its completion at this member. Does not wait, but for a
    /// free handle. The n-th call of a member on a team goes with the n-th of the others, which call the same (kind, root, length,
    /// operation), or the job ends. Any number may be under way on each team, and their events may be waited for in any
    /// order.
    ///
    /// # Safety
    /// Until the event is complete, all that the [`Kind`] of `call` says is given lies readable and unchanged at `src`, and
    /// what it says is got may be written at `dst`; the two are the same or do not overlap. `src` and `dst` are looked at
    /// nowhere else. The folding can be called by any thread, with its context.
    ///
    /// # Errors
    /// [`AmError::NoSuchRank`] for the root; [`AmError::Restricted`] inside a handler.
    pub unsafe fn collective_start(
        &self,
        ctx: &ThreadCtx,
        team: &Arc<Team>,
        call: Call,
    ) -> Result<Event, OpError> {
        ctx.permit("a collective operation", self.rank)?;
        let mut span = span(ctx, argonet_trace::Kind::Collective);
        if let Some(span) = &mut span {
            span.tell(What::Bytes(call.block() as u64));
        }
        if call.root >= team.size() {
            return Err(AmError::NoSuchRank {
                to: JobRank(call.root),
                size: team.size(),
                from: self.rank,
            }
            .into());
        }
        if let Some((lines, near)) = self.near(team) {
            if call.fits_lines(team.size()) {
                // SAFETY: the caller's promise.
                return unsafe { self.start_near(ctx, (lines, near), call) };
            }
            self.tell_near(lines, near);
        }
        let Some(member) = self.background.collectives.member(team) else {
            self.fatal(&format!(
                "rank {}: a collective operation of a team that has been closed",
                self.rank
            ));
        };
        let schedule = member.schedule(&call);
        let event = self.handle(ctx, Parts::REMOTE, Outlook::Wait)?;
        let flight = self.take_off(&member, call, schedule, Some(event));
        self.advance_one(ctx, &flight);
        Ok(event)
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
        if let Some((lines, near)) = self.near(team)
            && ctx.is_free()
            && call.root < team.size()
            && call.fits_lines(team.size())
        {
            // SAFETY: the caller's promise.
            unsafe { self.wait_near(ctx, (lines, near), call) };
            return Ok(());
        }
        // SAFETY: the caller's promise; the wait ends without the operation's end with the job alone.
        let event = unsafe { self.collective_start(ctx, team, call) }?;
        self.wait(ctx, event)
    }

    /// Gives a call its number, after one of the library's own where that is due.
    fn take_off(
        &self,
        member: &Arc<Member>,
        call: Call,
        schedule: Schedule,
        event: Option<Event>,
    ) -> Arc<Flight> {
        let collectives = &self.background.collectives;
        // Numbers and flights are in the same order.
        let mut flights = collectives.flights.lock();
        let mut mailbox = member.mailbox.lock();
        let numbered = |call: &Call, mailbox: &mut super::mailbox::Mailbox| {
            let is_window = call.kind == Kind::Window;
            let outcome = mailbox.call(self.rank, call.label(), is_window);
            outcome.unwrap_or_else(|message| self.fatal(&message))
        };
        if mailbox.is_window_due() {
            let window = Call::of(Kind::Window);
            let number = numbered(&window, &mut mailbox);
            let steps = member.schedule(&window);
            let flight = Flight::new(Arc::clone(member), number, window, steps, None);
            flights.push(Arc::new(flight));
        }
        let number = numbered(&call, &mut mailbox);
        let flight = Flight::new(Arc::clone(member), number, call, schedule, event);
        let flight = Arc::new(flight);
        flights.push(Arc::clone(&flight));
        self.background.begin(kind::COLLECTIVES);
        flight
    }

    /// Goes on with one call, unless another thread does; how much could be done, and whether it is complete.
    fn advance_one(&self, ctx: &ThreadCtx, flight: &Arc<Flight>) -> (usize, bool) {
        let collectives = &self.background.collectives;
        let mut steps = Steps::default();
        let over = match flight.work.try_lock() {
            Some(mut work) => {
                self.advance_flight(ctx, flight, &mut work, &mut steps);
                work.is_over()
            }
            None => {
                // It may complete what this thread waits for, and wakes nobody.
                steps.stuck = true;
                false
            }
        };
        let mut flights = collectives.flights.lock();
        if over {
            flights.retain(|other| !Arc::ptr_eq(other, flight));
        }
        let taken = steps.publish(&self.background, &collectives.stuck);
        if flights.is_empty() {
            self.background.end(kind::COLLECTIVES);
        }
        drop(flights);
        if over {
            collectives.forget(&flight.member);
        }
        (taken, over)
    }

    /// Goes on with all calls.
    pub(in crate::engine) fn advance_collectives(&self, ctx: &ThreadCtx) -> usize {
        let flights = &self.background.collectives.flights;
        let mut taken = 0;
        let mut at = 0;
        loop {
            let Some(flight) = flights.lock().get(at).map(Arc::clone) else {
                return taken;
            };
            let (more, over) = self.advance_one(ctx, &flight);
            taken += more;
            at += usize::from(!over);
        }
    }

    /// Waits until all members of a team have called. Collective over the team; polls.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn team_barrier(&self, ctx: &ThreadCtx, team: &Arc<Team>) -> Result<(), OpError> {
        // SAFETY: a barrier touches no memory.
        unsafe { self.collective_wait(ctx, team, Call::of(Kind::Barrier)) }
    }

    /// Gives all members of a team the `src` of all, one behind the other in the order of ranks. Collective over the team, all
    /// members with slices of the same lengths; polls.
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
            src.len() * team.size() as usize,
            dst.len(),
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

    /// Gives all members of a team the root's `bytes`. Collective over the team, all members with slices of the same length;
    /// polls.
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
