//! The job as its ranks see it: key store, fence, and the end.

use crate::clock::Place;
use argonet_base::JobRank;
use argonet_boot::{BootError, Bootstrap, Key, MAX_VALUE_BYTES};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a job was ended by one of its ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abort {
    /// The rank that ended the job.
    pub rank: JobRank,
    /// The job's exit code.
    pub code: u8,
    /// Why.
    pub message: String,
    /// When, in virtual time.
    pub at_ns: u64,
}

/// State that all ranks of a job share apart from the wire.
#[derive(Debug, Default)]
pub(crate) struct Job {
    published: BTreeMap<(u32, u8), Vec<u8>>,
    /// Values that a fence has made visible.
    visible: BTreeMap<(u32, u8), Vec<u8>>,
    /// Ranks that have entered the present fence, and how many fences are complete.
    entered: u32,
    fences: u32,
    /// Ranks that have finalized.
    finalized: u32,
    /// Ranks that had nothing under way when they looked last, after they had finalized.
    quiet: Vec<u32>,
    /// The run has ended; ranks that are left are being unwound, which aborts nothing any more.
    pub(crate) over: bool,
    /// The first abort; it ends the job.
    pub(crate) abort: Option<Abort>,
}

impl Job {
    /// Records whether a rank that has finalized has anything under way; says whether no rank has,
    /// so that all may go.
    pub(crate) fn rests(&mut self, rank: u32, quiet: bool, size: u32) -> bool {
        self.quiet.retain(|other| *other != rank);
        if quiet {
            self.quiet.push(rank);
        }
        self.finalized == size && self.quiet.len() == size as usize
    }
}

/// One rank's part of a [`Job`].
pub(crate) struct SimBoot {
    pub(crate) place: Place,
    pub(crate) size: u32,
    pub(crate) job_id: u64,
    pub(crate) job: Arc<Mutex<Job>>,
}

impl Bootstrap for SimBoot {
    fn rank(&self) -> JobRank {
        JobRank(self.place.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn job_id(&self) -> u64 {
        self.job_id
    }

    fn publish(&self, key: Key, value: &[u8]) -> Result<(), BootError> {
        let rank = self.rank();
        if value.len() > MAX_VALUE_BYTES {
            let bytes = value.len();
            return Err(BootError::ValueTooLong { rank, key, bytes });
        }
        let mut job = self.job.lock();
        let place = (rank.0, key.into());
        if job.published.contains_key(&place) {
            return Err(BootError::PublishedTwice { rank, key });
        }
        job.published.insert(place, value.to_vec());
        Ok(())
    }

    fn fence(&self) -> Result<(), BootError> {
        let awaited = {
            let mut job = self.job.lock();
            job.entered += 1;
            let awaited = job.fences + 1;
            if job.entered == self.size {
                job.entered = 0;
                job.fences += 1;
                job.visible = job.published.clone();
                for rank in 0..self.size {
                    self.place.clock.wake(rank);
                }
            }
            awaited
        };
        while self.job.lock().fences < awaited {
            // Frames may be there already, for which no rank polls yet; time goes on nevertheless.
            self.place.spend(1_000);
            if self.job.lock().fences < awaited {
                self.place.park(Some(self.place.clock.now_ns() + 100_000));
            }
        }
        Ok(())
    }

    fn lookup(&self, rank: JobRank, key: Key) -> Result<Vec<u8>, BootError> {
        let value = self.job.lock().visible.get(&(rank.0, key.into())).cloned();
        value.ok_or(BootError::NotPublished { rank, key })
    }

    fn started(&self) {}

    fn finalized(&self) {
        self.job.lock().finalized += 1;
        for rank in 0..self.size {
            self.place.clock.wake(rank);
        }
    }

    fn abort(&self, code: u8, message: &str) -> ! {
        let abort = Abort {
            rank: self.rank(),
            code: code.max(1),
            message: message.to_owned(),
            at_ns: self.place.clock.now_ns(),
        };
        let mut job = self.job.lock();
        if !job.over {
            job.abort.get_or_insert(abort);
        }
        drop(job);
        match &self.place.fiber {
            Some(fiber) => fiber.end(),
            None => panic!("rank {} aborts: {message}", self.place.rank),
        }
    }
}
