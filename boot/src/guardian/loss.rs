//! Ranks without which the job goes on.

use std::os::fd::AsFd;

use argonet_base::JobRank;
use rustix::process::{Signal, pidfd_send_signal};

use super::link::forward_accusation;
use super::{Guardian, Watched};
use crate::exit::{ProcessEnd, SmallStack};
use crate::outcome::{Fate, loss_in_words};
use crate::rank_stderr::RankStderr;
use crate::{judgment, losses, sys};

/// Ranks of this host that cannot reach others, for the host's agent in a job over several hosts.
///
/// A rank repeats an accusation with every operation that fails; it is passed on once.
#[derive(Debug, Default)]
pub(super) struct Accusations {
    /// In their order.
    known: Vec<(u32, u32)>,
    waiting: Vec<(JobRank, JobRank)>,
}

impl Accusations {
    fn add(&mut self, accuser: JobRank, accused: JobRank) {
        let pair = (accuser.0, accused.0);
        if let Err(place) = self.known.binary_search(&pair) {
            self.known.insert(place, pair);
            self.waiting.push((accuser, accused));
        }
    }

    /// Whether some have not been passed on.
    pub(super) fn any_wait(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Guardian<'_> {
    /// The process of rank `i`, without which the job goes on, has ended: kills its process group,
    /// and declares the rank lost once the process that is the rank has ended, too.
    pub(super) fn lose(&mut self, i: usize) {
        let watched = &mut self.ranks[i];
        watched.kill();
        let waits = std::mem::replace(&mut watched.ends_attached, true);
        if let Some(process) = watched.attached.as_ref().filter(|_| !waits) {
            // The one that has ended only started it. It may have left the group.
            let _ = pidfd_send_signal(process, Signal::KILL);
            watched.ended = false;
            return;
        }
        let rank = watched.rank;
        // Rank 0, which has no loop to say so. It may end as soon as it knows of the loss.
        let speaker = self.is_self_started.then(|| self.stderr_of(JobRank(0)));
        losses::found_by_guardian(self.control, rank);
        if let Some(stderr) = speaker.flatten() {
            self.say_lost(i, stderr);
        }
    }

    /// Says that rank `i` is lost.
    fn say_lost(&self, i: usize, stderr: RankStderr) {
        let Watched {
            rank, pid, pidfd, ..
        } = &self.ranks[i];
        let number = pid.as_raw_nonzero().get() as u32;
        let status = sys::end_of_process(pidfd.as_fd(), number);
        let page = self.control.rank_page(*rank);
        let fate = Fate {
            pid: number,
            end: status.map_or(ProcessEnd::Unknown, ProcessEnd::from_raw_status),
            state: page.state(),
            small_stack: SmallStack::here(),
            lost: page.lost(),
        };
        let line = loss_in_words(*rank, &fate, true);
        stderr.say(&format!("argonet: {line}"));
    }

    /// Passes on to the host's agent as many accusations as it takes.
    pub(super) fn forward_accusations(&mut self) {
        while let Some(&(accuser, accused)) = self.accusations.waiting.last() {
            if !forward_accusation(self.socket.as_fd(), accuser, accused) {
                return;
            }
            self.accusations.waiting.pop();
        }
    }

    fn stderr_of(&self, rank: JobRank) -> Option<RankStderr> {
        let watched = self.living(rank)?;
        RankStderr::of(watched.pidfd.as_fd(), watched.pid)
    }

    fn living(&self, rank: JobRank) -> Option<&Watched> {
        self.ranks.iter().find(|r| r.rank == rank && !r.ended)
    }

    /// A rank says that it cannot reach another: kills that one, or the accuser where the other is
    /// the process that the user waits for, and says so on the accuser's standard error.
    ///
    /// Of two ranks that accuse each other one is killed: what a rank says that is being killed, or
    /// what is said of it, counts no more. In a job over several hosts the root of the tree of
    /// agents does all this.
    pub(super) fn cut_off(&mut self, accuser: JobRank, accused: JobRank) {
        if !self.control.is_whole_job() {
            self.accusations.add(accuser, accused);
            return self.forward_accusations();
        }
        let counts = |rank| self.living(rank).is_some_and(|r| !r.cut_off);
        if accuser == accused || !counts(accuser) || !counts(accused) {
            return;
        }
        if !judgment::one_may_be_lost(self.control, accuser, accused) {
            return;
        }
        let victim = judgment::victim(self.control, accuser, accused);
        let stderr = self.stderr_of(accuser);
        let mut ranks = self.ranks.iter_mut();
        let Some(watched) = ranks.find(|r| r.rank == victim) else {
            return;
        };
        watched.cut_off = true;
        watched.kill();
        let pid = watched.pid;
        if let Some(stderr) = stderr {
            stderr.say(&format!(
                "argonet: rank {accuser} cannot reach rank {accused} over any network; rank {victim} (pid {pid}) is killed"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use argonet_settings::Settings;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

    use super::*;
    use crate::attach::make_job;
    use crate::page::{Control, RankState};

    /// Processes that run until their input ends, as the ranks of a job that goes on.
    fn ranks(control: &Control) -> Vec<Child> {
        let start = |rank| {
            let page = control.rank_page(rank);
            let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            assert!(page.join(child.id()));
            page.accept_losses();
            page.advance(RankState::Running);
            child
        };
        control.job().set_goes_on(true);
        control.host_ranks().map(start).collect()
    }

    fn guardian<'a>(control: &'a Control, ranks: &[Child]) -> Guardian<'a> {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (ours, _theirs) = socketpair(family, SocketType::SEQPACKET, flags, None).unwrap();
        let pidfd = |pid| pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let mut guardian = Guardian::new(control, ours, pidfd(getpid()));
        let watched = |(rank, child): (JobRank, &Child)| Watched {
            rank,
            pid: Pid::from_child(child),
            pidfd: pidfd(Pid::from_child(child)),
            attached: None,
            group: false,
            keeps_id: true,
            ask_first: false,
            cut_off: false,
            ends_attached: false,
            ended: false,
        };
        let ranks = control.host_ranks().zip(ranks);
        guardian.ranks = ranks.map(watched).collect();
        guardian
    }

    #[test]
    fn one_of_two_ranks_that_accuse_each_other_is_killed() {
        let (_files, control) = make_job(3, &Settings::default()).unwrap();
        let mut ranks = ranks(&control);
        let mut guardian = guardian(&control, &ranks);
        guardian.cut_off(JobRank(1), JobRank(0));
        assert_eq!(ranks[0].wait().unwrap().signal(), Some(libc::SIGKILL));
        // Said before it ended, and heard after.
        guardian.cut_off(JobRank(0), JobRank(1));
        guardian.cut_off(JobRank(2), JobRank(0));
        guardian.cut_off(JobRank(2), JobRank(2));
        for rank in &mut ranks[1..] {
            drop(rank.stdin.take());
            assert_eq!(rank.wait().unwrap().code(), Some(0), "it was not killed");
        }
        assert_eq!(control.job().losses(), 0, "its end has not been seen");
        guardian.rank_ended(0);
        assert_eq!(control.rank_page(JobRank(0)).lost(), Some(1));
        assert_eq!(control.job().exit_word(), None);
    }

    #[test]
    fn a_rank_is_lost_once_the_process_that_is_the_rank_has_ended() {
        let (_files, control) = make_job(2, &Settings::default()).unwrap();
        let mut ranks = ranks(&control);
        let mut guardian = guardian(&control, &ranks);
        let mut rank = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&rank), PidfdFlags::empty()).unwrap();
        guardian.ranks[0].attached = Some(process);
        ranks[0].kill().unwrap();
        ranks[0].wait().unwrap();
        guardian.rank_ended(0);
        assert_eq!(
            (control.job().losses(), guardian.ranks[0].ended),
            (0, false)
        );
        assert_eq!(rank.wait().unwrap().signal(), Some(libc::SIGKILL));
        guardian.rank_ended(0);
        assert_eq!((control.job().losses(), guardian.ranks[0].ended), (1, true));
    }

    #[test]
    fn a_rank_that_dies_while_all_are_killed_is_not_lost() {
        let (_files, control) = make_job(2, &Settings::default()).unwrap();
        let mut ranks = ranks(&control);
        let mut guardian = guardian(&control, &ranks);
        guardian.end_job();
        for rank in &mut ranks {
            assert_eq!(rank.wait().unwrap().signal(), Some(libc::SIGKILL));
        }
        guardian.rank_ended(0);
        assert_eq!(control.job().losses(), 0);
    }
}
