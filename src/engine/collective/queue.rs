//! Calls by lines that are started, or waited for: at once as far as they go, then by polls, in the order of the calls.
#![allow(unsafe_code)]

use super::call::{Call, Kind};
use super::course::Course;
use super::near::{Near, Pending};
use super::pool::stages;
use crate::engine::background::{Steps, kind};
use crate::engine::core::{Engine, Outlook};
use crate::engine::events::OpError;
use crate::engine::mismatch::{Called, Doubt, Sequence};
use crate::engine::thread::ThreadCtx;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::Conduit;
use argonet_conduit::smp::{Lines, ThreadMode};
use argonet_event::{Event, Parts};
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Looks at the line that a started call waits for before it is left to polls: less than an event costs. None where the rank
/// that is waited for may wait for this processor.
const LOOKS: u32 = 32;

impl<C: Conduit> Engine<C> {
    /// Starts a call by lines; see `collective_start`. `Event::DONE` if it is complete.
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_near(
        &self,
        ctx: &ThreadCtx,
        (lines, near): (Lines<'_>, &Arc<Near>),
        call: Call,
    ) -> Result<Event, OpError> {
        let turn = self.turn(near);
        let mut course = near.course(call, None);
        if near.is_idle() && self.enter_course(lines, near, &mut course, 0) {
            let looks = if self.waits.are_crowded() { 0 } else { LOOKS };
            for _ in 0..=looks {
                if self.read_lines(lines, near, &mut course) {
                    self.finish_course(lines, near, &course);
                    return Ok(Event::DONE);
                }
            }
        }
        self.start_courses(ctx, near, vec![course], turn)
    }

    /// Starts a call through pools, as [`start_near`](Self::start_near).
    ///
    /// # Safety
    /// As `collective_start`.
    pub(super) unsafe fn start_pooled(
        &self,
        ctx: &ThreadCtx,
        (lines, near): (Lines<'_>, &Arc<Near>),
        call: Call,
        scratch: usize,
    ) -> Result<Event, OpError> {
        let turn = self.turn(near);
        let stages = stages(near, &call, scratch).into_iter();
        let mut courses: Vec<_> = stages.map(|stage| near.course(call, Some(stage))).collect();
        if near.is_idle() {
            self.enter_course(lines, near, &mut courses[0], 0);
        }
        self.start_courses(ctx, near, courses, turn)
    }

    /// Leaves the courses of a call, which follow each other, to polls.
    fn start_courses(
        &self,
        ctx: &ThreadCtx,
        near: &Arc<Near>,
        courses: Vec<Course>,
        turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<Event, OpError> {
        let number = courses.last().map_or(0, |course| course.number);
        {
            let mut queue = near.queue.lock();
            near.pending
                .fetch_add(courses.len() as u32, Ordering::Release);
            let event = None;
            queue.extend(courses.into_iter().map(|course| Pending { course, event }));
        }
        {
            let mut busy = self.background.near.busy.lock();
            if !busy.iter().any(|other| Arc::ptr_eq(other, near)) {
                busy.push(Arc::clone(near));
            }
            self.background.begin(kind::LINES);
        }
        drop(turn);
        // Polls while there is none, and perhaps completes the call.
        let event = self.handle(ctx, Parts::REMOTE, Outlook::Wait)?;
        let mut queue = near.queue.lock();
        match queue
            .iter_mut()
            .find(|pending| pending.course.number == number)
        {
            Some(pending) => pending.event = Some(event),
            None => self.finish(event, &mut Steps::default()),
        }
        Ok(event)
    }

    /// A call by lines that waits for its end: no event and no allocation.
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    pub(super) unsafe fn wait_near(
        &self,
        ctx: &ThreadCtx,
        (lines, near): (Lines<'_>, &Near),
        call: Call,
    ) {
        let what = match call.kind {
            Kind::Barrier => WaitFor::Barrier,
            _ => WaitFor::Collective,
        };
        let _turn = self.turn_when_idle(ctx, near, what);
        self.go_through(ctx, lines, near, near.course(call, None), what);
    }

    /// A call through pools that waits for its end, as [`wait_near`](Self::wait_near).
    ///
    /// # Safety
    /// As `collective_start`, until this returns.
    pub(super) unsafe fn wait_pooled(
        &self,
        ctx: &ThreadCtx,
        (lines, near): (Lines<'_>, &Near),
        call: Call,
        scratch: usize,
    ) {
        let what = WaitFor::Collective;
        let _turn = self.turn_when_idle(ctx, near, what);
        for stage in stages(near, &call, scratch) {
            self.go_through(ctx, lines, near, near.course(call, Some(stage)), what);
        }
    }

    /// The turn, when no call is under way that was started.
    #[inline(always)]
    fn turn_when_idle<'n>(
        &self,
        ctx: &ThreadCtx,
        near: &'n Near,
        what: WaitFor,
    ) -> Option<MutexGuard<'n, ()>> {
        loop {
            let turn = self.turn(near);
            if near.is_idle() {
                return turn;
            }
            drop(turn);
            let mut wait = self.waiting_for_line(Waiting::new(what));
            while !near.is_idle() {
                wait.pause(ctx);
            }
        }
    }

    /// Enters a course, and waits for its end. The caller has the turn.
    #[inline(always)]
    fn go_through(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        mut course: Course,
        what: WaitFor,
    ) {
        if !self.enter_course(lines, near, &mut course, 0) {
            let mut wait = self.waiting_for_line(Waiting::new(what));
            let may_enter = || near.may_enter(lines, &course);
            while !may_enter() {
                wait.pause_unless(ctx, &may_enter);
            }
            let entered = self.enter_course(lines, near, &mut course, 0);
            debug_assert!(entered, "nobody else uses the room");
        }
        self.poll_between(ctx, course.number);
        let mut lasts = Doubt::default();
        while let Some(place) = near.awaited(&course) {
            let entry = match lines.look(place.slot, place.rank, place.call) {
                Some(entry) => entry,
                None => {
                    let waiting = Waiting::on(what, place.rank);
                    let called = || Called {
                        sequence: Sequence::Team(near.key),
                        number: course.before,
                        label: course.call.label(),
                    };
                    let doubt = || {
                        self.doubt_line(lines, &course, place);
                        self.doubt(&mut lasts, place.rank, &called);
                    };
                    self.wait_for_line(ctx, lines, place, waiting, doubt)
                }
            };
            self.take_entry(lines, &mut course, place, entry);
        }
        self.finish_course(lines, near, &course);
    }

    /// Goes on with calls by lines that are not complete; how much could be done.
    pub(in crate::engine) fn advance_near(&self) -> usize {
        let Some(lines) = self.conduit.lines() else {
            return 0;
        };
        let mut steps = Steps::default();
        // A thread that holds it goes on with all calls.
        let Some(mut busy) = self.background.near.busy.try_lock() else {
            return 0;
        };
        busy.retain(|near| !self.advance_queue(lines, near, &mut steps));
        let taken = steps.publish(&self.background, &self.background.near.stuck);
        if busy.is_empty() {
            self.background.end(kind::LINES);
        }
        taken
    }

    /// Goes on with the calls of a team; whether all are complete.
    fn advance_queue(&self, lines: Lines<'_>, near: &Near, steps: &mut Steps) -> bool {
        let _turn = match self.mode {
            ThreadMode::Par => match near.circle.turn.try_lock() {
                Some(turn) => Some(turn),
                None => return false,
            },
            _ => None,
        };
        let mut queue = near.queue.lock();
        loop {
            // Before anything that follows a call by messages is entered.
            near.tell_untold(lines, &queue);
            let Some(pending) = queue.front_mut() else {
                break;
            };
            if !self.read_lines_of(lines, near, &mut pending.course) {
                break;
            }
            self.finish_course(lines, near, &pending.course);
            if let Some(event) = pending.event {
                self.finish(event, steps);
            } else {
                steps.taken += 1;
            }
            queue.pop_front();
            near.pending.fetch_sub(1, Ordering::Release);
        }
        // Others need not wait until those before are complete here.
        for at in 0..queue.len() {
            if queue[at].course.entered {
                continue;
            }
            near.tell_untold(lines, &queue);
            let course = &mut queue[at].course;
            // A stage begins with work on what the one before has left.
            if course.stage.is_some() || !self.enter_course(lines, near, course, at as u64) {
                break;
            }
            steps.taken += 1;
        }
        near.tell_untold(lines, &queue);
        queue.is_empty()
    }

    /// As `read_lines`, of a call that waits: doubts it if nothing comes.
    fn read_lines_of(&self, lines: Lines<'_>, near: &Near, course: &mut Course) -> bool {
        if !course.entered && !self.enter_course(lines, near, course, 0) {
            return false;
        }
        let complete = self.read_lines(lines, near, course);
        if let Some(place) = near.awaited(course).filter(|_| !complete) {
            self.doubt_line(lines, course, place);
        }
        complete
    }

    /// Whether a thread that is about to sleep has something to do for calls by lines.
    pub(in crate::engine) fn lines_have_come(&self) -> bool {
        if self.background.pending() & kind::LINES == 0 {
            return false;
        }
        let Some(lines) = self.conduit.lines() else {
            return false;
        };
        match self.background.near.busy.try_lock() {
            Some(busy) => busy.iter().any(|near| near.has_come(lines)),
            None => true,
        }
    }
}
