//! Finds a job that cannot end: a rank leaves it, others wait in something else, and nothing is
//! under way.
//!
//! A rank that finalizes waits in a barrier of its own kind, and answers messages there. A rank
//! that waits meanwhile in another collective call, or for a message, may still be satisfied by a
//! third one. So no rank is blamed before all ranks have been seen blocked, with nothing in flight
//! ([ADR 0035](../../docs/adr/0035-a-rank-that-leaves.md)).
//!
//! A rank that has waited for [`SUSPECT`] to leave asks the others in two *rounds*, each a
//! dissemination of short messages. A rank enters a round when it is blocked: it waits for
//! something that only other ranks can bring, its last poll found nothing, and all that it sent has
//! been handled. A rank that computes does not enter, so the round waits for it, and no rank is
//! sent more. A rank completes the first round when all ranks have entered it, and only then enters
//! the second.
//!
//! ```text
//!  rank 0  --- blocked ---E1--------------E2---      E1, E2: enters the first, the second round
//!  rank 1  ------ blocked ----E1-----E2--------
//!  rank 2  -- blocked ---E1-------------E2-----
//!                              ^ between the last E1 and the first E2 all are blocked at one time
//! ```
//!
//! If each rank finds at E2 that it has handled nothing since E1 but messages of the rounds, and
//! has been in one wait, then at that time all ranks were blocked and nothing was in flight: none
//! of them goes on, ever.

use super::background::{Background, kind};
use super::core::Engine;
use super::limits::internal;
use super::thread::ThreadCtx;
use super::tree::ROUNDS;
use super::waiting::is_for_room;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Conduit, SendError, ThreadMode};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// How long a rank waits to leave before it asks: longer than collective operations take to find a
/// mismatch, which they report with both calls.
const SUSPECT: Duration = Duration::from_millis(350);

/// Between two pairs of rounds, at first and at the longest.
///
/// It doubles.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest sleep of a rank that has been asked and was not blocked when it looked.
const RETRY: Duration = Duration::from_millis(20);

/// How a rank leaves its job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Leaving {
    /// Its world was dropped, be it at the end of the program or by an error.
    Dropped = 1,
    /// It called the function that finalizes, or its program has returned.
    Finalized = 2,
}

impl Leaving {
    fn from_code(code: u32) -> Option<Self> {
        [Self::Dropped, Self::Finalized]
            .into_iter()
            .find(|how| *how as u32 == code)
    }
}

/// The findings of some ranks when they entered a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Findings {
    /// Whether each of them has done nothing since it entered the first round.
    unchanged: bool,
    /// One of those that leave: one whose world was dropped before others, then the lowest.
    leaves: Option<(Leaving, JobRank)>,
    /// The lowest of those that wait for something else.
    waits: Option<(JobRank, Waiting)>,
}

impl Findings {
    const ARGS: usize = 4;
    const NONE: u32 = u32::MAX;

    fn merge(&mut self, other: Self) {
        fn lower<T>(a: Option<T>, b: Option<T>, is_lower: impl Fn(&T, &T) -> bool) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if is_lower(&b, &a) { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        self.unchanged &= other.unchanged;
        self.leaves = lower(self.leaves, other.leaves, |a, b| {
            (a.0, a.1.0) < (b.0, b.1.0)
        });
        self.waits = lower(self.waits, other.waits, |a, b| a.0.0 < b.0.0);
    }

    /// Kind of leaving, kind of wait and the flag in one word; the rank that leaves; the rank that
    /// waits; the rank that it waits for, plus 1.
    fn to_args(self) -> [u32; Self::ARGS] {
        let leaving = self.leaves.map_or(0, |(how, _)| how as u32);
        let what = self.waits.map_or(0, |(_, w)| u32::from(u8::from(w.what)));
        let peer = self.waits.and_then(|(_, waiting)| waiting.peer);
        [
            what << 16 | leaving << 8 | u32::from(self.unchanged),
            self.leaves.map_or(Self::NONE, |(_, rank)| rank.0),
            self.waits.map_or(Self::NONE, |(rank, _)| rank.0),
            peer.map_or(0, |peer| peer.0 + 1),
        ]
    }

    /// `None` if a code has no meaning.
    ///
    /// Ranks are only printed and compared.
    fn from_args(args: [u32; Self::ARGS]) -> Option<Self> {
        let [word, leaves, waits, peer] = args;
        let leaves = match leaves {
            Self::NONE => None,
            leaves => Some((Leaving::from_code(word >> 8 & 0xff)?, JobRank(leaves))),
        };
        let waits = match waits {
            Self::NONE => None,
            waits => {
                let what = WaitFor::try_from((word >> 16) as u8).ok()?;
                let peer = peer.checked_sub(1).map(JobRank);
                Some((JobRank(waits), Waiting { what, peer }))
            }
        };
        Some(Self {
            unchanged: word & 1 != 0,
            leaves,
            waits,
        })
    }
}

/// A round that this rank has entered.
#[derive(Clone, Copy)]
struct Round {
    findings: Findings,
    /// The step of the dissemination.
    step: usize,
    /// Whether the step's message has been sent.
    is_sent: bool,
}

#[derive(Default)]
struct State {
    /// Rounds that this rank has completed.
    ///
    /// Even numbers are first rounds, odd ones second rounds.
    completed: u32,
    /// The round that this rank has entered, if it is in one.
    entered: Option<Round>,
    /// Whether a thread is sending the message of a step, without the lock.
    is_sending: bool,
    /// Messages that have come, by the round's parity and by step.
    ///
    /// A rank is at most one round ahead of another.
    arrived: [[Option<Findings>; ROUNDS]; 2],
    /// The activity when this rank entered the first round of the pair.
    seen: u64,
    /// When this rank asks, if it leaves, and how long it waits after that.
    ask_at: Duration,
    pause: Duration,
    /// All ranks leave: no rank has to ask any more.
    is_over: bool,
}

impl State {
    /// Whether the next round is the second of its pair, which all ranks enter without being asked.
    fn is_second(&self) -> bool {
        self.completed % 2 == 1
    }

    fn is_asked(&self) -> bool {
        let arrived = &self.arrived[self.completed as usize & 1];
        self.is_second() || arrived.iter().any(Option::is_some)
    }

    /// Records the findings of a message.
    fn arrive(&mut self, round: u32, step: u32, findings: Findings) {
        if round.wrapping_sub(self.completed) <= 1 && (step as usize) < ROUNDS {
            self.arrived[round as usize & 1][step as usize] = Some(findings);
        }
    }

    /// Completes the round; returns the findings of all ranks if it is a second one.
    fn complete(&mut self, findings: Findings, now: Duration) -> Option<Findings> {
        let is_second = self.is_second();
        self.arrived[self.completed as usize & 1] = [None; ROUNDS];
        self.completed = self.completed.wrapping_add(1);
        self.entered = None;
        if !is_second {
            return None;
        }
        self.ask_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Some(findings)
    }
}

/// State of the rounds at a rank.
#[derive(Default)]
pub(super) struct Quiescence {
    state: Mutex<State>,
    /// How this rank leaves; 0 if it does not.
    ///
    /// Written by the thread that leaves, read by it when it waits.
    leaving: AtomicU8,
    /// Messages that polls have taken, steps in the background, waits that have ended, and
    /// conditions and futures of the client that have communicated, as far as they were counted:
    /// while [`kind::QUIESCENCE`] is pending.
    ///
    /// Relaxed, as `heard`: only changes by one thread between two looks of its own matter.
    done: AtomicU64,
    /// Messages of rounds among them.
    ///
    /// Counted by the handler.
    heard: AtomicU64,
    /// Whether a message could not be sent.
    pub(super) stuck: AtomicBool,
    /// How often code outside of the library woke futures that this rank waits for.
    wakes: Arc<Wakes>,
}

/// Wakes of the futures of a rank, as the waker counts them that they get.
#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn register(
    background: &Arc<Background>,
    handlers: &mut HandlerTable,
) -> Result<(), AmError> {
    let this = Arc::clone(background);
    let run = move |delivery: &mut Delivery<'_>| {
        let quiescence = &this.quiescence;
        quiescence.heard.fetch_add(1, Ordering::Relaxed);
        let args = [2, 3, 4, 5].map(|i| delivery.arg(i));
        let Some(findings) = Findings::from_args(args) else {
            return;
        };
        let mut state = quiescence.state.lock();
        if !state.is_over {
            state.arrive(delivery.arg(0), delivery.arg(1), findings);
            this.begin(kind::QUIESCENCE);
        }
    };
    handlers.register_internal(internal::QUIESCENCE, "argonet::quiescence", Box::new(run))
}

impl Quiescence {
    fn leaving(&self) -> Option<Leaving> {
        Leaving::from_code(self.leaving.load(Ordering::Relaxed).into())
    }

    /// So much has been done that is not of the rounds, or messages of the rounds have been taken.
    pub(super) fn did(&self, count: usize) {
        self.done.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Another number after this rank has done anything that is not of the rounds.
    ///
    /// So much was for the conduit itself.
    fn activity(&self, kept: u64) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        let heard = self.heard.load(Ordering::Relaxed);
        let woken = self.wakes.0.load(Ordering::Relaxed);
        done.wrapping_add(woken)
            .wrapping_sub(heard)
            .wrapping_sub(kept)
    }
}

/// Whether client code decides when the wait is over, which may depend on other threads of the
/// process.
pub(super) fn is_of_the_client(what: WaitFor) -> bool {
    matches!(
        what,
        WaitFor::Condition | WaitFor::Future | WaitFor::Arrival | WaitFor::Signal
    )
}

impl<C: Conduit> Engine<C> {
    /// For futures that this rank waits for: a wake may end the wait, so the job goes on as long as
    /// they are woken.
    ///
    /// The library's own operations need not wake it, as the waiting thread polls them.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.background.quiescence.wakes))
    }

    /// How often wakers that [`waker`](Self::waker) gave were woken.
    #[must_use]
    pub fn wakes(&self) -> u64 {
        self.background.quiescence.wakes.0.load(Ordering::Relaxed)
    }

    /// Calls a condition or a future of the client, which may put or send where no poll sees it:
    /// that is activity of this rank, too.
    #[inline]
    pub fn decide<R>(&self, ctx: &ThreadCtx, decide: impl FnOnce() -> R) -> R {
        match self.background.pending() & kind::QUIESCENCE {
            0 => decide(),
            _ => self.decide_counted(ctx, decide),
        }
    }

    #[cold]
    #[inline(never)]
    fn decide_counted<R>(&self, ctx: &ThreadCtx, decide: impl FnOnce() -> R) -> R {
        let deciding = ctx.deciding();
        let result = decide();
        if deciding.has_acted() {
            self.background.quiescence.did(1);
        }
        result
    }

    /// This rank leaves the job.
    ///
    /// Its next call is [`drain`](Self::drain) with [`BarrierKind::Finalize`](super::BarrierKind).
    pub fn begin_to_leave(&self, how: Leaving) {
        let quiescence = &self.background.quiescence;
        let mut state = quiescence.state.lock();
        state.ask_at = self.now() + SUSPECT;
        state.pause = PAUSE;
        quiescence.leaving.store(how as u8, Ordering::Relaxed);
    }

    /// All ranks have begun to leave.
    pub(super) fn all_leave(&self) {
        let quiescence = &self.background.quiescence;
        let mut state = quiescence.state.lock();
        quiescence.leaving.store(0, Ordering::Relaxed);
        state.is_over = true;
        state.entered = None;
        self.background.end(kind::QUIESCENCE);
    }

    /// Whether a wait that lasts has to [`look_for_quiescence`](Self::look_for_quiescence).
    #[inline]
    pub(super) fn seeks_quiescence(&self) -> bool {
        let quiescence = &self.background.quiescence;
        let is_sought = self.background.pending() & kind::QUIESCENCE != 0;
        (is_sought || quiescence.leaving().is_some()) && !self.losses.any()
    }

    /// Called by a thread that waits, whose last poll found nothing, and whose condition did not
    /// hold before that poll.
    ///
    /// Enters the next round if there is one and this rank is blocked. Returns the longest time
    /// until the thread is to call this again.
    #[cold]
    pub(super) fn look_for_quiescence(
        &self,
        what: Waiting,
        has_deadline: bool,
    ) -> Option<Duration> {
        let quiescence = &self.background.quiescence;
        let leaving = quiescence.leaving();
        {
            let state = quiescence.state.lock();
            if state.is_over || state.entered.is_some() {
                return None;
            }
            if !state.is_asked() {
                leaving?;
                let now = self.now();
                if now < state.ask_at {
                    return Some(state.ask_at - now);
                }
            }
        }
        if has_deadline || !self.is_blocked(what, leaving.is_some()) {
            return Some(RETRY);
        }
        {
            let mut state = quiescence.state.lock();
            if state.is_over || state.entered.is_some() {
                return None;
            }
            let activity = quiescence.activity(self.conduit.kept_from_sinks());
            let unchanged = state.is_second() && state.seen == activity;
            state.seen = activity;
            let findings = Findings {
                unchanged,
                leaves: leaving.map(|how| (how, self.rank)),
                waits: leaving.is_none().then_some((self.rank, what)),
            };
            state.entered = Some(Round {
                findings,
                step: 0,
                is_sent: false,
            });
            self.background.begin(kind::QUIESCENCE);
        }
        self.advance_quiescence();
        // The last rank to enter a round completes it here.
        let is_in_one = quiescence.state.lock().entered.is_some();
        (!is_in_one).then_some(RETRY)
    }

    /// Whether only other ranks can end the wait of the calling thread, and no thread of this rank
    /// can do anything for them.
    ///
    /// Threads of a rank that leaves have no world any more.
    fn is_blocked(&self, what: Waiting, leaves: bool) -> bool {
        let by_others = !is_for_room(what);
        let may_have_threads = self.mode == ThreadMode::Par && !leaves;
        let threads_count = may_have_threads || is_of_the_client(what.what);
        by_others
            && self.background.pending() & kind::DEFERRED == 0
            && !self.server.owes(self.epochs())
            && self.nothing_is_left()
            && !(threads_count && self.boot.other_threads_may_act())
    }

    /// Goes on with the round that this rank has entered, without waiting; messages sent.
    pub(super) fn advance_quiescence(&self) -> usize {
        let quiescence = &self.background.quiescence;
        let mut sent = 0;
        let mut is_stuck = false;
        let mut state = quiescence.state.lock();
        while let (Some(mut round), false) = (state.entered, state.is_sending) {
            if round.step == self.rounds() {
                let all = state.complete(round.findings, self.now());
                if let Some(findings) = all {
                    if !state.is_asked() {
                        self.background.end(kind::QUIESCENCE);
                    }
                    drop(state);
                    self.judge(findings);
                    return sent;
                }
                break;
            }
            if !round.is_sent {
                let (number, to) = (state.completed, self.target_in(round.step));
                // The conduit may run into a thread that holds a lock of its own and runs the
                // handler.
                state.is_sending = true;
                drop(state);
                let has_left = self.send_findings(to, number, round);
                state = quiescence.state.lock();
                state.is_sending = false;
                if !has_left {
                    is_stuck = true;
                    break;
                }
                sent += 1;
                round.is_sent = true;
                // All ranks may have left meanwhile.
                state.entered = state.entered.map(|_| round);
                continue;
            }
            let parity = state.completed as usize & 1;
            let Some(findings) = state.arrived[parity][round.step] else {
                break;
            };
            round.findings.merge(findings);
            round.step += 1;
            round.is_sent = false;
            state.entered = Some(round);
        }
        quiescence.stuck.store(is_stuck, Ordering::Relaxed);
        sent
    }

    /// Sends the findings of this rank in a step; false if there is no room.
    fn send_findings(&self, to: JobRank, number: u32, round: Round) -> bool {
        let mut args = [number, round.step as u32, 0, 0, 0, 0];
        args[2..].copy_from_slice(&round.findings.to_args());
        let message = Message {
            handler: internal::QUIESCENCE,
            args: &args,
            payload: Payload::None,
        };
        match self.conduit.request(to, &message) {
            Ok(()) => true,
            // Nothing is found any more in a job that has lost a rank.
            Err(SendError::Message(error)) if self.lost_by(&error).is_some() => false,
            Err(SendError::Message(error)) => self.fatal_am(error),
            Err(_) => false,
        }
    }

    /// Ends the job if no rank can go on.
    ///
    /// Only the rank that leaves reports it.
    fn judge(&self, findings: Findings) {
        let Findings {
            unchanged: true,
            leaves: Some((how, rank)),
            waits: Some((other, waiting)),
        } = findings
        else {
            return;
        };
        if rank != self.rank {
            return;
        }
        let (what, hint) = match how {
            Leaving::Dropped => (
                "its world was dropped",
                "if an error made the program drop it, start the program with `argonet::run`, which prints the error; else the ranks' \
                 collective calls differ",
            ),
            Leaving::Finalized => (
                "it has finalized",
                "all ranks must make the same collective calls, and no rank may wait for a message that is not sent",
            ),
        };
        self.boot.abort(
            1,
            &format!(
                "{what}, but rank {other} waits {waiting}; no rank can go on, since all wait and nothing is under way: {hint}"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(unchanged: bool, leaves: Option<u32>, waits: Option<u32>) -> Findings {
        let waiting = Waiting::on(WaitFor::Collective, JobRank(6));
        Findings {
            unchanged,
            leaves: leaves.map(|rank| (Leaving::Finalized, JobRank(rank))),
            waits: waits.map(|rank| (JobRank(rank), waiting)),
        }
    }

    #[test]
    fn findings_survive_the_wire_and_forged_ones_are_refused() {
        let dropped = Findings {
            leaves: Some((Leaving::Dropped, JobRank(0))),
            waits: Some((JobRank(1), Waiting::new(WaitFor::Condition))),
            unchanged: false,
        };
        for found in [
            dropped,
            findings(true, Some(6), None),
            findings(false, None, Some(2)),
        ] {
            assert_eq!(Findings::from_args(found.to_args()), Some(found));
        }
        let good = findings(true, Some(3), Some(4)).to_args();
        for word in [1, 0x00ff_0201, 0x0006_0301] {
            let mut forged = good;
            forged[0] = word;
            assert_eq!(Findings::from_args(forged), None, "{word:x}");
        }
    }

    #[test]
    fn merging_names_the_lowest_and_a_dropped_world_first() {
        let mut all = findings(true, Some(5), None);
        all.merge(findings(true, None, Some(4)));
        all.merge(findings(true, Some(3), Some(6)));
        assert_eq!(all, findings(true, Some(3), Some(4)));
        all.merge(findings(false, None, None));
        assert!(!all.unchanged);
        let dropped = Some((Leaving::Dropped, JobRank(6)));
        all.merge(Findings {
            leaves: dropped,
            ..findings(true, None, Some(2))
        });
        assert_eq!(
            (all.leaves, all.waits.map(|w| w.0)),
            (dropped, Some(JobRank(2)))
        );
    }

    #[test]
    fn a_pair_of_rounds_is_asked_for_once_and_messages_of_other_rounds_are_dropped() {
        let mut state = State::default();
        assert!(!state.is_asked());
        let found = findings(true, Some(0), None);
        state.arrive(2, 0, found);
        state.arrive(u32::MAX, 0, found);
        state.arrive(0, ROUNDS as u32, found);
        state.arrive(1, 0, found);
        assert!(!state.is_asked(), "the second round waits for the first");
        state.arrive(0, 1, found);
        assert!(state.is_asked() && !state.is_second());
        assert_eq!(state.complete(found, Duration::ZERO), None);
        assert!(state.is_asked() && state.is_second());
        assert_eq!(state.complete(found, Duration::ZERO), Some(found));
        assert!(!state.is_asked() && !state.is_second());
    }
}
