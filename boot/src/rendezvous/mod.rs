//! The ranks that another launcher started become one job (docs/adr/0050).
//!
//! Those of a host meet at a local socket, and hosts, if there are several, by the launcher's store
//! (module [`over_hosts`], docs/adr/0053, docs/adr/0055). The leader below is the first rank of the
//! host.
//!
//! No common parent hands descriptors down, so they go over a local socket with an abstract name
//! ([`socket`]), which leaves no file:
//!
//! ```text
//! leader                                     every other rank
//!   | listens at the name of the job            | connects, again until someone listens
//!   |                                           | refuses a listener of another user
//!   | <------- hello, its pidfd, its program -- |
//!   | drops processes of other users            |
//!   | has all: makes memory, key and guardian,  |
//!   | announces all of them to the guardian     |
//!   | ------- welcome: identity of the job, key, memory, way to the guardian ----> |
//! ```
//!
//! In a job over several hosts an agent, which the leader forks, makes and answers.
//!
//! The name follows from the user and from the identity that the launcher gives its job
//! ([`Member`](crate::foreign::Member)). Another user may know it, and take it first: the job does
//! not start then. A process of the same user is believed to be of the job, as it could read the
//! memory of a rank anyway; what it sends is checked nevertheless ([`message`]).
//!
//! After that the job is as one that `argonet run` started, but that the launcher waits for the
//! ranks and reports their ends: the guardian says why the job ended, rank 0 answers SIGUSR2, and
//! each rank ends if the guardian is killed ([`watch`]).

mod guest;
mod leader;
mod message;
mod over_hosts;
mod program;
mod socket;
mod user;
mod watch;

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, ON_RANK_LOST, OnRankLost, Reach, START_TIMEOUT, Settings};
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::attach::die_with_parent;
use crate::error::{BootError, Missing};
use crate::files::SharedFiles;
use crate::foreign::Member;
use crate::guardian::GuardianProcess;
use crate::line::Line;
use crate::local::LocalJob;
use crate::page::Control;
use crate::secret::Secret;
use program::Program;
use socket::Place;

pub use message::check as check_rendezvous_bytes;
pub(crate) use watch::{guardian_gone, watch_guardian};

/// Time for which sending goes on where a rank comes at the last moment.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Refuses a job that is to go on without ranks that have died: its launcher does not let it.
pub(crate) fn refuse_losses(member: &Member, settings: &Settings) -> Result<(), BootError> {
    match settings.get(&ON_RANK_LOST) {
        OnRankLost::End => Ok(()),
        OnRankLost::Continue => Err(BootError::NoLosses {
            reason: format!(
                "{} started it, and ends all ranks when one has died",
                member.launcher
            ),
        }),
    }
}

/// Becomes a rank of the job of `member`, once all others have come: the first of the host within
/// `ARGONET_START_TIMEOUT`, the others within as long again; as long again in both where there are
/// several hosts.
pub(crate) fn join(member: &Member, settings: &Settings) -> Result<(LocalJob, OwnedFd), BootError> {
    refuse_losses(member, settings)?;
    let wait = Wait {
        member,
        place: Place::of(member),
        program: Program::of_this_process()?,
        began: Instant::now(),
        limit: settings.get(&START_TIMEOUT),
    };
    let conduit = settings.peek(&CONDUIT);
    if member.spread.is_some() && !Reach::of(conduit, settings).hosts {
        return Err(wait.failed(format!(
            "the conduit {conduit} joins ranks of one host, and this job is on several; choose one that spans hosts with \
             ARGONET_CONDUIT ({})",
            Reach::over_hosts()
        )));
    }
    user::check().map_err(|reason| wait.failed(reason))?;
    die_with_parent(|| wait.failed("the process that started this rank has ended meanwhile"))?;
    let joined = match wait.rank() == wait.leader() {
        true => leader::join(&wait, settings),
        false => guest::join(&wait, settings),
    }?;
    watch::watch(&joined.control, wait.rank(), joined.guardian, &joined.life)?;
    let job = LocalJob {
        control: joined.control,
        files: joined.files,
        rank: wait.rank(),
        start_timeout: wait.limit,
        launched: false,
        line: joined.line,
        key: joined.key,
        turn: Mutex::default(),
    };
    Ok((job, joined.link))
}

/// The abstract name at which the ranks of `member`'s job find each other, as `ss -xl` shows it.
pub(crate) fn place_of(member: &Member) -> String {
    Place::of(member).name().to_owned()
}

/// What a rank has then.
struct Joined {
    control: Arc<Control>,
    files: SharedFiles,
    key: Secret,
    link: OwnedFd,
    guardian: GuardianProcess,
    /// The end of a pipe whose other end the guardian holds, in a description that ranks share.
    life: OwnedFd,
    /// To the host's agent, where there are several hosts.
    line: Line,
}

/// Waiting for the other ranks, for a bounded time.
struct Wait<'a> {
    member: &'a Member,
    place: Place,
    program: Program,
    began: Instant,
    limit: Duration,
}

impl Wait<'_> {
    fn rank(&self) -> JobRank {
        JobRank(self.member.rank)
    }

    /// The first rank of the host, which all others of it find.
    fn leader(&self) -> JobRank {
        JobRank(self.member.first())
    }

    /// The other ranks of the host.
    fn others(&self) -> impl Iterator<Item = JobRank> + use<> {
        let first = self.member.first();
        (first + 1..first + self.member.here()).map(JobRank)
    }

    /// The same with another limit.
    fn within(&self, limit: Duration) -> Self {
        Self {
            member: self.member,
            place: self.place.clone(),
            program: self.program.clone(),
            began: self.began,
            limit,
        }
    }

    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed())
    }

    /// Waits until a descriptor is ready, or for `most`, or until the time is up; false if it is.
    fn poll(&self, fds: &mut [PollFd<'_>], most: Duration) -> bool {
        let left = self.left();
        let most = Timespec::try_from(left.min(most)).ok();
        // An interrupted wait is short.
        let _ = poll(fds, most.as_ref());
        !left.is_zero()
    }

    /// Sends by `send`, again while the system cannot; the error is `None` if the other end has
    /// gone.
    fn send(&self, send: impl FnMut() -> rustix::io::Result<()>) -> Result<(), Option<BootError>> {
        let until = Instant::now() + self.left().max(LAST_MOMENT);
        let goes_on = |pause| {
            let _ = poll(&mut [], Timespec::try_from(pause).ok().as_ref());
            Instant::now() < until
        };
        socket::patiently(goes_on, send).map_err(|error| match error {
            Errno::PIPE | Errno::CONNRESET => None,
            Errno::TOOMANYREFS => Some(self.failed(
                "more descriptors of this user are on their way between processes than its limit of open files allows; raise that \
                 (RLIMIT_NOFILE, `ulimit -n`)",
            )),
            error => Some(BootError::system("sending descriptors between ranks", error)),
        })
    }

    fn failed(&self, reason: impl Into<String>) -> BootError {
        BootError::RendezvousFailed {
            rank: self.rank(),
            launcher: self.member.launcher,
            reason: reason.into(),
        }
    }

    fn taken(&self, owner: String) -> BootError {
        BootError::RendezvousTaken {
            rank: self.rank(),
            launcher: self.member.launcher,
            place: self.place.name().to_owned(),
            owner,
            leader: self.leader(),
        }
    }

    fn timed_out(&self, missing: Vec<JobRank>, hint: String) -> BootError {
        BootError::RendezvousTimeout {
            rank: self.rank(),
            size: self.member.size,
            launcher: self.member.launcher,
            place: self.place.name().into(),
            missing: Missing(missing),
            waited: self.began.elapsed(),
            hint: hint.into(),
        }
    }
}
