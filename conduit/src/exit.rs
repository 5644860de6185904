//! The end of a job, as ranks report it to each other over a network: the machine of the system
//! queue with a clock and a lock.
//!
//! Both networks share this; they differ in how a question leaves and how answers are taken
//! ([`Way`]). docs/adr/0028 and 0030 say which ranks get a report, and why a job's launchers get
//! one besides.

use argonet_am::system_queue::{
    Answer, Frame, Heard, Question, Shutdown, ShutdownState, Slot, SystemQueue,
};
use argonet_base::JobRank;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// Most reports at a time that are not confirmed.
const WINDOW: u32 = 64;

/// Between two looks for answers, once the first have found none.
const PAUSE: Duration = Duration::from_micros(50);

/// Looks for answers before that.
const EAGER_LOOKS: u32 = 64;

/// Called when another rank says that it ends the job with a code.
///
/// The caller is a thread that polls and holds locks of the conduit, so the function must not call
/// the conduit.
pub type HearExit = Box<dyn Fn(JobRank, u8) + Send + Sync>;

/// An exit to be reported to other ranks.
pub struct ExitReport<'a> {
    /// The code, as the job's.
    ///
    /// With 0 few get a report and forward it, and none confirms.
    pub code: u8,
    /// How long it may take.
    pub limit: Duration,
    /// Ranks that need no report, and are not waited for: those that share memory with this one,
    /// and those that have come to their end.
    pub spares: &'a dyn Fn(JobRank) -> bool,
}

/// Exits that a rank has reported and heard of over the system queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExitCounts {
    /// Ranks to which this one has reported.
    pub reported: u32,
    /// Of them, those that have confirmed, or had come to their end meanwhile.
    pub confirmed: u32,
    /// Ranks that have reported to this one.
    pub heard: u32,
}

impl fmt::Display for ExitCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reported,
            confirmed,
            heard,
        } = self;
        write!(
            f,
            "an exit reported to {reported} ranks over the system queue, {confirmed} have confirmed, {heard} heard of"
        )
    }
}

/// How the questions of a conduit travel.
pub(crate) trait Way {
    /// Calls `ask` with the slot of `rank` and sends the frame that it may get, if the rank can be
    /// reached now.
    ///
    /// Waits for no lock longer than until then.
    fn ask(&self, rank: JobRank, until: Instant, ask: &mut dyn FnMut(&mut Slot) -> Option<Frame>);

    /// Takes answers that have come, and runs no handler.
    ///
    /// `open` are those that have not confirmed.
    fn listen(&self, open: &[u32]);

    /// Whether the report to a rank is on its way, without any more to be done here.
    fn has_left(&self, rank: JobRank) -> bool;

    /// Whether a rank with a report cannot confirm any more.
    fn is_gone(&self, rank: JobRank) -> bool;
}

/// The function that is to hear of an exit.
#[derive(Default)]
struct Hearing {
    act: Option<Arc<HearExit>>,
    /// The exit that came before `act` was set.
    early: Option<(JobRank, u8)>,
}

/// A rank's part in the end of its job.
pub(crate) struct Exits {
    /// Under this lock those of peers may be taken, and not the other way round.
    end: Mutex<Shutdown>,
    hearing: Mutex<Hearing>,
    /// Counts exits heard of.
    ///
    /// Relaxed: for reports.
    heard: AtomicU32,
}

impl Exits {
    pub(crate) fn new(rank: JobRank, ranks: u32) -> Self {
        Self {
            end: Mutex::new(Shutdown::new(rank.0, ranks, WINDOW)),
            hearing: Mutex::default(),
            heard: AtomicU32::new(0),
        }
    }

    /// `act` is called when another rank says that it ends the job, or now if one has.
    ///
    /// The first that is given counts.
    pub(crate) fn on_exit(&self, act: HearExit) {
        let mut hearing = self.hearing.lock();
        if hearing.act.is_some() {
            return;
        }
        let act = hearing.act.insert(Arc::new(act));
        let act = Arc::clone(act);
        if let Some((from, code)) = hearing.early.take() {
            drop(hearing);
            act(from, code);
        }
    }

    /// Takes the meaning of a frame of the system queue, once its peer's lock is free again.
    pub(crate) fn heard(&self, from: JobRank, heard: Heard) {
        let is_of_exit = matches!(
            heard,
            Heard::Question(Question::Exit(_))
                | Heard::Answered(Answer::Exiting)
                | Heard::AnsweredAndNext(Answer::Exiting, _)
        );
        if !is_of_exit {
            return;
        }
        // The conduit has answered the frame already: there is one answer.
        let _ = self.end.lock().heard(from.0, heard);
        let Heard::Question(Question::Exit(code)) = heard else {
            return;
        };
        self.heard.fetch_add(1, Ordering::Relaxed);
        let mut hearing = self.hearing.lock();
        let Some(act) = hearing.act.clone() else {
            hearing.early.get_or_insert((from, code));
            return;
        };
        drop(hearing);
        act(from, code);
    }

    /// Reports to others that this rank ends the job, and waits until they have confirmed, with
    /// code 0 until the reports have left, or until the time is over.
    ///
    /// A rank that has heard of an exit reports to none, but forwards a 0; nor does one that has
    /// reported already.
    // spec P13: the first rank that exits reports to the others, and waits for a bounded time.
    pub(crate) fn report(&self, exit: &ExitReport<'_>, way: &impl Way) {
        let begun = Instant::now();
        let until = begun + exit.limit;
        let is_gone = |rank: u32| (exit.spares)(JobRank(rank)) || way.is_gone(JobRank(rank));
        // Networks lose nothing, or repeat it themselves: the queue keeps no questions.
        let mut queue = SystemQueue::new(Duration::ZERO);
        for round in 0.. {
            // A signal may have come while this very thread held it.
            let Some(mut end) = self.end.try_lock_until(until) else {
                return;
            };
            let now = begun.elapsed();
            if round == 0 {
                end.begin(now, exit.code, exit.limit);
            }
            end.forget(is_gone);
            end.poll_transmit(now, &mut queue, |rank, ask| {
                let rank = JobRank(rank);
                if !(exit.spares)(rank) {
                    way.ask(rank, until, ask);
                }
            });
            end.handle_timeout(now);
            if end.state() != ShutdownState::Reporting {
                return;
            }
            let open: Vec<u32> = end.open().collect();
            drop(end);
            // Ranks that end with 0 mostly end together, and hear no answers.
            if exit.code == 0 && open.iter().all(|rank| way.has_left(JobRank(*rank))) {
                return;
            }
            way.listen(&open);
            match round {
                ..EAGER_LOOKS => std::thread::yield_now(),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Exits reported and heard of.
    pub(crate) fn counts(&self) -> ExitCounts {
        let (reported, confirmed) = self.end.lock().reported();
        ExitCounts {
            reported,
            confirmed,
            heard: self.heard.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// Ranks 1 and up of a job of which rank 0 exits.
    struct Others<'a> {
        exits: &'a Exits,
        code: u8,
        slots: RefCell<Vec<(Slot, Slot)>>,
        asked: RefCell<Vec<(u32, Frame)>>,
        /// Those that answer.
        answers: &'a dyn Fn(u32) -> bool,
        /// Ranks to which no report leaves at first.
        stays: &'a dyn Fn(u32) -> bool,
        most: Cell<usize>,
    }

    impl<'a> Others<'a> {
        fn new(exits: &'a Exits, ranks: usize, answers: &'a dyn Fn(u32) -> bool) -> Self {
            Self {
                exits,
                code: 7,
                slots: RefCell::new(vec![Default::default(); ranks]),
                asked: RefCell::default(),
                answers,
                stays: &|_| false,
                most: Cell::new(0),
            }
        }
    }

    impl Way for Others<'_> {
        fn ask(
            &self,
            rank: JobRank,
            _until: Instant,
            ask: &mut dyn FnMut(&mut Slot) -> Option<Frame>,
        ) {
            let frame = ask(&mut self.slots.borrow_mut()[rank.index()].0);
            self.asked.borrow_mut().extend(frame.map(|f| (rank.0, f)));
        }

        fn listen(&self, open: &[u32]) {
            self.most.set(self.most.get().max(open.len()));
            for (rank, frame) in self.asked.take() {
                if !(self.answers)(rank) {
                    continue;
                }
                let mut queue = SystemQueue::new(Duration::ZERO);
                let (here, there) = &mut self.slots.borrow_mut()[rank as usize];
                let heard = queue.handle_recv(Duration::ZERO, 0, there, frame);
                assert_eq!(heard, Ok(Heard::Question(Question::Exit(self.code))));
                let answer = SystemQueue::answer(there, Answer::Exiting);
                let heard = queue.handle_recv(Duration::ZERO, rank, here, answer);
                self.exits.heard(JobRank(rank), heard.expect("an answer"));
            }
        }

        fn has_left(&self, rank: JobRank) -> bool {
            !(self.stays)(rank.0)
        }

        fn is_gone(&self, rank: JobRank) -> bool {
            rank.0 == 3
        }
    }

    fn exit(limit: Duration) -> ExitReport<'static> {
        ExitReport {
            code: 7,
            limit,
            spares: &|rank| rank.0 == 2,
        }
    }

    // spec P13
    #[test]
    fn an_exit_is_reported_to_all_but_gone_ranks_and_a_window_at_a_time() {
        let exits = Exits::new(JobRank(0), 200);
        let others = Others::new(&exits, 200, &|rank| rank != 3);
        exits.report(&exit(Duration::from_secs(60)), &others);
        let due = ExitCounts {
            reported: 198,
            confirmed: 198,
            heard: 0,
        };
        assert_eq!(exits.counts(), due);
        assert_eq!(others.most.get(), WINDOW as usize);
        // Once.
        exits.report(&exit(Duration::from_secs(60)), &others);
        assert_eq!(exits.counts(), due);
    }

    // spec P13: with 0 few get a report, and none is waited for.
    #[test]
    fn an_exit_with_0_leaves_to_few_and_waits_for_no_answer() {
        let with_0 = || ExitReport {
            code: 0,
            ..exit(Duration::from_secs(60))
        };
        let stays = Cell::new(0);
        // Rank 2 is spared, so 3 is the next; the report for rank 8 leaves at the third look.
        let looks = |rank| {
            stays.set(stays.get() + u32::from(rank == 8));
            rank == 8 && stays.get() < 3
        };
        let exits = Exits::new(JobRank(0), 30);
        let others = Others {
            code: 0,
            stays: &looks,
            ..Others::new(&exits, 30, &|rank| rank == 1)
        };
        exits.report(&with_0(), &others);
        // One of 1, 2 to 3, 4 to 7, 8 to 15, 16 to 29; 3 is gone.
        let due = ExitCounts {
            reported: 5,
            confirmed: 2,
            heard: 0,
        };
        assert_eq!(exits.counts(), due);
        assert_eq!(stays.get(), 3);

        // A rank that has heard of a 0 forwards it once, and forwards no other code.
        for (code, reported) in [(0, 5), (7, 0)] {
            let exits = Exits::new(JobRank(0), 30);
            let others = Others {
                code,
                ..Others::new(&exits, 30, &|_| true)
            };
            exits.heard(JobRank(9), Heard::Question(Question::Exit(code)));
            for again in [with_0(), with_0(), exit(Duration::from_secs(60))] {
                exits.report(&again, &others);
                assert_eq!(exits.counts().reported, reported, "{code}");
            }
        }
    }

    // spec P13: the wait is bounded.
    #[test]
    fn a_silent_rank_is_waited_for_no_longer_than_the_limit() {
        let exits = Exits::new(JobRank(0), 200);
        let others = Others::new(&exits, 200, &|_| false);
        exits.report(&exit(Duration::from_millis(20)), &others);
        let counts = exits.counts();
        assert!(counts.reported > WINDOW, "{counts}");
        assert_eq!(counts.confirmed, 1, "one was gone: {counts}");
    }

    #[test]
    fn a_heard_exit_is_acted_upon_once_per_rank_and_reported_to_none() {
        let exits = Exits::new(JobRank(0), 3);
        let hears = |from, code| exits.heard(JobRank(from), Heard::Question(Question::Exit(code)));
        let acted = Arc::new(Mutex::new(Vec::new()));
        hears(1, 9);
        let log = Arc::clone(&acted);
        exits.on_exit(Box::new(move |from, code| log.lock().push((from.0, code))));
        assert_eq!(*acted.lock(), [(1, 9)], "the early exit");
        hears(2, 4);
        assert_eq!(*acted.lock(), [(1, 9), (2, 4)]);
        let others = Others::new(&exits, 3, &|_| true);
        exits.report(&exit(Duration::from_secs(60)), &others);
        let due = ExitCounts {
            heard: 2,
            ..ExitCounts::default()
        };
        assert_eq!(exits.counts(), due);
    }
}
