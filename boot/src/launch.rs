//! What `argonet run` does: start the ranks, watch them, pass on signals, and settle the exit code.
//!
//! One thread waits in one `poll` for signals, ranks' pidfds, output and the time limit. Only a terminal as standard input
//! takes a second thread. Ranks that have ended are not reaped before the job has: until then their process ids, which are their
//! process groups' ids, cannot be given to others.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, CONDUITS, SPAWN_VERBOSE, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, getrlimit, pidfd_open, setrlimit,
};

use crate::attach::{check_count, make_job};
use crate::binding::allowed_cores;
use crate::board::Board;
use crate::error::{BootError, Missing};
use crate::exit::{LostGuardian, ProcessEnd, Verdict, signal_name, was_ended};
use crate::guardian::{self, Link, SPARE_FILES, raise_file_limit};
use crate::output::{Source, TaggedOutput};
use crate::page::{Control, ExitKind, ExitWord, RankState};
use crate::signals::{LauncherSignals, REPORT, asks_to_end};
use crate::spawn::Spawner;
use crate::sys;

/// The exit code of a job that was ended by its time limit, as timeout(1) has it.
pub const TIMEOUT_CODE: u8 = 124;

/// How much later than a guardian that is on time the launcher kills ranks, beside another time-out.
const SLACK: Duration = Duration::from_millis(500);

/// What to launch and how.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// The number of ranks.
    pub ranks: u64,
    /// The program, looked for in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// One of [`CONDUITS`]; `None` leaves the choice to `ARGONET_CONDUIT`, else the default.
    pub conduit: Option<String>,
    /// Pin rank r to the (r modulo n)-th of the n cores that the launcher may use.
    pub bind: bool,
    /// Put `[rank] ` before each line of output.
    pub tag_output: bool,
    /// End the job after this time.
    pub timeout: Option<Duration>,
}

/// Runs a job to its end and returns its exit code: 0, or that of the first failure (128 + signal number for a rank that was
/// killed), or [`TIMEOUT_CODE`]. A failure's reason is printed on standard error as one line beginning `argonet run: `.
///
/// The calling process must have one thread. When this returns, all ranks and their process groups have ended.
///
/// # Errors
/// When the job could not be started; nothing is left of it then. [`BootError::exit_code`] is the code to exit with.
pub fn launch(options: &LaunchOptions, settings: &Settings) -> Result<u8, BootError> {
    let size = check_count(options.ranks)?;
    let conduit = choose_conduit(options.conduit.clone(), settings)?;
    let cores = if options.bind {
        Some(allowed_cores()?)
    } else {
        None
    };
    let file_limit = prepare_file_limit(size, options.tag_output)?;
    let verbose = settings.get(&SPAWN_VERBOSE);
    let (files, control) = make_job(size, settings)?;
    let signals = LauncherSignals::collect()
        .map_err(|e| BootError::system("preparing to pass on signals", e))?;
    let link = &guardian::start(&control, None)?;
    let spawner = Spawner {
        program: &options.program,
        args: &options.args,
        conduit: &conduit,
        cores,
        control: &control,
        files: &files,
        link: link.as_fd(),
        mask: signals.mask_before(),
        file_limit,
    };
    let mut job = Launched {
        control: &control,
        signals: &signals,
        link,
        guardian_gone: false,
        ranks: Vec::with_capacity(size as usize),
        output: options.tag_output.then(TaggedOutput::new),
        deadline: options.timeout.and_then(|t| Instant::now().checked_add(t)),
        asked_to_end: false,
        verbose,
        end_by: None,
        ending: false,
        cancelled: None,
        late_failure: None,
    };
    if verbose {
        let guardian = control.job().guardian_pid().unwrap_or(0);
        say(&format!(
            "{size} ranks are started; the guardian is process {guardian}"
        ));
    }
    for rank in (0..size).map(JobRank) {
        if let Err(error) = job.start(&spawner, rank) {
            job.kill_all();
            job.reap();
            link.farewell();
            return Err(error);
        }
    }
    while job.ranks.iter().any(|r| r.end.is_none()) {
        job.step(options.timeout);
    }
    let (code, reason) = job.finish();
    if verbose {
        say(&format!("the job has ended with code {code}"));
    }
    drop(signals);
    let _ = setrlimit(Resource::Nofile, file_limit);
    if let Some(reason) = reason {
        say(&reason);
    }
    Ok(code)
}

fn say(what: &str) {
    sys::say(&format!("argonet run: {what}"));
}

fn choose_conduit(given: Option<String>, settings: &Settings) -> Result<String, BootError> {
    let given = given.unwrap_or_else(|| settings.get(&CONDUIT).into());
    match CONDUITS.contains(&given.as_str()) {
        true => Ok(given),
        false => Err(BootError::UnknownConduit {
            given,
            known: CONDUITS.join(", "),
        }),
    }
}

/// Makes room for the launcher's files; the limit as it was, for the ranks.
fn prepare_file_limit(size: u32, tag_output: bool) -> Result<Rlimit, BootError> {
    let need = u64::from(size) * if tag_output { 3 } else { 1 } + SPARE_FILES;
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < need => Err(BootError::NoFiles {
            size,
            need,
            limit,
            who: "the launcher",
        }),
        _ => Ok(raise_file_limit(need)),
    }
}

struct RankProcess {
    pid: Pid,
    pidfd: OwnedFd,
    end: Option<ProcessEnd>,
}

struct Launched<'a> {
    control: &'a Control,
    signals: &'a LauncherSignals,
    link: &'a Link,
    guardian_gone: bool,
    ranks: Vec<RankProcess>,
    output: Option<TaggedOutput>,
    deadline: Option<Instant>,
    /// Whether an interrupt or termination signal has been passed on.
    asked_to_end: bool,
    /// Whether to tell of processes that start and end.
    verbose: bool,
    /// When ranks are killed that have not ended after one has asked for the end of the job: later than the guardian does
    /// it, if there is one.
    end_by: Option<Instant>,
    /// Whether the ranks have been killed.
    ending: bool,
    /// The code and reason of a job that this launcher decided to end.
    cancelled: Option<(u8, String)>,
    /// The first rank that ended badly after it had finalised: the job's code, but no reason to end the others.
    late_failure: Option<JobRank>,
}

enum Event {
    Signal,
    Guardian,
    Rank(usize),
    Output(Source),
}

impl Launched<'_> {
    fn start(&mut self, spawner: &Spawner<'_>, rank: JobRank) -> Result<(), BootError> {
        let output = match &mut self.output {
            Some(output) => Some(
                output
                    .add_rank(rank)
                    .map_err(|e| BootError::system("making a pipe for a rank's output", e))?,
            ),
            None => None,
        };
        let pid = spawner.start(rank, output)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| {
            // Not reaped yet, so the id is still the child's.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            BootError::system(format!("watching rank {rank}"), e)
        })?;
        if self.verbose {
            say(&format!("rank {rank} is process {pid}"));
        }
        self.ranks.push(RankProcess {
            pid,
            pidfd,
            end: None,
        });
        Ok(())
    }

    /// Waits for events and acts on them.
    fn step(&mut self, timeout: Option<Duration>) {
        for event in self.wait() {
            match event {
                Event::Signal => {
                    while let Some(signal) = self.signals.next() {
                        if signal == REPORT {
                            self.report();
                        } else {
                            self.pass_on(signal);
                        }
                    }
                }
                Event::Guardian => {
                    self.guardian_gone = true;
                    let (pid, end) = self.link.guardian_end();
                    say(&format!(
                        "warning: {}; if this launcher is killed too, processes that ranks started may be left behind",
                        LostGuardian(pid, end)
                    ));
                }
                Event::Rank(i) => self.rank_ended(i),
                Event::Output(source) => {
                    if let Some(output) = &mut self.output {
                        output.serve(source);
                    }
                }
            }
        }
        self.look_at_exit_word();
        if !self.ending && self.deadline.is_some_and(|d| Instant::now() >= d) {
            let limit = timeout.unwrap_or_default().as_secs_f64();
            let left = (0_u32..)
                .map(JobRank)
                .zip(&self.ranks)
                .filter(|(_, r)| r.end.is_none())
                .map(|(r, _)| r)
                .collect();
            let reason = format!(
                "the job did not end within {limit} s (--timeout); {} still ran and were ended",
                Missing(left)
            );
            self.cancel(TIMEOUT_CODE, reason);
        }
    }

    /// Ends what the guardian does not, or what has to end at once.
    fn look_at_exit_word(&mut self) {
        let Some(word) = self.control.job().exit_word() else {
            return;
        };
        if self.ending || self.ranks.iter().all(|r| r.end.is_none()) {
            return;
        }
        let now = Instant::now();
        if word.kind.leaves_time() {
            let timeout = self.control.job().exit_timeout();
            let limit = match self.guardian_gone {
                true => timeout,
                // It gives the ranks most of the time-out from the moment that it has told them, which may be late.
                false => 2 * timeout + SLACK,
            };
            if now < *self.end_by.get_or_insert(now + limit) {
                return;
            }
        }
        self.kill_all();
    }

    fn wait(&self) -> Vec<Event> {
        let mut events = vec![Event::Signal];
        let mut fds = vec![PollFd::new(self.signals, PollFlags::IN)];
        if !self.guardian_gone {
            fds.push(PollFd::new(self.link, PollFlags::IN));
            events.push(Event::Guardian);
        }
        for (i, rank) in self
            .ranks
            .iter()
            .enumerate()
            .filter(|(_, r)| r.end.is_none())
        {
            fds.push(PollFd::new(&rank.pidfd, PollFlags::IN));
            events.push(Event::Rank(i));
        }
        if let Some(output) = &self.output {
            let mut sources = Vec::new();
            output.poll_fds(&mut fds, &mut sources);
            events.extend(sources.into_iter().map(Event::Output));
        }
        let next = self.deadline.into_iter().chain(self.end_by).min();
        let left = next
            .filter(|_| !self.ending)
            .map(|d| d.saturating_duration_since(Instant::now()));
        // A time that the system's type cannot hold never comes.
        let limit = left.and_then(|d| Timespec::try_from(d).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) => events
                .into_iter()
                .zip(&fds)
                .filter(|(_, fd)| !fd.revents().is_empty())
                .map(|(e, _)| e)
                .collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Says what all ranks wait for, and asks them for more.
    fn report(&self) {
        let board = Board::new(self.control);
        say(&format!("all ranks:\n{board}"));
        board.ask_for_reports(board.reports_asked());
    }

    fn pass_on(&mut self, signal: Signal) {
        if asks_to_end(signal) && std::mem::replace(&mut self.asked_to_end, true) {
            let number = signal.as_raw();
            let reason = format!(
                "signal {number} ({}) came a second time; the ranks were killed",
                signal_name(number)
            );
            self.cancel(128 + number as u8, reason);
            return;
        }
        if !self.ending {
            self.ranks
                .iter()
                .for_each(|r| sys::signal_group(r.pidfd.as_fd(), r.pid, signal));
        }
        if signal == Signal::TSTP {
            // The ranks stop, and so does the launcher, until it is continued.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
    }

    fn cancel(&mut self, code: u8, reason: String) {
        self.cancelled.get_or_insert((code, reason));
        self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Cancelled,
            rank: JobRank(0),
            code,
        });
        self.kill_all();
    }

    fn kill_all(&mut self) {
        self.ending = true;
        self.ranks
            .iter()
            .for_each(|r| sys::signal_group(r.pidfd.as_fd(), r.pid, Signal::KILL));
    }

    fn rank_ended(&mut self, i: usize) {
        let end = ProcessEnd::wait(WaitId::PidFd(self.ranks[i].pidfd.as_fd()), false);
        self.ranks[i].end = Some(end);
        let rank = JobRank(i as u32);
        let page = self.control.rank_page(rank);
        page.end_unattached();
        let state = page.state();
        if self.verbose {
            let how = match end {
                ProcessEnd::Code(code) => format!("exited with code {code}"),
                ProcessEnd::Signal(signal) => format!("was ended by signal {signal}"),
                ProcessEnd::Unknown => "has ended".into(),
            };
            say(&format!("rank {rank} {how}, {}", state.words()));
        }
        if !end.is_failure(state) {
            return;
        }
        if matches!(state, RankState::Finalised | RankState::Exiting) {
            self.late_failure.get_or_insert(rank);
        } else {
            let kind = if state.is_member() {
                ExitKind::Died
            } else {
                ExitKind::Failed
            };
            self.control.job().set_exit_word(ExitWord {
                kind,
                rank,
                code: end.shell_code(),
            });
        }
    }

    /// Waits for the end of all ranks and lets their process ids go.
    fn reap(&self) {
        for rank in &self.ranks {
            ProcessEnd::wait(WaitId::PidFd(rank.pidfd.as_fd()), true);
        }
    }

    /// All ranks have ended: ends what they left behind, and settles the code and its reason.
    fn finish(mut self) -> (u8, Option<String>) {
        self.kill_all();
        let (code, reason) = self.outcome();
        self.reap();
        self.link.farewell();
        if let Some(output) = self.output.take() {
            // An interrupt must end a launcher whose output is not taken.
            self.signals.mask_before().restore();
            output.finish();
        }
        (code, reason)
    }

    fn outcome(&self) -> (u8, Option<String>) {
        if let Some((code, reason)) = &self.cancelled {
            return (*code, Some(reason.clone()));
        }
        let word = match (self.control.job().exit_word(), self.late_failure) {
            (Some(word), Some(rank)) if self.went_well(word) => failed(rank),
            (Some(word), _) => word,
            (None, Some(rank)) => failed(rank),
            (None, None) => return (0, None),
        };
        let others_ended = match word.kind {
            ExitKind::Failed if self.late_failure == Some(word.rank) => false,
            kind if kind.leaves_time() => self.others_ended(word.rank),
            _ => self.ranks.len() > 1,
        };
        let Some(process) = self.ranks.get(word.rank.index()) else {
            return (word.code.max(1), Some(word.to_string()));
        };
        let state = self.control.rank_page(word.rank).state();
        let pid = process.pid.as_raw_nonzero().get() as u32;
        let verdict = Verdict::new(
            word,
            pid,
            process.end.unwrap_or(ProcessEnd::Unknown),
            state,
            others_ended,
        );
        let line = verdict.is_news().then(|| verdict.to_string());
        (verdict.code(), line)
    }

    /// Whether ranks beside `rank` were made to end.
    fn others_ended(&self, rank: JobRank) -> bool {
        (0..).map(JobRank).zip(&self.ranks).any(|(r, process)| {
            let state = self.control.rank_page(r).state();
            r != rank && was_ended(state, process.end.unwrap_or(ProcessEnd::Unknown))
        })
    }

    /// Whether all ranks asked for the end that `word` stands for, with code 0.
    fn went_well(&self, word: ExitWord) -> bool {
        word.kind.leaves_time() && word.process_code() == 0 && !self.others_ended(word.rank)
    }
}

fn failed(rank: JobRank) -> ExitWord {
    ExitWord {
        kind: ExitKind::Failed,
        rank,
        code: 1,
    }
}
