//! Ranks that the job loses and goes on without, where its user and its client want that.
//!
//! A rank is declared lost when its process has ended, or when its host does not answer any more,
//! in an order that is the same everywhere ([`argonet_boot::Losses`]). A poll that finds nothing
//! notices, and gives the rank up:
//!
//! 1. The conduit ends all that is under way with it. So do the operations that go by messages of
//!    the engine's own. Their events are complete, and the calls that wait for them return
//!    [`AmError::PeerLost`].
//! 2. Collective calls of its teams are given up at every survivor. Those teams stay broken:
//!    a later call of such a team fails at once, or when it would wait for the lost rank. A call
//!    can be complete at one survivor and fail at another.
//! 3. Its memory is mapped no more for operations that begin.
//! 4. The client's handler for lost ranks runs.
//!
//! Then the rank *acknowledges* the loss. It holds no slice of its segment at that time, as it
//! polls. So a survivor that has left a quiet phase by an error waits until all have acknowledged
//! ([`Engine::leave_phase`]), before it can write to memory of which another may hold a slice.
//!
//! [`Engine::survivors`] makes a team of all others. Its members are no matter of messages: all
//! survivors take part in an agreement, which is decided once
//! ([`agree`](argonet_boot::Bootstrap::agree)).

use super::client::ClientCode;
use super::core::{Engine, Injection};
use super::events::OpError;
use super::thread::ThreadCtx;
use super::{Members, Team, TeamKey};
use argonet_am::{AmError, Delivery};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Losses, WaitFor, Waiting};
use argonet_conduit::{Completion, Conduit, OpToken, Sink};
use argonet_event::Event;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// The client's handler for lost ranks.
pub type OnLoss = Box<dyn Fn(JobRank) + Send + Sync>;

/// How long a survivor that leaves the job waits at most until others have handled what it sent:
/// one of them may have left before the loss.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Polls in which something is taken before a loss is looked at although more may come.
const PATIENCE: u32 = 64;

/// Numbers above any count of losses, acknowledged by a survivor that leaves the job.
///
/// The first when it begins to leave, the second when it has seen the first of all survivors.
const LEAVING: [u32; 2] = [u32::MAX - 2, u32::MAX - 1];

/// No rank has this number: the keys of teams of survivors are no rank's.
const NO_LEADER: JobRank = JobRank(u32::MAX);

/// The losses that this rank knows of.
pub(super) struct LossWatch {
    /// Whether the job goes on without ranks that it loses.
    goes_on: bool,
    /// Those that are declared.
    declared: Losses,
    /// Number of ranks that this rank has given up, the one that it is giving up included.
    ///
    /// Stored under `turn` (Release), after the rank was pushed to `lost`.
    seen: AtomicU32,
    /// The ranks that this rank has given up, in the order of their losses.
    lost: Mutex<Vec<JobRank>>,
    /// Held by the thread that gives ranks up.
    turn: Mutex<()>,
    on_loss: OnceLock<OnLoss>,
    /// Explicit operations that ended by a loss and have not been waited for, and the lost peer.
    failed: Mutex<Vec<(u64, JobRank)>>,
    /// How many those are.
    ///
    /// Changed under the lock, before the event is complete (Release); a thread that finds the
    /// event complete sees that (Acquire).
    failures: AtomicU32,
    /// Polls that have taken something since a loss was declared.
    postponed: AtomicU32,
    /// The last round of an agreement that this rank has entered; one thread at a time.
    round: Mutex<u32>,
}

impl LossWatch {
    pub(super) fn new(boot: &dyn Bootstrap) -> Self {
        Self {
            goes_on: boot.goes_on(),
            declared: boot.losses(),
            seen: AtomicU32::new(0),
            lost: Mutex::default(),
            turn: Mutex::default(),
            on_loss: OnceLock::new(),
            failed: Mutex::default(),
            failures: AtomicU32::new(0),
            postponed: AtomicU32::new(0),
            round: Mutex::default(),
        }
    }

    /// Whether a loss is declared that this rank does not know of.
    #[inline(always)]
    pub(super) fn has_new(&self) -> bool {
        self.goes_on && self.declared.count() != self.seen.load(Ordering::Relaxed)
    }

    /// Whether this rank knows of any.
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.seen.load(Ordering::Acquire) != 0
    }

    /// All ranks that are declared lost.
    fn declared(&self) -> impl Iterator<Item = JobRank> {
        (0..self.declared.count()).filter_map(|n| self.declared.get(n))
    }

    /// The first lost rank among some.
    #[cold]
    fn first_of(&self, is_member: impl Fn(JobRank) -> bool) -> Option<JobRank> {
        let lost = self.lost.lock();
        lost.iter().copied().find(|rank| is_member(*rank))
    }

    /// Whether a loss that is declared is looked at now: what has come of the lost rank before is
    /// taken first, but for a bounded time.
    pub(super) fn is_time(&self, taken: usize) -> bool {
        self.has_new() && (taken == 0 || self.postponed.fetch_add(1, Ordering::Relaxed) >= PATIENCE)
    }

    /// Records, once, that an operation ends by a loss.
    fn fail(&self, handle: u64, peer: JobRank) {
        let mut failed = self.failed.lock();
        if !failed.iter().any(|(its, _)| *its == handle) {
            failed.push((handle, peer));
            self.failures.fetch_add(1, Ordering::Release);
        }
    }

    /// The loss by which an operation ended, once.
    #[cold]
    fn take_failure(&self, handle: u64) -> Option<JobRank> {
        let mut failed = self.failed.lock();
        let at = failed.iter().position(|(its, _)| *its == handle)?;
        self.failures.fetch_sub(1, Ordering::Relaxed);
        Some(failed.swap_remove(at).1)
    }
}

/// Takes completions of operations that end because their peer is lost.
struct Ending<'e, C> {
    engine: &'e Engine<C>,
    peer: JobRank,
}

impl<C: Conduit> Sink for Ending<'_, C> {
    fn deliver(&mut self, _delivery: &mut Delivery<'_>) {
        unreachable!("a conduit that gives a peer up delivers nothing");
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.completed_all(op, completion, 1);
    }

    fn completed_all(&mut self, op: OpToken, completion: Completion, count: u32) {
        self.engine.end_by_loss(self.peer, op, completion, count);
    }

    fn on_error(&mut self, error: AmError) {
        self.engine.fatal_am(error);
    }
}

impl<C: Conduit> Engine<C> {
    /// Has the job go on without ranks that it loses, if its user wants that, and calls `act` with
    /// each of them.
    ///
    /// `act` runs in a poll, as a handler does: it cannot communicate, and its panic ends the job.
    /// Only the first call counts. Call it before the rank has started.
    ///
    /// # Errors
    /// Why the job cannot go on without a rank: the conduit's name.
    pub fn on_loss(&self, act: OnLoss) -> Result<(), &'static str> {
        let is_first = self.losses.on_loss.set(act).is_ok();
        if is_first && self.losses.goes_on {
            if !self.conduit.outlives_peers() {
                return Err(self.conduit.name());
            }
            self.boot.accept_losses();
        }
        Ok(())
    }

    /// The ranks that this one knows to be lost, in the order of their losses, the same at all.
    #[must_use]
    pub fn lost_ranks(&self) -> Vec<JobRank> {
        self.losses.lost.lock().clone()
    }

    /// All ranks that are declared lost, known to this one or not, in the order of their losses.
    ///
    /// An operation that a loss has ended is complete only when that loss is among them.
    #[must_use]
    pub fn declared_lost(&self) -> Vec<JobRank> {
        self.losses.declared().collect()
    }

    /// Refuses what needs a rank that is lost, of those that `is_member` names.
    #[inline(always)]
    pub(super) fn unless_lost(&self, is_member: impl Fn(JobRank) -> bool) -> Result<(), AmError> {
        match self.losses.any() {
            false => Ok(()),
            true => self.refuse_lost(is_member),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_lost(&self, is_member: impl Fn(JobRank) -> bool) -> Result<(), AmError> {
        let lost = self.losses.first_of(is_member);
        lost.map_or(Ok(()), |peer| Err(self.peer_lost(peer)))
    }

    /// Refuses what needs all ranks, once one is lost.
    ///
    /// # Errors
    /// [`AmError::PeerLost`].
    #[inline(always)]
    pub fn unless_any_lost(&self) -> Result<(), AmError> {
        self.unless_lost(|_| true)
    }

    /// Refuses a call of a team that has lost a member.
    #[inline(always)]
    pub(super) fn unless_broken(&self, team: &Team) -> Result<(), AmError> {
        self.unless_member_lost(&team.members)
    }

    /// Refuses what needs these ranks, once one of them is lost.
    ///
    /// # Errors
    /// [`AmError::PeerLost`].
    #[inline(always)]
    pub fn unless_member_lost(&self, members: &Members) -> Result<(), AmError> {
        self.unless_lost(|rank| members.rank_of(rank).is_some())
    }

    /// Whether a member of a team is declared lost, known to this rank or not.
    ///
    /// A survivor that knew of it has given its calls up before, and bytes that this rank has read
    /// there may be of later.
    pub(super) fn has_broken(&self, team: &Team) -> bool {
        if !self.losses.goes_on {
            return false;
        }
        // The bytes were read before the losses are.
        fence(Ordering::Acquire);
        self.lost_member(team).is_some()
    }

    /// The first member of a team that is declared lost.
    fn lost_member(&self, team: &Team) -> Option<JobRank> {
        let mut lost = self.losses.declared();
        lost.find(|rank| team.members.rank_of(*rank).is_some())
    }

    fn peer_lost(&self, peer: JobRank) -> AmError {
        AmError::PeerLost {
            at: self.rank,
            peer,
        }
    }

    /// Whether an operation that is complete has ended by a loss.
    #[inline(always)]
    pub(super) fn unless_failed(&self, handle: u64) -> Result<(), OpError> {
        match self.losses.failures.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => self.take_failure(handle),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_failure(&self, handle: u64) -> Result<(), OpError> {
        match self.losses.take_failure(handle) {
            None => Ok(()),
            Some(peer) => Err(self.peer_lost(peer).into()),
        }
    }

    /// Copies of events, to find later which of them a loss has ended; none where that cannot be.
    pub(super) fn before_losses(&self, events: &[Event]) -> Vec<Event> {
        match self.losses.goes_on {
            true => events.to_vec(),
            false => Vec::new(),
        }
    }

    /// The outcome of a call that has made some of these events [`Event::DONE`].
    pub(super) fn unless_any_failed(&self, before: &[Event], now: &[Event]) -> Result<(), OpError> {
        let mut outcome = Ok(());
        for (before, now) in before.iter().zip(now) {
            if now.is_done() && !before.is_done() {
                let failed = self.unless_failed(before.raw());
                outcome = outcome.and(failed);
            }
        }
        outcome
    }

    /// Completes an operation that a loss has ended.
    pub(super) fn end_by_loss(
        &self,
        peer: JobRank,
        op: OpToken,
        completion: Completion,
        count: u32,
    ) {
        if !op.implicit {
            self.losses.fail(op.handle, peer);
        }
        self.complete(op, completion, count);
    }

    /// The peer of an error of the conduit that is lost, or will be; `None` if the job has to end.
    ///
    /// A peer that no network reaches is killed, or this rank is, and then declared lost.
    #[cold]
    #[inline(never)]
    pub(super) fn lost_by(&self, error: &AmError) -> Option<JobRank> {
        let peer = match *error {
            AmError::PeerLost { peer, .. } => return Some(peer),
            AmError::PeerDead { peer, .. } | AmError::Unreachable { peer, .. } => peer,
            _ => return None,
        };
        let goes_on = self.losses.goes_on && self.losses.on_loss.get().is_some();
        let is_lost = || self.losses.declared.is_lost(peer) || self.boot.unreachable(peer);
        (goes_on && is_lost()).then_some(peer)
    }

    /// The error of a call that needs a peer: where that is out of reach and will be lost, once it
    /// is.
    #[cold]
    pub(super) fn once_lost(&self, ctx: &ThreadCtx, error: AmError) -> AmError {
        let (AmError::PeerDead { .. } | AmError::Unreachable { .. }) = error else {
            return error;
        };
        let Some(peer) = self.lost_by(&error) else {
            return error;
        };
        let is_known = || self.unless_lost(|lost| lost == peer).err();
        // The job's judge ends this wait, not the peer.
        let waiting = Waiting::on(WaitFor::Room, peer);
        let waited = self.wait_for_survivors(ctx, waiting, is_known);
        waited.unwrap_or(error)
    }

    /// The error of a message or transfer that the conduit has refused.
    ///
    /// Where its peer is out of reach and will be lost: that it is, once it is; that there is no
    /// room now, if the caller does not wait.
    #[cold]
    pub(super) fn refusal(&self, ctx: &ThreadCtx, error: AmError, injection: Injection) -> AmError {
        match (injection, &error) {
            (Injection::Blocking, _) => self.once_lost(ctx, error),
            (
                Injection::Immediate,
                &(AmError::PeerDead { peer: to, .. } | AmError::Unreachable { peer: to, .. }),
            ) if self.lost_by(&error).is_some() => AmError::Full {
                from: self.rank,
                to,
            },
            (Injection::Immediate, _) => error,
        }
    }

    /// Gives up the ranks that have been declared lost; how many.
    #[cold]
    #[inline(never)]
    pub(super) fn take_losses(&self, ctx: &ThreadCtx) -> usize {
        let losses = &self.losses;
        let Some(_turn) = losses.turn.try_lock() else {
            return 0;
        };
        let mut taken = 0;
        loop {
            let known = losses.seen.load(Ordering::Relaxed);
            let Some(rank) = losses.declared.get(known) else {
                break;
            };
            let Some(act) = losses.on_loss.get() else {
                self.fatal(&format!(
                    "rank {rank} is lost, and this program does not go on without it"
                ));
            };
            losses.lost.lock().push(rank);
            losses.seen.store(known + 1, Ordering::Release);
            self.give_up(rank);
            self.call_client(ctx, ClientCode::Handlers, || act(rank));
            self.boot.acknowledge_losses(known + 1);
            taken += 1;
        }
        losses.postponed.store(0, Ordering::Relaxed);
        if taken > 0 {
            // Threads that wait for what has ended now look again.
            self.background.stepped();
            self.conduit.wake();
        }
        taken
    }

    fn give_up(&self, rank: JobRank) {
        let mut ending = Ending {
            engine: self,
            peer: rank,
        };
        if !self.conduit.lose(rank, &mut ending) {
            let name = self.conduit.name();
            self.fatal(&format!(
                "rank {rank} is lost, and the {name} conduit does not go on without it"
            ));
        }
        for token in self.bound.flights.lose(rank) {
            self.end_by_loss(rank, token, Completion::Remote, 1);
        }
        self.bound_forget_rank(rank);
        self.forget_outgoing_to(rank);
        for token in self.take_notices_to(rank) {
            self.end_by_loss(rank, token, Completion::Remote, 1);
        }
        self.directory.give_up(rank);
        self.give_up_named();
        // Polls give up the calls of its teams that were started.
        self.background.collectives.lose(rank);
    }

    /// Records that a started collective call has ended by the loss of a member.
    pub(super) fn collective_failed(&self, team: &Team, handle: u64) {
        if let Some(peer) = self.lost_member(team) {
            self.losses.fail(handle, peer);
        }
    }

    /// After an error of a barrier of a quiet phase: waits until no survivor holds a slice of its
    /// segment that it got in the same phase.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn leave_phase(&self, ctx: &ThreadCtx) -> Result<(), AmError> {
        let count = self.losses.seen.load(Ordering::Acquire);
        self.wait_for_survivors(ctx, Waiting::new(WaitFor::Quiet), || {
            // The acknowledgements first: they leave a rank of a lost host out, which may live and
            // hold slices, only after its loss was declared here.
            let may = self.boot.have_acknowledged(count) && !self.losses.has_new();
            may.then_some(())
        })
    }

    /// Waits for something that survivors do without sending this rank anything.
    fn wait_for_survivors<R>(
        &self,
        ctx: &ThreadCtx,
        what: Waiting,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<R, AmError> {
        ctx.permit("waiting", self.rank)?;
        let mut wait = self.waiting_unannounced(what);
        loop {
            if let Some(result) = look() {
                return Ok(result);
            }
            wait.pause(ctx);
        }
    }

    /// Agrees with all survivors on how many ranks are lost; the round, and that.
    fn agree_on_losses(&self, ctx: &ThreadCtx) -> Result<(u32, u32), AmError> {
        ctx.permit_collective("an agreement of survivors", self.rank)?;
        let mut round = self.losses.round.lock();
        *round += 1;
        let what = || Waiting::new(WaitFor::Collective);
        let count = self.wait_for_survivors(ctx, what(), || {
            // Read before the result: a rank leaves only after it has the result.
            let leaving = self.boot.acknowledged_by(LEAVING[0]);
            let result = self.boot.agree(*round);
            if let Some(rank) = leaving.filter(|_| result.is_none()) {
                self.fatal(&format!(
                    "rank {rank} leaves the job, and this rank asks who is left; all survivors ask as often, and leave together"
                ));
            }
            result
        })?;
        self.wait_for_survivors(ctx, what(), || {
            (self.losses.seen.load(Ordering::Acquire) >= count).then_some(())
        })?;
        Ok((*round, count))
    }

    /// Makes the team of the ranks that are not lost, in their order; the same at all of them.
    ///
    /// Collective over the survivors; polls. Without a loss it has all ranks. A member that is lost
    /// meanwhile breaks the team, and the survivors make another. A survivor that leaves the job
    /// meanwhile ends it.
    ///
    /// # Errors
    /// [`AmError::Restricted`] inside a handler.
    pub fn survivors(&self, ctx: &ThreadCtx) -> Result<Arc<Team>, AmError> {
        let (round, count) = self.agree_on_losses(ctx)?;
        let lost: Vec<JobRank> = self.losses.lost.lock()[..count as usize].to_vec();
        let survivors = (0..self.size).map(JobRank);
        let survivors = survivors.filter(|rank| !lost.contains(rank));
        let list: Vec<_> = survivors.map(|rank| (rank, 0)).collect();
        let own = list.iter().position(|(rank, _)| *rank == self.rank);
        let (Some(members), Some(own)) = (Members::new(&list), own) else {
            // The job has declared this rank lost, which it kills.
            self.fatal("this rank is lost for the others");
        };
        let key = TeamKey::led_by(NO_LEADER, round);
        Ok(self.open_team(key, Arc::new(members), own as u32))
    }

    /// The end of a drain to leave the job in which a rank was lost.
    pub(super) fn leave_as_survivor(&self, ctx: &ThreadCtx) -> Result<(), AmError> {
        for step in LEAVING {
            self.boot.acknowledge_losses(step);
            self.wait_for_survivors(ctx, Waiting::new(WaitFor::Finalize), || {
                self.boot.have_acknowledged(step).then_some(())
            })?;
            if step == LEAVING[0] {
                let end = (self.clock)() + LAST_MESSAGES;
                let what = Waiting::new(WaitFor::Finalize);
                self.wait_until_deadline(ctx, what, end, || self.nothing_is_left())?;
                // All survivors leave by now, so none waits for a result; after the next step some
                // are gone.
                self.close_deferred();
            }
        }
        Ok(())
    }
}
