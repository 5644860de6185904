//! Mismatches: ranks whose collective calls differ.
//!
//! Every cell, and every message of a tree or a schedule, carries the [`Label`] of its call, and
//! its reader compares. So no data comes out of a call that others do not make. Ranks that wait for
//! each other in calls that never exchange anything remain: a barrier and a reduction, trees of
//! different roots, calls of two teams. They find that out as follows, and only calls that last pay
//! for it:
//!
//! ```text
//! rank 0, in call X for 200 ms                rank 1, in call Y for 200 ms
//!      | -- question: I am in X, and wait for you -> |
//!      |                                             | Y is X by its number, and its label differs: the job ends here
//!      | <- answer: I am in Y, and have not called X |   X is not called here, and Y needs rank 0
//!   Y is not called, and X not complete: the job ends here
//! ```
//! Both wait for good: X needs rank 1, which calls nothing before Y is complete, and Y needs rank
//! 0. In PAR mode another thread might call. So a rank that has other threads compares calls of one
//! team alone, which all ranks call in the same order.

use super::background::Steps;
use super::collective::{History, Kind, Label, Signature};
use super::core::Engine;
use super::limits::internal;
use super::shared_memory::{CellPlace, WORLD_SLOT};
use super::team::TeamKey;
use super::tree::BarrierKind;
use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::JobRank;
use argonet_conduit::{Conduit, SharedCells, ThreadMode};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a rank waits in a collective call before it asks, and before it looks again at the
/// questions and answers of others.
///
/// So long a job may rest before a message shows that a rank has died.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// How long a rank leaves it to rank 0 to report a mismatch that both have found, in steps between
/// which it looks whether the job has ended; each further rank waits a step longer, up to so many.
///
/// Together 0.4 s at most, so that an error is on the screen within a second of the call.
const LEAVES_STEP: Duration = Duration::from_millis(5);
const LEAVES_STEPS: u32 = 20;
const MOST_APART: u32 = 60;

/// Steps for which a rank waits for the end of the job by a rank of its host that has claimed the
/// report: a second, in case that one does not get so far.
const CLAIMED_STEPS: u32 = 200;

/// Arguments that name a rank's call, and the call that an answer is about.
const CALL_ARGS: usize = 8;
const ABOUT_ARGS: usize = 5;

/// Calls that are numbered together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sequence {
    /// Barriers of all ranks, of each kind.
    Barriers(BarrierKind),
    /// Passes of all ranks.
    Passes,
    /// Calls of a team.
    Team(TeamKey),
}

impl Sequence {
    fn to_args(self) -> [u32; 3] {
        let (class, key) = match self {
            Self::Passes => (0, 0),
            Self::Team(key) => (1, key.0),
            Self::Barriers(kind) => (2 + kind as u32, 0),
        };
        [class, key as u32, (key >> 32) as u32]
    }

    fn from_args(args: [u32; 3]) -> Option<Self> {
        let [class, low, high] = args;
        Some(match class {
            0 => Self::Passes,
            1 => Self::Team(TeamKey(u64::from(low) | u64::from(high) << 32)),
            _ => Self::Barriers(*BarrierKind::ALL.get(class as usize - 2)?),
        })
    }
}

/// A call of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Called {
    pub(super) sequence: Sequence,
    pub(super) number: u64,
    pub(super) label: Label,
}

impl Called {
    /// A barrier of all ranks.
    pub(super) fn barrier(kind: BarrierKind, number: u64) -> Self {
        Self {
            sequence: Sequence::Barriers(kind),
            number,
            label: Label::new(Kind::Barrier, 0, 0, Signature::default()),
        }
    }

    /// A call of a team, before which it has made so many.
    pub(super) fn of_team(team: TeamKey, number: u64, label: Label) -> Self {
        Self {
            sequence: Sequence::Team(team),
            number,
            label,
        }
    }

    fn to_args(self) -> [u32; CALL_ARGS] {
        let [class, low, high] = self.sequence.to_args();
        let (number, word) = (self.number, self.label.to_word());
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let ([n0, n1], [w0, w1]) = (halves(number), halves(word));
        [class, low, high, n0, n1, w0, w1, self.label.root]
    }

    /// `None` for arguments that no rank sends.
    fn from_args(args: &[u32]) -> Option<Self> {
        let &[class, low, high, n0, n1, w0, w1, root] = args else {
            return None;
        };
        let whole = |low, high| u64::from(low) | u64::from(high) << 32;
        Some(Self {
            sequence: Sequence::from_args([class, low, high])?,
            number: whole(n0, n1),
            label: Label {
                root,
                ..Label::from_word(whole(w0, w1))?
            },
        })
    }

    /// Whether it is the same call at two ranks, by its number.
    fn is_at(&self, sequence: Sequence, number: u64) -> bool {
        (self.sequence, self.number) == (sequence, number)
    }

    /// Whether both mean the same, as far as words say it.
    fn means(&self, other: &Self) -> bool {
        self.label.root == other.label.root && self.label.to_word() == other.label.to_word()
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence {
            Sequence::Barriers(BarrierKind::Client) => f.write_str("a barrier of all ranks"),
            Sequence::Barriers(BarrierKind::Drain) => f.write_str("a drain"),
            Sequence::Barriers(BarrierKind::Quiet) => {
                f.write_str("the begin or end of a quiet phase")
            }
            Sequence::Barriers(BarrierKind::Finalize) => f.write_str("the end of the world"),
            Sequence::Barriers(BarrierKind::Segments) => f.write_str("the use of segments"),
            Sequence::Barriers(BarrierKind::Instances) => {
                f.write_str("the making of a distributed object")
            }
            Sequence::Team(key) if key != TeamKey::WORLD => {
                write!(f, "{} of team {:#x}", self.label, key.0)
            }
            Sequence::Team(_) | Sequence::Passes => write!(f, "{} of all ranks", self.label),
        }
    }
}

/// The last question and answer of another rank.
#[derive(Default)]
struct Heard {
    /// The call in which it waits for this rank, and whether it has got an answer.
    question: Option<(Called, bool)>,
    /// The call in which it waits, and that of this rank which it has not called.
    answer: Option<(Called, Sequence, u64)>,
}

/// Questions and answers of ranks about calls that last, and the history of partial calls of all
/// ranks.
#[derive(Default)]
pub(super) struct Mismatch {
    /// By rank: so there are no more than ranks.
    ///
    /// Taken for moments.
    heard: Mutex<BTreeMap<JobRank, Heard>>,
    /// A [`History`].
    ///
    /// Changed by the thread that has the call lock of the world's cells; Relaxed, as that is a
    /// lock or a thread.
    pub(super) history: Arc<AtomicU64>,
}

impl Mismatch {
    pub(super) fn register(self: &Arc<Self>, handlers: &mut HandlerTable) -> Result<(), AmError> {
        let this = Arc::clone(self);
        let run = move |delivery: &mut Delivery<'_>| this.hear(delivery.source(), delivery.args());
        handlers.register_internal(internal::MISMATCH, "argonet::mismatch", Box::new(run))
    }

    /// Records a question or an answer; the waiting thread reads it.
    fn hear(&self, source: JobRank, args: &[u32]) {
        let Some((call, about)) = args.split_at_checked(CALL_ARGS) else {
            return;
        };
        let Some(call) = Called::from_args(call) else {
            return;
        };
        let mut heard = self.heard.lock();
        let heard = heard.entry(source).or_default();
        match *about {
            [] => heard.question = Some((call, false)),
            [class, low, high, n0, n1] => {
                let number = u64::from(n0) | u64::from(n1) << 32;
                let about = Sequence::from_args([class, low, high]);
                heard.answer = about.map(|sequence| (call, sequence, number));
            }
            _ => {}
        }
    }

    /// The partial calls of all ranks up to now.
    #[inline(always)]
    pub(super) fn history(&self) -> History {
        History::from_bits(self.history.load(Ordering::Relaxed))
    }
}

/// The checks of a rank in a call in which it waits.
#[derive(Default)]
pub(super) struct MismatchCheck {
    looks_at: Option<Duration>,
    asked: Option<JobRank>,
}

impl<C: Conduit> Engine<C> {
    /// From time to time in a call that lasts: asks the rank that it waits for, and reads the
    /// questions and answers of others.
    #[cold]
    #[inline(never)]
    pub(super) fn check_mismatch(
        &self,
        check: &mut MismatchCheck,
        awaited: JobRank,
        called: &dyn Fn() -> Called,
    ) {
        let now = (self.clock)();
        let Some(at) = check.looks_at.replace(now + PATIENCE) else {
            return;
        };
        if now < at {
            check.looks_at = Some(at);
            return;
        }
        let mine = called();
        if check.asked != Some(awaited) && self.question(&mine, awaited) {
            check.asked = Some(awaited);
        }
        self.look_at_heard(&mine);
    }

    /// The partial calls before a call of all ranks.
    ///
    /// None in PAR, where another thread may make them at any time.
    #[inline(always)]
    pub(super) fn world_history(&self) -> History {
        match self.mode {
            ThreadMode::Par => History::default(),
            _ => self.mismatch.history(),
        }
    }

    /// Reports to a rank that this one waits for it in a call; returns whether there was room.
    pub(super) fn question(&self, mine: &Called, awaited: JobRank) -> bool {
        // A rank that finalizes waits for no rank that has called anything else, and perhaps no
        // rank waits for it.
        if mine.sequence == Sequence::Barriers(BarrierKind::Finalize) || awaited == self.rank {
            return true;
        }
        self.say(awaited, &mine.to_args())
    }

    fn say(&self, to: JobRank, args: &[u32]) -> bool {
        let message = Message {
            handler: internal::MISMATCH,
            args,
            payload: Payload::None,
        };
        self.send_now(to, &message, &mut Steps::default())
    }

    /// Ends the job if another rank waits for this one in a call that this one cannot come to, and
    /// the other way round.
    pub(super) fn look_at_heard(&self, mine: &Called) {
        let differs = {
            let mut heard = self.mismatch.heard.lock();
            let mut said = heard.iter_mut();
            said.find_map(|(&rank, heard)| self.weigh(mine, rank, heard))
        };
        if let Some((rank, theirs)) = differs {
            self.calls_differ(mine, rank, &theirs);
        }
    }

    /// The call that a rank has made in the place of this rank's call.
    fn weigh(&self, mine: &Called, rank: JobRank, heard: &mut Heard) -> Option<(JobRank, Called)> {
        // A rank that leaves answers for itself: see `quiescence`.
        if mine.sequence == Sequence::Barriers(BarrierKind::Finalize) {
            return None;
        }
        // In PAR threads of a rank may be in several sequences at once, in any order. A thread that
        // sleeps counts, too, as a handler may wake it.
        let may_cross = |other: &Called| match [mine.sequence, other.sequence] {
            [_, Sequence::Barriers(BarrierKind::Finalize)] => false,
            [Sequence::Team(here), Sequence::Team(there)] if here == there => true,
            _ => self.mode != ThreadMode::Par || !self.boot.has_other_threads(),
        };
        if let Some((theirs, answered)) = &mut heard.question {
            if mine.is_at(theirs.sequence, theirs.number) {
                if !mine.means(theirs) {
                    return Some((rank, *theirs));
                }
            } else if !*answered
                && may_cross(theirs)
                && self.needs(mine, rank)
                && !self.has_called(theirs)
            {
                let mut args = [0; CALL_ARGS + ABOUT_ARGS];
                args[..CALL_ARGS].copy_from_slice(&mine.to_args());
                args[CALL_ARGS..].copy_from_slice(&theirs.to_args()[..ABOUT_ARGS]);
                *answered = self.say(rank, &args);
            }
        }
        if let Some((theirs, sequence, number)) = heard.answer
            && mine.is_at(sequence, number)
            && may_cross(&theirs)
            && !self.has_called(&theirs)
        {
            return Some((rank, theirs));
        }
        None
    }

    /// Whether a call of this rank is not complete before a rank has called it.
    fn needs(&self, mine: &Called, rank: JobRank) -> bool {
        match mine.sequence {
            Sequence::Team(key) => self.team_needs(key, &mine.label, rank),
            Sequence::Barriers(_) | Sequence::Passes => true,
        }
    }

    /// Whether this rank has made the call of that number, or one that cannot be distinguished from
    /// it.
    fn has_called(&self, theirs: &Called) -> bool {
        let calls = match theirs.sequence {
            Sequence::Barriers(kind) => Some(self.barriers(kind)),
            Sequence::Passes => Some(self.passes()),
            Sequence::Team(key) => self.team_calls(key),
        };
        calls.is_none_or(|calls| calls > theirs.number)
    }

    /// Ends the job: two ranks' calls differ.
    #[cold]
    #[inline(never)]
    pub(super) fn calls_differ(
        &self,
        mine: &dyn fmt::Display,
        rank: JobRank,
        theirs: &dyn fmt::Display,
    ) -> ! {
        self.fatal_for_several(&format!(
            "rank {me}: members of a team call different operations: {mine} at rank {me}, and {theirs} at rank {rank}; all \
             must call the same in the same order, with the same root, type and length",
            me = self.rank,
        ));
    }

    /// Ends the job for a reason that several ranks find at about the same time, so that one of
    /// them reports it: the lowest, if it is among them, as the others leave it some time.
    ///
    /// Its end ends this process. Of the ranks of a host only the first one reports.
    #[cold]
    pub(super) fn fatal_for_several(&self, message: &str) -> ! {
        let rest = |steps| {
            for _ in 0..steps {
                self.boot.attend();
                std::thread::sleep(LEAVES_STEP);
            }
        };
        match self.rank.0 {
            0 => {}
            rank => rest(LEAVES_STEPS + rank.min(MOST_APART)),
        }
        if !self.boot.claim_report() {
            rest(CLAIMED_STEPS);
        }
        self.fatal(message)
    }

    /// Ends the job: the cell of a rank has another word than this rank's in a call, which is
    /// `mine` and follows these partial calls.
    #[cold]
    #[inline(never)]
    pub(super) fn cells_differ(
        &self,
        mine: Label,
        history: History,
        CellPlace { slot, rank, call }: CellPlace,
        theirs: u64,
    ) -> ! {
        let earlier = self.earlier_difference(slot, rank, call);
        match earlier.or(history.read(theirs).map(|theirs| (mine, theirs))) {
            Some((mine, theirs)) if mine != theirs => {
                self.calls_differ(&mine.to_string(), rank, &theirs.to_string())
            }
            // It was longer ago than cells hold.
            _ => {
                let theirs =
                    format!("something else ({theirs:#x}), or other calls with a root before");
                self.calls_differ(&mine.to_string(), rank, &theirs)
            }
        }
    }

    /// The same in a call of all ranks: partial calls are in another slot.
    #[cold]
    #[inline(never)]
    pub(super) fn world_cells_differ(&self, mine: Label, place: CellPlace, theirs: u64) -> ! {
        let history = self.world_history();
        let partial = self.world_team().shared.get().map(|shared| CellPlace {
            slot: WORLD_SLOT,
            rank: place.rank,
            call: shared.next(),
        });
        let earlier = partial.and_then(|at| self.earlier_difference(at.slot, at.rank, at.call));
        if let Some((mine, theirs)) = earlier {
            self.calls_differ(&mine.to_string(), place.rank, &theirs.to_string());
        }
        self.cells_differ(mine, history, place, theirs);
    }

    /// The first of the partial calls before a call that differs, as far as cells still hold them.
    fn earlier_difference(&self, slot: u32, rank: JobRank, call: u64) -> Option<(Label, Label)> {
        let cells = self.conduit.shared_cells()?;
        let partial = |rank, call| {
            let entry = cells.look(slot, rank, call)?;
            Label::from_word(entry.what).filter(|label| label.kind.is_partial())
        };
        (call.saturating_sub(SharedCells::DEPTH - 1)..call)
            .filter_map(|call| Some((partial(self.rank, call)?, partial(rank, call)?)))
            .find(|(mine, theirs)| mine != theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_calls_are_read_back() {
        let label = Label::new(Kind::Broadcast, 70, 12, Signature::reduction(1).on::<u16>());
        let sequences = BarrierKind::ALL.map(Sequence::Barriers).into_iter();
        for sequence in sequences.chain([Sequence::Passes, Sequence::Team(TeamKey(u64::MAX - 3))]) {
            let called = Called {
                sequence,
                number: 1 << 40 | 3,
                label,
            };
            let read = Called::from_args(&called.to_args()).unwrap();
            assert!(read.is_at(sequence, called.number) && read.means(&called));
        }
        let mut wrong = Called::barrier(BarrierKind::Quiet, 3).to_args();
        // Behind the last kind.
        wrong[0] = 2 + BarrierKind::ALL.len() as u32;
        assert_eq!(Called::from_args(&wrong), None);
        assert_eq!(Called::from_args(&wrong[1..]), None);
    }

    #[test]
    fn malformed_questions_are_ignored() {
        let mismatch = Mismatch::default();
        mismatch.hear(JobRank(1), &[]);
        mismatch.hear(JobRank(1), &[9; CALL_ARGS]);
        mismatch.hear(JobRank(1), &[0; 20]);
        assert!(mismatch.heard.lock().is_empty());
        let call = Called::barrier(BarrierKind::Client, 3).to_args();
        mismatch.hear(JobRank(1), &call);
        assert!(mismatch.heard.lock()[&JobRank(1)].question.is_some());
    }
}
