//! Rank 0: listens, and when all others have come makes what they share.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, Reach, Settings};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, getpgid, getpid, getrlimit, pidfd_open, setrlimit,
};

use super::message::{Answer, Hello, MAX_BYTES};
use super::socket::{Received, accept, in_words, is_of_this_user, peer, receive, send};
use super::watch::{self, Leader};
use super::{Joined, LEADER, Wait};
use crate::ancestry::starter_of;
use crate::attach::{make_part, neighborhood_limit, new_job_id, take_rank};
use crate::error::BootError;
use crate::file_limit::{SPARE_FILES, raise_file_limit};
use crate::files::SharedFiles;
use crate::guardian::{self, Link, Maker};
use crate::page::HostPart;
use crate::rank_stderr::RankStderr;
use crate::secret::Secret;
use crate::sys::Peer;

/// Connections without a message that are kept at a time, beside one for each rank.
const SPARE_CONNECTIONS: usize = 64;

/// Becomes rank 0.
pub(super) fn join(wait: &Wait<'_>, settings: &Settings) -> Result<Joined, BootError> {
    let before = make_room_for_files(wait.member.size)?;
    let listener = match wait.place.listen() {
        Err(Errno::ADDRINUSE) => return Err(wait.taken(owner(wait))),
        other => other.map_err(|e| BootError::system("listening for the other ranks", e))?,
    };
    let mut gathering = Gathering {
        wait,
        listener,
        silent: VecDeque::new(),
        guests: (1..wait.member.size).map(|_| None).collect(),
        strangers: 0,
        refused: String::new(),
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
    let joined = gathered.and_then(|()| {
        let guests: Vec<&Guest> = guests.iter().flatten().collect();
        welcome(wait, settings, &guests)
    });
    if let Err(error) = &joined {
        for guest in guests.iter().flatten() {
            refuse(&guest.socket, &format!("rank 0 gave up: {error}"));
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
            who: "rank 0",
        }),
        _ => Ok(raise_file_limit(need)),
    }
}

/// Who has the place, if that can be found out.
fn owner(wait: &Wait<'_>) -> String {
    let owner = wait.place.connect().ok();
    let owner = owner.and_then(|socket| peer(&socket).ok());
    owner.map_or("a process that does not listen".into(), in_words)
}

/// A rank that has come.
struct Guest {
    socket: OwnedFd,
    pid: u32,
    pidfd: OwnedFd,
}

/// The ranks that have come so far.
struct Gathering<'a> {
    wait: &'a Wait<'a>,
    listener: OwnedFd,
    /// Connections over which nothing has come.
    silent: VecDeque<(OwnedFd, Peer)>,
    /// Ranks 1, 2, ...
    guests: Vec<Option<Guest>>,
    /// Connections of other users.
    strangers: u32,
    /// The last process of this user that was refused, in words; may be empty.
    refused: String,
}

impl Gathering<'_> {
    /// Waits until all ranks have come.
    fn gather(&mut self) -> Result<(), BootError> {
        while self.guests.iter().any(Option::is_none) {
            if !self.wait_for_event() {
                return Err(self.timed_out());
            }
            while let Some(socket) = accept(&self.listener)
                .map_err(|e| BootError::system("accepting another rank", e))?
            {
                self.admit(socket);
            }
            for _ in 0..self.silent.len() {
                let Some((socket, peer)) = self.silent.pop_front() else {
                    break;
                };
                self.hear(socket, peer);
            }
            self.see_who_has_gone()?;
        }
        Ok(())
    }

    fn wait_for_event(&self) -> bool {
        let guests = self.guests.iter().flatten().map(|guest| &guest.socket);
        let sockets = self.silent.iter().map(|(socket, _)| socket).chain(guests);
        let mut fds: Vec<PollFd<'_>> = std::iter::once(&self.listener)
            .chain(sockets)
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        self.wait.poll(&mut fds, Duration::MAX)
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
                "its process is not in the pid namespace of rank 0",
            );
        }
        if self.silent.len() >= self.guests.len() + SPARE_CONNECTIONS {
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
        &self,
        bytes: &[u8],
        files: Vec<OwnedFd>,
        peer: Peer,
    ) -> Result<(usize, OwnedFd), String> {
        let Hello { rank, size } = Hello::parse(bytes)?;
        let own = self.wait.member.size;
        if size != own {
            return Err(format!("it is one of {size} ranks, and rank 0 of {own}"));
        }
        let taken = |by| format!("job rank {rank} has been taken by {by}");
        let i = (rank as usize)
            .checked_sub(1)
            .ok_or_else(|| taken(format!("process {}", getpid())))?;
        if let Some(Some(guest)) = self.guests.get(i) {
            return Err(taken(format!("process {}", guest.pid)));
        }
        let pidfd = <[OwnedFd; 1]>::try_from(files)
            .ok()
            .map(|[file]| file)
            .filter(|file| process_of(file) == Some(peer.pid))
            .ok_or("its message has no descriptor of its process")?;
        Ok((i, pidfd))
    }

    fn refuse(&mut self, socket: &OwnedFd, peer: Peer, reason: &str) {
        self.refused = format!("; process {} was refused: {reason}", peer.pid);
        refuse(socket, reason);
    }

    /// The job cannot start without a rank that has come and ended.
    fn see_who_has_gone(&mut self) -> Result<(), BootError> {
        let mut bytes = [0; MAX_BYTES];
        let ranks = (1..).map(JobRank).zip(&self.guests);
        for (rank, guest) in ranks.filter_map(|(rank, guest)| Some((rank, guest.as_ref()?))) {
            if !matches!(receive(&guest.socket, &mut bytes), Received::Nothing) {
                let pid = guest.pid;
                let reason = format!("rank {rank} (pid {pid}) ended before all ranks had come");
                return Err(self.wait.failed(reason));
            }
        }
        Ok(())
    }

    fn timed_out(&self) -> BootError {
        let ranks = (1..).map(JobRank).zip(&self.guests);
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

fn refuse(socket: &OwnedFd, reason: &str) {
    let refusal = Answer::Refusal(reason.to_owned());
    // It may have gone.
    let _ = refusal.encoded(|bytes| send(socket, bytes, &[]));
}

/// The id of the process behind a pidfd; `None` if it is none.
fn process_of(pidfd: &OwnedFd) -> Option<u32> {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = facts.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok()
}

/// Whether the process leads its process group, so that the group may be killed.
fn leads_group(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| getpgid(Some(pid)) == Ok(pid))
}

/// Makes what the ranks share, lets the guardian know all of them, and sends each its part.
fn welcome(wait: &Wait<'_>, settings: &Settings, guests: &[&Guest]) -> Result<Joined, BootError> {
    let size = wait.member.size;
    let own = getpid();
    let own_pid = own.as_raw_nonzero().get() as u32;
    let own_pidfd = pidfd_open(own, PidfdFlags::empty())
        .map_err(|e| BootError::system("opening a pidfd (Linux 5.3 or newer)", e))?;
    let pids: Vec<u32> = std::iter::once(own_pid)
        .chain(guests.iter().map(|guest| guest.pid))
        .collect();
    let launcher = starter_of(&pids);
    let conduit = settings.peek(&CONDUIT);
    let part = HostPart {
        neighborhood: neighborhood_limit(conduit, settings),
        ..HostPart::whole(size)
    };
    let key = Secret::new()?;
    let (files, control) = make_part(new_job_id()?, size, part, settings)?;
    let control = Arc::new(control);
    if let Some((pid, _)) = &launcher {
        control.job().set_launcher_pid(*pid);
    }
    let link = guardian::start(
        &control,
        Maker::Peer {
            launcher: launcher.map(|(_, pidfd)| pidfd),
            stderr: RankStderr::of_this_process(),
        },
    )?;
    let pidfds = std::iter::once(&own_pidfd).chain(guests.iter().map(|guest| &guest.pidfd));
    for (rank, (&pid, pidfd)) in (0..).map(JobRank).zip(pids.iter().zip(pidfds)) {
        guardian::announce_other(link.as_fd(), rank, pid, pidfd.as_fd(), leads_group(pid));
    }
    let made = (|| {
        take_rank(&control, LEADER)?;
        let reach = Reach::of(conduit, settings);
        send_parts(guests, &control, &files, &key, &link, reach.segments)?;
        let own_link = (link.as_fd().try_clone_to_owned())
            .map_err(|e| BootError::system("keeping the way to the guardian", e))?;
        let others = guests.iter().map(|guest| guest.pidfd.try_clone());
        let others = others.collect::<Result<Vec<_>, _>>();
        let others = others.map_err(|e| BootError::system("keeping the other ranks", e))?;
        Ok((own_link, others))
    })();
    match made {
        Ok((own_link, others)) => {
            watch::lead(Leader::new(&control, link, others));
            Ok(Joined {
                control,
                files,
                key,
                link: own_link,
            })
        }
        Err(error) => {
            // First: it would take the ranks that end now for a failure of the job.
            link.dismiss();
            Err(error)
        }
    }
}

/// Sends each rank what it needs.
fn send_parts(
    guests: &[&Guest],
    control: &crate::page::Control,
    files: &SharedFiles,
    key: &Secret,
    link: &Link,
    reaches_segments: bool,
) -> Result<(), BootError> {
    let answer = Answer::Welcome {
        job_id: control.job().job_id(),
        key: key.clone(),
    };
    // Those of the neighborhood whose ranks are being welcomed, where it is not that of rank 0.
    let mut others: Option<SharedFiles> = None;
    for (rank, guest) in (1..).map(JobRank).zip(guests) {
        if control.part().around(rank).start == rank.0 {
            others = Some(files.of_other_neighborhood(reaches_segments)?);
        }
        let files = others.as_ref().unwrap_or(files);
        let parts = [
            files.control.as_fd(),
            files.rings.as_fd(),
            files.segments.as_fd(),
            files.interfaces.as_fd(),
            link.as_fd(),
        ];
        // The guardian sees a rank that has ended meanwhile.
        let _ = answer.encoded(|bytes| send(&guest.socket, bytes, &parts));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
