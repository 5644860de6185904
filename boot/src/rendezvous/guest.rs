//! Every rank but 0: connects to rank 0, and gets what the ranks share.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::message::{Answer, Hello, MAX_BYTES, files_of_welcome};
use super::socket::{Received, in_words, is_of_this_user, peer, receive, send};
use super::{Joined, LEADER, Wait};
use crate::attach::{check_kind, huge_pages_of, take_rank};
use crate::error::BootError;
use crate::files::{SharedFiles, moved_up};
use crate::guardian::GuardianProcess;
use crate::page::Control;
use crate::secret::{Secret, wipe};

/// Between two attempts to connect, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(16)];

/// So much longer than rank 0 a rank waits that has come, since rank 0 knows who has not.
const SLACK: Duration = Duration::from_secs(2);

/// Becomes a rank other than 0.
pub(super) fn join(wait: &Wait<'_>) -> Result<Joined, BootError> {
    let socket = connect(wait)?;
    let hello = Hello {
        rank: wait.member.rank,
        size: wait.member.size,
        program: wait.program.number(),
    };
    let own = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|e| BootError::system("opening a pidfd (Linux 5.3 or newer)", e))?;
    let hello = hello.encode();
    wait.send(|| send(&socket, &hello, &[own.as_fd()]))
        .map_err(|error| error.unwrap_or_else(|| lost(wait)))?;
    let (answer, files) = answer(wait, &socket)?;
    match answer {
        Answer::Refusal(reason) => Err(wait.failed(reason)),
        Answer::Welcome { job_id, key } => {
            take_part(wait, job_id, key, files).map_err(|reason| match reason {
                Failure::Unusable(reason) => {
                    wait.failed(format!("what rank 0 sent cannot be used: {reason}"))
                }
                Failure::Error(error) => error,
            })
        }
    }
}

fn lost(wait: &Wait<'_>) -> BootError {
    wait.failed("rank 0 ended before all ranks had come")
}

/// A connection to rank 0, once it listens.
fn connect(wait: &Wait<'_>) -> Result<OwnedFd, BootError> {
    let [mut pause, most] = PAUSES;
    loop {
        match wait.place.connect() {
            Ok(socket) => {
                let peer = peer(&socket)
                    .map_err(|e| BootError::system("asking who listens as rank 0", e))?;
                return match is_of_this_user(peer) {
                    true => Ok(socket),
                    false => Err(wait.taken(in_words(peer))),
                };
            }
            Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::PROTOTYPE) => return Err(wait.taken(wait.place.owner())),
            Err(error) => return Err(BootError::system("connecting to rank 0", error)),
        }
        if !wait.poll(&mut [], pause) {
            let hint = match wait.place.is_bound() {
                true => ", while a process has the name and does not listen",
                false => "",
            };
            return Err(wait.timed_out(vec![LEADER], hint.into()));
        }
        pause = (pause * 2).min(most);
    }
}

/// The answer of rank 0, which comes when all ranks have.
fn answer(wait: &Wait<'_>, socket: &OwnedFd) -> Result<(Answer, Vec<OwnedFd>), BootError> {
    let patient = Wait {
        began: Instant::now(),
        ..wait.within(wait.limit + SLACK)
    };
    let mut bytes = [0; MAX_BYTES];
    loop {
        let in_time = patient.poll(&mut [PollFd::new(socket, PollFlags::IN)], Duration::MAX);
        match receive(socket, &mut bytes) {
            Received::Message { bytes: len, files } => {
                let answer = Answer::parse(&bytes[..len]);
                wipe(&mut bytes);
                return Ok((answer.map_err(|reason| wait.failed(reason))?, files));
            }
            Received::End => return Err(lost(wait)),
            Received::Cut => {
                return Err(wait.failed(
                    "what rank 0 sent could not be taken whole; raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)",
                ));
            }
            Received::Nothing if in_time => {}
            Received::Nothing => {
                let hint = ", which listens and does not answer".into();
                return Err(patient.timed_out(vec![LEADER], hint));
            }
        }
    }
}

enum Failure {
    /// What came.
    Unusable(String),
    Error(BootError),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Unusable(reason)
    }
}

/// Maps the memory and becomes the rank.
fn take_part(
    wait: &Wait<'_>,
    job_id: u64,
    key: Secret,
    files: Vec<OwnedFd>,
) -> Result<Joined, Failure> {
    let files = files_of_welcome(files)?;
    let names = [
        "control",
        "rings",
        "segments",
        "interfaces",
        "guardian",
        "life",
    ];
    for (file, name) in files.iter().zip(names) {
        check_kind(file.as_fd(), name)?;
    }
    let [control_file, rings, segments, interfaces, link, life] = files.map(moved_up);
    let control = Control::open(&control_file, wait.member.size, job_id)?;
    if !control.is_whole_job() {
        return Err(Failure::Unusable(
            "the job is not on this host as a whole".into(),
        ));
    }
    let huge_pages = huge_pages_of(&control)?;
    let guardian = GuardianProcess::of(&control);
    take_rank(&control, wait.rank()).map_err(Failure::Error)?;
    Ok(Joined {
        control: Arc::new(control),
        files: SharedFiles {
            control: control_file,
            rings,
            segments,
            interfaces,
            huge_pages,
        },
        key,
        link,
        guardian,
        life,
    })
}
