//! What a rank does beside its program: each ends if the guardian is killed, as no other process
//! would see a rank go then; the first rank of a host answers SIGUSR2, as the launcher of such a
//! job knows nothing of the ranks' waits.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use argonet_base::JobRank;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getpid};

use crate::board::Board;
use crate::error::BootError;
use crate::exit::{ProcessEnd, Verdict};
use crate::files::moved_up;
use crate::guardian::{GuardianProcess, is_hung_up};
use crate::page::{Control, ExitKind, ExitWord, RankState};
use crate::sigact::{self, Action, Arrival, Handle};
use crate::signals::REPORT;
use crate::sys;

/// What a rank needs for that, reachable from signal handlers.
static WATCH: OnceLock<Watch> = OnceLock::new();

/// A rank of a job that another launcher started.
#[derive(Debug)]
struct Watch {
    control: Arc<Control>,
    rank: JobRank,
    /// This process; a copy that it forks must not act.
    owner: Pid,
    guardian: GuardianProcess,
    /// Hung up once the guardian has gone.
    life: OwnedFd,
}

impl Watch {
    /// See [`guardian_gone`].
    fn guardian_gone(&self) {
        if !is_hung_up(self.life.as_fd()) {
            return; // The signal has another reason.
        }
        if !self.control.rank_page(self.rank).state().is_member() {
            return; // This process is ending, for which its timer sees, or needs no other rank.
        }
        let word = self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Unguarded,
            rank: self.rank,
            code: 0,
        });
        let is_first = word.kind == ExitKind::Unguarded && word.rank == self.rank;
        let (pid, end) = match is_first {
            true => self.guardian.end(),
            false => (0, ProcessEnd::Unknown),
        };
        let verdict = Verdict::new(word, pid, end, RankState::Running, true);
        if is_first {
            verdict.say();
        }
        sys::exit_now(verdict.code());
    }
}

/// This process is `rank`, and `life` a pipe's end whose other end the guardian holds.
pub(super) fn watch(
    control: &Arc<Control>,
    rank: JobRank,
    guardian: GuardianProcess,
    life: &OwnedFd,
) -> Result<(), BootError> {
    // A description has one process that gets its signals, and ranks share that of `life`.
    let path = format!("/proc/self/fd/{}", life.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let life = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|e| BootError::system("watching the guardian", e))?;
    // A process joins a job once.
    let _ = WATCH.set(Watch {
        control: Arc::clone(control),
        rank,
        owner: getpid(),
        guardian,
        life: moved_up(life),
    });
    // From now on SIGUSR2 is answered, and ends no rank: launchers send it to all of them.
    if Action::of(REPORT.as_raw()).is_default() {
        Action::calling::<Report>()
            .on_own_stack()
            .install(REPORT.as_raw());
    }
    Ok(())
}

/// Acts for the rank that this process is; not in a process that it has forked.
fn with_watch(act: impl FnOnce(&'static Watch)) {
    if let Some(watch) = WATCH.get().filter(|watch| watch.owner == getpid()) {
        act(watch);
    }
}

/// From now on the end of the guardian ends this process.
///
/// After the signal's handler has been installed.
pub(crate) fn watch_guardian() {
    with_watch(|watch| {
        sigact::signal_on_hang_up(watch.life.as_fd(), sys::job_signal());
        // Events before this sent no signal.
        watch.guardian_gone();
    });
}

/// The guardian may have gone.
///
/// Async-signal-safe.
pub(crate) fn guardian_gone() {
    with_watch(Watch::guardian_gone);
}

struct Report;

impl Handle for Report {
    fn handle(_arrival: Arrival) {
        with_watch(|watch| {
            if watch.rank.0 == watch.control.part().first {
                Board::new(&watch.control).report();
            }
        });
    }
}
