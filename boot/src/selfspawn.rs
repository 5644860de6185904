//! A job that starts itself: the process that the user started becomes rank 0 and forks the others.
//!
//! Rank 0 then plays the launcher's part too. It has no loop of its own to do so, so it acts at
//! three moments: when it exits, in an exit handler that waits for the other ranks and settles the
//! exit code; when the guardian has seen another rank fail, in a signal handler that reports the
//! failure and ends the process with the job's code; and when the guardian has been killed, in the
//! same handler.

use core::ffi::c_int;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{
    CONDUIT, ON_RANK_LOST, OnRankLost, Reach, SPAWN_VERBOSE, START_TIMEOUT, Settings,
};
use rustix::process::{
    Pid, Resource, Signal, WaitId, WaitIdOptions, getpgrp, getpid, getppid, getrlimit,
    kill_process_group, set_parent_process_death_signal, setpgid, waitid,
};

use crate::attach::{make_part, neighborhood_limit, new_job_id};
use crate::board::Board;
use crate::error::BootError;
use crate::exit::{ProcessEnd, SmallStack, Verdict, was_ended};
use crate::file_limit::SPARE_FILES;
use crate::files::SharedFiles;
use crate::guardian::{self, Link, Maker, Rank0};
use crate::line::Line;
use crate::local::LocalJob;
use crate::page::{Control, ExitKind, ExitWord, HostPart, RankState};
use crate::secret::Secret;
use crate::sigact::{self, Action, Arrival, Handle};
use crate::signals::REPORT;
use crate::{judgment, streams, sys};

/// Whether this process, or the one that it was forked from, has forked ranks: a process does so
/// once.
static SPAWNED: AtomicBool = AtomicBool::new(false);
/// State that rank 0 needs at its end, reachable from exit and signal handlers.
static CHILDREN: OnceLock<Children> = OnceLock::new();

/// The other ranks, as rank 0 remembers them.
#[derive(Debug)]
struct Children {
    control: Arc<Control>,
    /// Process ids of ranks 1, 2, ...
    pids: Vec<Pid>,
    /// The process that is rank 0; a copy that it forks must not act.
    owner: Pid,
    /// Whether the exit handler has begun.
    exiting: AtomicBool,
    /// Open as long as rank 0 lives; from it the guardian learns of rank 0's end, and rank 0 of the
    /// guardian's.
    link: Link,
}

/// Forks ranks 1 to `size` - 1 and returns in each of them.
pub(crate) fn spawn(size: u32, settings: &Settings) -> Result<(LocalJob, OwnedFd), BootError> {
    let start_timeout = settings.get(&START_TIMEOUT);
    let threads = sys::thread_count().map_err(|e| BootError::system("counting threads", e))?;
    if threads != 1 {
        return Err(BootError::SecondThread {
            threads,
            what: "the other ranks (GASNET_PSHM_NODES)",
        });
    }
    if SPAWNED.swap(true, Ordering::Relaxed) {
        let (pid, state) = (
            process::id(),
            "this process or its parent forked the ranks of a job before",
        );
        return Err(BootError::RankTaken {
            rank: JobRank(0),
            pid,
            state,
        });
    }
    check_file_limit(size)?;
    let key = Secret::new()?;
    let part = HostPart {
        neighborhood: neighborhood_limit(settings.peek(&CONDUIT), settings),
        ..HostPart::whole(size)
    };
    let (files, control) = make_part(new_job_id()?, size, part, settings)?;
    let goes_on = settings.get(&ON_RANK_LOST) == OnRankLost::Continue;
    control.job().set_goes_on(goes_on);
    let control = Arc::new(control);
    // Every rank would write the text that is buffered now.
    streams::flush();
    let own_group = leave_group_without_terminal();
    // The guardian may ask rank 0 to end before there is a handler: the signal waits until one has
    // been installed.
    let blocked = Action::of(sys::job_signal())
        .is_default()
        .then(BlockedSignal::new);
    let link = guardian::start(&control, Maker::Rank0(Rank0 { own_group }))?;
    let own_link = (link.as_fd().try_clone_to_owned())
        .map_err(|e| BootError::system("keeping the way to the guardian", e))?;
    let owner = getpid();
    let mut pids = Vec::with_capacity(size as usize);
    // Those of the neighborhood whose ranks are being forked, where it is not that of rank 0.
    let mut others: Option<SharedFiles> = None;
    let reach = Reach::of(settings.peek(&CONDUIT), settings);
    for rank in (1..size).map(JobRank) {
        let begins = control.part().around(rank).start == rank.0;
        let prepared = begins
            .then(|| files.of_other_neighborhood(reach.segments))
            .transpose();
        let forked = prepared.and_then(|new| {
            others = new.or_else(|| others.take());
            fork_rank(rank, &control, &link, owner).map_err(|e| no_process(rank, size, e))
        });
        match forked {
            Ok(Some(pid)) => pids.push(pid),
            Ok(None) => {
                keep_blocked(blocked);
                let files = others.unwrap_or(files);
                return Ok((local(control, files, key, rank, start_timeout), own_link));
            }
            Err(e) => {
                // First: it would take the ranks that end now for a failure of the job.
                link.dismiss();
                pids.iter().for_each(|&pid| kill_child_group(pid));
                for &pid in &pids {
                    ProcessEnd::wait(WaitId::Pid(pid), true);
                }
                return Err(e);
            }
        }
    }
    keep_blocked(blocked);
    control.rank_page(JobRank(0)).join(process::id());
    let children = Children {
        control: control.clone(),
        pids,
        owner,
        exiting: AtomicBool::new(false),
        link,
    };
    // `SPAWNED` has made sure that this is the only time.
    let _ = CHILDREN.set(children);
    if settings.get(&SPAWN_VERBOSE) {
        with_children(|c| {
            let guardian = c.control.job().guardian_pid().unwrap_or(0);
            let pids: Vec<String> = c.pids.iter().map(Pid::to_string).collect();
            sys::say(&format!(
                "argonet: rank 0 is process {}, the others are {}, the guardian is {guardian}",
                c.owner,
                pids.join(", ")
            ));
        });
    }
    if Action::of(REPORT.as_raw()).is_default() {
        Action::calling::<Report>()
            .on_own_stack()
            .install(REPORT.as_raw());
        sys::SignalSet::of(&[REPORT.as_raw()]).unblock();
    }
    let job = local(control, files, key, JobRank(0), start_timeout);
    Ok((job, own_link))
}

/// The guardian's signal, blocked in this thread until there is a handler, or starting fails.
struct BlockedSignal {
    before: sys::SignalSet,
}

impl BlockedSignal {
    fn new() -> Self {
        let before = sys::SignalSet::of(&[sys::job_signal()]).block();
        Self { before }
    }
}

impl Drop for BlockedSignal {
    fn drop(&mut self) {
        // Discards the signal if it has come.
        let before = Action::ignoring().install(sys::job_signal());
        self.before.restore();
        before.install(sys::job_signal());
    }
}

/// Ranks have been made: `process::install` unblocks the signal when its handler is there.
fn keep_blocked(signal: Option<BlockedSignal>) {
    std::mem::forget(signal);
}

fn local(
    control: Arc<Control>,
    files: SharedFiles,
    key: Secret,
    rank: JobRank,
    start_timeout: Duration,
) -> LocalJob {
    LocalJob {
        control,
        files,
        rank,
        start_timeout,
        launched: false,
        line: Line::default(),
        key,
        turn: Mutex::default(),
    }
}

fn check_file_limit(size: u32) -> Result<(), BootError> {
    let need = u64::from(size) + SPARE_FILES;
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < need => Err(BootError::NoFiles {
            size,
            need,
            limit,
            who: "the guardian",
        }),
        _ => Ok(()),
    }
}

/// The error for a rank that could not be forked.
pub(crate) fn no_process(rank: JobRank, size: u32, error: std::io::Error) -> BootError {
    if error.raw_os_error() == Some(libc::EAGAIN) {
        let nproc = getrlimit(Resource::Nproc)
            .current
            .map_or("unlimited".into(), |n| n.to_string());
        return BootError::NoProcess { rank, size, nproc };
    }
    BootError::system(format!("starting rank {rank} of {size}"), error)
}

/// Without a controlling terminal, makes sure that this process leads its own process group;
/// whether it does.
fn leave_group_without_terminal() -> bool {
    if File::open("/dev/tty").is_ok() {
        return false;
    }
    // A session leader may not move, and need not: it leads its group already.
    let _ = setpgid(None, None);
    getpgrp() == getpid()
}

/// Forks one rank: `None` in it, its id in rank 0.
fn fork_rank(
    rank: JobRank,
    control: &Control,
    link: &Link,
    owner: Pid,
) -> std::io::Result<Option<Pid>> {
    let Some(pid) = sys::fork()? else {
        become_rank(rank, control, link, owner);
        return Ok(None);
    };
    // Both sides do this, so that it is done by the one that runs first.
    let _ = setpgid(Some(pid), Some(pid));
    Ok(Some(pid))
}

fn become_rank(rank: JobRank, control: &Control, link: &Link, owner: Pid) {
    let armed = set_parent_process_death_signal(Some(Signal::KILL));
    let grouped = setpgid(None, None);
    let input = File::open("/dev/null").and_then(sys::become_stdin);
    if armed.is_err() || grouped.is_err() || input.is_err() || getppid() != Some(owner) {
        sys::exit_now(1);
    }
    guardian::announce(link.as_fd(), rank);
    control.rank_page(rank).join(process::id());
}

/// Kills the group of a rank that this process forked, unless the program has reaped it, when its
/// id may be another's.
fn kill_child_group(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    if waitid(WaitId::Pid(pid), options).is_ok() {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Acts for rank 0; not in a process that rank 0 has forked.
fn with_children(act: impl FnOnce(&'static Children)) {
    if let Some(children) = CHILDREN.get().filter(|c| c.owner == getpid()) {
        act(children);
    }
}

/// From now on the end of the guardian ends the job: no other process would see another rank go.
///
/// After the signal's handler has been installed.
pub(crate) fn watch_guardian() {
    with_children(|c| {
        sigact::signal_on_hang_up(c.link.as_fd(), sys::job_signal());
        // Events before this sent no signal.
        if c.link.is_broken() {
            c.guardian_gone();
        }
    });
}

/// The exit hook of rank 0's process, which exits with `code`.
pub(crate) fn at_exit(code: c_int) {
    with_children(|c| c.at_exit(code));
}

/// The process of rank 0 is about to end without exit handlers: waits for the other ranks, and with
/// `report`, unless an exit handler is doing so, reports the end and exits.
///
/// Async-signal-safe.
pub(crate) fn end_in_handler(report: bool) {
    with_children(|c| c.end(report));
}

/// The guardian may have gone.
///
/// Async-signal-safe.
pub(crate) fn guardian_gone() {
    with_children(Children::guardian_gone);
}

/// Ends of the other ranks.
struct Ends {
    /// The end of the rank asked for.
    asked: ProcessEnd,
    /// The first rank that failed, where nothing ended the job early.
    first_failure: Option<(JobRank, ProcessEnd)>,
    /// Whether one that did not ask for the end was made to end.
    forced: bool,
}

struct Report;

impl Handle for Report {
    fn handle(_arrival: Arrival) {
        with_children(|c| Board::new(&c.control).report());
    }
}

impl Children {
    /// Waits for all other ranks.
    ///
    /// Async-signal-safe.
    fn wait_for_all(&self, asked: Option<JobRank>) -> Ends {
        let mut ends = Ends {
            asked: ProcessEnd::Unknown,
            first_failure: None,
            forced: false,
        };
        for (&pid, rank) in self.pids.iter().zip((1..).map(JobRank)) {
            let end = ProcessEnd::wait(WaitId::Pid(pid), false);
            if judgment::is_lost(&self.control, rank, &self.link) {
                continue;
            }
            let state = self.control.rank_page(rank).state();
            if asked == Some(rank) {
                ends.asked = end;
            } else {
                ends.forced |= was_ended(state, end);
            }
            if ends.first_failure.is_none() && end.is_failure(state) {
                ends.first_failure = Some((rank, end));
            }
        }
        ends
    }

    fn verdict(&self, word: ExitWord, end: ProcessEnd, others_ended: bool) -> Verdict {
        if word.kind == ExitKind::Unguarded {
            let (pid, end) = self.link.guardian_end();
            return Verdict::new(word, pid, end, RankState::Running, others_ended);
        }
        let (pid, state) = match word.rank.0 < self.control.size() {
            true => (
                self.control.rank_page(word.rank).pid(),
                self.control.rank_page(word.rank).state(),
            ),
            false => (0, RankState::Running),
        };
        let obstacle = judgment::obstacle(&self.control);
        Verdict {
            small_stack: SmallStack::here(),
            obstacle: obstacle.filter(|_| word.kind.is_death()),
            ..Verdict::new(word, pid, end, state, others_ended)
        }
    }

    /// The verdict on a job that ended because of `word`, once all other ranks have ended.
    fn judge(&self, word: ExitWord, own: ProcessEnd) -> Verdict {
        let ends = self.wait_for_all(Some(word.rank));
        let own_state = self.control.rank_page(JobRank(0)).state();
        let forced = ends.forced || (word.rank != JobRank(0) && was_ended(own_state, own));
        let end = match word.rank {
            JobRank(0) => own,
            _ => ends.asked,
        };
        if let Some((rank, end)) = ends.first_failure
            && word.kind.leaves_time()
            && !forced
            && word.process_code() == 0
        {
            // All asked for success, and one failed on its way out.
            return self.verdict(failed(rank, end), end, false);
        }
        self.verdict(word, end, forced || !word.kind.leaves_time())
    }

    /// See [`end_in_handler`].
    fn end(&self, report: bool) {
        if self.exiting.load(Ordering::Relaxed) {
            return; // The exit handler, which this has interrupted, does it.
        }
        let Some(word) = self.control.job().exit_word() else {
            return;
        };
        let verdict = self.judge(word, ProcessEnd::Code(word.process_code()));
        if !report && word.rank == JobRank(0) {
            return; // Who started this process sees the signal.
        }
        verdict.say();
        if report {
            sys::exit_now(verdict.code());
        }
    }

    /// See [`guardian_gone`].
    ///
    /// Nothing happens while the guardian lives.
    fn guardian_gone(&self) {
        if !self.link.is_broken() {
            return; // The descriptor has other news, as that there is room again.
        }
        if self.exiting.load(Ordering::Relaxed) {
            // The exit handler waits for the others, and only this ends those that do not come.
            if self.control.job().is_ending() {
                self.pids.iter().for_each(|&pid| kill_child_group(pid));
            }
            return;
        }
        if !self.control.rank_page(JobRank(0)).state().is_member() {
            return; // All ranks have finalized, and what is left of them ends with this process.
        }
        self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Unguarded,
            rank: JobRank(0),
            code: 0,
        });
        self.pids.iter().for_each(|&pid| kill_child_group(pid));
        self.end(true);
    }

    /// This process exits with `code`.
    fn at_exit(&self, code: c_int) {
        self.exiting.store(true, Ordering::Relaxed);
        let own = ProcessEnd::Code(code as u8);
        let job = self.control.job();
        if job.exit_word().is_some_and(|word| !word.kind.leaves_time()) {
            self.pids.iter().for_each(|&pid| kill_child_group(pid));
        }
        let ends = self.wait_for_all(None);
        // A failure may have come while this waited.
        let verdict = match (job.exit_word(), ends.first_failure) {
            (Some(word), _) => self.judge(word, own),
            // The user knows the code of the process that was started.
            (None, _) if own != ProcessEnd::Code(0) => return,
            (None, None) => return,
            (None, Some((rank, end))) => self.verdict(failed(rank, end), end, false),
        };
        verdict.say();
        if ProcessEnd::Code(verdict.code()) != own {
            // Exit handlers that were there before this one do not run: the code cannot be changed
            // otherwise.
            sys::flush_and_exit_now(verdict.code());
        }
    }
}

fn failed(rank: JobRank, end: ProcessEnd) -> ExitWord {
    ExitWord {
        kind: ExitKind::Failed,
        rank,
        code: end.shell_code(),
    }
}
