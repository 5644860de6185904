//! What rank 0 does beside its program: it answers SIGUSR2, as the launcher of such a job knows
//! nothing of the ranks' waits, and ends the job if the guardian is killed, as no other process
//! would see a rank go then.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use argonet_base::JobRank;
use rustix::process::{Pid, Signal, getpid, pidfd_send_signal};

use super::LEADER;
use crate::board::Board;
use crate::exit::{ProcessEnd, Verdict};
use crate::guardian::Link;
use crate::page::{Control, ExitKind, ExitWord, RankState};
use crate::sigact::{self, Action, Arrival, Handle};
use crate::signals::REPORT;
use crate::sys;

/// What rank 0 needs for that, reachable from signal handlers.
static LED: OnceLock<Leader> = OnceLock::new();

/// Rank 0 of a job that another launcher started.
#[derive(Debug)]
pub(super) struct Leader {
    control: Arc<Control>,
    /// This process; a copy that it forks must not act.
    owner: Pid,
    link: Link,
    /// The processes of the other ranks.
    others: Vec<OwnedFd>,
}

impl Leader {
    pub(super) fn new(control: &Arc<Control>, link: Link, others: Vec<OwnedFd>) -> Self {
        Self {
            control: Arc::clone(control),
            owner: getpid(),
            link,
            others,
        }
    }

    /// See [`guardian_gone`].
    fn guardian_gone(&self) {
        if !self.link.is_broken() {
            return; // The descriptor has other news, as that there is room again.
        }
        if !self.control.rank_page(LEADER).state().is_member() {
            return; // This process is ending, or needs no other rank.
        }
        let word = self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Unguarded,
            rank: JobRank(0),
            code: 0,
        });
        for other in &self.others {
            // One that has ended needs nothing.
            let _ = pidfd_send_signal(other, Signal::KILL);
        }
        let (pid, end) = match word.kind {
            ExitKind::Unguarded => self.link.guardian_end(),
            _ => (0, ProcessEnd::Unknown),
        };
        let verdict = Verdict::new(word, pid, end, RankState::Running, true);
        if word.kind == ExitKind::Unguarded {
            verdict.say();
        }
        sys::exit_now(verdict.code());
    }
}

/// This process is rank 0.
pub(super) fn lead(leader: Leader) {
    // A process joins a job once.
    let _ = LED.set(leader);
}

/// Acts for rank 0; not in a process that rank 0 has forked.
fn with_leader(act: impl FnOnce(&'static Leader)) {
    if let Some(leader) = LED.get().filter(|leader| leader.owner == getpid()) {
        act(leader);
    }
}

/// From now on SIGUSR2 is answered, and ends no rank: launchers send it to all of them.
pub(super) fn answer_reports() {
    if Action::of(REPORT.as_raw()).is_default() {
        Action::calling::<Report>()
            .on_own_stack()
            .install(REPORT.as_raw());
    }
}

/// From now on the end of the guardian ends the job.
///
/// After the signal's handler has been installed.
pub(crate) fn watch_guardian() {
    with_leader(|leader| {
        sigact::signal_on_hang_up(leader.link.as_fd(), sys::job_signal());
        // Events before this sent no signal.
        leader.guardian_gone();
    });
}

/// The guardian may have gone.
///
/// Async-signal-safe.
pub(crate) fn guardian_gone() {
    with_leader(Leader::guardian_gone);
}

struct Report;

impl Handle for Report {
    fn handle(_arrival: Arrival) {
        with_leader(|leader| Board::new(&leader.control).report());
    }
}
