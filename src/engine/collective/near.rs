//! Calls of teams that have a slot of lines: short ones inside a neighbourhood, without messages.
//!
//! A call that can be complete at once takes no event. What is not complete waits in the team's queue, in order, and polls go on
//! with it.
#![allow(unsafe_code)]

use super::call::{Call, Kind, Label};
use super::course::Course;
use super::seats::{Offer, Offered, Seats, can_sit};
use crate::engine::Team;
use crate::engine::background::{Steps, kind};
use crate::engine::core::{Engine, Outlook};
use crate::engine::events::OpError;
use crate::engine::lines::{Circle, MOST_MEMBERS, Place, WORLD_SLOT};
use crate::engine::thread::ThreadCtx;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::Conduit;
use argonet_conduit::smp::{Entry, Lines, ThreadMode};
use argonet_event::{Event, Parts};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

/// Looks at the line that a started call waits for before it is left to polls: less than an event costs. None where the rank
/// that is waited for may wait for this processor.
const LOOKS: u32 = 32;

/// A call that waits for others' lines.
struct Pending {
    course: Course,
    /// `None` until its caller has found one.
    event: Option<Event>,
}

/// A team's slot, and its calls.
pub(in crate::engine) struct Near {
    pub(in crate::engine) circle: Circle,
    /// The oldest first. Locked by who has the circle's turn.
    queue: Mutex<VecDeque<Pending>>,
    /// Calls in the queue. Changed under its lock (Release), read by who asks whether earlier calls are complete (Acquire).
    pending: AtomicU32,
    /// Number of the next call by lines. Changed by who has the turn, as the next.
    next: AtomicU64,
    /// Calls of the team, by lines or not.
    calls: AtomicU64,
}

/// State of calls by lines that are not complete.
#[derive(Default)]
pub(in crate::engine) struct NearCalls {
    /// Teams whose queue is not empty.
    busy: Mutex<Vec<Arc<Near>>>,
    pub(in crate::engine) stuck: AtomicBool,
    pub(in crate::engine) seats: Seats,
}

impl Near {
    pub(in crate::engine) fn new(circle: Circle) -> Self {
        Self {
            next: AtomicU64::new(circle.next()),
            calls: AtomicU64::new(circle.next()),
            circle,
            queue: Mutex::default(),
            pending: AtomicU32::new(0),
        }
    }

    fn size(&self) -> u32 {
        self.circle.members.len() as u32
    }

    /// Whether all members have finished all calls that this one knows of, and so read nobody's lines any more.
    pub(super) fn is_left_by_all(&self, lines: Lines<'_>) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let slot = self.circle.slot;
        let mut members = self.circle.members.iter();
        members.all(|&rank| lines.done(slot, rank) >= next)
    }

    /// More than any number in this member's lines.
    pub(super) fn end(&self) -> u64 {
        let (next, calls) = (&self.next, &self.calls);
        next.load(Ordering::Relaxed)
            .max(calls.load(Ordering::Relaxed))
    }

    fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// Counts a call of the team: how many preceded it. The caller has the turn.
    fn count(&self) -> u64 {
        let before = self.calls.load(Ordering::Relaxed);
        self.calls.store(before + 1, Ordering::Relaxed);
        before
    }

    /// The next call by lines. The caller has the turn.
    fn course(&self, call: Call) -> Course {
        let number = self.next.load(Ordering::Relaxed);
        self.next.store(number + 1, Ordering::Relaxed);
        Course::new(call, (number, self.count()), self.circle.rank, self.size())
    }

    /// Whether the oldest call can go on. Nobody need have the turn.
    fn has_come(&self, lines: Lines<'_>) -> bool {
        // Who has the lock goes on with it.
        let Some(queue) = self.queue.try_lock() else {
            return true;
        };
        let oldest = queue.front().map(|pending| &pending.course);
        oldest.is_some_and(|course| match self.awaited(course) {
            _ if !course.entered => self.circle.look_for_room(lines, course.number),
            Some(place) => lines.look(place.slot, place.rank, place.call).is_some(),
            None => true,
        })
    }

    /// The line that is read next.
    fn awaited(&self, course: &Course) -> Option<Place> {
        let member = course.left.clone().next()?;
        Some(Place {
            slot: self.circle.slot,
            rank: self.circle.members[member as usize],
            call: course.number,
        })
    }
}

impl fmt::Debug for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.circle.slot)
    }
}

impl<C: Conduit> Engine<C> {
    /// Gives the world its slot, if its ranks share memory.
    pub(super) fn seat_world(&self, team: &Team) {
        let size = team.size();
        if self.conduit.lines().is_some() && (2..=MOST_MEMBERS).contains(&size) {
            let members = (0..size).map(JobRank).collect();
            let near = Near::new(Circle::new(WORLD_SLOT, team.rank, members, 0));
            let set = team.near.set(Arc::new(near));
            debug_assert!(set.is_ok(), "a new team");
        }
    }

    /// What this rank can give the next team.
    pub(in crate::engine) fn offer_slots(&self) -> Offered<'_> {
        self.background.near.seats.offer(self.conduit.lines())
    }

    /// Gives a team that has just been opened the slot that its members agree about, if there is one: from what all members of its
    /// parent have offered, by process.
    pub(in crate::engine) fn seat_team(
        &self,
        team: &Team,
        offered: &Offered<'_>,
        offers: impl Iterator<Item = (JobRank, Offer)>,
    ) {
        if !can_sit(&team.members) {
            return;
        }
        let members = offers.filter(|(process, _)| team.members.rank_of(*process).is_some());
        let agreed = Offer::agree(members.map(|(_, offer)| offer));
        let Some(slot) = offered.take(agreed) else {
            return;
        };
        let members = (0..team.size()).map(|rank| team.job_rank(rank)).collect();
        let near = Near::new(Circle::new(slot, team.rank, members, agreed.first));
        let set = team.near.set(Arc::new(near));
        debug_assert!(set.is_ok(), "a new team");
    }

    /// The lines of a team, if it has some.
    #[inline(always)]
    pub(super) fn near<'t>(&'t self, team: &'t Team) -> Option<(Lines<'t>, &'t Arc<Near>)> {
        Some((self.conduit.lines()?, team.near.get()?))
    }

    fn turn<'n>(&self, near: &'n Near) -> Option<MutexGuard<'n, ()>> {
        (self.mode == ThreadMode::Par).then(|| near.circle.turn.lock())
    }

    /// Enters the call if there is room; says whether it is entered. `unfinished` calls precede it.
    #[inline(always)]
    fn enter_course(
        &self,
        lines: Lines<'_>,
        circle: &Circle,
        course: &mut Course,
        unfinished: u64,
    ) -> bool {
        let number = course.number;
        if !circle.has_room(number) && !circle.look_for_room(lines, number) {
            return false;
        }
        let what = course.what;
        // SAFETY: whoever made the course has promised it.
        unsafe {
            course.give(|data| {
                lines.enter(circle.slot, number, Entry { unfinished, what }, data);
            });
        }
        course.entered = true;
        circle.entered(number);
        lines.ring(circle.others());
        true
    }

    /// Takes what an entry, which has been seen, comes with.
    #[inline(always)]
    fn take_entry(&self, lines: Lines<'_>, course: &mut Course, place: Place, entry: Entry) {
        if entry.what != course.what {
            self.calls_differ(course, place, entry);
        }
        course.unfinished = course.unfinished.max(entry.unfinished);
        // SAFETY: whoever made the course has promised it, and it has been entered.
        unsafe { course.take(|data| lines.read(place.slot, place.rank, place.call, data)) };
    }

    /// Reads the lines that have come; whether that was all.
    #[inline(always)]
    fn read_lines(&self, lines: Lines<'_>, near: &Near, course: &mut Course) -> bool {
        while let Some(place) = near.awaited(course) {
            let Some(entry) = lines.look(place.slot, place.rank, place.call) else {
                return false;
            };
            self.take_entry(lines, course, place, entry);
        }
        true
    }

    /// The call has been read.
    #[inline(always)]
    fn finish_course(&self, lines: Lines<'_>, circle: &Circle, course: &Course) {
        if course.reads_all() {
            circle.knows(course.number.saturating_sub(course.unfinished));
        }
        lines.finish(circle.slot, course.number + 1);
        // Somebody may wait for room.
        lines.ring(circle.others());
    }

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
        let mut course = near.course(call);
        if near.is_idle() && self.enter_course(lines, &near.circle, &mut course, 0) {
            let looks = if self.waits.are_crowded() { 0 } else { LOOKS };
            for _ in 0..=looks {
                if self.read_lines(lines, near, &mut course) {
                    self.finish_course(lines, &near.circle, &course);
                    return Ok(Event::DONE);
                }
            }
        }
        let number = course.number;
        {
            let mut queue = near.queue.lock();
            queue.push_back(Pending {
                course,
                event: None,
            });
            near.pending.fetch_add(1, Ordering::Release);
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
        let turn = loop {
            let turn = self.turn(near);
            if near.is_idle() {
                break turn;
            }
            drop(turn);
            let mut wait = self.waiting_for_line(Waiting::new(what));
            while !near.is_idle() {
                wait.pause(ctx);
            }
        };
        let circle = &near.circle;
        let mut course = near.course(call);
        if !self.enter_course(lines, circle, &mut course, 0) {
            let mut wait = self.waiting_for_line(Waiting::new(what));
            let has_room = || circle.look_for_room(lines, course.number);
            while !has_room() {
                wait.pause_unless(ctx, &has_room);
            }
            let entered = self.enter_course(lines, circle, &mut course, 0);
            debug_assert!(entered, "nobody else uses the room");
        }
        // One poll a call, while lines are on their way: ranks that do nothing but meet take their messages.
        self.progress(ctx);
        while let Some(place) = near.awaited(&course) {
            let entry = match lines.look(place.slot, place.rank, place.call) {
                Some(entry) => entry,
                None => {
                    let waiting = Waiting::on(what, place.rank);
                    let doubt = || self.doubt_line(lines, &course, place);
                    self.wait_for_line(ctx, lines, place, waiting, doubt)
                }
            };
            self.take_entry(lines, &mut course, place, entry);
        }
        self.finish_course(lines, circle, &course);
        drop(turn);
    }

    /// Tells others that this member begins a call by messages.
    pub(super) fn tell_near(&self, lines: Lines<'_>, near: &Near) {
        let _turn = self.turn(near);
        let before = near.count();
        lines.tell_messages(near.circle.slot, before + 1);
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
        while let Some(pending) = queue.front_mut() {
            if !self.read_lines_of(lines, near, &mut pending.course) {
                break;
            }
            self.finish_course(lines, &near.circle, &pending.course);
            if let Some(event) = pending.event {
                self.finish(event, steps);
            } else {
                steps.taken += 1;
            }
            queue.pop_front();
            near.pending.fetch_sub(1, Ordering::Release);
        }
        // Others need not wait until those before are complete here.
        for (unfinished, pending) in (0..).zip(queue.iter_mut()) {
            let course = &mut pending.course;
            if course.entered {
                continue;
            }
            if !self.enter_course(lines, &near.circle, course, unfinished) {
                break;
            }
            steps.taken += 1;
        }
        queue.is_empty()
    }

    /// As `read_lines`, of a call that waits: doubts it if nothing comes.
    fn read_lines_of(&self, lines: Lines<'_>, near: &Near, course: &mut Course) -> bool {
        if !course.entered && !self.enter_course(lines, &near.circle, course, 0) {
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

    /// Ends the job if the rank whose line does not come has called something that goes by messages.
    #[inline(never)]
    fn doubt_line(&self, lines: Lines<'_>, course: &Course, place: Place) {
        let Place { slot, rank, call } = place;
        // The second look: it may have entered this call, and then another by messages.
        if lines.by_messages(slot, rank) > course.before && lines.look(slot, rank, call).is_none() {
            self.fatal(&format!(
                "rank {}: members of a team call different operations: this rank a {}, and rank {rank} one that is longer \
                 or goes by messages for another reason; all must call the same with the same root and length",
                self.rank,
                course.call.label()
            ));
        }
    }

    #[cold]
    #[inline(never)]
    fn calls_differ(&self, course: &Course, place: Place, entry: Entry) -> ! {
        let theirs = match Label::from_word(entry.what) {
            Some(label) => label.to_string(),
            None => format!("something unknown ({:#x})", entry.what),
        };
        self.fatal(&format!(
            "rank {}: members of a team call different operations: this rank a {}, and rank {} a {theirs}; all must call the \
             same with the same root and length",
            self.rank,
            course.call.label(),
            place.rank
        ));
    }
}
