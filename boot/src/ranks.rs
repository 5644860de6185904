//! The processes of the ranks of this host, as their starter sees them: the launcher, or the
//! host's agent.
//!
//! Ranks that have ended are not reaped before the job has: until then their process ids, which are
//! their process groups' ids, cannot be given to others. Another launcher reaps those that it has
//! started, so their ids are used only while they live.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, pidfd_open, pidfd_send_signal};

use crate::error::BootError;
use crate::exit::{ProcessEnd, SmallStack};
use crate::guardian::{Link, News};
use crate::judgment;
use crate::line;
use crate::outcome::Fate;
use crate::page::{Control, ExitKind, ExitWord};
use crate::spawn::Spawner;
use crate::sys;

/// Delay with which the launcher kills ranks after the guardian should have, beside another
/// time-out.
const SLACK: Duration = Duration::from_millis(500);

struct RankProcess {
    pid: Pid,
    pidfd: OwnedFd,
    starter: Starter,
    /// Readable when the rank has rung; `None` once its end has been closed, and in a job on one
    /// host.
    line: Option<OwnedFd>,
    end: Option<ProcessEnd>,
}

/// Who has started a rank, and reaps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starter {
    /// This process, as the leader of a process group.
    This,
    /// Another launcher; whether the rank leads a process group of its own.
    Other { group: bool },
}

impl RankProcess {
    fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Sends a signal to its process group, or to itself where that is not its own.
    fn signal(&self, signal: Signal) {
        let lives = self.end.is_none();
        match self.starter {
            Starter::This => sys::signal_group(self.pidfd.as_fd(), Some(self.pid), signal),
            Starter::Other { group: true } => {
                sys::signal_group(self.pidfd.as_fd(), lives.then_some(self.pid), signal);
            }
            Starter::Other { group: false } if lives => {
                // It may have ended meanwhile.
                let _ = pidfd_send_signal(&self.pidfd, signal);
            }
            Starter::Other { group: false } => {}
        }
    }

    /// How it ended, once it has.
    fn end(&self) -> ProcessEnd {
        match self.starter {
            Starter::This => ProcessEnd::wait(WaitId::PidFd(self.pidfd.as_fd()), false),
            Starter::Other { .. } => {
                let status = sys::end_of_process(self.pidfd.as_fd(), self.pid());
                status.map_or(ProcessEnd::Unknown, ProcessEnd::from_raw_status)
            }
        }
    }
}

/// The ranks of this host.
pub(crate) struct HostRanks<'a> {
    control: &'a Control,
    link: &'a Link,
    guardian_gone: bool,
    ranks: Vec<RankProcess>,
    /// When ranks are killed that have not ended after one has asked for the end of the job: later
    /// than the guardian does it, if there is one.
    end_by: Option<Instant>,
    /// Whether the ranks have been killed.
    ending: bool,
    /// The first rank that ended badly after it had finalized: the job's code, but no reason to end
    /// the others.
    late_failure: Option<JobRank>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankEvent {
    /// There is news from the guardian.
    Guardian,
    /// A process has ended; the index of the rank on this host.
    Ended(usize),
    /// A rank has rung.
    Rung(usize),
}

impl<'a> HostRanks<'a> {
    pub(crate) fn new(control: &'a Control, link: &'a Link) -> Self {
        Self {
            control,
            link,
            guardian_gone: false,
            ranks: Vec::with_capacity(control.part().ranks as usize),
            end_by: None,
            ending: false,
            late_failure: None,
        }
    }

    /// Starts the next rank; its process id.
    pub(crate) fn start(
        &mut self,
        spawner: &mut Spawner<'_>,
        output: Option<[OwnedFd; 2]>,
    ) -> Result<Pid, BootError> {
        let rank = self.rank(self.ranks.len());
        let (pid, line) = spawner.start(rank, output)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| {
            // Not reaped yet, so the id is still the child's.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            BootError::system(format!("watching rank {rank}"), e)
        })?;
        self.ranks.push(RankProcess {
            pid,
            pidfd,
            starter: Starter::This,
            line: (!self.control.is_whole_job()).then_some(line),
            end: None,
        });
        Ok(pid)
    }

    /// Adds the next rank, which another launcher has started; with `group`, it leads a process
    /// group of its own.
    pub(crate) fn adopt(&mut self, pid: Pid, pidfd: OwnedFd, group: bool, line: OwnedFd) {
        self.ranks.push(RankProcess {
            pid,
            pidfd,
            starter: Starter::Other { group },
            line: Some(line),
            end: None,
        });
    }

    /// Whether all have ended, those among them whose end has not been looked at.
    pub(crate) fn have_ended(&self) -> bool {
        self.ranks.iter().all(|rank| {
            let mut end = [PollFd::new(&rank.pidfd, PollFlags::IN)];
            rank.end.is_some() || poll(&mut end, Some(&Timespec::default())) == Ok(1)
        })
    }

    /// The rank of index `i`.
    pub(crate) fn rank(&self, i: usize) -> JobRank {
        JobRank(self.control.part().first + i as u32)
    }

    /// Whether all have ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.ranks.iter().all(|r| r.end.is_some())
    }

    /// The ranks that have not ended.
    pub(crate) fn left(&self) -> Vec<JobRank> {
        let running = |&i: &usize| self.ranks[i].end.is_none();
        (0..self.ranks.len())
            .filter(running)
            .map(|i| self.rank(i))
            .collect()
    }

    pub(crate) fn late_failure(&self) -> Option<JobRank> {
        self.late_failure
    }

    /// Whether the ranks have been killed.
    pub(crate) fn are_killed(&self) -> bool {
        self.ending
    }

    /// Adds the descriptors to wait for to `fds`, and their events to `events`.
    pub(crate) fn poll_fds<'p>(&'p self, fds: &mut Vec<PollFd<'p>>, events: &mut Vec<RankEvent>) {
        if !self.guardian_gone {
            fds.push(PollFd::new(self.link, PollFlags::IN));
            events.push(RankEvent::Guardian);
        }
        for (i, rank) in self.ranks.iter().enumerate() {
            if rank.end.is_none() {
                fds.push(PollFd::new(&rank.pidfd, PollFlags::IN));
                events.push(RankEvent::Ended(i));
            }
            if let Some(line) = &rank.line {
                fds.push(PollFd::new(line, PollFlags::IN));
                events.push(RankEvent::Rung(i));
            }
        }
    }

    /// When [`look_at_exit_word`](Self::look_at_exit_word) has something to do at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.end_by.filter(|_| !self.ending)
    }

    /// The news from the guardian; `None` if there is none now.
    pub(crate) fn news(&mut self) -> Option<News> {
        let news = self.link.news();
        self.guardian_gone |= matches!(news, Some(News::Gone(..)));
        news
    }

    /// Whether the process of rank `i` was not started, or has ended and that was looked at.
    pub(crate) fn has_ended(&self, i: usize) -> bool {
        self.ranks.get(i).is_none_or(|rank| rank.end.is_some())
    }

    /// Kills rank `i` alone.
    pub(crate) fn kill(&self, i: usize) {
        self.ranks[i].signal(Signal::KILL);
    }

    /// Takes the rings of rank `i`.
    pub(crate) fn answer(&mut self, i: usize) {
        let open = self.ranks[i].line.as_ref().is_some_and(line::take_rings);
        if !open {
            self.ranks[i].line = None;
        }
    }

    /// Ends processes that the guardian does not, or that have to end at once.
    pub(crate) fn look_at_exit_word(&mut self, now: Instant) {
        let Some(word) = self.control.job().exit_word() else {
            return;
        };
        if self.ending || (self.is_alone() && self.ranks.iter().all(|r| r.end.is_none())) {
            return;
        }
        if word.kind.leaves_time() {
            let timeout = self.control.job().exit_timeout();
            let limit = match self.guardian_gone {
                true => timeout,
                // The guardian gives the ranks most of the time-out from the moment that it signals
                // them, which may be late.
                false => 2 * timeout + SLACK,
            };
            if now < *self.end_by.get_or_insert(now + limit) {
                return;
            }
        }
        self.kill_all();
    }

    /// Whether these are all ranks of the job.
    fn is_alone(&self) -> bool {
        self.control.is_whole_job()
    }

    /// Sends a signal to all ranks' process groups.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.ending {
            self.ranks.iter().for_each(|rank| rank.signal(signal));
        }
    }

    /// Ends the job for `word`, unless it is ending, and kills the ranks.
    pub(crate) fn cancel(&mut self, word: ExitWord) {
        self.control.job().set_exit_word(word);
        self.kill_all();
    }

    pub(crate) fn kill_all(&mut self) {
        self.ending = true;
        self.ranks.iter().for_each(|rank| rank.signal(Signal::KILL));
    }

    /// Judges the end of rank `i`, or waits for the guardian's judgment if the rank may be lost.
    pub(crate) fn rank_ended(&mut self, i: usize) -> Fate {
        let end = self.ranks[i].end();
        self.ranks[i].end = Some(end);
        let rank = self.rank(i);
        let page = self.control.rank_page(rank);
        let never_joined = page.end_unattached();
        // One that came to join is waited for by others.
        let is_missed = never_joined && self.ranks[i].starter != Starter::This;
        let is_lost = judgment::is_lost(self.control, rank, self.link);
        let state = page.state();
        let pid = self.ranks[i].pid();
        let small_stack = SmallStack::here();
        let fate = Fate {
            pid,
            end,
            state,
            small_stack,
            lost: page.lost(),
        };
        if is_lost {
            // The guardian has killed its process group.
        } else if fate.is_late_failure() {
            self.late_failure.get_or_insert(rank);
        } else if is_missed || end.is_failure(state) {
            let kind = if is_missed || state.is_member() {
                ExitKind::Died
            } else {
                ExitKind::Failed
            };
            self.control.job().set_exit_word(ExitWord {
                kind,
                rank,
                code: match is_missed {
                    true => end.shell_code().max(1),
                    false => end.shell_code(),
                },
            });
        }
        fate
    }

    /// End of each rank, once all have ended.
    pub(crate) fn fates(&self) -> Vec<Option<Fate>> {
        let fate = |(i, process): (usize, &RankProcess)| {
            let page = self.control.rank_page(self.rank(i));
            Some(Fate {
                pid: process.pid(),
                end: process.end?,
                state: page.state(),
                small_stack: SmallStack::here(),
                lost: page.lost(),
            })
        };
        self.ranks.iter().enumerate().map(fate).collect()
    }

    /// Waits for the end of all ranks and lets their process ids go.
    pub(crate) fn reap(&self) {
        let own = self.ranks.iter().filter(|r| r.starter == Starter::This);
        for rank in own {
            ProcessEnd::wait(WaitId::PidFd(rank.pidfd.as_fd()), true);
        }
    }
}
