//! The key-value store that another launcher offers to the processes that it has started.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::BootError;

/// How long an answer is waited for that is no use any more: a launcher may fail at a process that
/// ends while it answers it.
pub(crate) const LAST_ANSWER: Duration = Duration::from_secs(1);

/// Why nothing is asked any more.
pub(crate) const OVER: &str = "a rank of this host has ended or given up meanwhile";

/// A store that all processes of a job see: what is put before a fence can be read after it.
///
/// The processes that exchange nothing take part in the fence all the same, as launchers count
/// them. Each call ends in time, or is an error.
pub(crate) trait Store {
    /// Puts a value, whose key no process has put before.
    ///
    /// A key has small letters, digits and hyphens.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootError>;

    /// Waits until all processes of the job have called this.
    fn fence(&mut self) -> Result<(), BootError>;

    /// The value that `owner` has put before the fence; `None` if it has not.
    fn get(&mut self, owner: JobRank, key: &str) -> Result<Option<Vec<u8>>, BootError>;

    /// Has the launcher end all processes of the job, with this code.
    fn abort(&mut self, code: u8);

    /// This process needs the store no more.
    fn finish(&mut self) -> Result<(), BootError>;
}

/// Who speaks to which launcher, and how long it waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) rank: JobRank,
    /// Number of ranks of the job.
    pub(crate) size: u32,
    pub(crate) launcher: &'static str,
    pub(crate) limit: Duration,
    /// Whether a greeting that fails ends the job, which others wait for.
    pub(crate) aborts: bool,
}

impl Client {
    /// The error where `store` has failed at a command.
    pub(crate) fn failed(
        &self,
        store: &'static str,
        command: &'static str,
        reason: impl Into<String>,
    ) -> BootError {
        BootError::LauncherStore {
            rank: self.rank,
            launcher: self.launcher,
            store,
            command,
            reason: reason.into(),
        }
    }
}

/// What may happen on this host while a process waits for those of others.
pub(crate) struct Watched<'a> {
    /// Descriptors that can be read then.
    pub(crate) fds: Vec<BorrowedFd<'a>>,
    /// Whether there is no job to wait for any more; asked when one of them can be read.
    pub(crate) is_over: Box<dyn Fn() -> bool + 'a>,
}

/// Waits of a client, all of which together are over after its limit, and up to the fence also
/// when what is watched says so.
pub(crate) struct Patience<'a> {
    limit: Duration,
    until: Instant,
    watched: Watched<'a>,
    /// What is watched has happened.
    is_over: bool,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(limit: Duration, watched: Watched<'a>) -> Self {
        Self {
            limit,
            until: Instant::now() + limit,
            watched,
            is_over: false,
        }
    }

    /// Whether there is no job to wait for any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// All have come to the fence, and some may have got on without this one.
    pub(crate) fn fence_passed(&mut self) {
        self.watched.fds.clear();
    }

    /// Waits for one more answer at least, and no longer than for a useless one.
    pub(crate) fn for_last_answer(&mut self) {
        self.watched.fds.clear();
        self.until = Instant::now() + LAST_ANSWER;
    }

    /// Waits until `fd` may be ready for `events`, `at_fence` or for an answer of the launcher's;
    /// else why there is no time any more.
    pub(crate) fn wait(
        &mut self,
        fd: impl AsFd,
        events: PollFlags,
        at_fence: bool,
    ) -> Result<(), String> {
        let left = self.until.saturating_duration_since(Instant::now());
        let mut fds = vec![PollFd::new(&fd, events)];
        let watched = self.watched.fds.iter();
        fds.extend(watched.map(|fd| PollFd::new(fd, PollFlags::IN)));
        // An interrupted wait is short.
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        let happened = fds.iter().skip(1).any(|fd| !fd.revents().is_empty());
        drop(fds);
        if happened {
            self.is_over = (self.watched.is_over)();
            // What has come is for later, and there will be no more.
            self.watched.fds.clear();
            match (self.is_over, at_fence) {
                (true, true) => return Err(OVER.into()),
                (true, false) => self.until = self.until.min(Instant::now() + LAST_ANSWER),
                (false, _) => {}
            }
            return Ok(());
        }
        if !left.is_zero() {
            return Ok(());
        }
        if self.is_over {
            return Err(OVER.into());
        }
        let who = match at_fence {
            true => "not all processes of the job have come",
            false => "no answer has come",
        };
        Err(format!(
            "{who} within {} s; do all of them run the same program? If they are only slow, raise ARGONET_START_TIMEOUT (seconds)",
            self.limit.as_secs()
        ))
    }
}
