//! Shared teams: teams whose members share memory and have a slot, so that calls go by cells.
//!
//! This module has the steps of one round on a member's own cell and on others' cells;
//! [`cell_call`](super::cell_call) takes calls through their rounds.
#![allow(unsafe_code)]

use super::call::Call;
use super::cell_round::CellRound;
use super::label::{History, Label};
use super::pool::{Pools, Stage};
use super::scratch::Spare;
use super::slots::{Offer, Offered, can_have_slot};
use super::started::Started;
use crate::client::ClientCode;
use crate::core::Engine;
use crate::mismatch::Called;
use crate::shared_memory::{CellPlace, Group, MOST_MEMBERS, WORLD_SLOT};
use crate::thread::ThreadCtx;
use crate::{Members, Team, TeamKey};
use argonet_base::JobRank;
use argonet_conduit::{Conduit, Entry, SharedCells, ThreadMode};
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

/// How long a member leaves it to one that calls something longer to name both calls.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(300);

/// A team's slot, and its calls.
pub(crate) struct SharedTeam {
    pub(crate) group: Group,
    pub(super) key: TeamKey,
    /// Calls that are started and not complete.
    ///
    /// Changed by the thread that has the call lock (Release), read by threads that test whether
    /// earlier calls are complete (Acquire).
    pending: AtomicU32,
    /// Number of the oldest round that is not finished, while calls are pending.
    ///
    /// Changed by the thread that has the call lock (Release), read by threads that go on with a
    /// call (Acquire).
    oldest: AtomicU64,
    /// Number of the next round that is made; `Group::next` is that of the next to be entered.
    ///
    /// Changed by the thread that has the call lock.
    next: AtomicU64,
    /// Number of the next round or call by messages in the team's sequence of both.
    ///
    /// Changed by the thread that has the call lock.
    calls: AtomicU64,
    /// Calls by messages that others don't know of yet, as calls by cells before them wait for
    /// room.
    ///
    /// Locked by the thread that has the call lock.
    unpublished: Mutex<VecDeque<Standing>>,
    /// Pieces that have gone through the pools.
    ///
    /// Changed by the thread that has the call lock.
    pub(crate) pieces: AtomicU64,
    /// The [`History`] of the team's calls.
    ///
    /// Changed by the thread that has the call lock.
    history: Arc<AtomicU64>,
    /// The call in whose place a member has called something by messages, and since when this one
    /// knows.
    ///
    /// Taken for moments, and only then.
    differs_since: Mutex<Option<(u64, Duration)>>,
    pub(super) spare: Spare,
}

/// Where a call by messages stands among a team's calls by cells.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    /// How many rounds and calls by messages of the team precede it.
    pub(super) before: u64,
    /// Number of the round that is made next after it.
    pub(super) next_by_cells: u64,
}

impl SharedTeam {
    pub(crate) fn new(group: Group, key: TeamKey, history: Arc<AtomicU64>) -> Self {
        Self {
            next: AtomicU64::new(group.next()),
            calls: AtomicU64::new(group.next()),
            group,
            key,
            pending: AtomicU32::new(0),
            oldest: AtomicU64::new(0),
            unpublished: Mutex::default(),
            pieces: AtomicU64::new(0),
            history,
            differs_since: Mutex::default(),
            spare: Spare::default(),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.group.members.len() as u32
    }

    /// Whether all members have finished all calls that this one knows of, and so read no member's
    /// cells any more.
    pub(super) fn is_left_by_all(&self, cells: SharedCells<'_>) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let slot = self.group.slot;
        let mut members = self.group.members.iter();
        members.all(|&rank| cells.done(slot, rank) >= next)
    }

    /// More than any number in this member's cells.
    pub(super) fn end_of_numbers(&self) -> u64 {
        let (next, calls) = (&self.next, &self.calls);
        next.load(Ordering::Relaxed)
            .max(calls.load(Ordering::Relaxed))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// A call has been started, whose rounds begin with this number.
    ///
    /// The caller has the call lock.
    pub(super) fn begin(&self, first: u64) {
        if self.is_idle() {
            self.oldest.store(first, Ordering::Release);
        }
        self.pending.fetch_add(1, Ordering::Release);
    }

    /// A round of a started call is finished, perhaps the call's last.
    ///
    /// The caller has the call lock.
    pub(super) fn end(&self, round: &CellRound, is_last: bool) {
        self.oldest.store(round.number + 1, Ordering::Release);
        if is_last {
            self.pending.fetch_sub(1, Ordering::Release);
        }
    }

    /// A started call is given up with its team.
    ///
    /// The caller has the call lock.
    pub(super) fn give_up(&self) {
        self.pending.fetch_sub(1, Ordering::Release);
    }

    /// Whether a round of a started call comes next, as all before it are finished.
    pub(super) fn is_oldest(&self, round: &CellRound) -> bool {
        self.oldest.load(Ordering::Acquire) == round.number
    }

    /// Whether a call that begins with this round cannot be entered yet: cells have no room before
    /// older rounds are finished here.
    pub(super) fn is_out_of_reach(&self, first: u64) -> bool {
        first >= self.oldest.load(Ordering::Acquire) + SharedCells::DEPTH
    }

    /// The rounds before one of a started call that are not finished.
    ///
    /// The caller has the call lock.
    pub(super) fn unfinished(&self, round: &CellRound) -> u64 {
        round.number - self.oldest.load(Ordering::Acquire)
    }

    /// Counts a round or a call by messages; returns how many of both preceded it.
    ///
    /// The caller has the call lock.
    fn count(&self) -> u64 {
        let before = self.calls.load(Ordering::Relaxed);
        self.calls.store(before + 1, Ordering::Relaxed);
        before
    }

    /// Makes the next round of a call by cells, and counts it.
    ///
    /// The caller has the call lock.
    pub(super) fn round(&self, call: Call, stage: Option<Stage>) -> CellRound {
        let number = self.next.load(Ordering::Relaxed);
        self.next.store(number + 1, Ordering::Relaxed);
        let numbers = (number, self.count());
        let history = self.history();
        let (rank, size) = (self.group.rank, self.size());
        let round = CellRound::new(call, stage, numbers, history, rank, size);
        if round.is_partial() {
            let after = history.after(round.what);
            self.history.store(after, Ordering::Relaxed);
        }
        round
    }

    #[inline(always)]
    fn history(&self) -> History {
        History::from_bits(self.history.load(Ordering::Relaxed))
    }

    /// Number of the next round that is made.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Number of the next round or call by messages that this member makes.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Publishes the calls by messages whose earlier rounds have all been entered.
    ///
    /// If one were published before a round that waits for room, other members would conclude that
    /// this member has left that round out.
    ///
    /// The caller has the call lock.
    pub(super) fn publish_calls(&self, cells: SharedCells<'_>) {
        let mut unpublished = self.unpublished.lock();
        let next = self.group.next();
        while let Some(call) = unpublished.pop_front_if(|call| call.next_by_cells <= next) {
            cells.publish_messages(self.group.slot, call.before + 1);
        }
    }

    /// Whether a round is the next that is entered.
    pub(super) fn is_next(&self, round: &CellRound) -> bool {
        self.group.next() == round.number
    }

    /// Whether there is room for a call.
    #[inline(always)]
    pub(super) fn may_enter(&self, cells: SharedCells<'_>, round: &CellRound) -> bool {
        let (group, number) = (&self.group, round.number);
        group.has_room(number) || group.look_for_room(cells, number)
    }

    /// The members whose cells are still to be read.
    pub(super) fn awaited_members(&self, round: &CellRound) -> &[JobRank] {
        let left = round.left.start as usize..round.left.end as usize;
        self.group.members.get(left).unwrap_or(&[])
    }

    /// The cell that is read next.
    pub(super) fn awaited(&self, round: &CellRound) -> Option<CellPlace> {
        let member = round.left.clone().next()?;
        Some(CellPlace {
            slot: self.group.slot,
            rank: self.group.members[member as usize],
            call: round.number,
        })
    }
}

impl fmt::Debug for SharedTeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.group.slot)
    }
}

impl<C: Conduit> Engine<C> {
    /// Gives the world its slot, if its ranks share memory.
    pub(super) fn give_world_slot(&self, team: &Team) {
        let size = team.size();
        if self.conduit.shared_cells().is_some()
            && self.all_share_memory(&team.members)
            && (2..=MOST_MEMBERS).contains(&size)
        {
            let members = (0..size).map(JobRank).collect();
            let group = Group::new(WORLD_SLOT, team.rank, members, 0);
            let shared = SharedTeam::new(group, team.key, Arc::clone(&self.mismatch.history));
            let set = team.shared.set(Arc::new(shared));
            debug_assert!(set.is_ok(), "a new team");
        }
    }

    /// Whether all members share memory with this rank; then they do with each other.
    fn all_share_memory(&self, members: &Members) -> bool {
        let mut ranks = (0..members.size()).map(|rank| members.job_rank(rank));
        ranks.all(|rank| self.directory.is_mapped(rank))
    }

    /// The slots that this rank can give the next team.
    pub(crate) fn offer_slots(&self) -> Offered<'_> {
        self.background
            .collectives
            .slots
            .offer(self.conduit.shared_cells())
    }

    /// Gives a team that has just been opened the slot that its members agree on, if there is one.
    ///
    /// `offers` has the offers of all members of its parent, by process.
    pub(crate) fn give_slot(
        &self,
        team: &Team,
        offered: &Offered<'_>,
        offers: impl Iterator<Item = (JobRank, Offer)>,
    ) {
        if !can_have_slot(&team.members) || !self.all_share_memory(&team.members) {
            return;
        }
        let members = offers.filter(|(process, _)| team.members.rank_of(*process).is_some());
        let agreed = Offer::agree(members.map(|(_, offer)| offer));
        let Some(slot) = offered.take(agreed) else {
            return;
        };
        let members = (0..team.size()).map(|rank| team.job_rank(rank)).collect();
        let group = Group::new(slot, team.rank, members, agreed.first);
        let shared = SharedTeam::new(group, team.key, Arc::default());
        let set = team.shared.set(Arc::new(shared));
        debug_assert!(set.is_ok(), "a new team");
    }

    /// The cells of a team, if it has some.
    #[inline(always)]
    pub(super) fn shared_team<'t>(
        &'t self,
        team: &'t Team,
    ) -> Option<(SharedCells<'t>, &'t Arc<SharedTeam>)> {
        Some((self.conduit.shared_cells()?, team.shared.get()?))
    }

    pub(super) fn lock_calls<'n>(&self, shared: &'n SharedTeam) -> Option<MutexGuard<'n, ()>> {
        (self.mode == ThreadMode::Par).then(|| shared.group.call_lock.lock())
    }

    /// Does the work of a stage before it is entered.
    pub(super) fn begin_stage(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &CellRound,
    ) {
        if let Some(stage) = &round.stage {
            let pools = Pools {
                cells,
                shared,
                call: &round.call,
            };
            // SAFETY: the caller that made the round has promised it; stages are entered one after
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
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &CellRound,
    ) {
        if let Some(stage) = &round.stage {
            let pools = Pools {
                cells,
                shared,
                call: &round.call,
            };
            // SAFETY: the caller that made the round has promised it, and all cells of the call
            // have been seen.
            let end = || unsafe { pools.end(stage) };
            self.call_client(ctx, ClientCode::Combination, end);
        }
    }

    /// Enters the call, whose stage has begun, if there is room; says whether it is entered.
    ///
    /// `unfinished` calls precede it.
    #[inline(always)]
    pub(super) fn enter_round(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &mut CellRound,
        unfinished: u64,
    ) -> bool {
        if !shared.may_enter(cells, round) {
            return false;
        }
        let (group, number) = (&shared.group, round.number);
        let what = round.what;
        // SAFETY: the caller that made the round has promised it.
        unsafe {
            round.give(|data| {
                cells.enter(group.slot, number, Entry { unfinished, what }, data);
            });
        }
        round.entered = true;
        group.entered(number);
        cells.wake(group.others());
        true
    }

    /// Takes the data of an entry that has been seen.
    #[inline(always)]
    pub(super) fn take_entry(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        round: &mut CellRound,
        place: CellPlace,
        entry: Entry,
    ) {
        if entry.what != round.what {
            self.cells_differ(round.call.label(), round.history, place, entry.what);
        }
        round.unfinished = round.unfinished.max(entry.unfinished);
        let folds = round.call.folding.is_some();
        // SAFETY: the caller that made the round has promised it, and it has been entered.
        let mut take =
            || unsafe { round.take(|data| cells.read(place.slot, place.rank, place.call, data)) };
        match folds {
            false => take(),
            true => self.call_client(ctx, ClientCode::Combination, take),
        }
    }

    /// Reads the cells that have come; whether that was all.
    #[inline(always)]
    pub(super) fn read_cells(
        &self,
        ctx: &ThreadCtx,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &mut CellRound,
    ) -> bool {
        while let Some(place) = shared.awaited(round) {
            let Some(entry) = cells.look(place.slot, place.rank, place.call) else {
                return false;
            };
            self.take_entry(ctx, cells, round, place, entry);
        }
        true
    }

    /// The call has been read, and its stage has ended.
    #[inline(always)]
    pub(super) fn finish_round(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &CellRound,
    ) {
        let group = &shared.group;
        if round.reads_all() {
            group.knows(round.number.saturating_sub(round.unfinished));
        }
        cells.finish(group.slot, round.number + 1);
        // Another member may wait for room.
        cells.wake(group.others());
    }

    /// Publishes that this member begins a call by messages; returns where that call stands among
    /// those by cells.
    pub(super) fn publish_call_by_messages(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
    ) -> Standing {
        let _lock = self.lock_calls(shared);
        let standing = Standing {
            before: shared.count(),
            next_by_cells: shared.next(),
        };
        shared.unpublished.lock().push_back(standing);
        shared.publish_calls(cells);
        standing
    }

    /// Ends the job if another member has left out a call by messages and called something by cells
    /// in its place, of which `next` is the number.
    ///
    /// It may have left that already, as roots do, and so never hear of the call that others wait
    /// for it in.
    #[cold]
    #[inline(never)]
    pub(super) fn check_calls_by_cells(&self, started: &Started, next: u64) {
        let Some((cells, shared)) = self.shared_team(&started.team) else {
            return;
        };
        let Called {
            number: before,
            label,
            ..
        } = started.called;
        let slot = shared.group.slot;
        for rank in shared.group.others() {
            let entry = cells.look(slot, rank, next);
            if entry.is_none() && !cells.is_past(slot, rank, next) {
                continue;
            }
            // Read after the cell: a member publishes a call by messages before it enters the calls
            // by cells that follow.
            if cells.by_messages(slot, rank) <= before {
                self.members_differ(label, shared, rank, entry);
            }
        }
    }

    /// Ends the job if the rank whose cell does not come has called something that goes by
    /// messages.
    ///
    /// That rank reads this one's call in its cell and can name both calls, so it has some time to
    /// do so; a root that has sent and gone on never does.
    #[inline(never)]
    pub(super) fn check_for_mismatch(
        &self,
        cells: SharedCells<'_>,
        shared: &SharedTeam,
        round: &CellRound,
        place: CellPlace,
    ) {
        let CellPlace { slot, rank, call } = place;
        // The second look: it may have entered this call, and then another by messages.
        if cells.by_messages(slot, rank) > round.before && cells.look(slot, rank, call).is_none() {
            let now = (self.clock)();
            let since = match &mut *shared.differs_since.lock() {
                Some((of, since)) if *of == call => *since,
                other => {
                    *other = Some((call, now));
                    now
                }
            };
            if now.saturating_sub(since) < LEFT_TO_OTHERS {
                return;
            }
            let own = round.call.label().to_string();
            let theirs = "a longer one, or one that goes by messages for another reason";
            self.calls_differ(&own, rank, &theirs);
        }
    }

    #[cold]
    #[inline(never)]
    fn members_differ(
        &self,
        own: Label,
        shared: &SharedTeam,
        rank: JobRank,
        entry: Option<Entry>,
    ) -> ! {
        let read = |entry: Entry| (entry.what, shared.history().read(entry.what));
        let theirs = match entry.map(read) {
            Some((_, Some(label))) => label.to_string(),
            Some((what, None)) => format!("something unknown ({what:#x})"),
            None => "something shorter".into(),
        };
        self.calls_differ(&own.to_string(), rank, &theirs);
    }
}
