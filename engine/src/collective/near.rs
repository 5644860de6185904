//! Calls of teams that have a slot of lines: short ones inside a neighborhood, without messages.
//!
//! This module has the steps of a member on its own line and on others'; [`queue`](super::queue)
//! has the way of calls through their lines.
#![allow(unsafe_code)]

use super::call::Call;
use super::course::Course;
use super::label::{History, Label};
use super::pool::{Pools, Stage};
use super::scratch::Spare;
use super::seats::{Offer, Offered, Seats, can_sit};
use crate::client::ClientCode;
use crate::core::Engine;
use crate::lines::{Circle, MOST_MEMBERS, Place, WORLD_SLOT};
use crate::thread::ThreadCtx;
use crate::{Members, Team, TeamKey};
use argonet_base::JobRank;
use argonet_conduit::{Conduit, Entry, Lines, ThreadMode};
use argonet_event::Event;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

/// How long a member leaves it to one that calls something longer to name both calls.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(300);

/// A call that waits for others' lines.
pub(super) struct Pending {
    pub(super) course: Course,
    /// `None` until its caller has found one.
    pub(super) event: Option<Event>,
    /// A thread goes on with a copy of the course, which it puts back.
    ///
    /// The oldest call alone.
    pub(super) in_hand: bool,
}

/// A team's slot, and its calls.
pub(crate) struct Near {
    pub(crate) circle: Circle,
    pub(super) key: TeamKey,
    /// The oldest first.
    ///
    /// Locked by the thread that has the circle's turn.
    pub(super) queue: Mutex<VecDeque<Pending>>,
    /// Calls in the queue.
    ///
    /// Changed under its lock (Release), read by threads that test whether earlier calls are
    /// complete (Acquire).
    pub(super) pending: AtomicU32,
    /// Number of the next call by lines.
    ///
    /// Changed by the thread that has the turn, as the next.
    next: AtomicU64,
    /// Calls of the team, by lines or not.
    calls: AtomicU64,
    /// Calls up to the last one by messages, which this member publishes when those by lines before
    /// it have been entered; or 0.
    ///
    /// Changed under the queue's lock.
    unpublished: AtomicU64,
    /// Pieces that have gone through the pools.
    ///
    /// Changed by the thread that has the turn.
    pub(crate) pieces: AtomicU64,
    /// The [`History`] of the team's calls.
    ///
    /// Changed by the thread that has the turn.
    history: Arc<AtomicU64>,
    /// The call in whose place a member has called something by messages, and since when this one
    /// knows.
    ///
    /// Taken for moments, and only then.
    differs_since: Mutex<Option<(u64, Duration)>>,
    pub(super) spare: Spare,
}

/// Where a call by messages stands among a team's calls by lines.
pub(super) struct Standing {
    near: Arc<Near>,
    /// How many calls of the team precede it.
    before: u64,
    /// Number of the next call by lines.
    next: u64,
}

/// State of calls by lines that are not complete.
#[derive(Default)]
pub(crate) struct NearCalls {
    /// Teams whose queue is not empty.
    pub(super) busy: Mutex<Vec<Arc<Near>>>,
    pub(crate) seats: Seats,
}

impl Near {
    pub(crate) fn new(circle: Circle, key: TeamKey, history: Arc<AtomicU64>) -> Self {
        Self {
            next: AtomicU64::new(circle.next()),
            calls: AtomicU64::new(circle.next()),
            circle,
            key,
            queue: Mutex::default(),
            pending: AtomicU32::new(0),
            unpublished: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            history,
            differs_since: Mutex::default(),
            spare: Spare::default(),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.circle.members.len() as u32
    }

    /// Whether all members have finished all calls that this one knows of, and so read no member's
    /// lines any more.
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

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// Counts a call of the team: how many preceded it.
    ///
    /// The caller has the turn.
    fn count(&self) -> u64 {
        let before = self.calls.load(Ordering::Relaxed);
        self.calls.store(before + 1, Ordering::Relaxed);
        before
    }

    /// The next call by lines.
    ///
    /// The caller has the turn.
    pub(super) fn course(&self, call: Call, stage: Option<Stage>) -> Course {
        let number = self.next.load(Ordering::Relaxed);
        self.next.store(number + 1, Ordering::Relaxed);
        let numbers = (number, self.count());
        let history = self.history();
        let (rank, size) = (self.circle.rank, self.size());
        let course = Course::new(call, stage, numbers, history, rank, size);
        if course.is_partial() {
            let after = history.after(course.what);
            self.history.store(after, Ordering::Relaxed);
        }
        course
    }

    #[inline(always)]
    fn history(&self) -> History {
        History::from_bits(self.history.load(Ordering::Relaxed))
    }

    /// Number of the next call by lines.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Calls of the team that this member has made, by lines or not.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Publishes the last call by messages, unless a call by lines before it waits for room: the
    /// other members would conclude that this one has left that out.
    ///
    /// The caller has the turn.
    pub(super) fn publish_calls(&self, lines: Lines<'_>, queue: &VecDeque<Pending>) {
        let calls = self.unpublished.load(Ordering::Relaxed);
        let waits = |pending: &Pending| !pending.course.entered && pending.course.before < calls;
        if calls != 0 && !queue.iter().any(waits) {
            self.unpublished.store(0, Ordering::Relaxed);
            lines.publish_messages(self.circle.slot, calls);
        }
    }

    /// Whether the oldest call can go on.
    ///
    /// The caller need not have the turn.
    pub(super) fn has_come(&self, lines: Lines<'_>) -> bool {
        // The thread that has the lock goes on with it.
        let Some(queue) = self.queue.try_lock() else {
            return true;
        };
        let oldest = queue.front();
        oldest.is_some_and(
            |Pending {
                 course, in_hand, ..
             }| match self.awaited(course) {
                _ if *in_hand => true,
                _ if !course.entered => self.may_enter(lines, course),
                Some(place) => lines.look(place.slot, place.rank, place.call).is_some(),
                None => true,
            },
        )
    }

    /// Whether there is room for a call.
    #[inline(always)]
    pub(super) fn may_enter(&self, lines: Lines<'_>, course: &Course) -> bool {
        let (circle, number) = (&self.circle, course.number);
        circle.has_room(number) || circle.look_for_room(lines, number)
    }

    /// Whether a member that the oldest call waits for may need this thread's processor.
    pub(super) fn needs_processor(&self, lines: Lines<'_>) -> bool {
        let Some(queue) = self.queue.try_lock() else {
            return true;
        };
        // A call that waits for room waits for all other members.
        queue.front().is_some_and(|Pending { course, .. }| {
            let slot = self.circle.slot;
            !course.entered
                || lines.needs_processor(slot, self.awaited_members(course), course.number)
        })
    }

    /// The members whose lines are still to be read.
    pub(super) fn awaited_members(&self, course: &Course) -> &[JobRank] {
        let left = course.left.start as usize..course.left.end as usize;
        self.circle.members.get(left).unwrap_or(&[])
    }

    /// The line that is read next.
    pub(super) fn awaited(&self, course: &Course) -> Option<Place> {
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

impl Standing {
    /// How many calls of the team precede it.
    pub(super) fn before(&self) -> u64 {
        self.before
    }
}

impl<C: Conduit> Engine<C> {
    /// Gives the world its slot, if its ranks share memory.
    pub(super) fn seat_world(&self, team: &Team) {
        let size = team.size();
        if self.conduit.lines().is_some()
            && self.all_near(&team.members)
            && (2..=MOST_MEMBERS).contains(&size)
        {
            let members = (0..size).map(JobRank).collect();
            let circle = Circle::new(WORLD_SLOT, team.rank, members, 0);
            let near = Near::new(circle, team.key, Arc::clone(&self.mismatch.history));
            let set = team.near.set(Arc::new(near));
            debug_assert!(set.is_ok(), "a new team");
        }
    }

    /// Whether all members share memory with this rank; then they do with each other.
    fn all_near(&self, members: &Members) -> bool {
        let mut ranks = (0..members.size()).map(|rank| members.job_rank(rank));
        ranks.all(|rank| self.directory.is_mapped(rank))
    }

    /// The slots that this rank can give the next team.
    pub(crate) fn offer_slots(&self) -> Offered<'_> {
        self.background.near.seats.offer(self.conduit.lines())
    }

    /// Gives a team that has just been opened the slot that its members agree on, if there is one.
    ///
    /// `offers` has the offers of all members of its parent, by process.
    pub(crate) fn seat_team(
        &self,
        team: &Team,
        offered: &Offered<'_>,
        offers: impl Iterator<Item = (JobRank, Offer)>,
    ) {
        if !can_sit(&team.members) || !self.all_near(&team.members) {
            return;
        }
        let members = offers.filter(|(process, _)| team.members.rank_of(*process).is_some());
        let agreed = Offer::agree(members.map(|(_, offer)| offer));
        let Some(slot) = offered.take(agreed) else {
            return;
        };
        let members = (0..team.size()).map(|rank| team.job_rank(rank)).collect();
        let circle = Circle::new(slot, team.rank, members, agreed.first);
        let near = Near::new(circle, team.key, Arc::default());
        let set = team.near.set(Arc::new(near));
        debug_assert!(set.is_ok(), "a new team");
    }

    /// The lines of a team, if it has some.
    #[inline(always)]
    pub(super) fn near<'t>(&'t self, team: &'t Team) -> Option<(Lines<'t>, &'t Arc<Near>)> {
        Some((self.conduit.lines()?, team.near.get()?))
    }

    pub(super) fn turn<'n>(&self, near: &'n Near) -> Option<MutexGuard<'n, ()>> {
        (self.mode == ThreadMode::Par).then(|| near.circle.turn.lock())
    }

    /// Does the work of a stage before it is entered.
    pub(super) fn begin_stage(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        course: &Course,
    ) {
        if let Some(stage) = &course.stage {
            let pools = Pools {
                lines,
                near,
                call: &course.call,
            };
            // SAFETY: the caller that made the course has promised it; stages are entered one after
            // the other.
            let begin = || unsafe { pools.begin(stage) };
            self.call_client(ctx, ClientCode::Combination, begin);
        }
    }

    /// Does the work of a stage after all have entered it.
    #[inline(always)]
    pub(super) fn end_stage(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        course: &Course,
    ) {
        if let Some(stage) = &course.stage {
            let pools = Pools {
                lines,
                near,
                call: &course.call,
            };
            // SAFETY: the caller that made the course has promised it, and all lines of the call
            // have been seen.
            let end = || unsafe { pools.end(stage) };
            self.call_client(ctx, ClientCode::Combination, end);
        }
    }

    /// Enters the call, whose stage has begun, if there is room; says whether it is entered.
    ///
    /// `unfinished` calls precede it.
    #[inline(always)]
    pub(super) fn enter_course(
        &self,
        lines: Lines<'_>,
        near: &Near,
        course: &mut Course,
        unfinished: u64,
    ) -> bool {
        if !near.may_enter(lines, course) {
            return false;
        }
        let (circle, number) = (&near.circle, course.number);
        let what = course.what;
        // SAFETY: the caller that made the course has promised it.
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

    /// Takes the data of an entry that has been seen.
    #[inline(always)]
    pub(super) fn take_entry(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        course: &mut Course,
        place: Place,
        entry: Entry,
    ) {
        if entry.what != course.what {
            self.lines_differ(course.call.label(), course.history, place, entry.what);
        }
        course.unfinished = course.unfinished.max(entry.unfinished);
        let folds = course.call.folding.is_some();
        // SAFETY: the caller that made the course has promised it, and it has been entered.
        let mut take =
            || unsafe { course.take(|data| lines.read(place.slot, place.rank, place.call, data)) };
        match folds {
            false => take(),
            true => self.call_client(ctx, ClientCode::Combination, take),
        }
    }

    /// Reads the lines that have come; whether that was all.
    #[inline(always)]
    pub(super) fn read_lines(
        &self,
        ctx: &ThreadCtx,
        lines: Lines<'_>,
        near: &Near,
        course: &mut Course,
    ) -> bool {
        while let Some(place) = near.awaited(course) {
            let Some(entry) = lines.look(place.slot, place.rank, place.call) else {
                return false;
            };
            self.take_entry(ctx, lines, course, place, entry);
        }
        true
    }

    /// The call has been read, and its stage has ended.
    #[inline(always)]
    pub(super) fn finish_course(&self, lines: Lines<'_>, near: &Near, course: &Course) {
        let circle = &near.circle;
        if course.reads_all() {
            circle.knows(course.number.saturating_sub(course.unfinished));
        }
        lines.finish(circle.slot, course.number + 1);
        // Another member may wait for room.
        lines.ring(circle.others());
    }

    /// Publishes that this member begins a call by messages; returns where that call stands among
    /// those by lines.
    pub(super) fn publish_call_by_messages(&self, lines: Lines<'_>, near: &Arc<Near>) -> Standing {
        let _turn = self.turn(near);
        let before = near.count();
        let queue = near.queue.lock();
        near.unpublished.store(before + 1, Ordering::Relaxed);
        near.publish_calls(lines, &queue);
        Standing {
            near: Arc::clone(near),
            before,
            next: near.next.load(Ordering::Relaxed),
        }
    }

    /// Ends the job if another member has left out a call by messages and called something by lines
    /// in its place.
    ///
    /// It may have left that already, as roots do, and so never hear of the call that others wait
    /// for it in.
    #[cold]
    #[inline(never)]
    pub(super) fn check_standing(&self, label: Label, standing: &Standing) {
        let Some(lines) = self.conduit.lines() else {
            return;
        };
        let &Standing {
            ref near,
            before,
            next,
        } = standing;
        let slot = near.circle.slot;
        for rank in near.circle.others() {
            let entry = lines.look(slot, rank, next);
            if entry.is_none() && !lines.is_past(slot, rank, next) {
                continue;
            }
            // Read after the line: a member publishes a call by messages before it enters the calls
            // by lines that follow.
            if lines.by_messages(slot, rank) <= before {
                self.members_differ(label, near, rank, entry);
            }
        }
    }

    /// Ends the job if the rank whose line does not come has called something that goes by
    /// messages.
    ///
    /// That rank reads this one's call in its line and can name both calls, so it has some time to
    /// do so; a root that has sent and gone on never does.
    #[inline(never)]
    pub(super) fn check_for_mismatch(
        &self,
        lines: Lines<'_>,
        near: &Near,
        course: &Course,
        place: Place,
    ) {
        let Place { slot, rank, call } = place;
        // The second look: it may have entered this call, and then another by messages.
        if lines.by_messages(slot, rank) > course.before && lines.look(slot, rank, call).is_none() {
            let now = (self.clock)();
            let since = match &mut *near.differs_since.lock() {
                Some((of, since)) if *of == call => *since,
                other => {
                    *other = Some((call, now));
                    now
                }
            };
            if now.saturating_sub(since) < LEFT_TO_OTHERS {
                return;
            }
            let own = format!("a {}", course.call.label());
            let theirs = "a longer one, or one that goes by messages for another reason";
            self.calls_differ(&own, rank, &theirs);
        }
    }

    #[cold]
    #[inline(never)]
    fn members_differ(&self, own: Label, near: &Near, rank: JobRank, entry: Option<Entry>) -> ! {
        let read = |entry: Entry| (entry.what, near.history().read(entry.what));
        let theirs = match entry.map(read) {
            Some((_, Some(label))) => format!("a {label}"),
            Some((what, None)) => format!("something unknown ({what:#x})"),
            None => "something shorter".into(),
        };
        self.calls_differ(&format!("a {own}"), rank, &theirs);
    }
}
