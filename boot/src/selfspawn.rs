//! A job that starts itself: the process that the user started becomes rank 0 and forks the others.
//!
//! Rank 0 then plays the launcher's part too. It has no loop of its own to do so, so it acts at two moments: when it exits, in
//! an exit handler that waits for the other ranks and settles the exit code; and when the guardian has seen another rank
//! fail, in a signal handler that reports the failure and ends the process with the job's code.

use core::ffi::c_int;
use core::fmt::Write;
use std::fs::File;
use std::os::fd::AsFd;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{START_TIMEOUT, Settings};
use rustix::process::{
    Pid, Resource, Signal, WaitId, WaitIdOptions, getpgrp, getpid, getppid, getrlimit,
    kill_process_group, set_parent_process_death_signal, setpgid, waitid,
};

use crate::attach::make_job;
use crate::board::{Board, Fixed};
use crate::error::BootError;
use crate::exit::{ProcessEnd, Verdict};
use crate::files::SharedFiles;
use crate::guardian::{self, Link, Rank0};
use crate::local::LocalJob;
use crate::page::{Control, ExitKind, ExitWord, RankState};
use crate::signals::REPORT;
use crate::sys::{self, HandlerStack};

/// Whether this process, or the one that it was forked from, has forked ranks: a process does so once.
static SPAWNED: AtomicBool = AtomicBool::new(false);
/// What rank 0 needs to know at its end, reachable from exit and signal handlers.
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
    /// Open as long as rank 0 lives; never used again, but its end tells the guardian.
    _link: Link,
}

/// Forks ranks 1 to `size` - 1 and returns in each of them.
pub(crate) fn spawn(size: u32, settings: &Settings) -> Result<LocalJob, BootError> {
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
    let (files, control) = make_job(size, settings)?;
    let control = Arc::new(control);
    // What is buffered now would be written by every rank.
    sys::flush_stdio();
    let own_group = leave_group_without_terminal();
    let link = guardian::start(&control, Some(Rank0 { own_group }))?;
    let owner = getpid();
    let mut pids = Vec::with_capacity(size as usize);
    for rank in (1..size).map(JobRank) {
        match fork_rank(rank, &control, &link, owner) {
            Ok(Some(pid)) => pids.push(pid),
            Ok(None) => return Ok(local(control, files, rank, start_timeout)),
            Err(e) => {
                pids.iter().for_each(|&pid| kill_child_group(pid));
                for &pid in &pids {
                    ProcessEnd::wait(WaitId::Pid(pid), true);
                }
                link.dismiss();
                return Err(no_process(rank, size, e));
            }
        }
    }
    control.rank_page(JobRank(0)).join(process::id());
    let children = Children {
        control: control.clone(),
        pids,
        owner,
        exiting: AtomicBool::new(false),
        _link: link,
    };
    // `SPAWNED` has made sure that this is the only time.
    let _ = CHILDREN.set(children);
    sys::on_exit(|code| with_children(|c| c.at_exit(code)))
        .map_err(|e| BootError::system("registering an exit handler", e))?;
    let job_end = sys::job_end_signal();
    sys::on_signal(job_end, HandlerStack::Alternate, job_end_handler);
    sys::on_signal(REPORT.as_raw(), HandlerStack::Own, report_handler);
    Ok(local(control, files, JobRank(0), start_timeout))
}

fn local(
    control: Arc<Control>,
    files: SharedFiles,
    rank: JobRank,
    start_timeout: Duration,
) -> LocalJob {
    LocalJob {
        control,
        files,
        rank,
        start_timeout,
        launched: false,
        turn: Mutex::default(),
    }
}

fn check_file_limit(size: u32) -> Result<(), BootError> {
    let need = u64::from(size) + guardian::SPARE_FILES;
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

/// Without a controlling terminal, makes sure that this process leads its own process group; whether it does.
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
    // Both sides do this, so that it is done whoever runs first.
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

/// Kills the group of a rank that this process forked, unless the program has reaped it, when its id may be another's.
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

extern "C" fn job_end_handler(_signal: c_int) {
    with_children(Children::at_job_end);
}

extern "C" fn report_handler(_signal: c_int) {
    with_children(Children::report);
}

impl Children {
    /// Says what all ranks wait for, and asks them for more. Async-signal-safe.
    fn report(&self) {
        let board = Board::new(&self.control);
        let mut text = Fixed::<4096>::default();
        // What does not fit is cut.
        let _ = write!(text, "argonet: all ranks:\n{board}");
        let _ = rustix::io::write(rustix::stdio::stderr(), text.text());
        board.ask_for_reports(board.reports_asked());
    }

    /// Waits for all other ranks; the end of the one asked for, and the first rank that failed after all went well.
    /// Async-signal-safe.
    fn wait_for_all(&self, asked: Option<JobRank>) -> (ProcessEnd, Option<(JobRank, ProcessEnd)>) {
        let mut end_of_asked = ProcessEnd::Unknown;
        let mut first_failure = None;
        for (&pid, rank) in self.pids.iter().zip((1..).map(JobRank)) {
            let end = ProcessEnd::wait(WaitId::Pid(pid), false);
            if asked == Some(rank) {
                end_of_asked = end;
            }
            if first_failure.is_none() && end.is_failure(self.control.rank_page(rank).state()) {
                first_failure = Some((rank, end));
            }
        }
        (end_of_asked, first_failure)
    }

    fn verdict(&self, word: ExitWord, end: ProcessEnd, others_ended: bool) -> Verdict {
        let (pid, state) = match word.rank.0 < self.control.size() {
            true => (
                self.control.rank_page(word.rank).pid(),
                self.control.rank_page(word.rank).state(),
            ),
            false => (0, RankState::Running),
        };
        Verdict::new(word, pid, end, state, others_ended)
    }

    /// Another rank has failed, and the guardian is killing the rest. Async-signal-safe.
    fn at_job_end(&self) {
        if self.exiting.load(Ordering::Relaxed) {
            return; // The exit handler, which this has interrupted, does it.
        }
        let Some(word) = self.control.job().exit_word() else {
            return;
        };
        let (end, _) = self.wait_for_all(Some(word.rank));
        let verdict = self.verdict(word, end, true);
        say(&verdict);
        sys::exit_now(verdict.code());
    }

    /// This process exits with `code`.
    fn at_exit(&self, code: c_int) {
        self.exiting.store(true, Ordering::Relaxed);
        let own = ProcessEnd::Code(code as u8);
        let job = self.control.job();
        if self.control.rank_page(JobRank(0)).state().is_member() || job.exit_word().is_some() {
            job.set_exit_word(ExitWord {
                kind: ExitKind::Died,
                rank: JobRank(0),
                code: own.shell_code(),
            });
            self.pids.iter().for_each(|&pid| kill_child_group(pid));
        }
        let asked = job.exit_word();
        let (end, first_failure) = self.wait_for_all(asked.map(|w| w.rank));
        // A failure may have come while this waited.
        let verdict = match (job.exit_word(), first_failure) {
            (Some(word), _) => {
                let end = match word.rank {
                    JobRank(0) => own,
                    _ if asked == Some(word) => end,
                    rank => self.wait_for_all(Some(rank)).0,
                };
                self.verdict(word, end, true)
            }
            // The user knows the code of the process that was started.
            (None, _) if own != ProcessEnd::Code(0) => return,
            (None, None) => return,
            (None, Some((rank, end))) => {
                let word = ExitWord {
                    kind: ExitKind::Failed,
                    rank,
                    code: end.shell_code(),
                };
                self.verdict(word, end, false)
            }
        };
        say(&verdict);
        sys::flush_and_exit_now(verdict.code());
    }
}

/// Prints the reason for the job's end on standard error in one write, without allocating.
fn say(verdict: &Verdict) {
    let mut line = Fixed::<256>::default();
    // A line that is too long is cut.
    let _ = writeln!(line, "argonet: {verdict}");
    let _ = rustix::io::write(rustix::stdio::stderr(), line.text());
}
