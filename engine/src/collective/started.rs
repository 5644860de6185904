//! Calls that are started and not complete: polls go on with them, and complete their events.
//!
//! A call gets its number when it is started, and stands in one list of the rank's from then on, in
//! the order in which its team's calls were made. Its *back end* moves its data: messages
//! ([`MessageCall`]), or memory that the members share ([`CellCall`]). A back end goes on with a
//! call as far as it goes without waiting, and says when that was all; everything else is the same
//! for both, and is here.
//!
//! Combinations may be the client's code, which may wait for another thread that calls into the
//! library. So no thread waits for a call that another one goes on with, but passes by.

use super::Collectives;
use super::cell_call::CellCall;
use super::message_call::MessageCall;
use super::shared_team::SharedTeam;
use crate::Team;
use crate::background::{Steps, kind};
use crate::core::Engine;
use crate::mismatch::Called;
use crate::thread::ThreadCtx;
use argonet_conduit::Conduit;
use argonet_event::Event;
use core::sync::atomic::Ordering;
use parking_lot::Mutex;
use std::sync::Arc;

/// What moves the data of a call, and how far it is.
#[allow(
    clippy::large_enum_variant,
    reason = "a call by cells takes one allocation, that of all that is started"
)]
pub(super) enum BackEnd {
    /// The messages of its schedule; boxed, as calls by cells are moved.
    Messages(Box<MessageCall>),
    /// Cells, and pools.
    Cells(CellCall),
}

/// The event of a call.
#[derive(Clone, Copy)]
enum EventState {
    /// The caller has not found a handle yet, or the call is the library's own.
    Missing,
    Known(Event),
    /// The call is complete.
    Complete,
}

/// State of a call for the thread that goes on with it.
struct CallState {
    back_end: BackEnd,
    is_complete: bool,
}

/// A call that this rank has started and that is not complete.
pub(super) struct Started {
    pub(super) team: Arc<Team>,
    /// The call, as it is reported to other ranks.
    pub(super) called: Called,
    /// Its caller does nothing before it is complete.
    pub(super) blocks: bool,
    /// Of a call by cells, the team's cells and the number of its first round.
    cells: Option<(Arc<SharedTeam>, u64)>,
    /// Taken for moments.
    event: Mutex<EventState>,
    /// Held by the thread that goes on with the call.
    ///
    /// No thread waits for it, since the holder may be in a function of the client's.
    state: Mutex<CallState>,
}

impl Started {
    /// A call that has its number.
    pub(super) fn new(
        team: Arc<Team>,
        called: Called,
        blocks: bool,
        event: Option<Event>,
        back_end: BackEnd,
    ) -> Self {
        let cells = match &back_end {
            BackEnd::Messages(_) => None,
            BackEnd::Cells(call) => Some(call.first_round()),
        };
        Self {
            team,
            called,
            blocks,
            cells,
            event: Mutex::new(event.map_or(EventState::Missing, EventState::Known)),
            state: Mutex::new(CallState {
                back_end,
                is_complete: false,
            }),
        }
    }

    /// Whether it is a client's call of a team.
    pub(super) fn is_of(&self, team: &Team) -> bool {
        (self.team.key, self.team.rank) == (team.key, team.rank)
            && matches!(*self.event.lock(), EventState::Known(_))
    }

    fn is_by_cells(&self) -> bool {
        self.cells.is_some()
    }

    /// Whether so many calls by cells stand before it that it cannot begin.
    fn is_out_of_reach(&self) -> bool {
        let cells = self.cells.as_ref();
        cells.is_some_and(|(shared, first)| shared.is_out_of_reach(*first))
    }

    /// Whether a thread goes on with it.
    fn is_in_hand(&self) -> bool {
        self.state.is_locked()
    }

    /// The call is complete: its event, if its caller has found one.
    fn complete(&self) -> Option<Event> {
        match core::mem::replace(&mut *self.event.lock(), EventState::Complete) {
            EventState::Known(event) => Some(event),
            EventState::Missing | EventState::Complete => None,
        }
    }
}

impl Collectives {
    /// Whether a thread goes on with a call: it may complete one that another thread waits for,
    /// and wakes no thread then.
    pub(crate) fn any_in_hand(&self) -> bool {
        let list = self.started.try_lock();
        list.is_none_or(|list| list.iter().any(|started| started.is_in_hand()))
    }
}

impl<C: Conduit> Engine<C> {
    /// Leaves a call to polls.
    ///
    /// The caller holds the lock of the list, and what orders the calls of the team.
    pub(super) fn leave_to_polls(
        &self,
        list: &mut Vec<Arc<Started>>,
        started: Started,
    ) -> Arc<Started> {
        let started = Arc::new(started);
        list.push(Arc::clone(&started));
        let cells = match started.is_by_cells() {
            true => kind::CELLS,
            false => 0,
        };
        self.background.begin(kind::COLLECTIVES | cells);
        started
    }

    /// The caller has found a handle for a call, which may be complete by now.
    pub(super) fn give_event(&self, started: &Started, event: Event) {
        {
            let mut state = started.event.lock();
            if !matches!(*state, EventState::Complete) {
                *state = EventState::Known(event);
                return;
            }
        }
        if self.has_broken(&started.team) {
            self.collective_failed(&started.team, event.raw());
        }
        self.finish(event, &mut Steps::default());
    }

    /// Goes on with one call, unless another thread does; whether it is complete.
    pub(super) fn advance_one(
        &self,
        ctx: &ThreadCtx,
        started: &Arc<Started>,
        all: &mut Steps,
    ) -> bool {
        let collectives = &self.background.collectives;
        let Some(mut state) = started.state.try_lock() else {
            // The other thread may complete the call that this one waits for, and wakes no thread.
            all.stuck = true;
            return false;
        };
        if state.is_complete {
            return true;
        }
        let mut steps = Steps::default();
        let is_lost = self.losses.any() && self.unless_broken(&started.team).is_err();
        let is_complete = is_lost
            || match &mut state.back_end {
                BackEnd::Messages(call) => self.advance_messages(ctx, started, call, &mut steps),
                BackEnd::Cells(call) => self.advance_cells(ctx, call, &mut steps),
            };
        state.is_complete = is_complete;
        if is_complete {
            steps.taken += 1;
            if is_lost {
                match &state.back_end {
                    BackEnd::Messages(call) => call.envelope.member.mailbox.lock().give_up(),
                    BackEnd::Cells(call) => self.give_up_cells(call),
                }
            }
            if let Some(event) = started.complete() {
                // A survivor that knew earlier may have given up bytes while this one read them.
                if is_lost || self.has_broken(&started.team) {
                    self.collective_failed(&started.team, event.raw());
                }
                self.finish(event, &mut steps);
            }
        }
        if steps.taken > 0 {
            let mut list = collectives.started.lock();
            if is_complete {
                list.retain(|other| !Arc::ptr_eq(other, started));
            }
            // While this thread has the call: another one that is about to sleep finds either.
            self.background.stepped();
            let cells_end = started.is_by_cells() && !list.iter().any(|other| other.is_by_cells());
            if is_complete && cells_end {
                self.background.end(kind::CELLS);
            }
            if list.is_empty() {
                self.background.end(kind::COLLECTIVES);
            }
        }
        if let BackEnd::Messages(call) = &state.back_end
            && is_complete
        {
            collectives.forget(&call.envelope.member);
        }
        all.taken += steps.taken;
        all.stuck |= steps.stuck;
        is_complete
    }

    /// Goes on with all calls.
    pub(crate) fn advance_collectives(&self, ctx: &ThreadCtx) -> usize {
        let collectives = &self.background.collectives;
        let mut steps = Steps::default();
        let mut at = 0;
        loop {
            let started = {
                let list = collectives.started.lock();
                let rest = list.get(at..).unwrap_or(&[]);
                // One that is given up is never in reach.
                let any_lost = self.losses.any();
                let is_next = |next: &Arc<Started>| any_lost || !next.is_out_of_reach();
                let Some(next) = rest.iter().position(is_next) else {
                    break;
                };
                at += next;
                Arc::clone(&rest[next])
            };
            at += usize::from(!self.advance_one(ctx, &started, &mut steps));
        }
        // Another thread may store its result at the same time. A thread about to sleep looks for
        // calls that a thread goes on with besides.
        collectives.stuck.store(steps.stuck, Ordering::Relaxed);
        steps.taken
    }

    /// Whether `is` holds for a call by cells in reach of the cells; also if a thread holds a lock.
    pub(super) fn any_by_cells(&self, is: impl Fn(&CellCall) -> bool) -> bool {
        let Some(list) = self.background.collectives.started.try_lock() else {
            return true;
        };
        let mut by_cells = list
            .iter()
            .filter(|started| started.is_by_cells() && !started.is_out_of_reach());
        by_cells.any(|started| match started.state.try_lock().as_deref() {
            Some(CallState {
                back_end: BackEnd::Cells(call),
                ..
            }) => is(call),
            Some(_) => false,
            None => true,
        })
    }
}
