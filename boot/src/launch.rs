//! `argonet run`: start the ranks, watch them, pass on signals, and settle the exit code.
//!
//! One thread waits in one `poll` for signals, ranks' pidfds, output and the time limit. Only a
//! terminal as standard input takes a second thread. A job over several hosts is the part of
//! [`crate::hosts`].

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_settings::{
    CONDUIT, CONDUIT_NAMES, ON_RANK_LOST, OnRankLost, Reach, SPAWN_VERBOSE, Settings, environment,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::attach::{check_count, make_part, neighborhood_limit, new_job_id};
use crate::binding::allowed_cores;
use crate::board::Board;
use crate::error::{BootError, Missing};
use crate::exit::{LostGuardian, signal_name};
use crate::file_limit::{SPARE_FILES, raise_file_limit};
use crate::foreign;
use crate::guardian::{self, News};
use crate::hosts::{self, HostOptions};
use crate::judgment::obstacle;
use crate::outcome::{in_words, is_outlived, loss_in_words, settle};
use crate::output::{Source, TaggedOutput, code_without_output};
use crate::page::{Control, ExitKind, ExitWord, HostPart};
use crate::ranks::{HostRanks, RankEvent};
use crate::secret::Secret;
use crate::signals::{LauncherSignals, REPORT, asks_to_end};
use crate::spawn::{Environment, Spawner};
use crate::sys;

/// The exit code of a job that was ended by its time limit, as timeout(1) has it.
pub const TIMEOUT_CODE: u8 = 124;

/// In [`LaunchOptions::conduit`]: the ranks communicate by the bootstrap alone, or are no programs
/// of argonet at all.
pub const NO_CONDUIT: &str = "none";

/// The program to launch, and options.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// The number of ranks.
    pub ranks: u64,
    /// The program, looked for in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// One of [`CONDUIT_NAMES`], or [`NO_CONDUIT`]; `None` leaves it to `ARGONET_CONDUIT`, else
    /// the default.
    pub conduit: Option<String>,
    /// Pin rank r to the (r modulo n)-th of the n cores that the launcher may use.
    pub bind: bool,
    /// Put `[rank] ` before each line of output.
    pub tag_output: bool,
    /// End the job after this time.
    pub timeout: Option<Duration>,
    /// What becomes of the job when a rank dies; `None` leaves it to `ARGONET_ON_RANK_LOST`.
    pub on_rank_lost: Option<OnRankLost>,
    /// The hosts to run on, and how to get there; this host alone unless some are named here or in
    /// the settings.
    pub hosts: HostOptions,
}

/// Runs a job to its end and returns its exit code: 0, or that of the first failure (128 + signal
/// number for a rank that was killed), or [`TIMEOUT_CODE`].
///
/// A failure's reason is printed on standard error as one line beginning `argonet run: `.
///
/// The calling process must have one thread. When this returns, all ranks and their process groups
/// have ended; on other hosts they have been asked to end, and the agents there see to it, if their
/// connections were lost.
///
/// # Errors
/// When the job could not be started; nothing is left of it then. [`BootError::exit_code`] is the
/// code to exit with.
pub fn launch(options: &LaunchOptions, settings: &Settings) -> Result<u8, BootError> {
    let conduit = choose_conduit(options.conduit.clone(), settings)?;
    for name in &options.hosts.propagate {
        if !environment::is_set(name) {
            return Err(BootError::UnknownVariable {
                name: name.clone(),
                nearest: environment::nearest(name),
            });
        }
    }
    if let Some(warning) = foreign::warning("an `argonet run`") {
        say(&warning);
    }
    foreign::keep_socket_from_children();
    let chosen = options.on_rank_lost;
    let goes_on = chosen.unwrap_or_else(|| settings.get(&ON_RANK_LOST)) == OnRankLost::Continue;
    match hosts::choose(&options.hosts, &conduit, settings)? {
        Some(hosts) => hosts::launch(options, &conduit, goes_on, hosts, settings),
        None => launch_here(options, &conduit, goes_on, "--timeout", settings),
    }
}

/// As [`launch`], for the job of a test: on this host, whatever the settings say of others.
pub(crate) fn launch_test(options: &LaunchOptions, settings: &Settings) -> Result<u8, BootError> {
    let conduit = choose_conduit(options.conduit.clone(), settings)?;
    foreign::keep_socket_from_children();
    let goes_on = settings.get(&ON_RANK_LOST) == OnRankLost::Continue;
    launch_here(
        options,
        &conduit,
        goes_on,
        "`timeout` of the test",
        settings,
    )
}

/// `limit` is what the user calls the time limit.
fn launch_here(
    options: &LaunchOptions,
    conduit: &str,
    goes_on: bool,
    limit: &'static str,
    settings: &Settings,
) -> Result<u8, BootError> {
    let size = check_count(options.ranks)?;
    let cores = if options.bind {
        Some(allowed_cores()?)
    } else {
        None
    };
    let part = HostPart {
        neighborhood: neighborhood_limit(conduit, settings),
        ..HostPart::whole(size)
    };
    let file_limit = prepare_file_limit(size, options.tag_output)?;
    let verbose = settings.get(&SPAWN_VERBOSE);
    let key = Secret::new()?;
    let (files, control) = make_part(new_job_id()?, size, part, settings)?;
    control.job().set_goes_on(goes_on);
    let signals = LauncherSignals::collect()
        .map_err(|e| BootError::system("preparing to pass on signals", e))?;
    let link = &guardian::start(&control, guardian::Maker::Launcher)?;
    let mut spawner = Spawner {
        program: &options.program,
        args: &options.args,
        environment: Environment::Own { conduit },
        cores,
        control: &control,
        files,
        reaches_segments: Reach::of(conduit, settings).segments,
        link: link.as_fd(),
        key: &key,
        input: None,
        mask: signals.mask_before(),
        file_limit,
    };
    let mut job = Launched {
        control: &control,
        signals: &signals,
        ranks: HostRanks::new(&control, link),
        output: options.tag_output.then(TaggedOutput::new),
        limit: options.timeout.map(|time| TimeLimit::new(time, limit)),
        asked_to_end: false,
        verbose,
        canceled: None,
    };
    if verbose {
        let guardian = control.job().guardian_pid().unwrap_or(0);
        say(&format!(
            "{size} ranks are started; the guardian is process {guardian}"
        ));
    }
    for rank in (0..size).map(JobRank) {
        if let Err(error) = job.start(&mut spawner, rank) {
            job.ranks.kill_all();
            job.ranks.reap();
            link.farewell();
            return Err(error);
        }
    }
    drop(spawner);
    while !job.ranks.all_ended() {
        job.step();
    }
    let (code, reason) = job.finish(link);
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

pub(crate) fn say(what: &str) {
    sys::say(&format!("argonet run: {what}"));
}

fn choose_conduit(given: Option<String>, settings: &Settings) -> Result<String, BootError> {
    let given = given.unwrap_or_else(|| settings.get(&CONDUIT).into());
    match given == NO_CONDUIT || CONDUIT_NAMES.contains(&given.as_str()) {
        true => Ok(given),
        false => Err(BootError::UnknownConduit {
            given,
            known: CONDUIT_NAMES.join(", "),
        }),
    }
}

/// Makes room for the launcher's files; the limit as it was, for the ranks.
pub(crate) fn prepare_file_limit(size: u32, output: bool) -> Result<Rlimit, BootError> {
    let need = u64::from(size) * if output { 3 } else { 1 } + SPARE_FILES;
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

struct Launched<'a> {
    control: &'a Control,
    signals: &'a LauncherSignals,
    ranks: HostRanks<'a>,
    output: Option<TaggedOutput>,
    limit: Option<TimeLimit>,
    /// Whether an interrupt or termination signal has been passed on.
    asked_to_end: bool,
    /// Whether to report processes that start and end.
    verbose: bool,
    /// The code and reason of a job that this launcher decided to end.
    canceled: Option<(u8, String)>,
}

/// How long a job may take.
///
/// One that takes longer first says where its ranks are, and gets some time for that.
pub(crate) struct TimeLimit {
    time: Duration,
    /// What the user calls it.
    name: &'static str,
    /// When it is to act next; `None` where the clock cannot hold the time.
    next: Option<Instant>,
    has_reported: bool,
}

/// What is due for a job that takes too long.
pub(crate) enum Overdue {
    /// A report of all ranks.
    Reports,
    /// Its end; the limit in words.
    Ends(String),
}

impl TimeLimit {
    /// For waiting ranks to add what they know: they look for requests every few milliseconds.
    const FOR_REPORTS: Duration = Duration::from_millis(500);

    pub(crate) fn new(time: Duration, name: &'static str) -> Self {
        Self {
            time,
            name,
            next: Instant::now().checked_add(time),
            has_reported: false,
        }
    }

    /// When to look again.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The code and reason of a job that has ended by itself: not its own if it ended well, but
    /// after the limit.
    pub(crate) fn settle(&self, ended: (u8, Option<String>)) -> (u8, Option<String>) {
        match ended {
            (0, _) if self.has_reported => {
                let (seconds, name) = (self.time.as_secs_f64(), self.name);
                let reason = format!("the job took longer than {seconds} s ({name})");
                (TIMEOUT_CODE, Some(reason))
            }
            ended => ended,
        }
    }

    /// What is due now.
    pub(crate) fn act(&mut self) -> Option<Overdue> {
        self.next.filter(|next| Instant::now() >= *next)?;
        if !std::mem::replace(&mut self.has_reported, true) {
            self.next = Instant::now().checked_add(Self::FOR_REPORTS);
            return Some(Overdue::Reports);
        }
        self.next = None;
        let (seconds, name) = (self.time.as_secs_f64(), self.name);
        Some(Overdue::Ends(format!("{seconds} s ({name})")))
    }
}

enum Event {
    Signal,
    Rank(RankEvent),
    Output(Source),
}

impl Launched<'_> {
    fn start(&mut self, spawner: &mut Spawner<'_>, rank: JobRank) -> Result<(), BootError> {
        let output = match &mut self.output {
            Some(output) => Some(
                output
                    .add_rank(rank)
                    .map_err(|e| BootError::system("making a pipe for a rank's output", e))?,
            ),
            None => None,
        };
        let pid = self.ranks.start(spawner, output)?;
        if self.verbose {
            say(&format!("rank {rank} is process {pid}"));
        }
        Ok(())
    }

    /// Judges ranks that were found to have ended, all at one look, and says which are lost.
    fn ranks_ended(&mut self, ended: &[usize]) {
        let left = self.ranks.left();
        let judge = |&i: &usize| (self.ranks.rank(i), self.ranks.rank_ended(i));
        let fates: Vec<_> = ended.iter().map(judge).collect();
        for &(rank, fate) in &fates {
            if let Some(order) = fate.lost {
                let others_left = is_outlived(rank, order, &left, &fates);
                say(&loss_in_words(rank, &fate, others_left));
            } else if self.verbose {
                say(&in_words(rank, &fate));
            }
        }
    }

    /// Waits for events and acts on them.
    fn step(&mut self) {
        let mut ended = Vec::new();
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
                Event::Rank(RankEvent::Guardian) => {
                    if let Some(News::Gone(pid, end)) = self.ranks.news() {
                        say(&LostGuardian(pid, end).warning());
                    }
                }
                Event::Rank(RankEvent::Rung(i)) => self.ranks.answer(i),
                Event::Rank(RankEvent::Ended(i)) => ended.push(i),
                Event::Output(source) => {
                    if let Some(output) = &mut self.output {
                        output.serve(source);
                    }
                }
            }
        }
        self.ranks_ended(&ended);
        self.ranks.look_at_exit_word(Instant::now());
        if !self.ranks.are_killed() {
            match self.limit.as_mut().and_then(TimeLimit::act) {
                Some(Overdue::Reports) => self.report(),
                Some(Overdue::Ends(how_long)) => {
                    let left = Missing(self.ranks.left());
                    let reason = format!(
                        "the job did not end within {how_long}; {left} still ran and were ended"
                    );
                    self.cancel(TIMEOUT_CODE, reason);
                }
                None => {}
            }
        }
    }

    fn wait(&self) -> Vec<Event> {
        let mut events = vec![Event::Signal];
        let mut fds = vec![PollFd::new(self.signals, PollFlags::IN)];
        let mut about_ranks = Vec::new();
        self.ranks.poll_fds(&mut fds, &mut about_ranks);
        events.extend(about_ranks.into_iter().map(Event::Rank));
        if let Some(output) = &self.output {
            let mut sources = Vec::new();
            output.poll_fds(&mut fds, &mut sources);
            events.extend(sources.into_iter().map(Event::Output));
        }
        let limit = self.limit.as_ref().and_then(TimeLimit::next);
        let next = limit.into_iter().chain(self.ranks.deadline()).min();
        let next = next.filter(|_| !self.ranks.are_killed());
        fired(&mut fds, events, next)
    }

    /// Says what all ranks wait for, and asks them for more.
    fn report(&self) {
        let board = Board::new(self.control);
        say(&format!("all ranks:\n{board}"));
        board.ask_for_reports(board.reports_asked());
    }

    fn pass_on(&mut self, signal: Signal) {
        if asks_to_end(signal) && std::mem::replace(&mut self.asked_to_end, true) {
            let (code, reason) = second_signal(signal);
            self.cancel(code, reason);
            return;
        }
        self.ranks.signal(signal);
        if signal == Signal::TSTP {
            stop_this_process();
        }
    }

    fn cancel(&mut self, code: u8, reason: String) {
        self.canceled.get_or_insert((code, reason));
        self.ranks.cancel(canceled(code));
    }

    /// All ranks have ended: ends their remaining descendants, and settles the code and its reason.
    fn finish(mut self, link: &guardian::Link) -> (u8, Option<String>) {
        self.ranks.kill_all();
        let (mut code, reason) = match self.canceled.take() {
            Some((code, reason)) => (code, Some(reason)),
            None => {
                let ended = settle(
                    self.control.job().exit_word(),
                    self.ranks.late_failure(),
                    &self.ranks.fates(),
                    obstacle(self.control),
                );
                match &self.limit {
                    Some(limit) => limit.settle(ended),
                    None => ended,
                }
            }
        };
        self.ranks.reap();
        link.farewell();
        if let Some(output) = self.output.take() {
            // An interrupt must end a launcher whose output is not taken.
            self.signals.mask_before().restore();
            for lost in output.finish() {
                say(&lost);
                code = code_without_output(code);
            }
        }
        (code, reason)
    }
}

/// Waits until a descriptor is ready or `next` comes; returns the events of the ready ones.
pub(crate) fn fired<E>(fds: &mut [PollFd<'_>], events: Vec<E>, next: Option<Instant>) -> Vec<E> {
    let left = next.map(|d| d.saturating_duration_since(Instant::now()));
    // A time that the system's type cannot hold never comes.
    let limit = left.and_then(|d| Timespec::try_from(d).ok());
    match poll(fds, limit.as_ref()) {
        Ok(_) => events
            .into_iter()
            .zip(fds.iter())
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(e, _)| e)
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// The code and reason of a job whose user has lost patience.
pub(crate) fn second_signal(signal: Signal) -> (u8, String) {
    let number = signal.as_raw();
    let reason = format!(
        "signal {number} ({}) came a second time; the ranks were killed",
        signal_name(number)
    );
    (128 + number as u8, reason)
}

/// The word of a job that its launcher ends.
pub(crate) const fn canceled(code: u8) -> ExitWord {
    ExitWord {
        kind: ExitKind::Canceled,
        rank: JobRank(0),
        code,
    }
}

/// The ranks stop, and so does the launcher, until it is continued.
pub(crate) fn stop_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
