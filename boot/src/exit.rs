//! End of a rank's process, its meaning for the job, and the line that reports it.

use core::fmt;
use core::fmt::Write as _;

use argonet_base::JobRank;
use rustix::io::Errno;
use rustix::process::{Resource, WaitId, WaitIdOptions, WaitIdStatus, getrlimit, waitid};

use crate::judgment::Obstacle;
use crate::page::{ExitKind, ExitWord, RankState};
use crate::sys;

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// By exit, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
    /// It was reaped elsewhere.
    Unknown,
}

impl ProcessEnd {
    fn from_status(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code as u8),
            (_, Some(signal)) => Self::Signal(signal as u8),
            _ => Self::Unknown,
        }
    }

    /// From a status as wait(2) has it.
    pub(crate) fn from_raw_status(status: i32) -> Self {
        match (libc::WIFEXITED(status), libc::WIFSIGNALED(status)) {
            (true, _) => Self::Code(libc::WEXITSTATUS(status) as u8),
            (_, true) => Self::Signal(libc::WTERMSIG(status) as u8),
            _ => Self::Unknown,
        }
    }

    /// Waits until the child has ended, and reaps it if `reap`.
    ///
    /// Async-signal-safe.
    pub(crate) fn wait(child: WaitId<'_>, reap: bool) -> Self {
        let options = if reap {
            WaitIdOptions::EXITED
        } else {
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT
        };
        loop {
            match waitid(child.clone(), options) {
                Ok(Some(status)) => return Self::from_status(&status),
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return Self::Unknown,
            }
        }
    }

    /// Whether the end of a rank's process in `state` is a failure of the job.
    pub(crate) fn is_failure(self, state: RankState) -> bool {
        match self {
            Self::Code(0) | Self::Unknown => state.is_member(),
            Self::Code(_) | Self::Signal(_) => true,
        }
    }

    /// The exit code that a shell would report.
    pub(crate) const fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + (signal & 0x7f),
            Self::Unknown => 1,
        }
    }
}

/// The failure that a job ends with: its exit code, and its `Display` is the reason.
///
/// Formats without allocating.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub(crate) kind: ExitKind,
    pub(crate) rank: JobRank,
    /// The rank's process, or the guardian if that has ended.
    pub(crate) pid: u32,
    pub(crate) end: ProcessEnd,
    pub(crate) state: RankState,
    /// The code that came with the exit word.
    pub(crate) word_code: u8,
    /// Whether other ranks were ended because of it.
    pub(crate) others_ended: bool,
    /// The limit of the rank's stack, where it is small.
    pub(crate) small_stack: Option<SmallStack>,
    /// Reason why the job did not go on without the rank, if it was to.
    pub(crate) obstacle: Option<Obstacle>,
}

impl Verdict {
    /// The verdict on the process `pid` of the rank that `word` names; of its stack nothing is
    /// known.
    pub(crate) fn new(
        word: ExitWord,
        pid: u32,
        end: ProcessEnd,
        state: RankState,
        others_ended: bool,
    ) -> Self {
        Self {
            kind: word.kind,
            rank: word.rank,
            pid,
            end,
            state,
            word_code: word.code,
            others_ended,
            small_stack: None,
            obstacle: None,
        }
    }

    /// The exit code of the job.
    pub(crate) fn code(&self) -> u8 {
        match self.kind {
            ExitKind::Exit => self.word_code,
            // A job that was cut short must not look like one that went well.
            ExitKind::Left if self.others_ended => self.word_code.max(1),
            ExitKind::Left => self.word_code,
            ExitKind::Signal | ExitKind::Crashed => 128 + (self.word_code & 0x7f),
            ExitKind::Unguarded => 128 + libc::SIGKILL as u8,
            ExitKind::Abort | ExitKind::Canceled | ExitKind::Lost => self.word_code.max(1),
            ExitKind::Died | ExitKind::Failed => match self.end {
                ProcessEnd::Unknown => self.word_code.max(1),
                end => end.shell_code().max(1),
            },
        }
    }

    /// Prints the reason, if it is one that must be printed, on standard error in one write.
    ///
    /// Async-signal-safe.
    pub(crate) fn say(&self) {
        if !self.is_news() {
            return;
        }
        let mut line = sys::Line::default();
        // A line that is too long is cut.
        let _ = writeln!(line, "argonet: {self}");
        sys::say_line(&line);
    }

    /// Whether the end is worth a line: not if all ranks asked for it.
    pub(crate) fn is_news(&self) -> bool {
        match self.kind {
            ExitKind::Exit => self.others_ended,
            ExitKind::Left => self.others_ended || self.word_code != 0,
            _ => true,
        }
    }
}

/// A guardian, by its process id, that has ended while its job needed it.
pub(crate) struct LostGuardian(pub(crate) u32, pub(crate) ProcessEnd);

impl LostGuardian {
    /// The warning of the launcher or agent that watches the ranks beside it.
    pub(crate) fn warning(&self) -> String {
        format!(
            "warning: {self}; if this launcher is killed too, processes that ranks started may be left behind"
        )
    }
}

impl fmt::Display for LostGuardian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(pid, end) = *self;
        write!(f, "the job's guardian (process {pid}) ")?;
        match end {
            // No process of any job sends one: see the module `guardian`.
            ProcessEnd::Signal(9) => f.write_str("was killed by signal 9 (SIGKILL) from outside"),
            ProcessEnd::Signal(signal) => {
                let name = signal_name(i32::from(signal));
                write!(f, "crashed by signal {signal} ({name})")
            }
            ProcessEnd::Code(code) => write!(f, "ended with code {code} before its time"),
            ProcessEnd::Unknown => f.write_str("has gone, killed or crashed"),
        }
    }
}

/// Whether a rank other than the one that ended the job was made to end: whether it did not ask for
/// the end itself, and had not finalized and ended before.
pub(crate) fn was_ended(state: RankState, end: ProcessEnd) -> bool {
    match state {
        RankState::Exiting => false,
        RankState::Joined | RankState::Running | RankState::AskedToEnd => true,
        _ => end == ProcessEnd::Signal(libc::SIGKILL as u8),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            pid,
            small_stack,
            ..
        } = self;
        let killed = |f: &mut fmt::Formatter<'_>, signal| {
            let name = signal_name(i32::from(signal));
            write!(f, "was killed by signal {signal} ({name})")?;
            limit_of(f, i32::from(signal), *small_stack)
        };
        if self.kind == ExitKind::Unguarded {
            let lost = LostGuardian(*pid, self.end);
            return write!(f, "{lost}; the ranks were ended");
        }
        write!(f, "rank {rank} (pid {pid}) ")?;
        match (self.kind, self.end) {
            (ExitKind::Abort, _) => write!(f, "aborted the job with code {}", self.code())?,
            (ExitKind::Exit, _) => write!(f, "called exit({})", self.word_code)?,
            (ExitKind::Left, _) => {
                let code = self.word_code;
                write!(f, "exited with code {code} without finalizing")?;
            }
            (ExitKind::Signal | ExitKind::Crashed, _) => killed(f, self.word_code)?,
            (_, ProcessEnd::Signal(signal)) => killed(f, signal)?,
            (_, ProcessEnd::Code(code)) if self.state.is_member() => {
                write!(f, "exited with code {code} without finalizing")?;
            }
            (_, ProcessEnd::Code(code)) => write!(f, "exited with code {code}")?,
            (_, ProcessEnd::Unknown) => f.write_str("ended before it finalized")?,
        }
        match (self.others_ended, self.obstacle) {
            (false, _) => Ok(()),
            (true, None) => f.write_str("; the other ranks were ended"),
            (true, Some(obstacle)) => write!(f, "; the other ranks were ended, {obstacle}"),
        }
    }
}

/// A limit of the stack in KiB that is far below the usual 8 MiB, so that a fault of memory access
/// may come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SmallStack(u32);

impl SmallStack {
    const BELOW_KIB: u32 = 1 << 10;

    /// The limit of this process, which the ranks that it starts inherit, if it is small.
    pub(crate) fn here() -> Option<Self> {
        let bytes = getrlimit(Resource::Stack).current?;
        Self::of_kib(u32::try_from(bytes >> 10).ok()?)
    }

    /// A limit, if it is small.
    pub(crate) const fn of_kib(kib: u32) -> Option<Self> {
        match kib < Self::BELOW_KIB {
            true => Some(Self(kib)),
            false => None,
        }
    }

    pub(crate) const fn kib(self) -> u32 {
        self.0
    }
}

/// The limit that may have led to the signal.
fn limit_of(
    f: &mut fmt::Formatter<'_>,
    signal: i32,
    small_stack: Option<SmallStack>,
) -> fmt::Result {
    match (signal, small_stack) {
        (libc::SIGXFSZ, _) => f.write_str(
            ", as a file, or memory that ranks share, would have become larger than RLIMIT_FSIZE (`ulimit -f`) allows",
        ),
        (libc::SIGXCPU, _) => {
            f.write_str(", as RLIMIT_CPU (`ulimit -t`) allows no more processor time")
        }
        (libc::SIGSEGV | libc::SIGBUS, Some(SmallStack(kib))) => write!(
            f,
            ", perhaps as its stack was full: RLIMIT_STACK (`ulimit -s`) is {kib} KiB"
        ),
        _ => Ok(()),
    }
}

/// The name of a signal, as in `SIGTERM`.
pub(crate) const fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => "see `kill -l`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_rank_process_and_signal() {
        let word = ExitWord {
            kind: ExitKind::Died,
            rank: JobRank(3),
            code: 1,
        };
        let verdict = Verdict::new(word, 4711, ProcessEnd::Signal(9), RankState::Running, true);
        assert_eq!(
            verdict.to_string(),
            "rank 3 (pid 4711) was killed by signal 9 (SIGKILL); the other ranks were ended"
        );
        assert_eq!(verdict.code(), 137);
    }

    #[test]
    fn a_signal_sent_for_a_limit_is_reported_with_the_limit() {
        for (signal, limit) in [
            (libc::SIGXFSZ, "RLIMIT_FSIZE"),
            (libc::SIGXCPU, "RLIMIT_CPU"),
        ] {
            let word = ExitWord {
                kind: ExitKind::Crashed,
                rank: JobRank(0),
                code: signal as u8,
            };
            let end = ProcessEnd::Signal(signal as u8);
            let text = Verdict::new(word, 5, end, RankState::Running, true).to_string();
            assert!(
                text.contains(limit) && text.ends_with("the other ranks were ended"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_exit_of_all_ranks_is_no_news_and_a_job_cut_short_is_no_success() {
        let verdict = |kind, code, others_ended| {
            let rank = JobRank(1);
            let word = ExitWord { kind, rank, code };
            Verdict::new(
                word,
                5,
                ProcessEnd::Code(0),
                RankState::Exiting,
                others_ended,
            )
        };
        let all = verdict(ExitKind::Exit, 3, false);
        assert_eq!((all.code(), all.is_news()), (3, false));
        let one = verdict(ExitKind::Exit, 0, true);
        assert_eq!((one.code(), one.is_news()), (0, true));
        assert_eq!(
            one.to_string(),
            "rank 1 (pid 5) called exit(0); the other ranks were ended"
        );
        let left = verdict(ExitKind::Left, 0, true);
        assert_eq!((left.code(), left.is_news()), (1, true));
        let left = verdict(ExitKind::Left, 0, false);
        assert_eq!((left.code(), left.is_news()), (0, false));
        assert_eq!(verdict(ExitKind::Signal, 15, true).code(), 143);
    }

    #[test]
    fn a_lost_guardian_is_reported_with_its_end() {
        let lost = |end| {
            let (kind, rank, code) = (ExitKind::Unguarded, JobRank(0), 0);
            let word = ExitWord { kind, rank, code };
            let verdict = Verdict::new(word, 4711, end, RankState::Running, true);
            assert_eq!((verdict.code(), verdict.is_news()), (137, true));
            verdict.to_string()
        };
        let raw = |status| lost(ProcessEnd::from_raw_status(status));
        let begin = "the job's guardian (process 4711) ";
        for (text, how) in [
            (raw(9), "was killed by signal 9 (SIGKILL) from outside"),
            (raw(11 | 0x80), "crashed by signal 11 (SIGSEGV)"),
            (raw(101 << 8), "ended with code 101 before its time"),
            (lost(ProcessEnd::Unknown), "has gone, killed or crashed"),
        ] {
            assert_eq!(text, format!("{begin}{how}; the ranks were ended"));
        }
    }

    #[test]
    fn leaving_without_finalizing_is_a_failure_even_with_code_0() {
        assert!(ProcessEnd::Code(0).is_failure(RankState::Joined));
        assert!(!ProcessEnd::Code(0).is_failure(RankState::Starting));
        assert!(!ProcessEnd::Code(0).is_failure(RankState::Finalized));
        assert!(ProcessEnd::Code(4).is_failure(RankState::Finalized));
        let word = ExitWord {
            kind: ExitKind::Died,
            rank: JobRank(0),
            code: 1,
        };
        let verdict = Verdict::new(word, 9, ProcessEnd::Code(0), RankState::Joined, false);
        assert_eq!(
            verdict.to_string(),
            "rank 0 (pid 9) exited with code 0 without finalizing"
        );
        assert_eq!(verdict.code(), 1);
    }
}
