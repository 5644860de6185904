//! Every rank but the first of the host: connects to that, and gets what the ranks share.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use argonet_settings::Settings;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::message::{Answer, Hello, MAX_BYTES, files_of_welcome};
use super::socket::{Received, in_words, is_of_this_user, is_over, peer, receive, send};
use super::{Joined, Wait, over_hosts};
use crate::attach::{check_kind, huge_pages_of, take_rank};
use crate::error::BootError;
use crate::files::{SharedFiles, moved_up};
use crate::foreign::Spread;
use crate::guardian::GuardianProcess;
use crate::line::Line;
use crate::page::Control;
use crate::secret::{Secret, wipe};

/// Between two attempts to connect, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(16)];

/// So much longer than the first one a rank waits that has come, since that knows who has not.
const SLACK: Duration = Duration::from_secs(2);

/// Becomes a rank other than the first of the host.
pub(super) fn join(wait: &Wait<'_>, settings: &Settings) -> Result<Joined, BootError> {
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
    if let Some(spread) = wait.member.spread {
        let fenced = over_hosts::follow(wait, settings, spread, &socket);
        if fenced.is_err() && is_over(&socket) {
            // For a reason that it says, or has said.
            welcomed(wait, &socket)?;
        }
        fenced?;
    }
    welcomed(wait, &socket)
}

/// Waits for what the ranks of this host share, and takes its part.
pub(super) fn welcomed(wait: &Wait<'_>, socket: &OwnedFd) -> Result<Joined, BootError> {
    let (answer, files) = answer(wait, socket)?;
    match answer {
        Answer::Refusal(reason) => Err(wait.failed(reason)),
        Answer::Welcome { job_id, key } => {
            take_part(wait, job_id, key, files).map_err(|reason| match reason {
                Failure::Unusable(reason) => wait.failed(format!(
                    "what rank {} sent cannot be used: {reason}",
                    wait.leader()
                )),
                Failure::Error(error) => error,
            })
        }
    }
}

fn lost(wait: &Wait<'_>) -> BootError {
    wait.failed(match wait.member.spread {
        None => "rank 0 ended before all ranks had come".into(),
        Some(Spread { first, .. }) => {
            format!("rank {first}, or the agent of its host, ended before all ranks had come")
        }
    })
}

/// A connection to the first rank of the host, once it listens.
fn connect(wait: &Wait<'_>) -> Result<OwnedFd, BootError> {
    let [mut pause, most] = PAUSES;
    loop {
        match wait.place.connect() {
            Ok(socket) => {
                let peer = peer(&socket).map_err(|e| {
                    BootError::system("asking who listens as the first rank of the host", e)
                })?;
                return match is_of_this_user(peer) {
                    true => Ok(socket),
                    false => Err(wait.taken(in_words(peer))),
                };
            }
            Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::PROTOTYPE) => return Err(wait.taken(wait.place.owner())),
            Err(error) => {
                return Err(BootError::system(
                    "connecting to the first rank of the host",
                    error,
                ));
            }
        }
        if !wait.poll(&mut [], pause) {
            let hint = match wait.place.is_bound() {
                true => ", while a process has the name and does not listen",
                false => "",
            };
            return Err(wait.timed_out(vec![wait.leader()], hint.into()));
        }
        pause = (pause * 2).min(most);
    }
}

/// The answer, which comes when all ranks have.
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
                return Err(wait.failed(format!(
                    "what rank {} sent could not be taken whole; raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)",
                    wait.leader()
                )));
            }
            Received::Nothing if in_time => {}
            Received::Nothing => {
                let hint = ", which listens and does not answer".into();
                return Err(patient.timed_out(vec![wait.leader()], hint));
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
    let is_spread = wait.member.spread.is_some();
    let (files, line) = files_of_welcome(files, is_spread)?;
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
    if let Some(line) = &line {
        check_kind(line.as_fd(), "line")?;
    }
    let [control_file, rings, segments, interfaces, link, life] = files.map(moved_up);
    let control = Control::open(&control_file, wait.member.size, job_id)?;
    let part = control.part().all();
    let expected = wait.member.first()..wait.member.first() + wait.member.here();
    if part != expected {
        return Err(Failure::Unusable(format!(
            "it is for ranks {part:?}, not {expected:?}"
        )));
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
        line: line.map_or_else(Line::default, |line| Line::new(moved_up(line), true)),
    })
}
