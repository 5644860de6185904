//! The end of a job whose ranks another launcher started: no process of this library waits for
//! them, so the guardian notes how they end, and says on standard error why the job ended.

use std::os::fd::{AsFd, BorrowedFd};

use argonet_base::JobRank;

use crate::exit::{ProcessEnd, SmallStack};
use crate::outcome::{Fate, settle};
use crate::page::{Control, ExitKind, ExitWord};
use crate::rank_stderr::RankStderr;
use crate::sys;

/// What is known of the ranks' ends.
#[derive(Debug)]
pub(super) struct Account {
    fates: Vec<Option<Fate>>,
    /// The first rank that ended badly after it had finalized.
    late_failure: Option<JobRank>,
    stderr: Option<RankStderr>,
}

impl Account {
    pub(super) fn new(size: u32, stderr: Option<RankStderr>) -> Self {
        Self {
            fates: vec![None; size as usize],
            late_failure: None,
            stderr,
        }
    }

    /// The descriptor that it needs.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.stderr.as_ref().map(AsFd::as_fd)
    }

    /// Notes the end of the process `pid` of `rank`; why the job ends, if it does because of that.
    pub(super) fn note(
        &mut self,
        control: &Control,
        rank: JobRank,
        pid: u32,
        pidfd: BorrowedFd<'_>,
    ) -> Option<ExitWord> {
        let page = control.rank_page(rank);
        // It came to join, and ended before it had: others wait for it.
        let never_joined = page.end_unattached();
        let status = sys::end_of_process(pidfd, pid);
        let fate = Fate {
            pid,
            end: status.map_or(ProcessEnd::Unknown, ProcessEnd::from_raw_status),
            state: page.state(),
            small_stack: SmallStack::here(),
        };
        *self.fates.get_mut(rank.index())? = Some(fate);
        if fate.is_late_failure() {
            self.late_failure.get_or_insert(rank);
            return None;
        }
        let fails = never_joined || fate.end.is_failure(fate.state);
        let kind = match never_joined || fate.state.is_member() {
            true => ExitKind::Died,
            false => ExitKind::Failed,
        };
        let code = fate.end.shell_code().max(1);
        fails.then_some(ExitWord { kind, rank, code })
    }

    /// Says why the job ended, if that is worth a line; all ranks have ended.
    pub(super) fn report(self, control: &Control) {
        let (_, reason) = settle(control.job().exit_word(), self.late_failure, &self.fates);
        if let (Some(reason), Some(stderr)) = (reason, self.stderr) {
            stderr.say(&format!("argonet: {reason}"));
        }
    }
}
