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
            lost: None,
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

    /// Says which failure ended the job, once its rank has ended; the others are being killed.
    ///
    /// A launcher may kill this process when the last rank has ended.
    pub(super) fn report_failure(&mut self, control: &Control) {
        let word = control.job().exit_word();
        let failure = word.filter(|word| !word.kind.leaves_time());
        let rank = failure.and_then(|word| self.fates.get(word.rank.index()));
        if let Some(Some(_)) = rank {
            self.report(control);
        }
    }

    /// Says why the job ended, if that is worth a line and has not been said; all ranks have ended.
    pub(super) fn report(&mut self, control: &Control) {
        let (_, reason) = settle(
            control.job().exit_word(),
            self.late_failure,
            &self.fates,
            None,
        );
        if let (Some(reason), Some(stderr)) = (reason, self.stderr.take()) {
            stderr.say(&format!("argonet: {reason}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use argonet_settings::Settings;
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    use super::*;
    use crate::attach::make_job;

    #[test]
    fn a_failure_is_said_once_and_before_other_ranks_have_ended() {
        let (_files, control) = make_job(3, &Settings::default()).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let stderr = RankStderr::of_pipe(writer);
        let mut account = Account::new(3, Some(stderr));
        control.rank_page(JobRank(1)).join(7);
        account.report_failure(&control);
        // How it ended is unknown, as the process lives.
        let living = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let word = account.note(&control, JobRank(1), 7, living.as_fd());
        control.job().set_exit_word(word.expect("it was a member"));
        account.report_failure(&control);
        assert!(account.stderr.is_none(), "said while others run");
        account.report_failure(&control);
        account.report(&control);
        drop(account);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        let line =
            "argonet: rank 1 (pid 7) ended before it finalized; the other ranks were ended\n";
        assert_eq!(said, line);
    }

    #[test]
    fn an_end_that_takes_time_is_said_when_all_ranks_have_ended() {
        let (_files, control) = make_job(2, &Settings::default()).unwrap();
        let mut account = Account::new(2, None);
        control.job().set_exit_word(ExitWord {
            kind: ExitKind::Exit,
            rank: JobRank(0),
            code: 3,
        });
        let (reader, writer) = std::io::pipe().unwrap();
        account.stderr = Some(RankStderr::of_pipe(writer));
        let living = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        account.note(&control, JobRank(0), 7, living.as_fd());
        account.report_failure(&control);
        assert!(account.stderr.is_some(), "not said yet");
        drop(reader);
    }
}
