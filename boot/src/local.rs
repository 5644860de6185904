//! A rank's view of its job, through the memory that the ranks of its host share.

use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argonet_base::JobRank;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use crate::agreement;
use crate::board::Board;
use crate::bootstrap::{Bootstrap, Key, MAX_VALUE_BYTES};
use crate::error::BootError;
use crate::exit_mark::ExitMark;
use crate::fence;
use crate::files::SharedFiles;
use crate::line::Line;
use crate::losses::Losses;
use crate::page::{Control, ExitKind, ExitWord, JobPage, RankPage, RankState};
use crate::secret::Secret;
use crate::{confirming, crash, process, sys, test_job, threads};

/// The job as one of its ranks sees it.
///
/// Made by [`attach()`](crate::attach()).
///
/// Dropping it unmaps and closes the shared memory, and reports nothing to the others: a rank that
/// ends without [`Bootstrap::finalized`] has failed, dropped or not.
#[derive(Debug)]
pub struct LocalJob {
    pub(crate) control: Arc<Control>,
    pub(crate) files: SharedFiles,
    pub(crate) rank: JobRank,
    pub(crate) start_timeout: Duration,
    /// Whether `argonet run` started this rank, in a process group of its own.
    pub(crate) launched: bool,
    /// The way to the host's agent, in a job over several hosts.
    pub(crate) line: Line,
    pub(crate) key: Secret,
    /// Held during a fence or a publication: two threads of a rank in one fence would be counted as
    /// two ranks.
    pub(crate) turn: Mutex<()>,
}

impl LocalJob {
    /// The files that the ranks of this host share.
    #[must_use]
    pub fn files(&self) -> &SharedFiles {
        &self.files
    }

    /// The ranks on this host, which are consecutive.
    #[must_use]
    pub fn host_ranks(&self) -> Range<u32> {
        self.control.part().all()
    }

    /// The ranks that share [`files`](Self::files) with this one, itself among them: ranks of one
    /// host with consecutive numbers, at most `GASNET_SUPERNODE_MAXSIZE` of them.
    #[must_use]
    pub fn neighborhood(&self) -> Range<u32> {
        self.control.part().around(self.rank)
    }

    /// The key that only the ranks of this job share, for proving to each other that they belong to
    /// it.
    #[must_use]
    pub fn job_key(&self) -> &Secret {
        &self.key
    }

    /// Refuses a job whose ranks do not all share memory, on behalf of a conduit that needs that.
    ///
    /// # Errors
    /// [`BootError::NotTogether`].
    pub fn all_share_memory(&self, conduit: &'static str) -> Result<(), BootError> {
        let (near, size) = (self.neighborhood().len(), self.size());
        match near == size as usize {
            true => Ok(()),
            false => Err(BootError::NotTogether {
                rank: self.rank,
                conduit,
                near,
                size,
            }),
        }
    }

    /// State that the ranks of this host share, and this host's part of the rest.
    #[must_use]
    pub fn job_page(&self) -> &JobPage {
        self.control.job()
    }

    /// Values that `rank` publishes to the others.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn rank_page(&self, rank: JobRank) -> &RankPage {
        self.control.rank_page(rank)
    }
}

impl Bootstrap for LocalJob {
    fn rank(&self) -> JobRank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.control.size()
    }

    fn job_id(&self) -> u64 {
        self.control.job().job_id()
    }

    fn publish(&self, key: Key, value: &[u8]) -> Result<(), BootError> {
        let rank = self.rank;
        if value.len() > MAX_VALUE_BYTES {
            return Err(BootError::ValueTooLong {
                rank,
                key,
                bytes: value.len(),
            });
        }
        let _one_at_a_time = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = self.control.key_slot(rank, usize::from(u8::from(key)));
        match slot.fill(value) {
            true => Ok(()),
            false => Err(BootError::PublishedTwice { rank, key }),
        }
    }

    fn fence(&self) -> Result<(), BootError> {
        let _one_at_a_time = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let starting = self.control.rank_page(self.rank).state() <= RankState::Joined;
        fence::wait(
            &self.control,
            self.rank,
            starting.then_some(self.start_timeout),
            || self.line.ring(),
        )
    }

    fn lookup(&self, rank: JobRank, key: Key) -> Result<Vec<u8>, BootError> {
        if rank.0 >= self.size() {
            return Err(BootError::NoSuchRank {
                rank,
                size: self.size(),
            });
        }
        let slot = self.control.key_slot(rank, usize::from(u8::from(key)));
        slot.read().ok_or(BootError::NotPublished { rank, key })
    }

    fn started(&self) {
        self.control
            .rank_page(self.rank)
            .advance(RankState::Running);
    }

    fn finalized(&self) {
        self.control
            .rank_page(self.rank)
            .advance(RankState::Finalized);
        // Ranks of other hosts may wait for this one, in vain from now on.
        self.line.ring();
    }

    fn leaves_by_exit(&self) {
        process::leaves_by_exit(&self.control);
    }

    #[inline]
    fn attend(&self) -> bool {
        self.control.job().is_ending() && process::attend(&self.control)
    }

    fn exit_grace(&self) -> Duration {
        confirming::exit_grace(&self.control)
    }

    fn exit_mark(&self) -> ExitMark {
        ExitMark::new(&self.control)
    }

    fn accept_losses(&self) {
        self.control.rank_page(self.rank).accept_losses();
    }

    fn goes_on(&self) -> bool {
        self.control.job().goes_on()
    }

    fn losses(&self) -> Losses {
        Losses::new(&self.control)
    }

    fn acknowledge_losses(&self, losses: u32) {
        self.control.rank_page(self.rank).acknowledge(losses);
        self.line.ring();
    }

    fn have_acknowledged(&self, losses: u32) -> bool {
        agreement::have_acknowledged(&self.control, losses)
    }

    fn acknowledged_by(&self, losses: u32) -> Option<JobRank> {
        agreement::acknowledged_by(&self.control, losses)
    }

    fn agree(&self, round: u32) -> Option<u32> {
        agreement::agree(&self.control, self.rank, round, || self.line.ring())
    }

    fn unreachable(&self, peer: JobRank) -> bool {
        peer.0 < self.size() && process::unreachable(&self.control, peer)
    }

    fn heard_exit(&self, from: JobRank, code: u8) {
        process::heard_exit(&self.control, from, code);
    }

    fn say(&self, lines: &str) {
        sys::say(lines);
    }

    fn board(&self) -> Option<Board<'_>> {
        Some(Board::new(&self.control))
    }

    fn other_threads_may_act(&self) -> bool {
        threads::others_may_act()
    }

    fn claim_report(&self) -> bool {
        self.control.job().claim_report()
    }

    fn has_other_threads(&self) -> bool {
        threads::others_exist()
    }

    fn abort(&self, code: u8, message: &str) -> ! {
        let code = code.max(1);
        let (rank, pid) = (self.rank, std::process::id());
        let form = match process::reports_as_gasnet() {
            true => format!("*** FATAL ERROR (proc {rank}): "),
            false => String::new(),
        };
        sys::say(&format!(
            "{form}argonet: rank {rank} (pid {pid}): {message}"
        ));
        if let Some(test) = test_job::rank_of_test() {
            test.failed(&format!("rank {rank}: {message}"));
        }
        process::about_to_end(false);
        if let Some(rank) = process::this() {
            crash::on_error(rank, "fatal error");
        }
        // Not before: ranks that learn of it end, and this process is killed with them.
        self.control.job().set_exit_word(ExitWord {
            kind: ExitKind::Abort,
            rank: self.rank,
            code,
        });
        // The guardian waits for the end of the process that the launcher started. If a script
        // stands between, that process is the group's leader and must go too; the code is in the
        // exit word.
        if self.launched && getpgrp() != getpid() {
            let _ = kill_current_process_group(Signal::KILL);
        }
        sys::flush_and_exit_now(code)
    }
}
