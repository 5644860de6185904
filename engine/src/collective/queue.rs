//! Calls by lines that are started, or waited for: at once as far as they go, then by polls, in the
//! order of the calls.
//!
//! Combinations may be the client's code, which may wait for another thread that calls into the
//! library. So a poll goes on with a copy of a team's oldest call, and holds no lock meanwhile; the
//! call is marked, and other threads pass by.
#![allow(unsafe_code)]

use super::call::{Call, Kind};
use super::course::Course;
use super::near::{Near, Pending};
use super::pool::stages;
use crate::background::{Steps, kind};
use crate::core::{Engine, Injection};
use crate::events::OpError;
use crate::lines::LOOKS_AT_OTHERS;
use crate::mismatch::{Called, MismatchCheck, Sequence};
use crate::thread::ThreadCtx;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, Lines, ThreadMode};
use argonet_event::{Completions, Event};
use core::sync::atomic::Ordering;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Looks at the line that a started call waits for before it is left to polls: less than an event
/// costs.
///
/// One where the rank that is waited for may wait for this processor.
const LOOKS: u32 = 33;

impl<C: Conduit> Engine<C> {
    /// Starts a call by lines; see `collective_start`.
    ///
    /// `Event::DONE` if it is complete.
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
            let looks = match self.may_fold_in_turn(&call) {
                false => 0,
                true if self.waits.are_crowded() => 1,
                true => LOOKS,
            };
            for _ in 0..looks {
                if self.read_lines(ctx, lines, near, &mut course) {
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
        if near.is_idle() && near.may_enter(lines, &courses[0]) {
            // The first stage gives, and combines nothing.
            self.begin_stage(ctx, lines, near, &courses[0]);
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
            queue.extend(courses.into_iter().map(|course| Pending {
                course,
                event,
                in_hand: false,
            }));
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
        let event = self.handle(ctx, Completions::REMOTE, Injection::Blocking)?;
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

    /// Enters a course, and waits for its end.
    ///
    /// The caller has the turn.
    #[inline(always)]
    fn go_through(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        mut course: Course,
        what: WaitFor,
    ) {
        if course.stage.is_some() || !self.enter_course(lines, near, &mut course, 0) {
            let mut wait = self.waiting_for_line(Waiting::new(what));
            let may_enter = || near.may_enter(lines, &course);
            while !may_enter() {
                wait.pause_unless(ctx, &may_enter);
            }
            self.begin_stage(ctx, lines, near, &course);
            let entered = self.enter_course(lines, near, &mut course, 0);
            debug_assert!(entered, "no other call uses the room");
        }
        self.poll_between(ctx, course.number);
        let mut lasts = MismatchCheck::default();
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
                    let check = || {
                        self.check_for_mismatch(lines, near, &course, place);
                        self.check_mismatch(&mut lasts, place.rank, &called);
                    };
                    let awaited = near.awaited_members(&course);
                    self.wait_for_line(ctx, lines, place, awaited, waiting, check)
                }
            };
            self.take_entry(ctx, lines, &mut course, place, entry);
        }
        self.end_stage(ctx, lines, near, &course);
        self.finish_course(lines, near, &course);
    }

    /// Goes on with calls by lines that are not complete; how much could be done.
    pub(crate) fn advance_near(&self, ctx: &ThreadCtx) -> usize {
        let Some(lines) = self.conduit.lines() else {
            return 0;
        };
        let all = &self.background.near.busy;
        let (mut taken, mut at) = (0, 0);
        loop {
            let Some(near) = all.lock().get(at).map(Arc::clone) else {
                break;
            };
            taken += self.advance_queue(ctx, lines, &near);
            at += 1;
        }
        let mut busy = all.lock();
        busy.retain(|near| !near.is_idle());
        if busy.is_empty() {
            self.background.end(kind::LINES);
        }
        taken
    }

    /// Goes on with the calls of a team; how much could be done.
    fn advance_queue(&self, ctx: &ThreadCtx, lines: Lines<'_>, near: &Near) -> usize {
        let mut steps = Steps::default();
        while let Some(mut course) = self.take_in_hand(lines, near, &mut steps) {
            let is_complete = self.go_on_with(ctx, lines, near, &mut course);
            self.put_back(lines, near, course, is_complete, &mut steps);
            if !is_complete {
                break;
            }
        }
        steps.taken
    }

    /// Enters calls as far as there is room, and takes the oldest in hand: no other thread goes on
    /// with it until it is put back.
    fn take_in_hand(&self, lines: Lines<'_>, near: &Near, steps: &mut Steps) -> Option<Course> {
        let _turn = match self.mode {
            ThreadMode::Par => Some(near.circle.turn.try_lock()?),
            _ => None,
        };
        let mut queue = near.queue.lock();
        // Others need not wait until those before are complete here.
        for at in 0..queue.len() {
            if queue[at].course.entered {
                continue;
            }
            if queue[at].in_hand {
                break;
            }
            // Before anything that follows a call by messages is entered.
            near.publish_calls(lines, &queue);
            let course = &mut queue[at].course;
            // A stage begins with work on the results of the one before.
            if course.stage.is_some() || !self.enter_course(lines, near, course, at as u64) {
                break;
            }
            steps.taken += 1;
        }
        near.publish_calls(lines, &queue);
        let oldest = queue.front_mut()?;
        let course = &oldest.course;
        if oldest.in_hand || !(course.entered || near.may_enter(lines, course)) {
            return None;
        }
        oldest.in_hand = true;
        Some(oldest.course.clone())
    }

    /// Goes on with the call that this thread has in hand; whether it is complete.
    ///
    /// Holds no lock while it combines.
    fn go_on_with(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        course: &mut Course,
    ) -> bool {
        if !course.entered {
            self.begin_stage(ctx, lines, near, course);
            let _turn = self.turn(near);
            let mut queue = near.queue.lock();
            near.publish_calls(lines, &queue);
            let entered = self.enter_course(lines, near, course, 0);
            debug_assert!(entered, "the oldest call is entered first");
            if let Some(oldest) = queue.front_mut() {
                oldest.course.entered = entered;
            }
            near.publish_calls(lines, &queue);
        }
        if !self.read_lines(ctx, lines, near, course) {
            if let Some(place) = near.awaited(course) {
                self.check_for_mismatch(lines, near, course, place);
            }
            return false;
        }
        self.end_stage(ctx, lines, near, course);
        true
    }

    /// Gives the call that this thread has in hand back to its team, or ends it.
    fn put_back(
        &self,
        lines: Lines<'_>,
        near: &Near,
        course: Course,
        is_complete: bool,
        steps: &mut Steps,
    ) {
        let _turn = self.turn(near);
        let mut queue = near.queue.lock();
        if !is_complete {
            if let Some(oldest) = queue.front_mut() {
                (oldest.course, oldest.in_hand) = (course, false);
            }
            return;
        }
        self.finish_course(lines, near, &course);
        match queue.front().and_then(|oldest| oldest.event) {
            Some(event) => self.finish(event, steps),
            None => steps.taken += 1,
        }
        // Before other threads can see that no thread has it in hand.
        self.background.stepped();
        queue.pop_front();
        near.pending.fetch_sub(1, Ordering::Release);
        near.publish_calls(lines, &queue);
    }

    /// Lets another rank run, unless all ranks that the oldest calls by lines wait for have other
    /// processors: then this thread looks at their lines a little longer first.
    pub(crate) fn give_way(&self) {
        if self.background.pending() & kind::LINES != 0
            && let Some(lines) = self.conduit.lines()
            && !self.lines_need_processor(lines)
        {
            for _ in 0..LOOKS_AT_OTHERS {
                if self.lines_have_come() {
                    return;
                }
                argonet_base::cpu::relax();
            }
        }
        self.conduit.yield_now();
    }

    /// Whether a rank that an oldest call by lines waits for may need this processor.
    fn lines_need_processor(&self, lines: Lines<'_>) -> bool {
        let Some(busy) = self.background.near.busy.try_lock() else {
            return true;
        };
        busy.iter().any(|near| near.needs_processor(lines))
    }

    /// Whether a thread that is about to sleep has something to do for calls by lines.
    pub(crate) fn lines_have_come(&self) -> bool {
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
