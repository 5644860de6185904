//! The first rank of the host, which is rank 0 where there is no other host: listens, and when all
//! others of the host have come makes what they share, or has an agent make it (`over_hosts`).

use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, Reach, Settings};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open, setrlimit};

use super::message::{Answer, Hello, MAX_BYTES};
use super::socket::{Received, accept, is_of_this_user, peer, receive, send};
use super::{Joined, Wait, over_hosts};
use crate::ancestry::{lead_own_groups, starter_of};
use crate::attach::{make_part, neighborhood_limit, new_job_id, take_rank};
use crate::error::BootError;
use crate::file_limit::{SPARE_FILES, raise_file_limit};
use crate::files::SharedFiles;
use crate::foreign::CONSECUTIVE;
use crate::guardian::{self, Link, Maker};
use crate::line::Line;
use crate::page::{Control, HostPart};
use crate::rank_stderr::RankStderr;
use crate::secret::Secret;
use crate::sys::Peer;

/// Connections without a message that are kept at a time, beside one for each rank.
const SPARE_CONNECTIONS: usize = 64;

/// Time for which it waits for others to say why there will be no job.
const TO_REFUSE: Duration = Duration::from_secs(10);

/// Becomes the first rank of the host.
pub(super) fn join(wait: &Wait<'_>, settings: &Settings) -> Result<Joined, BootError> {
    let may_start = guardian::check_threads(guardian::GUARDIAN);
    let patience = match may_start {
        Ok(()) => wait.limit,
        Err(_) => TO_REFUSE.min(wait.limit),
    };
    let before = make_room_for_files(wait.member.here())?;
    let listener = match wait.place.listen() {
        Err(Errno::ADDRINUSE) => return Err(wait.taken(wait.place.owner())),
        other => other.map_err(|e| BootError::system("listening for the other ranks", e))?,
    };
    let mut gathering = Gathering {
        wait: &wait.within(patience),
        listener,
        silent: VecDeque::new(),
        guests: (1..wait.member.here()).map(|_| None).collect(),
        strangers: 0,
        refused: String::new(),
        apart: None,
    };
    let gathered = gathering.gather();
    let Gathering {
        listener,
        guests,
        silent,
        ..
    } = gathering;
    // First: a process that has joined, and starts the next program, must not find this job again.
    drop((listener, silent));
    let guests: Vec<Guest> = guests.into_iter().flatten().collect();
    let may_meet = may_start.and(gathered);
    let joined = match wait.member.spread {
        None => may_meet.and_then(|()| welcome(wait, settings, &guests)),
        Some(spread) => over_hosts::lead(wait, settings, spread, may_meet, &guests),
    };
    if let Err(error) = &joined {
        for guest in &guests {
            // Those that have been welcomed look at it no more.
            refuse(
                &guest.socket,
                &format!("rank {} gave up: {error}", wait.leader()),
            );
        }
    }
    let _ = setrlimit(Resource::Nofile, before);
    joined
}

/// Of each rank this process has two descriptors for a moment, and the guardian one.
fn make_room_for_files(size: u32) -> Result<rustix::process::Rlimit, BootError> {
    let need = 2 * u64::from(size) + SPARE_CONNECTIONS as u64 + SPARE_FILES;
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < need => Err(BootError::NoFiles {
            size,
            need,
            limit,
            who: "the first rank of a host",
        }),
        _ => Ok(raise_file_limit(need)),
    }
}

/// A rank that has come.
pub(super) struct Guest {
    pub(super) socket: OwnedFd,
    pub(super) pid: u32,
    pub(super) pidfd: OwnedFd,
}

/// The ranks that have come so far.
struct Gathering<'a> {
    wait: &'a Wait<'a>,
    listener: OwnedFd,
    /// Connections over which nothing has come.
    silent: VecDeque<(OwnedFd, Peer)>,
    /// The ranks after the first one.
    guests: Vec<Option<Guest>>,
    /// Connections of other users.
    strangers: u32,
    /// The last process of this user that was refused, in words; may be empty.
    refused: String,
    /// Why there will be no job, if that is known.
    apart: Option<String>,
}

impl Gathering<'_> {
    /// Waits until all ranks have come.
    fn gather(&mut self) -> Result<(), BootError> {
        while self.missing() > 0 {
            let Some(ready) = self.wait_for_event() else {
                return Err(self.timed_out());
            };
            let (of_silent, of_guests) = ready.split_at(self.silent.len());
            for is_ready in of_silent {
                match self.silent.pop_front() {
                    Some((socket, peer)) if *is_ready => self.hear(socket, peer),
                    other => self.silent.extend(other),
                }
            }
            self.see_who_has_gone(of_guests)?;
            if let Some(reason) = self.apart.take() {
                return Err(self.wait.failed(reason));
            }
            // No more: processes that connect in a loop must not keep this one from its time limit.
            for _ in 0..self.guests.len() + SPARE_CONNECTIONS {
                match accept(&self.listener) {
                    Ok(Some(socket)) => self.admit(socket),
                    Ok(None) => break,
                    Err(e) => return Err(BootError::system("accepting another rank", e)),
                }
            }
        }
        Ok(())
    }

    /// Number of ranks that have not come.
    fn missing(&self) -> usize {
        self.guests.iter().filter(|guest| guest.is_none()).count()
    }

    /// Waits; then, of each silent connection and of each rank, whether it can be read.
    ///
    /// `None` if the time is up.
    fn wait_for_event(&self) -> Option<Vec<bool>> {
        let silent = self.silent.iter().map(|(socket, _)| Some(socket));
        let guests = self.guests.iter();
        let guests = guests.map(|guest| guest.as_ref().map(|guest| &guest.socket));
        let sockets: Vec<Option<&OwnedFd>> = silent.chain(guests).collect();
        let all = sockets.iter().copied().flatten();
        let mut fds: Vec<PollFd<'_>> = std::iter::once(&self.listener)
            .chain(all)
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let in_time = self.wait.poll(&mut fds, Duration::MAX);
        let mut ready = fds.iter().skip(1).map(|fd| !fd.revents().is_empty());
        let is_ready = |socket: &Option<_>| socket.is_some() && ready.next() == Some(true);
        in_time.then(|| sockets.iter().map(is_ready).collect())
    }

    /// Keeps a connection of this user.
    fn admit(&mut self, socket: OwnedFd) {
        let Some(peer) = peer(&socket).ok().filter(|&peer| is_of_this_user(peer)) else {
            self.strangers = self.strangers.saturating_add(1);
            return;
        };
        if peer.pid == 0 {
            // It cannot be watched.
            return self.refuse(
                &socket,
                peer,
                "its process is not in the pid namespace of the first rank of the host",
            );
        }
        // Each rank that has come takes two files in place of one.
        if self.silent.len() >= self.missing() + SPARE_CONNECTIONS {
            self.silent.pop_front();
        }
        self.silent.push_back((socket, peer));
    }

    /// Takes the message of a process, if it has come.
    fn hear(&mut self, socket: OwnedFd, peer: Peer) {
        let mut bytes = [0; MAX_BYTES];
        let (len, files) = match receive(&socket, &mut bytes) {
            Received::Nothing => return self.silent.push_back((socket, peer)),
            Received::End => return,
            Received::Cut => return self.refuse(&socket, peer, "its message is too long"),
            Received::Message { bytes, files } => (bytes, files),
        };
        match self.rank_of(&bytes[..len], files, peer) {
            Ok((i, pidfd)) => {
                let pid = peer.pid;
                self.guests[i] = Some(Guest { socket, pid, pidfd });
            }
            Err(reason) => self.refuse(&socket, peer, &reason),
        }
    }

    /// The index of the rank that a process is to become, and its pidfd; else why it cannot.
    fn rank_of(
        &mut self,
        bytes: &[u8],
        files: Vec<OwnedFd>,
        peer: Peer,
    ) -> Result<(usize, OwnedFd), String> {
        let Hello {
            rank,
            size,
            program,
        } = Hello::parse(bytes)?;
        let own = self.wait.member.size;
        let leader = self.wait.leader();
        if size != own {
            return Err(format!(
                "it is one of {size} ranks, and rank {leader} of {own}"
            ));
        }
        if program != self.wait.program.number() {
            let name = self.wait.program.name();
            return Err(format!(
                "it executes another file than rank {leader}, which is {name:?}: all ranks of a job are one program here; start several, or \
                 one rank under another program such as valgrind, by `argonet run` and a script"
            ));
        }
        let taken = |by| format!("job rank {rank} has been taken by {by}");
        if rank == leader.0 {
            return Err(taken(format!("process {}", getpid())));
        }
        let i = rank
            .checked_sub(leader.0 + 1)
            .map_or(usize::MAX, |i| i as usize);
        match self.guests.get(i) {
            Some(Some(guest)) => return Err(taken(format!("process {}", guest.pid))),
            Some(None) => {}
            None => {
                let here = self.wait.member.here();
                let reason = format!(
                    "rank {rank} is one of the {here} ranks of this host, the first of which is rank {leader}. {CONSECUTIVE}"
                );
                self.apart = Some(reason.clone());
                return Err(reason);
            }
        }
        let [pidfd] = <[OwnedFd; 1]>::try_from(files).map_err(|_| NO_PROCESS)?;
        match process_of(&pidfd) {
            Some(pid) if pid == i64::from(peer.pid) => Ok((i, pidfd)),
            Some(ENDED) => {
                let reason = ended(JobRank(rank), peer.pid);
                self.apart = Some(reason.clone());
                Err(reason)
            }
            _ => Err(NO_PROCESS.into()),
        }
    }

    fn refuse(&mut self, socket: &OwnedFd, peer: Peer, reason: &str) {
        self.refused = format!("; process {} was refused: {reason}", peer.pid);
        refuse(socket, reason);
    }

    /// The job cannot start without a rank that has come and ended; `ready` says of each whether it
    /// can be read.
    fn see_who_has_gone(&self, ready: &[bool]) -> Result<(), BootError> {
        let mut bytes = [0; MAX_BYTES];
        let ranks = self.wait.others().zip(&self.guests).zip(ready);
        let ready = ranks
            .filter_map(|((rank, guest), ready)| Some((rank, guest.as_ref().filter(|_| *ready)?)));
        for (rank, guest) in ready {
            if !matches!(receive(&guest.socket, &mut bytes), Received::Nothing) {
                return Err(self.wait.failed(ended(rank, guest.pid)));
            }
        }
        Ok(())
    }

    fn timed_out(&self) -> BootError {
        let ranks = self.wait.others().zip(&self.guests);
        let missing = ranks.filter(|(_, guest)| guest.is_none());
        let strangers = match self.strangers {
            0 => String::new(),
            number => format!("; {number} connections of other users were dropped"),
        };
        let hint = format!("{strangers}{}", self.refused);
        self.wait
            .timed_out(missing.map(|(rank, _)| rank).collect(), hint)
    }
}

pub(super) fn refuse(socket: &OwnedFd, reason: &str) {
    let refusal = Answer::Refusal(reason.to_owned());
    // It may have gone.
    let _ = refusal.encoded(|bytes| send(socket, bytes, &[]));
}

/// Why there is no job without a rank that has come.
fn ended(rank: JobRank, pid: u32) -> String {
    format!("rank {rank} (pid {pid}) ended before all ranks had come")
}

/// Why a message is of no rank.
const NO_PROCESS: &str = "its message has no descriptor of its process";

/// The id of a process that has ended and is no zombie.
const ENDED: i64 = -1;

/// The id of the process behind a pidfd; `None` if it is none.
fn process_of(pidfd: &OwnedFd) -> Option<i64> {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = facts.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok()
}

/// How the memory of this host's ranks is made, and by whom they are watched.
pub(super) struct Plan<'a> {
    pub(super) job_id: u64,
    pub(super) part: HostPart,
    /// The ranks of this host, in order: process ids, and descriptors of the processes.
    pub(super) processes: Vec<(u32, BorrowedFd<'a>)>,
    /// The launcher's process here that started them, if it is known.
    pub(super) starter: Option<u32>,
    /// The process whose end is that of the ranks.
    pub(super) watched: Option<OwnedFd>,
    /// Where the guardian says why the job ended.
    pub(super) stderr: Option<RankStderr>,
}

/// What the ranks of this host share, and their guardian, which knows all of them.
pub(super) struct Made {
    pub(super) control: Arc<Control>,
    pub(super) files: SharedFiles,
    pub(super) link: Link,
    pub(super) life: OwnedFd,
    /// Of each rank, whether it leads a process group of its own.
    pub(super) groups: Vec<bool>,
}

/// Makes what the ranks share, and lets the guardian know all of them.
pub(super) fn make(
    wait: &Wait<'_>,
    settings: &Settings,
    plan: Plan<'_>,
) -> Result<Made, BootError> {
    let first = plan.part.first;
    let (files, control) = make_part(plan.job_id, wait.member.size, plan.part, settings)?;
    let control = Arc::new(control);
    let (life, of_guardian) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|e| BootError::system("making a pipe to the guardian", e))?;
    let maker = Maker::Peer {
        launcher: plan.watched,
        stderr: plan.stderr,
        life: of_guardian,
    };
    let link = guardian::start(&control, maker)?;
    let pids: Vec<u32> = plan.processes.iter().map(|(pid, _)| *pid).collect();
    let groups = lead_own_groups(&pids, plan.starter);
    let processes = plan.processes.iter().zip(&groups);
    for (rank, (&(pid, pidfd), &group)) in (first..).map(JobRank).zip(processes) {
        let announced =
            wait.send(|| guardian::announce_other(link.as_fd(), rank, pid, pidfd, group));
        if let Err(error) = announced {
            // First: it would take the ranks that end now for a failure of the job.
            link.dismiss();
            return Err(
                error.unwrap_or_else(|| wait.failed("the job's guardian has ended meanwhile"))
            );
        }
    }
    Ok(Made {
        control,
        files,
        link,
        life,
        groups,
    })
}

/// A descriptor of this process.
pub(super) fn own_pidfd() -> Result<OwnedFd, BootError> {
    pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|e| BootError::system("opening a pidfd (Linux 5.3 or newer)", e))
}

/// Makes what the ranks share, lets the guardian know all of them, and sends each its part.
///
/// Ranks that have been welcomed run. So an error after the first of them leaves the guardian where
/// it is: it ends those when it sees this process, or one that was not welcomed, end.
fn welcome(wait: &Wait<'_>, settings: &Settings, guests: &[Guest]) -> Result<Joined, BootError> {
    let own_pidfd = own_pidfd()?;
    let own = (std::process::id(), own_pidfd.as_fd());
    let guests_of = guests.iter().map(|guest| (guest.pid, guest.pidfd.as_fd()));
    let processes: Vec<(u32, BorrowedFd<'_>)> = std::iter::once(own).chain(guests_of).collect();
    let pids: Vec<u32> = processes.iter().map(|(pid, _)| *pid).collect();
    let launcher = starter_of(&pids);
    let starter = launcher.as_ref().map(|(pid, _)| *pid);
    let conduit = settings.peek(&CONDUIT);
    let plan = Plan {
        job_id: new_job_id()?,
        part: HostPart {
            neighborhood: neighborhood_limit(conduit, settings),
            ..HostPart::whole(wait.member.size)
        },
        processes,
        starter,
        watched: launcher.map(|(_, pidfd)| pidfd),
        stderr: RankStderr::of_this_process(),
    };
    let key = Secret::new()?;
    let made = make(wait, settings, plan)?;
    if let Some(pid) = starter {
        made.control.job().set_launcher_pid(pid);
    }
    if let Err(error) = take_rank(&made.control, wait.rank()) {
        // First: it would take the ranks that end now for a failure of the job.
        made.link.dismiss();
        return Err(error);
    }
    let sockets: Vec<&OwnedFd> = guests.iter().map(|guest| &guest.socket).collect();
    send_parts(wait, settings, &made, &key, &sockets, None)?;
    let Made {
        control,
        files,
        link,
        life,
        ..
    } = made;
    let (link, guardian) = link.into_parts();
    Ok(Joined {
        control,
        files,
        key,
        link,
        guardian,
        life,
        line: Line::default(),
    })
}

/// Sends what is shared to the last ranks of this host, one over each of `sockets`; with a line to
/// the agent each, where there is one.
pub(super) fn send_parts(
    wait: &Wait<'_>,
    settings: &Settings,
    made: &Made,
    key: &Secret,
    sockets: &[&OwnedFd],
    lines: Option<&[OwnedFd]>,
) -> Result<(), BootError> {
    let answer = Answer::Welcome {
        job_id: made.control.job().job_id(),
        key: key.clone(),
    };
    let reach = Reach::of(settings.peek(&CONDUIT), settings);
    let part = made.control.part();
    let first = part.all().end - sockets.len() as u32;
    // Those of the neighborhood whose ranks are being welcomed, where it is not that of the first
    // rank.
    let mut others: Option<SharedFiles> = None;
    for (i, (rank, socket)) in (first..).map(JobRank).zip(sockets).enumerate() {
        if rank.0 != part.first && part.around(rank).start == rank.0 {
            others = Some(made.files.of_other_neighborhood(reach.segments)?);
        }
        let files = others.as_ref().unwrap_or(&made.files);
        let mut parts = vec![
            files.control.as_fd(),
            files.rings.as_fd(),
            files.segments.as_fd(),
            files.interfaces.as_fd(),
            made.link.as_fd(),
            made.life.as_fd(),
        ];
        parts.extend(lines.and_then(|lines| lines.get(i)).map(AsFd::as_fd));
        let sent = answer.encoded(|bytes| wait.send(|| send(socket, bytes, &parts)));
        match sent {
            // The guardian sees a rank that has ended meanwhile.
            Ok(()) | Err(None) => {}
            Err(Some(error)) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
