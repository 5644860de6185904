//! End of the process of a rank: its answer to a request for the end, and its own request to the
//! others (spec P13: any rank may exit at any time; the first reports to all, waits a bounded time,
//! then forces).
//!
//! ```text
//!  exit(code)      exit(), return from main      INT, TERM ...      the guardian's signal, or news over a network
//!      |                      |                       |                      |
//!      +---- exit word, timer armed, guardian knows --+          the program's SIGQUIT handler
//!      |                      |                       |                      |
//!      +--- reported ---------+                       |                      |
//!      |                      |                       |                      |
//!   exit handlers         exit hook            next rest of the engine, or the timer
//! ```
//!
//! A process is a rank once, so its part is process-wide: signal and exit handlers get no argument.
//! Copies of the process that the program forks must not act for it: every entry looks whether this
//! process is the rank.
//!
//! Everything that a signal handler calls is lock-free and allocates nothing, except that C's
//! streams are written, which may wait forever: the timer, armed before, ends the process then.

use core::ffi::c_int;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use rustix::process::{Pid, getpid};
use rustix::thread::gettid;

use crate::clock::{now_ms, processor_ms};
use crate::confirming::confirming_limit;
use crate::end_code::end_code;
use crate::error::BootError;
use crate::exit_options::ExitOptions;
use crate::guardian::{self, WINDOW_PART};
use crate::line::Line;
use crate::page::{Control, ExitKind, ExitStage, ExitWord, RankPage, RankState};
use crate::sigact::{self, Action, Arrival, Handle, Timer};
use crate::{crash, rendezvous, selfspawn, streams, sys};

mod loss;

pub(crate) use loss::unreachable;

/// The rank that this process is, reachable from signal and exit handlers.
static RANK: OnceLock<RankProcess> = OnceLock::new();

/// Function to call when this process ends; see [`before_the_end`].
static BEFORE_END: OnceLock<fn(bool)> = OnceLock::new();

/// Function that reports an exit to other ranks over a network; see [`report_exits_by`].
static REPORTER: OnceLock<ReportExit> = OnceLock::new();

/// Reports to other ranks over a network that this one ends the job, or forwards that another does
/// with 0: the code, for how long at most, and which ranks need no report.
///
/// False if the calling thread cannot, and another can that rests
/// ([`Bootstrap::attend`](crate::Bootstrap::attend)).
pub type ReportExit = fn(u8, Duration, &dyn Fn(JobRank) -> bool) -> bool;

/// Progress of this rank with reporting its exit.
const NOT_REPORTED: u8 = 0;
const REPORTING: u8 = 1;
/// The thread that exits could not: the next one that rests does.
const DEFERRED: u8 = 2;
const REPORTED: u8 = 3;

/// Between two looks whether another thread has reported.
const REPORT_PAUSE: Duration = Duration::from_micros(50);

/// Time that a waiting rank goes on once it knows that an exit has been reported, and so much more
/// for each rank of its host, as those may have to wait for a processor: messages that it waits for
/// and that are on their way may still come, so ranks that leave a barrier to exit all do that by
/// themselves.
const GRACE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(5)];

/// The same for an exit with 0: all ranks end so, and no rank is in a hurry.
const GRACE_OF_0: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(20)];

/// The longest that reporting an exit with 0 takes: no rank confirms it, so the only wait is for
/// messages that cannot leave at once.
const REPORTING_OF_0: Duration = Duration::from_millis(2);

/// The part of the time-out in which a rank that computes is looked at once more.
const COMPUTING_PART: u32 = 16;

/// Whether fatal errors are reported in the form that users of GASNet, and scripts of theirs, know.
static GASNET_FORM: AtomicBool = AtomicBool::new(false);

/// From now on a fatal error of this process begins with `*** FATAL ERROR (proc 3): `, and a crash
/// by `*** Caught a fatal signal (proc 3): SIGSEGV(11)`, in addition to the usual lines.
pub fn report_as_gasnet() {
    GASNET_FORM.store(true, Ordering::Relaxed);
}

pub(crate) fn reports_as_gasnet() -> bool {
    GASNET_FORM.load(Ordering::Relaxed)
}

/// Signals that ask a process to end.
const ASKING: [c_int; 5] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGXCPU,
];

/// This process as a rank of its job.
#[derive(Debug)]
pub(crate) struct RankProcess {
    control: Arc<Control>,
    pub(crate) rank: JobRank,
    /// This process; a copy that it forks must not act.
    owner: Pid,
    ways: Ways,
    pub(crate) options: ExitOptions,
    /// Ends this process when it has not come to its end in time.
    timer: Option<Timer>,
    /// The thread that runs exit handlers; 0 before.
    ender: AtomicI32,
    /// Whether this rank has learned that another ends the job, from the guardian's signal or over
    /// the network, and acts on it.
    learned: AtomicBool,
    /// Whether the next thread that rests ends the process.
    due: AtomicBool,
    /// Number of signals that have asked this process to end.
    asked: AtomicU32,
    /// The signal by which this process ends, if it is one.
    signal: AtomicI32,
    /// Whether C's streams have been tried, so that no thread waits for them twice.
    flushed: AtomicBool,
    /// When a resting thread first saw the exit word, in milliseconds; 0 before.
    seen_ms: AtomicU64,
    /// Whether the program leaves without finalizing; see [`leaves_by_exit`].
    leaves: AtomicBool,
    /// When a thread that rests or polls first saw that the end has been reported over the network,
    /// in milliseconds; 0 before.
    seen_reported_ms: AtomicU64,
    /// Processor time of this process when it was last looked at, in milliseconds.
    worked_ms: AtomicU64,
    /// When it learned that, in milliseconds.
    learned_ms: AtomicU64,
    /// Progress of this rank with reporting its exit.
    ///
    /// Written by threads that exit or rest; the one that takes it to [`REPORTING`] reports.
    reporting: AtomicU8,
    /// Whether this rank has heard over a network of an exit with 0, which is to be passed on.
    passes_on: AtomicBool,
}

/// The ways by which this process reports its end.
#[derive(Debug)]
pub(crate) struct Ways {
    /// The way to the guardian, if there is one.
    pub(crate) link: Option<OwnedFd>,
    /// The way to the agent of this host, which forwards the end to the other hosts.
    pub(crate) line: Line,
    /// Whether the job's code is made of the codes of its processes, by another launcher.
    pub(crate) is_judged_by_launcher: bool,
}

/// Makes this process the rank: signal handlers, timer, exit hook.
///
/// Once for each process; of a second job, which only a process can have that is alone in both,
/// nothing is caught.
pub(crate) fn install(
    control: &Arc<Control>,
    rank: JobRank,
    ways: Ways,
    options: ExitOptions,
) -> Result<(), BootError> {
    let free = Action::of(sys::job_signal()).is_default();
    let timer = match free {
        true => Some(
            Timer::create(sys::job_signal())
                .map_err(|e| BootError::system("making the timer of the end", e))?,
        ),
        false => None,
    };
    let process = RankProcess {
        control: Arc::clone(control),
        rank,
        owner: getpid(),
        ways,
        options,
        timer,
        ender: AtomicI32::new(0),
        learned: AtomicBool::new(false),
        due: AtomicBool::new(false),
        asked: AtomicU32::new(0),
        signal: AtomicI32::new(0),
        flushed: AtomicBool::new(false),
        seen_ms: AtomicU64::new(0),
        leaves: AtomicBool::new(false),
        seen_reported_ms: AtomicU64::new(0),
        worked_ms: AtomicU64::new(0),
        learned_ms: AtomicU64::new(0),
        reporting: AtomicU8::new(NOT_REPORTED),
        passes_on: AtomicBool::new(false),
    };
    if RANK.set(process).is_err() {
        return Ok(());
    }
    let Some(process) = this() else { return Ok(()) };
    sys::on_exit(at_exit).map_err(|e| BootError::system("registering an exit handler", e))?;
    if free {
        Action::calling::<JobSignal>().install(sys::job_signal());
        sys::SignalSet::of(&[sys::job_signal()]).unblock();
    }
    for signal in ASKING {
        if Action::of(signal).is_default() && process.options.catches(signal) {
            Action::calling::<Asking>().install(signal);
        }
    }
    crash::install(rank, &process.options);
    if process.options.freeze {
        crash::freeze(process, "GASNET_FREEZE is set");
    }
    Ok(())
}

/// The rank that this process is; not in a copy that a rank forked.
pub(crate) fn this() -> Option<&'static RankProcess> {
    RANK.get().filter(|rank| rank.owner == getpid())
}

/// Has `act` called when this process ends in any way but by SIGKILL, perhaps several times: with
/// true where exit handlers may run, with false in a signal handler, or after a fatal error, where
/// it must be async-signal-safe.
///
/// The first function that is given counts.
pub fn before_the_end(act: fn(bool)) {
    let _ = BEFORE_END.set(act);
}

/// Calls the function given to [`before_the_end`].
pub(crate) fn about_to_end(orderly: bool) {
    if let Some(act) = BEFORE_END.get() {
        act(orderly);
    }
}

/// Has `report` called when this process exits and no other rank of its host has done so before, or
/// when it has heard of an exit with 0 over a network: never in a signal handler, but inside
/// handlers of messages.
///
/// Once, unless the thread that exits cannot report; then once more, by the next thread that rests,
/// for which the one that exits waits a bounded time. The first function that is given counts.
pub fn report_exits_by(report: ReportExit) {
    let _ = REPORTER.set(report);
}

/// Ends the job with `code`, of which the system keeps the lowest eight bits, from any thread at
/// any time: before a [`LocalJob`](crate::LocalJob) is dropped or after, inside a handler, in a
/// signal handler, while other ranks do the same.
///
/// The code of the first caller is the job's.
///
/// If all ranks call this, or have finalized and end, within a quarter of the exit time-out
/// (`GASNET_EXITTIMEOUT`), nothing is printed. Other ranks then get a signal, which makes a
/// `SIGQUIT` handler of the program run and the next wait in this library end the process. Half of
/// the time-out after the first exit they end wherever they are, but for ranks that compute in a
/// job that ends with 0: those have most of it, and a return of all from `main` says nothing. Ranks
/// are killed when the time-out is over; one line on standard error names the rank that ended the
/// job.
///
/// Exit handlers run and streams are written, except in a signal handler: there only C's streams
/// are, and no exit handler runs. A process that is not a rank just exits.
pub fn exit(code: i32) -> ! {
    match this() {
        Some(rank) => rank.exit(code as u8),
        None => std::process::exit(code),
    }
}

/// Ends the job as [`exit`] does, but runs no exit handlers, neither C's nor Rust's: Rust's
/// standard output and C's streams are written, in a signal handler C's alone.
///
/// A process that is not a rank does the same and ends.
pub fn exit_without_handlers(code: i32) -> ! {
    match this() {
        Some(rank) => rank.exit_without_handlers(code as u8),
        None if sigact::in_signal_handler(is_ours) => {
            streams::flush_of_c();
            sys::exit_now(code as u8)
        }
        None => sys::flush_and_exit_now(code as u8),
    }
}

/// The program of the job in `control` never finalizes: to leave means to exit.
pub(crate) fn leaves_by_exit(control: &Control) {
    if let Some(rank) = this().filter(|rank| std::ptr::eq(&*rank.control, control)) {
        rank.leaves.store(true, Ordering::Relaxed);
    }
}

/// For threads that wait: ends this process if the job in `control` is ending and it is time.
pub(crate) fn attend(control: &Control) -> bool {
    let Some(word) = control.job().exit_word() else {
        return false;
    };
    let Some(rank) = this().filter(|rank| std::ptr::eq(&*rank.control, control)) else {
        return false;
    };
    rank.obey(word);
    word.kind.leaves_time()
}

/// Another rank says over the network that it ends the job in `control`.
///
/// Lock-free. A 0 is passed on by the next poll that finds nothing, or rest.
pub(crate) fn heard_exit(control: &Control, from: JobRank, code: u8) {
    let (kind, rank) = (ExitKind::Exit, from);
    let job = control.job();
    if from.0 < control.size() && control.rank_page(from).lost().is_some() {
        return; // A rank of a lost host may live for a while.
    }
    job.set_exit_word(ExitWord { kind, rank, code });
    let this = this().filter(|this| std::ptr::eq(&*this.control, control));
    if let Some(this) = this.filter(|_| code == 0) {
        this.passes_on.store(true, Ordering::Relaxed);
    }
    job.report_exit();
    // The launchers know it from the rank that exits, and why. The guardian's time counts from now.
    if let Some(link) = this.and_then(|this| this.ways.link.as_ref()) {
        guardian::report_exit(link.as_fd());
    }
}

fn at_exit(code: c_int) {
    if let Some(rank) = this() {
        rank.at_exit(code);
    }
}

struct Asking;
struct JobSignal;

impl Handle for Asking {
    fn handle(arrival: Arrival) {
        match this() {
            Some(rank) => rank.asked_to_end(arrival.signal),
            None => sigact::die_by(arrival.signal),
        }
    }
}

impl Handle for JobSignal {
    fn handle(arrival: Arrival) {
        let Some(rank) = this() else { return };
        match arrival.code {
            libc::SI_TIMER => rank.time_is_up(),
            // A band code: the guardian's end of the socket has gone.
            code if code > 0 => {
                selfspawn::guardian_gone();
                rendezvous::guardian_gone();
            }
            _ => rank.notified(),
        }
    }
}

/// Whether a handler is one of this library's.
fn is_ours(action: &Action) -> bool {
    action.calls::<Asking>() || action.calls::<JobSignal>() || crash::is_ours(action)
}

impl RankProcess {
    fn page(&self) -> &RankPage {
        self.control.rank_page(self.rank)
    }

    fn timeout(&self) -> Duration {
        self.control.job().exit_timeout()
    }

    fn arm(&self, after: Duration) {
        if let Some(timer) = &self.timer {
            timer.arm(after);
        }
    }

    /// Stores why the job ends, unless a process has done so, and reports the end to the guardian;
    /// returns the reason that counts.
    ///
    /// Async-signal-safe.
    fn begin(&self, kind: ExitKind, code: u8) -> ExitWord {
        let own = ExitWord {
            kind,
            rank: self.rank,
            code,
        };
        let word = self.control.job().set_exit_word(own);
        // A rank that leaves with another code than the first one does so because the first one
        // left.
        let follows = kind == ExitKind::Left && word.kind == ExitKind::Left && word.code != code;
        if kind != ExitKind::Signal && !follows {
            // Changes nothing if this rank has been asked to end before.
            self.page().advance(RankState::Exiting);
            self.note_own_end(code);
        }
        if let Some(link) = &self.ways.link {
            guardian::report_exit(link.as_fd());
        }
        self.ways.line.ring();
        word
    }

    /// Reports to the neighbors, by the mark in their memory, and the ranks of other neighborhoods,
    /// if it is this rank for which the job ends, or if it forwards an exit with 0; once.
    // spec P13: the first that exits reports to the others, for a bounded time.
    fn report_to_others(&self, word: ExitWord) {
        let code = word.process_code();
        let is_own = word.rank == self.rank && word.kind.leaves_time();
        let passes_on = code == 0 && self.passes_on.load(Ordering::Relaxed);
        if !(is_own || passes_on) {
            return;
        }
        let begins = |now: u8| matches!(now, NOT_REPORTED | DEFERRED).then_some(REPORTING);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.reporting.fetch_update(set, fetch, begins);
        if before.is_err() {
            return;
        }
        self.control.job().report_exit();
        // A job that a rank cuts short by leaving with 0 without finalizing ends with 1; only
        // launchers can report this.
        let is_left = word.kind == ExitKind::Left && code == 0;
        let Some(report) = REPORTER.get().filter(|_| !is_left) else {
            return;
        };
        let most = confirming_limit(self.timeout());
        let limit = if code == 0 {
            REPORTING_OF_0.min(most)
        } else {
            most
        };
        let has_reported = report(code, limit, &|rank| self.needs_no_report(rank));
        // If not even the thread that rests can, the launchers alone report.
        if has_reported || before == Ok(DEFERRED) {
            self.reporting.store(REPORTED, Ordering::Release);
        } else {
            self.reporting.store(DEFERRED, Ordering::Release);
            self.wait_until_reported(most);
        }
    }

    /// Waits until another thread has reported: so long until it begins, and so long until it is
    /// done.
    ///
    /// It may compute.
    fn wait_until_reported(&self, limit: Duration) {
        let begun = Instant::now();
        loop {
            let most = match self.reporting.load(Ordering::Acquire) {
                DEFERRED => limit,
                REPORTING => limit * 2,
                _ => return,
            };
            if begun.elapsed() >= most {
                return;
            }
            std::thread::sleep(REPORT_PAUSE);
        }
    }

    /// The program ends this process with `code`, not because the job ends.
    ///
    /// If the rank knew already that the job ends with 0, it records that it was not made to end.
    /// Async-signal-safe.
    fn note_own_end(&self, code: u8) {
        let word = self.control.job().exit_word();
        let with_0 = code == 0 && word.is_some_and(|word| word.process_code() == 0);
        if with_0 && self.page().state() == RankState::AskedToEnd {
            self.page().advance(RankState::Returned);
        }
    }

    /// Whether a rank sees the exit word where this one has stored it, or has come to its end, or
    /// is about to.
    fn needs_no_report(&self, rank: JobRank) -> bool {
        let part = self.control.part();
        let page = self.control.rank_page(rank);
        let state = page.state();
        part.around(self.rank).contains(&rank.0)
            || page.lost().is_some()
            || matches!(
                state,
                RankState::Exiting | RankState::Finalized | RankState::Ended | RankState::Returned
            )
            || (part.all().contains(&rank.0) && !state.is_member())
    }

    fn exit(&self, code: u8) -> ! {
        self.arm(self.timeout());
        let word = self.begin(ExitKind::Exit, code);
        let again = self.ender.load(Ordering::Relaxed) == gettid().as_raw_nonzero().get();
        if again || sigact::in_signal_handler(is_ours) {
            self.end_now();
        }
        self.report_to_others(word);
        self.run_exit_handlers()
    }

    /// See [`exit_without_handlers`].
    fn exit_without_handlers(&self, code: u8) -> ! {
        self.arm(self.timeout());
        let word = self.begin(ExitKind::Exit, code);
        if sigact::in_signal_handler(is_ours) {
            self.end_now();
        }
        self.report_to_others(word);
        self.become_ender();
        self.write_and_end()
    }

    /// Makes the calling thread the one that ends this process; does not return in another.
    fn become_ender(&self) {
        let own = gettid().as_raw_nonzero().get();
        let first = self
            .ender
            .compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err_and(|ender| ender != own) {
            loop {
                std::thread::park();
            }
        }
    }

    /// Writes Rust's standard output and C's streams, and ends this process.
    fn write_and_end(&self) -> ! {
        about_to_end(true);
        if !self.flushed.load(Ordering::Relaxed) {
            streams::flush();
            self.flushed.store(true, Ordering::Relaxed);
        }
        self.end_now()
    }

    /// Ends this process like a program that has finished.
    fn run_exit_handlers(&self) -> ! {
        self.become_ender();
        if self.signal.load(Ordering::Relaxed) != 0 {
            self.write_and_end();
        }
        std::process::exit(self.end_code().into())
    }

    /// The exit hook: this process exits with `code`.
    fn at_exit(&self, code: c_int) {
        about_to_end(true);
        streams::flush_standard_output_of_c();
        let own = gettid().as_raw_nonzero().get();
        let ender = self
            .ender
            .compare_exchange(0, own, Ordering::AcqRel, Ordering::Relaxed);
        if ender.is_ok() {
            self.note_own_end(code as u8);
        }
        if self.page().state().is_member() {
            if self.options.catch_exit {
                self.arm(self.timeout());
                let word = self.begin(self.kind_of_leaving(), code as u8);
                self.report_to_others(word);
            } else {
                self.page().advance(RankState::Finalized);
            }
        }
        if self.options.fs_sync {
            sigact::sync_file_systems();
        }
        if self.control.job().is_ending() {
            // Rank 0 of a job that started itself waits for the others now; the guardian bounds it.
            self.arm(self.timeout() * 2 + guardian::RANK_0_GRACE);
        }
        selfspawn::at_exit(code);
        let code = code as u8;
        if streams::code_after_loss(code) != code {
            // The code cannot be changed otherwise.
            sys::flush_and_exit_now(code);
        }
    }

    fn kind_of_leaving(&self) -> ExitKind {
        match self.leaves.load(Ordering::Relaxed) {
            true => ExitKind::Exit,
            false => ExitKind::Left,
        }
    }

    /// The timer has fired.
    ///
    /// A rank of a job that ends with 0 may compute on while most of the time-out lasts, since it
    /// may return from main by itself; one that sleeps or waits does not. Async-signal-safe but for
    /// C's streams.
    fn time_is_up(&self) {
        let with_0 = self
            .control
            .job()
            .exit_word()
            .is_some_and(|word| word.process_code() == 0);
        let by_itself = with_0
            && self.ender.load(Ordering::Relaxed) == 0
            && self.signal.load(Ordering::Relaxed) == 0
            && self.page().state() == RankState::AskedToEnd;
        let work_ms = processor_ms();
        let step = self.timeout() / COMPUTING_PART;
        // More than the library's own threads take.
        let least_ms = step.as_millis() as u64 / 8;
        let worked = work_ms > self.worked_ms.swap(work_ms, Ordering::Relaxed) + least_ms;
        let now_ms = now_ms();
        let known_for =
            Duration::from_millis(now_ms.saturating_sub(self.learned_ms.load(Ordering::Relaxed)));
        let left = self
            .control
            .job()
            .time_until_forced(now_ms)
            .unwrap_or_default();
        // Its own end needs time before the guardian kills it.
        if by_itself && worked && left > self.timeout() / WINDOW_PART && known_for < self.timeout()
        {
            self.arm(step);
        } else {
            self.end_now();
        }
    }

    /// Ends this process now, in any state.
    ///
    /// Async-signal-safe but for C's streams.
    pub(crate) fn end_now(&self) -> ! {
        about_to_end(false);
        if !self.flushed.swap(true, Ordering::Relaxed) {
            // In time before the guardian kills it.
            let left = self.control.job().time_until_forced(now_ms());
            let most = left.unwrap_or(Duration::MAX) / 2;
            let most = most.min(self.timeout() / WINDOW_PART);
            self.arm(most.max(Duration::from_millis(1)));
            streams::flush_of_c();
        }
        if self.options.fs_sync {
            sigact::sync_file_systems();
        }
        let signal = self.signal.load(Ordering::Relaxed);
        selfspawn::end_in_handler(signal == 0);
        if signal != 0 {
            sigact::die_by(signal);
        }
        sys::exit_now(self.end_code())
    }

    fn end_code(&self) -> u8 {
        let (word, state) = (self.control.job().exit_word(), self.page().state());
        end_code(word, self.rank, state, self.ways.is_judged_by_launcher)
    }

    /// A thread waits and the job is ending for the reason of `word`.
    fn obey(&self, word: ExitWord) {
        if !word.kind.leaves_time() {
            return; // The guardian is killing all ranks.
        }
        if self.reporting.load(Ordering::Acquire) == DEFERRED {
            self.report_to_others(word);
        }
        let now_ms = now_ms();
        let first = self
            .seen_ms
            .compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_else(|first| first);
        // Without a guardian no signal reports the end to this rank.
        let late =
            first != 0 && now_ms.saturating_sub(first) * 2 >= self.timeout().as_millis() as u64;
        if self.control.job().is_exit_reported() {
            if self.passes_on.load(Ordering::Relaxed) {
                self.report_to_others(word);
            }
            if self.has_waited_for_all(now_ms, word) {
                self.learn_of_end();
            }
        }
        if self.due.load(Ordering::Acquire) || late {
            if self.signal.load(Ordering::Relaxed) == 0 {
                self.page().ask_to_end();
            }
            self.arm(self.timeout());
            // A signal's handler could not.
            self.report_to_others(word);
            if self.leaves.load(Ordering::Relaxed) {
                // Exit handlers of the program, its destructors among them, count on the end of its
                // main.
                self.become_ender();
                self.write_and_end();
            }
            self.run_exit_handlers();
        }
    }

    /// Whether messages that were on their way to this rank when the end was reported have had time
    /// to come.
    ///
    /// A rank that did not run meanwhile has that time yet.
    fn has_waited_for_all(&self, now_ms: u64, word: ExitWord) -> bool {
        let first =
            self.seen_reported_ms
                .compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        let grace = self.grace(word).as_millis() as u64;
        first.is_err_and(|first| now_ms.saturating_sub(first) >= grace)
    }

    /// Time that a waiting rank goes on when it knows that the job ends for the reason of `word`;
    /// not longer than the guardian leaves it.
    fn grace(&self, word: ExitWord) -> Duration {
        let [at_least, more] = match word.process_code() {
            0 => GRACE_OF_0,
            _ => GRACE,
        };
        let ranks = self.control.part().ranks;
        let grace = at_least.saturating_add(more.saturating_mul(ranks));
        grace.min(self.timeout() / WINDOW_PART)
    }

    /// A signal asks this process to end.
    ///
    /// Async-signal-safe.
    fn asked_to_end(&self, signal: c_int) {
        if self.asked.fetch_add(1, Ordering::Relaxed) > 0 {
            self.signal.store(signal, Ordering::Relaxed);
            self.begin(ExitKind::Signal, signal as u8);
            if let Some(link) = &self.ways.link {
                guardian::order_kill(link.as_fd());
            }
            self.flushed.store(true, Ordering::Relaxed);
            self.end_now();
        }
        if !self.page().state().is_member() {
            // No rank waits for this process any more.
            sigact::die_by(signal);
        }
        self.arm(self.timeout() / 2);
        self.call_quit_handler();
        self.signal.store(signal, Ordering::Relaxed);
        self.begin(ExitKind::Signal, signal as u8);
        self.due.store(true, Ordering::Release);
    }

    /// This rank knows that another ends the job, and had its time to come to its end by itself.
    ///
    /// Async-signal-safe.
    fn learn_of_end(&self) {
        if !self.learned.swap(true, Ordering::Relaxed) && self.page().ask_to_end() {
            self.worked_ms.store(processor_ms(), Ordering::Relaxed);
            self.learned_ms.store(now_ms(), Ordering::Relaxed);
            self.arm(self.timeout() / WINDOW_PART);
            self.call_quit_handler();
            self.due.store(true, Ordering::Release);
        }
    }

    /// The guardian says that the job is ending.
    ///
    /// Async-signal-safe.
    fn notified(&self) {
        self.learn_of_end();
        if self.control.job().exit_stage() == ExitStage::Kill {
            selfspawn::end_in_handler(true);
        }
    }

    /// Runs the program's own handler of SIGQUIT, if it has one: GASNet's way to report to a
    /// program that another rank ends the job.
    fn call_quit_handler(&self) {
        let action = Action::of(libc::SIGQUIT);
        if action.function().is_some() && !is_ours(&action) {
            sigact::raise(libc::SIGQUIT);
        }
    }

    /// Stores that this process crashes, right before it does: others end when they learn of it,
    /// and this process is killed with them.
    ///
    /// Async-signal-safe.
    pub(crate) fn crashed(&self, signal: c_int) {
        if self.page().state() != RankState::Exiting {
            self.control.job().set_exit_word(ExitWord {
                kind: ExitKind::Crashed,
                rank: self.rank,
                code: signal as u8,
            });
        }
    }
}

#[cfg(test)]
mod tests;
