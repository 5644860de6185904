//! The guardian: one process per job, in a session of its own, that ends the job when the launcher
//! or a rank has gone (spec P13: the first to end ends all, by force after a bounded time).
//!
//! It holds one end of a socket whose other end only the launcher has (or rank 0 of a job that
//! started itself), a pidfd of the launcher and one of every rank, and the mapping of the control
//! file; nothing else: no standard streams, no working directory, no signals except SIGKILL. Each
//! rank's process sends its own pidfd over the socket before it runs the program, so that no
//! process id is ever looked up (a recycled id cannot be hit), and a pidfd that was sent before the
//! launcher died is still received.
//!
//! * The socket ends, unless rank 0 holds its other end, or the launcher's pidfd fires: the
//!   launcher has gone. Every rank's process group is killed.
//! * A rank's pidfd fires while the rank is a member (joined, not finalized): the first failure is
//!   stored in the exit word, and every rank's process group is killed.
//! * The same where the job is to go on: the rank's process group alone is killed, and the rank is
//!   declared lost (modules `loss` and `judgment`).
//! * A rank says that it cannot reach another: that one is killed, and lost when it has ended. In a
//!   job over several hosts this is passed on to the host's agent.
//! * A rank says that it has asked for the end of the job, or its pidfd fires with the exit word
//!   set so: for a quarter of the exit time-out the others may do the same; those that have not get
//!   a signal; when the time-out is over, remaining processes are killed.
//! * A rank asks for the end at once (a second interrupt): as a failure.
//! * Everything watched has ended and the launcher has gone: the guardian ends.
//! * The ranks of a job that another launcher started announce themselves to rank 0, which gives
//!   each of them a copy of its end of the socket. The launcher's process on this host is watched
//!   where there is one for all ranks. What the launcher does with a rank's end is its own affair,
//!   so the guardian also says why the job ended (module `account`). Each rank sees by a pipe that
//!   the guardian lives.
//! * Rank 0 of a job that started itself runs another program before it has finalized: the job ends
//!   (module `replaced`).
//!
//! Rank 0 of a job that started itself is the process that the user waits for. It is asked by a
//! signal to report the failure and end with the job's code, and killed only if it has not done so
//! after [`RANK_0_GRACE`]. It has up to four more of these where a thread of it lacks a processor,
//! or computes in a job that ends with 0 (module `grace`). A line on its standard error then says
//! that it is killed, since its own report is lost.
//!
//! The guardian is forked from its maker and keeps the maker's memory image alive as copy-on-write
//! pages; this is cheap because jobs start before programs allocate.

mod account;
mod link;
mod loss;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, getpid, pidfd_open, pidfd_send_signal, setsid,
};

use crate::error::BootError;
use crate::exit::ProcessEnd;
use crate::file_limit::{SPARE_FILES, raise_file_limit};
use crate::files::moved_up;
use crate::page::{Control, ExitKind, ExitStage, ExitWord, RankState};
use crate::processor_time::ThreadTime;
use crate::rank_stderr::RankStderr;
use crate::sys;
use crate::{clock, detached, grace, judgment, replaced};

use account::Account;
pub(crate) use link::{
    GuardianProcess, Link, News, accuse, announce, announce_attached, announce_other, is_hung_up,
    order_kill, report_exit,
};
use link::{
    MESSAGE_ATTACHED, MESSAGE_DISMISS, MESSAGE_EXIT, MESSAGE_KILL, MESSAGE_RANK,
    MESSAGE_RANK_ALONE, MESSAGE_UNREACHABLE, MESSAGE_WATCHING, Message, receive, retry, send,
    try_send,
};
use loss::Accusations;

/// Time that rank 0 of a job that started itself has to report a failure before it is killed like
/// the others.
pub const RANK_0_GRACE: Duration = Duration::from_secs(2);

/// The part of the exit time-out in which ranks may come to their end by themselves, before they
/// are signaled.
pub(crate) const WINDOW_PART: u32 = 4;

/// Rank 0 of a job that started itself, which is both launcher and rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank0 {
    /// Whether its process group may be killed with it.
    pub(crate) own_group: bool,
}

/// The process that starts a job's guardian.
#[derive(Debug)]
pub(crate) enum Maker {
    /// The launcher, or the agent of a host.
    Launcher,
    /// Rank 0 of a job that starts itself.
    Rank0(Rank0),
    /// Rank 0 of a job that another launcher started.
    Peer {
        /// That launcher's process on this host, if it is known.
        launcher: Option<OwnedFd>,
        /// Where the reason of the job's end is said.
        stderr: Option<RankStderr>,
        /// An end of a pipe that the guardian holds as long as it lives.
        life: OwnedFd,
    },
}

/// Messages that the guardian takes before it looks at the processes again.
const MESSAGES_AT_ONCE: u32 = 256;

/// What the guardian is in errors.
pub(crate) const GUARDIAN: &str = "the job's guardian";

/// Refuses a process that has more than one thread, which can fork nothing; `what` it was to be.
pub(crate) fn check_threads(what: &'static str) -> Result<(), BootError> {
    let threads = sys::thread_count().map_err(|e| BootError::system("counting threads", e))?;
    match threads {
        1 => Ok(()),
        _ => Err(BootError::SecondThread { threads, what }),
    }
}

/// Starts the guardian of the job in `control`, before any rank.
///
/// The calling process must have one thread.
pub(crate) fn start(control: &Control, maker: Maker) -> Result<Link, BootError> {
    check_threads(GUARDIAN)?;
    let failed = |what: &'static str| {
        move |e: Errno| BootError::NoGuardian {
            reason: format!("{what}: {}", std::io::Error::from(e)),
        }
    };
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed("no socket"))?;
    let (program, program_end) = match maker {
        Maker::Rank0(_) => replaced::pipe().map(|(ours, theirs)| (Some(ours), Some(theirs))),
        _ => Ok((None, None)),
    }
    .map_err(failed("no pipe"))?;
    let launcher_pid = getpid();
    let own = pidfd_open(launcher_pid, PidfdFlags::empty())
        .map_err(failed("no pidfd (Linux 5.3 or newer)"))?;

    // Twice forked: the guardian is no child of this process, so that a program that waits for all
    // of its children does not wait for it, and not the leader of its session, so that it never
    // gets a terminal.
    let fork_failed = |e: std::io::Error| BootError::NoGuardian {
        reason: format!("no process: {e} (see `ulimit -u`)"),
    };
    let Some(middle) = sys::fork().map_err(fork_failed)? else {
        drop((ours, program_end));
        let in_session = setsid().is_ok();
        match sys::fork() {
            Ok(None) if in_session => {
                let guardian = Guardian::new(control, theirs, own);
                match (maker, program) {
                    (Maker::Rank0(rank_0), Some(program)) => {
                        guardian.of_rank_0(launcher_pid, rank_0, program).run()
                    }
                    (
                        Maker::Peer {
                            launcher,
                            stderr,
                            life,
                        },
                        _,
                    ) => guardian.of_peer(launcher, stderr, life).run(),
                    _ => guardian.run(),
                }
            }
            Ok(_) => sys::exit_now(0),
            Err(_) => sys::exit_now(1),
        }
    };
    drop((theirs, program, maker));
    ProcessEnd::wait(WaitId::Pid(middle), true);
    // End of file if it could not be made.
    match receive(ours.as_fd(), RecvFlags::empty()) {
        Ok(Some(Message {
            what: MESSAGE_WATCHING,
            pid,
            pidfd,
            ..
        })) => Ok(Link {
            socket: moved_up(ours),
            guardian: GuardianProcess::new(pid, pidfd.map(moved_up)),
            _program: program_end.map(moved_up),
        }),
        _ => Err(BootError::NoGuardian {
            reason: "it could not be forked, or ended at once (see `ulimit -u`)".into(),
        }),
    }
}

#[derive(Debug)]
struct Watched {
    rank: JobRank,
    pid: Pid,
    pidfd: OwnedFd,
    /// The process that is the rank, where the one above only started it.
    attached: Option<OwnedFd>,
    /// Whether its process group may be killed, not just the process.
    group: bool,
    /// Whether its id stays its own until the job has ended: its launcher is of this library, which
    /// reaps it last.
    keeps_id: bool,
    /// Whether it is asked to end before it is killed.
    ask_first: bool,
    /// Whether it has been killed, alone, since another rank could not reach it.
    cut_off: bool,
    /// Whether the end that is waited for is that of `attached`, the other process having ended.
    ends_attached: bool,
    ended: bool,
}

impl Watched {
    fn kill(&self) {
        if self.group {
            sys::signal_group(self.pidfd.as_fd(), self.group_id(), Signal::KILL);
        }
        if !self.ended {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }

    /// The process whose end is waited for.
    fn awaited(&self) -> BorrowedFd<'_> {
        let attached = self.attached.as_ref().filter(|_| self.ends_attached);
        attached.unwrap_or(&self.pidfd).as_fd()
    }

    /// The id of its process group, as long as it is not another's.
    fn group_id(&self) -> Option<Pid> {
        let mut end = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let lives = retry(|| poll(&mut end, Some(&Timespec::default()))) == Ok(0);
        (self.keeps_id || lives).then_some(self.pid)
    }
}

/// Events that the guardian waits for.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The process of the rank of this index has ended.
    Rank(usize),
    /// See [`Guardian::program`].
    Program,
    Launcher,
    Socket,
}

struct Guardian<'a> {
    control: &'a Control,
    socket: OwnedFd,
    /// `None` where it is not known.
    launcher: Option<OwnedFd>,
    launcher_gone: bool,
    /// Whether nothing can come over the socket any more.
    socket_ended: bool,
    /// Whether rank 0 is the launcher.
    is_self_started: bool,
    /// Ends when rank 0 of a job that started itself runs its program no more.
    program: Option<OwnedFd>,
    ranks: Vec<Watched>,
    accusations: Accusations,
    /// The ends of the ranks, where another launcher started them.
    account: Option<Account>,
    /// Each rank of such a job sees by the other end that this process lives.
    life: Option<OwnedFd>,
    /// The stage of the end of the job.
    ending: Option<Ending>,
    /// The threads of rank 0 when its grace began.
    threads_of_rank_0: Vec<ThreadTime>,
}

/// An end that takes time.
#[derive(Debug, Clone, Copy)]
struct Ending {
    stage: ExitStage,
    /// Time of the next step.
    next: Option<Instant>,
    /// Number of times that rank 0 has had more time.
    graces: u32,
}

impl<'a> Guardian<'a> {
    /// The guardian of ranks that the process behind `launcher` starts.
    fn new(control: &'a Control, socket: OwnedFd, launcher: OwnedFd) -> Self {
        Self {
            control,
            socket,
            launcher: Some(launcher),
            launcher_gone: false,
            socket_ended: false,
            is_self_started: false,
            program: None,
            ranks: Vec::new(),
            accusations: Accusations::default(),
            account: None,
            life: None,
            ending: None,
            threads_of_rank_0: Vec::new(),
        }
    }

    /// The launcher, whose id is `pid`, is rank 0.
    fn of_rank_0(mut self, pid: Pid, rank_0: Rank0, program: OwnedFd) -> Self {
        let pidfd = self.launcher.as_ref().map(OwnedFd::try_clone);
        let Rank0 { own_group: group } = rank_0;
        if let Some(Ok(pidfd)) = pidfd {
            self.ranks.push(Watched {
                rank: JobRank(0),
                pid,
                pidfd,
                attached: None,
                group,
                keeps_id: true,
                ask_first: true,
                cut_off: false,
                ends_attached: false,
                ended: false,
            });
        }
        self.is_self_started = true;
        self.program = Some(program);
        self
    }

    /// Another launcher starts the ranks.
    fn of_peer(
        mut self,
        launcher: Option<OwnedFd>,
        stderr: Option<RankStderr>,
        life: OwnedFd,
    ) -> Self {
        self.launcher = launcher;
        self.life = Some(life);
        self.account = Some(Account::new(self.control.size(), stderr));
        self
    }

    fn run(mut self) -> ! {
        let mut keep = vec![self.socket.as_fd()];
        keep.extend(self.launcher.iter().map(AsFd::as_fd));
        keep.extend(self.account.iter().filter_map(Account::descriptor));
        keep.extend(self.ranks.iter().map(|r| r.pidfd.as_fd()));
        keep.extend(self.program.iter().map(AsFd::as_fd));
        keep.extend(self.life.iter().map(AsFd::as_fd));
        detached::settle(c"argonet-guard", &keep);
        raise_file_limit(u64::from(self.control.size()) + SPARE_FILES);
        let pid = getpid();
        let number = pid.as_raw_nonzero().get() as u32;
        self.control.job().set_guardian_pid(number);
        let own = pidfd_open(pid, PidfdFlags::empty()).ok();
        let about = own.as_ref().map(AsFd::as_fd);
        if try_send(self.socket.as_fd(), MESSAGE_WATCHING, 0, number, about).is_err() {
            // As where too many descriptors of this user are on their way: its maker, which waits
            // for it, does without.
            send(self.socket.as_fd(), MESSAGE_WATCHING, 0, number, None);
        }
        drop(own);
        while !self.is_done() {
            self.step();
        }
        // Once more, for processes in the groups of ranks that had ended before.
        self.ranks.iter().for_each(Watched::kill);
        if let Some(account) = &mut self.account {
            account.report(self.control);
        }
        sys::exit_now(0)
    }

    /// Whether nothing is left to be watched.
    fn is_done(&self) -> bool {
        // No more ranks come.
        let are_known = match self.account {
            None => self.launcher_gone,
            Some(_) => self.socket_ended || self.ranks.len() >= self.control.part().ranks as usize,
        };
        are_known && self.ranks.iter().all(|r| r.ended)
    }

    /// Waits for one event or more and acts on them.
    fn step(&mut self) {
        let mut sources = Vec::with_capacity(self.ranks.len() + 3);
        let mut fds = Vec::with_capacity(self.ranks.len() + 3);
        let mut watch = |source, fd, flags| {
            sources.push(source);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        };
        let mut wait_for = |source, fd| watch(source, fd, PollFlags::IN);
        for (i, rank) in self.ranks.iter().enumerate().filter(|(_, r)| !r.ended) {
            wait_for(Source::Rank(i), rank.awaited());
        }
        if let Some(program) = &self.program {
            wait_for(Source::Program, program.as_fd());
        }
        if let Some(launcher) = self.launcher.as_ref().filter(|_| !self.launcher_gone) {
            wait_for(Source::Launcher, launcher.as_fd());
        }
        let may_come = !self.launcher_gone || self.account.is_some();
        if may_come && !self.socket_ended {
            let flags = match self.accusations.any_wait() {
                true => PollFlags::IN | PollFlags::OUT,
                false => PollFlags::IN,
            };
            watch(Source::Socket, self.socket.as_fd(), flags);
        }
        let next = self.ending.and_then(|ending| ending.next);
        // A time that the system's type cannot hold never comes.
        let limit = next
            .map(|next| next.saturating_duration_since(Instant::now()))
            .and_then(|left| Timespec::try_from(left).ok());
        let _ = retry(|| poll(&mut fds, limit.as_ref()));
        let fired = sources.into_iter().zip(&fds);
        let fired = fired.filter(|(_, fd)| !fd.revents().is_empty());
        let fired: Vec<Source> = fired.map(|(source, _)| source).collect();
        drop(fds);

        let mut launcher_fired = false;
        for source in fired {
            match source {
                Source::Rank(i) => self.rank_ended(i),
                Source::Program => self.program_of_rank_0_ended(),
                Source::Launcher => launcher_fired = true,
                // Ranks that say the same over and over keep it from nothing else.
                Source::Socket => {
                    let mut left = MESSAGES_AT_ONCE;
                    while left > 0 && self.receive() {
                        left -= 1;
                    }
                    self.forward_accusations();
                }
            }
        }
        if launcher_fired {
            // Messages that the launcher sent before its end come first.
            while self.receive() {}
            self.launcher_gone = true;
        }
        if self.launcher_gone {
            self.end_job();
        }
        if self.killing()
            && let Some(account) = &mut self.account
        {
            account.report_failure(self.control);
        }
        self.go_on();
    }

    /// Takes one message; false if there is none now.
    ///
    /// The end of file means that the launcher has gone, unless ranks have that end, which may have
    /// closed it and live, as by exec.
    fn receive(&mut self) -> bool {
        let message = match receive(self.socket.as_fd(), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => return false,
            Ok(Some(message)) => message,
            _ => {
                self.socket_ended = true;
                self.launcher_gone |= !self.is_self_started && self.account.is_none();
                return false;
            }
        };
        let (rank, pid) = (JobRank(message.rank), Pid::from_raw(message.pid as i32));
        match (message.what, pid, message.pidfd) {
            (MESSAGE_DISMISS, ..) => sys::exit_now(0),
            (what @ (MESSAGE_RANK | MESSAGE_RANK_ALONE), Some(pid), Some(pidfd)) => {
                self.ranks.push(Watched {
                    rank,
                    pid,
                    pidfd,
                    attached: None,
                    group: what == MESSAGE_RANK,
                    keeps_id: self.account.is_none(),
                    ask_first: false,
                    cut_off: false,
                    ends_attached: false,
                    ended: false,
                });
                if self.killing() {
                    self.ranks.last().into_iter().for_each(Watched::kill);
                }
            }
            (MESSAGE_ATTACHED, _, Some(pidfd)) => {
                if let Some(known) = self.ranks.iter_mut().find(|r| r.rank == rank) {
                    known.attached = Some(pidfd);
                }
            }
            (MESSAGE_EXIT, ..) => self.look_at_exit_word(),
            (MESSAGE_KILL, ..) => self.end_job(),
            (MESSAGE_UNREACHABLE, ..) => self.cut_off(rank, JobRank(message.pid)),
            _ => {}
        }
        true
    }

    /// Rank 0 of a job that started itself has replaced its program, is ending, or has closed its
    /// descriptors.
    fn program_of_rank_0_ended(&mut self) {
        self.program = None;
        let mut ranks = self.ranks.iter_mut();
        let Some(rank_0) = ranks.find(|r| r.rank == JobRank(0) && !r.ended) else {
            return;
        };
        let state = self.control.rank_page(JobRank(0)).state();
        if !state.is_member() || !replaced::runs_another_program(rank_0.pid) {
            return;
        }
        // The new program has no handler that could report.
        rank_0.ask_first = false;
        let pid = rank_0.pid;
        let line = format!(
            "argonet: rank 0 (pid {pid}) replaced its program by exec without finalizing; the ranks were ended"
        );
        let stderr = RankStderr::of(rank_0.pidfd.as_fd(), pid);
        self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Died,
            rank: JobRank(0),
            code: 1,
        });
        self.end_job();
        if let Some(stderr) = stderr {
            stderr.say(&line);
        }
    }

    fn rank_ended(&mut self, i: usize) {
        self.ranks[i].ended = true;
        let rank = self.ranks[i].rank;
        if rank.0 >= self.control.size() {
            return;
        }
        let job = self.control.job();
        if let Some(account) = &mut self.account {
            let Watched { pid, pidfd, .. } = &self.ranks[i];
            let pid = pid.as_raw_nonzero().get() as u32;
            let word = account.note(self.control, rank, pid, pidfd.as_fd());
            word.map(|word| job.set_exit_word(word));
            return self.look_at_exit_word();
        }
        let page = self.control.rank_page(rank);
        // A process that never attached may have been any program; the launcher, which knows the
        // program, decides whether its code is a failure.
        page.end_unattached();
        if !self.killing() && judgment::may_be_lost(self.control, rank) {
            return self.lose(i);
        }
        if page.state().is_member() {
            job.set_exit_word(ExitWord {
                kind: ExitKind::Died,
                rank,
                code: 1,
            });
        }
        self.look_at_exit_word();
    }

    /// Begins the end that the exit word asks for.
    fn look_at_exit_word(&mut self) {
        let Some(word) = self.control.job().exit_word() else {
            return;
        };
        if !word.kind.leaves_time() {
            self.end_job();
        } else if self.ending.is_none() {
            let timeout = self.control.job().exit_timeout();
            self.ending = Some(Ending {
                stage: ExitStage::Open,
                next: Some(Instant::now() + timeout / WINDOW_PART),
                graces: 0,
            });
            self.will_force_after(timeout);
        }
    }

    /// Ranks that end see how long they may wait for others.
    fn will_force_after(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let at_ms = clock::now_ms().saturating_add(ms);
        self.control.job().set_forced_at_ms(at_ms);
    }

    fn killing(&self) -> bool {
        self.ending
            .is_some_and(|ending| ending.stage == ExitStage::Kill)
    }

    /// Does the work that is due.
    fn go_on(&mut self) {
        let due = |next: Option<Instant>| next.is_some_and(|next| Instant::now() >= next);
        let Some(ending) = self.ending.filter(|ending| due(ending.next)) else {
            return;
        };
        match ending.stage {
            ExitStage::Open => self.notify(),
            ExitStage::Notice => self.end_job(),
            ExitStage::Kill => {
                let given = ending.graces;
                let (graces, next) = if self.begins_grace(given) {
                    (given + 1, Some(Instant::now() + RANK_0_GRACE))
                } else {
                    self.kill_remaining(given);
                    (given, None)
                };
                self.ending = Some(Ending {
                    next,
                    graces,
                    ..ending
                });
            }
        }
    }

    /// Rank 0, if it lives and is asked to end before it is killed.
    fn asked_rank_0(&self) -> Option<&Watched> {
        self.ranks.iter().find(|r| r.ask_first && !r.ended)
    }

    /// Whether rank 0, which has had so many further graces, gets another that begins now.
    fn begins_grace(&mut self, given: u32) -> bool {
        let Some(rank_0) = self.asked_rank_0() else {
            return false;
        };
        let now = ThreadTime::of_all(rank_0.pid);
        let before = std::mem::replace(&mut self.threads_of_rank_0, now);
        grace::has_another(&before, &self.threads_of_rank_0, given, self.job_code())
    }

    /// Kills all, and says so where rank 0 is among them, which has had so many further graces.
    fn kill_remaining(&self, given: u32) {
        let rank_0 = self.asked_rank_0();
        let stderr = rank_0.and_then(|r| RankStderr::of(r.pidfd.as_fd(), r.pid));
        let left = self.ranks.iter().filter(|r| !r.ended);
        left.for_each(Watched::kill);
        if let (Some(rank_0), Some(stderr)) = (rank_0, stderr) {
            stderr.say(&self.why_it_is_killed(rank_0, given));
        }
    }

    /// The code with which the job ends.
    fn job_code(&self) -> u8 {
        let word = self.control.job().exit_word();
        word.map_or(1, ExitWord::process_code)
    }

    fn why_it_is_killed(&self, rank_0: &Watched, graces: u32) -> String {
        let code = self.job_code();
        let waited = (RANK_0_GRACE * (graces + 1)).as_secs();
        let timeout = self.control.job().exit_timeout().as_secs_f64();
        format!(
            "argonet: rank 0 (pid {}) is killed, as it has not ended {waited} s after it was asked to; the job's code would \
             have been {code}. A longer GASNET_EXITTIMEOUT ({timeout:.1} s now) leaves it more time",
            rank_0.pid
        )
    }

    /// Signals the ranks that have not come to their end by themselves.
    fn notify(&mut self) {
        // From now, not from the beginning: the ranks' reaction to the signal takes part of the
        // time-out, however late this process, or the whole host, has come to send it.
        let timeout = self.control.job().exit_timeout();
        let rest = timeout - timeout / WINDOW_PART;
        self.ending = Some(Ending {
            stage: ExitStage::Notice,
            next: Some(Instant::now() + rest),
            graces: 0,
        });
        self.will_force_after(rest);
        self.control.job().set_exit_stage(ExitStage::Notice);
        let size = self.control.size();
        for rank in self.ranks.iter().filter(|r| !r.ended && r.rank.0 < size) {
            let state = self.control.rank_page(rank.rank).state();
            // A process that never attached has no handler.
            if state.is_member() || state == RankState::Finalized {
                let process = rank.attached.as_ref().unwrap_or(&rank.pidfd);
                sys::send_job_signal(process.as_fd());
            }
        }
    }

    fn end_job(&mut self) {
        if self.killing() {
            return;
        }
        let threads = self.asked_rank_0().map(|r| ThreadTime::of_all(r.pid));
        self.threads_of_rank_0 = threads.unwrap_or_default();
        self.ending = Some(Ending {
            stage: ExitStage::Kill,
            next: Some(Instant::now() + RANK_0_GRACE),
            graces: 0,
        });
        self.control.job().set_exit_stage(ExitStage::Kill);
        for rank in &self.ranks {
            if rank.ask_first && !rank.ended && !self.launcher_gone {
                sys::send_job_signal(rank.pidfd.as_fd());
                // Stopped, it could not report.
                let _ = pidfd_send_signal(&rank.pidfd, Signal::CONT);
            } else {
                rank.kill();
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// The way to a guardian, and the guardian's end of it.
    pub(crate) fn link() -> (Link, OwnedFd) {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (socket, theirs) = socketpair(family, SocketType::SEQPACKET, flags, None).unwrap();
        let guardian = GuardianProcess::new(0, None);
        let link = Link {
            socket,
            guardian,
            _program: None,
        };
        (link, theirs)
    }

    #[test]
    fn a_group_is_named_by_an_id_that_cannot_be_anothers() {
        let mut leader = Command::new("cat");
        leader.stdin(Stdio::piped()).process_group(0);
        let mut leader = leader.spawn().unwrap();
        let pid = Pid::from_child(&leader);
        let mut watched = Watched {
            rank: JobRank(0),
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
            attached: None,
            group: true,
            keeps_id: false,
            ask_first: false,
            cut_off: false,
            ends_attached: false,
            ended: false,
        };
        assert_eq!(watched.group_id(), Some(pid), "it lives");
        drop(leader.stdin.take());
        leader.wait().unwrap();
        assert_eq!(watched.group_id(), None, "it has been reaped");
        watched.keeps_id = true;
        assert_eq!(watched.group_id(), Some(pid));
    }
}
