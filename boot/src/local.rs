//! A rank's view of a job whose ranks all run on this host.

use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argonet_base::JobRank;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use crate::board::Board;
use crate::bootstrap::{Bootstrap, Key, MAX_VALUE_BYTES};
use crate::error::BootError;
use crate::fence;
use crate::files::SharedFiles;
use crate::page::{Control, ExitKind, ExitWord, JobPage, RankPage, RankState};
use crate::{crash, process, sys};

/// The job as one of its ranks sees it. Made by [`attach()`](crate::attach()).
///
/// Dropping it unmaps and closes what is shared, and says nothing to the others: a rank that ends without
/// [`Bootstrap::finalised`] has failed, dropped or not.
#[derive(Debug)]
pub struct LocalJob {
    pub(crate) control: Arc<Control>,
    pub(crate) files: SharedFiles,
    pub(crate) rank: JobRank,
    pub(crate) start_timeout: Duration,
    /// Whether `argonet run` started this rank, in a process group of its own.
    pub(crate) launched: bool,
    /// Held during a fence or a publication: two threads of a rank in one fence would be counted as two ranks.
    pub(crate) turn: Mutex<()>,
}

impl LocalJob {
    /// The files that the ranks of this host share.
    #[must_use]
    pub fn files(&self) -> &SharedFiles {
        &self.files
    }

    /// What the job shares as a whole.
    #[must_use]
    pub fn job_page(&self) -> &JobPage {
        self.control.job()
    }

    /// What `rank` tells the others.
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
        if slot.filled.load(Ordering::Relaxed) != 0 {
            return Err(BootError::PublishedTwice { rank, key });
        }
        for (word, bytes) in slot.value.iter().zip(value.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        slot.filled.store(value.len() as u64 + 1, Ordering::Release);
        Ok(())
    }

    fn fence(&self) -> Result<(), BootError> {
        let _one_at_a_time = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let starting = self.control.rank_page(self.rank).state() <= RankState::Joined;
        fence::wait(
            &self.control,
            self.rank,
            starting.then_some(self.start_timeout),
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
        let Some(bytes) = slot.filled.load(Ordering::Acquire).checked_sub(1) else {
            return Err(BootError::NotPublished { rank, key });
        };
        let mut value: Vec<u8> = slot
            .value
            .iter()
            .flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        // A length beyond the slot can only come from a peer that writes where it must not; the value is cut then.
        value.truncate(usize::try_from(bytes).unwrap_or(MAX_VALUE_BYTES));
        Ok(value)
    }

    fn started(&self) {
        self.control
            .rank_page(self.rank)
            .advance(RankState::Running);
    }

    fn finalised(&self) {
        self.control
            .rank_page(self.rank)
            .advance(RankState::Finalised);
    }

    fn leaves_by_exit(&self) {
        process::leaves_by_exit(&self.control);
    }

    #[inline]
    fn attend(&self) -> bool {
        self.control.job().is_ending() && process::attend(&self.control)
    }

    fn say(&self, lines: &str) {
        sys::say(lines);
    }

    fn board(&self) -> Option<Board<'_>> {
        Some(Board::new(&self.control))
    }

    fn abort(&self, code: u8, message: &str) -> ! {
        let code = code.max(1);
        let (rank, pid) = (self.rank, std::process::id());
        let form = match process::tells_as_gasnet() {
            true => format!("*** FATAL ERROR (proc {rank}): "),
            false => String::new(),
        };
        sys::say(&format!(
            "{form}argonet: rank {rank} (pid {pid}): {message}"
        ));
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
        // The end of the process that the launcher started is what the guardian waits for. If a script stands
        // between, that process is the group's leader and must go too; the code is in the exit word.
        if self.launched && getpgrp() != getpid() {
            let _ = kill_current_process_group(Signal::KILL);
        }
        sys::flush_and_exit_now(code)
    }
}
