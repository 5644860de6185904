//! The way to the guardian: its socket, and the messages on it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use crate::exit::ProcessEnd;
use crate::files::moved_up;
use crate::page::Control;
use crate::sys;

/// Time that the end of a job waits for the guardian to be gone.
const FAREWELL: Duration = Duration::from_secs(1);

/// Time that a process without its guardian waits for the guardian's exit status, which the system
/// can report once init has reaped it.
const REAPED: Duration = Duration::from_millis(200);

/// Messages between launcher and guardian, beside a pidfd: one of the `MESSAGE` words, rank, and
/// process id.
const MESSAGE_BYTES: usize = 12;
pub(super) const MESSAGE_RANK: u32 = 1;
pub(super) const MESSAGE_DISMISS: u32 = 2;
pub(super) const MESSAGE_ATTACHED: u32 = 3;
pub(super) const MESSAGE_EXIT: u32 = 4;
pub(super) const MESSAGE_KILL: u32 = 5;
/// The guardian's first word, about itself.
pub(super) const MESSAGE_WATCHING: u32 = 6;
/// As [`MESSAGE_RANK`], of a process whose group has processes that are not the rank's.
pub(super) const MESSAGE_RANK_ALONE: u32 = 7;

/// A rank, and another that it cannot reach, in the place of the process id.
pub(super) const MESSAGE_UNREACHABLE: u32 = 8;

/// The launcher's end: while it is open, the launcher lives.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) socket: OwnedFd,
    pub(super) guardian: GuardianProcess,
    /// A descriptor that rank 0 of a job that started itself holds as long as it runs its program;
    /// see [`replaced`](crate::replaced).
    pub(super) _program: Option<OwnedFd>,
}

/// The guardian as a process, to ask how it ended.
#[derive(Debug)]
pub(crate) struct GuardianProcess {
    pid: u32,
    pidfd: Option<OwnedFd>,
}

impl GuardianProcess {
    pub(super) fn new(pid: u32, pidfd: Option<OwnedFd>) -> Self {
        Self { pid, pidfd }
    }

    /// The guardian of `control`'s job, which must be alive after this call.
    pub(crate) fn of(control: &Control) -> Self {
        let pid = control.job().guardian_pid().unwrap_or(0);
        let named = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = named.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self::new(pid, pidfd.map(moved_up))
    }

    /// Its process id, and how it ended if the system can report that.
    ///
    /// Once it has gone. Async-signal-safe.
    pub(crate) fn end(&self) -> (u32, ProcessEnd) {
        let step = Duration::from_millis(10);
        let nap = Timespec::try_from(step).unwrap_or_default();
        let mut waited = Duration::ZERO;
        loop {
            let pidfd = self.pidfd.as_ref();
            let status = pidfd.and_then(|pidfd| sys::end_of_process(pidfd.as_fd(), self.pid));
            match status {
                Some(status) => return (self.pid, ProcessEnd::from_raw_status(status)),
                None if waited >= REAPED => return (self.pid, ProcessEnd::Unknown),
                None => {}
            }
            let _ = poll(&mut [], Some(&nap));
            waited += step;
        }
    }
}

/// Whether no process has the other end of this descriptor any more.
///
/// Async-signal-safe.
pub(crate) fn is_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut end = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let _ = retry(|| poll(&mut end, Some(&Timespec::default())));
    end[0].revents().contains(PollFlags::HUP)
}

pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

impl Link {
    /// Sends the guardian away without it killing anything.
    pub(crate) fn dismiss(&self) {
        send(self.as_fd(), MESSAGE_DISMISS, 0, 0, None);
        self.farewell();
    }

    /// Reports to the guardian that the job is over, and waits (at most [`FAREWELL`]) until it has
    /// gone.
    pub(crate) fn farewell(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
        // No news ends the wait, but its end, which is always reported.
        let mut end = [PollFd::new(&self.socket, PollFlags::empty())];
        let limit = Timespec {
            tv_sec: FAREWELL.as_secs() as i64,
            tv_nsec: 0,
        };
        let _ = retry(|| poll(&mut end, Some(&limit)));
    }

    /// Whether the guardian has gone.
    ///
    /// Async-signal-safe.
    pub(crate) fn is_broken(&self) -> bool {
        is_hung_up(self.as_fd())
    }

    /// The socket, and the guardian.
    pub(crate) fn into_parts(self) -> (OwnedFd, GuardianProcess) {
        (self.socket, self.guardian)
    }

    /// See [`GuardianProcess::end`].
    pub(crate) fn guardian_end(&self) -> (u32, ProcessEnd) {
        self.guardian.end()
    }

    /// The news that has come; `None` if there is none now.
    pub(crate) fn news(&self) -> Option<News> {
        loop {
            return match receive(self.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(Message {
                    what: MESSAGE_UNREACHABLE,
                    rank,
                    pid,
                    ..
                })) => Some(News::Accusation(JobRank(rank), JobRank(pid))),
                Ok(Some(_)) => continue,
                Err(Errno::AGAIN) => None,
                Ok(None) | Err(_) => {
                    let (pid, end) = self.guardian_end();
                    Some(News::Gone(pid, end))
                }
            };
        }
    }
}

/// Puts this process, which is about to become `rank` and leads its own process group, under the
/// guardian's eyes.
///
/// The process does so itself, before it runs the program, so that there is no moment at which the
/// program runs and the guardian does not know of it. Async-signal-safe.
pub(crate) fn announce(link: BorrowedFd<'_>, rank: JobRank) {
    let pid = getpid();
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
        send(
            link,
            MESSAGE_RANK,
            rank.0,
            pid.as_raw_nonzero().get() as u32,
            Some(pidfd.as_fd()),
        );
    }
}

/// Puts a process that another launcher started, and that becomes `rank`, under the guardian's
/// eyes; with `group`, its process group ends with it.
pub(crate) fn announce_other(
    link: BorrowedFd<'_>,
    rank: JobRank,
    pid: u32,
    pidfd: BorrowedFd<'_>,
    group: bool,
) -> rustix::io::Result<()> {
    let what = if group {
        MESSAGE_RANK
    } else {
        MESSAGE_RANK_ALONE
    };
    try_send(link, what, rank.0, pid, Some(pidfd))
}

/// Names the process that is `rank` to the guardian, where it is not the one that the launcher
/// started.
pub(crate) fn announce_attached(link: BorrowedFd<'_>, rank: JobRank) {
    if let Ok(pidfd) = pidfd_open(getpid(), PidfdFlags::empty()) {
        send(link, MESSAGE_ATTACHED, rank.0, 0, Some(pidfd.as_fd()));
    }
}

/// Makes the guardian look at the exit word, which a rank has set.
///
/// Async-signal-safe.
pub(crate) fn report_exit(link: BorrowedFd<'_>) {
    send(link, MESSAGE_EXIT, 0, 0, None);
}

/// Makes the guardian kill all ranks now.
///
/// Async-signal-safe.
pub(crate) fn order_kill(link: BorrowedFd<'_>) {
    send(link, MESSAGE_KILL, 0, 0, None);
}

/// Reports that `accuser`, which is this process, cannot reach `accused`.
pub(crate) fn accuse(link: BorrowedFd<'_>, accuser: JobRank, accused: JobRank) {
    send(link, MESSAGE_UNREACHABLE, accuser.0, accused.0, None);
}

/// Passes on as the guardian, to the host's agent, that `accuser` cannot reach `accused`; false if
/// the agent has to take others first.
///
/// Does not wait, as the agent may wait for the guardian.
pub(super) fn forward_accusation(
    agent: BorrowedFd<'_>,
    accuser: JobRank,
    accused: JobRank,
) -> bool {
    let (flags, what) = (SendFlags::DONTWAIT, MESSAGE_UNREACHABLE);
    let sent = send_with(flags, agent, what, accuser.0, accused.0, None);
    sent != Err(Errno::AGAIN)
}

/// News of the guardian for its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It has gone: its process id, and how it ended.
    Gone(u32, ProcessEnd),
    /// The first rank cannot reach the second one.
    Accusation(JobRank, JobRank),
}

pub(super) fn send(
    link: BorrowedFd<'_>,
    what: u32,
    rank: u32,
    pid: u32,
    pidfd: Option<BorrowedFd<'_>>,
) {
    // If the guardian has been killed, the job goes on without it: the other nets remain.
    let _ = try_send(link, what, rank, pid, pidfd);
}

pub(super) fn try_send(
    link: BorrowedFd<'_>,
    what: u32,
    rank: u32,
    pid: u32,
    pidfd: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    send_with(SendFlags::empty(), link, what, rank, pid, pidfd)
}

fn send_with(
    flags: SendFlags,
    link: BorrowedFd<'_>,
    what: u32,
    rank: u32,
    pid: u32,
    pidfd: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    for (bytes, word) in message.chunks_exact_mut(4).zip([what, rank, pid]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = pidfd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    retry(|| {
        sendmsg(
            link,
            &[IoSlice::new(&message)],
            &mut control,
            SendFlags::NOSIGNAL | flags,
        )
    })
    .map(drop)
}

/// A message that came.
pub(super) struct Message {
    pub(super) what: u32,
    pub(super) rank: u32,
    pub(super) pid: u32,
    pub(super) pidfd: Option<OwnedFd>,
}

/// The next message; `None` at the end of file, or if it is none of ours.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
) -> rustix::io::Result<Option<Message>> {
    let mut message = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let bytes = retry(|| {
        let mut parts = [IoSliceMut::new(&mut message)];
        recvmsg(socket, &mut parts, &mut control, flags).map(|received| received.bytes)
    })?;
    if bytes != MESSAGE_BYTES {
        return Ok(None);
    }
    let pidfd = control.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let word = |i: usize| {
        message[4 * i..]
            .first_chunk()
            .map_or(0, |b| u32::from_le_bytes(*b))
    };
    let (what, rank, pid) = (word(0), word(1), word(2));
    Ok(Some(Message {
        what,
        rank,
        pid,
        pidfd,
    }))
}

impl AsFd for Link {
    /// Readable once there is [`news`](Link::news).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
