//! Published data of the ranks' segments: where each begins in its process, and how long it is.

use crate::error::Result;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bases and lengths of segments: read from the rank pages of neighbors; published once by the
/// others, and then remembered here.
pub struct Published {
    boot: Arc<LocalJob>,
    near: Range<u32>,
    /// Where segments of ranks elsewhere begin; 0 if it has not been looked up.
    ///
    /// Empty, as the next, where all are neighbors.
    bases: Box<[AtomicU64]>,
    /// How long segments of ranks elsewhere are, as the ranks said when they attached them
    /// together.
    lens: Box<[AtomicU64]>,
    /// How long all segments are at least, where all ranks attach the same.
    all: AtomicU64,
    /// Called before this rank publishes how long its segment is.
    reaches: OnceLock<Reaches>,
}

/// Makes the attached memory reachable.
pub(crate) type Reaches = Box<dyn Fn() -> Result<()> + Send + Sync>;

impl Published {
    pub(crate) fn new(boot: Arc<LocalJob>) -> Self {
        let (near, size) = (boot.neighborhood(), boot.size());
        let elsewhere = if near.len() == size as usize { 0 } else { size };
        let zeros = || (0..elsewhere).map(|_| AtomicU64::new(0)).collect();
        Self {
            boot,
            near,
            bases: zeros(),
            lens: zeros(),
            all: AtomicU64::new(0),
            reaches: OnceLock::new(),
        }
    }

    /// Whether there are ranks elsewhere, for which this rank publishes its entries of the rank
    /// page.
    pub(crate) fn has_others(&self) -> bool {
        !self.lens.is_empty()
    }

    /// Publishes where this rank's segment begins, or will begin; the others know after the next
    /// fence.
    pub(crate) fn publish_base(&self, base: u64) -> Result<()> {
        let page = self.boot.rank_page(self.boot.rank());
        page.segment_base.store(base, Ordering::Relaxed);
        if self.has_others() {
            self.boot.publish(Key::Span, &base.to_le_bytes())?;
        }
        Ok(())
    }

    /// Publishes to neighbors how long this rank's segment is.
    ///
    /// # Errors
    /// The network cannot make the segment reachable.
    pub(crate) fn publish_len(&self, len: u64) -> Result<()> {
        if let Some(reaches) = self.reaches.get() {
            reaches()?;
        }
        let page = self.boot.rank_page(self.boot.rank());
        page.segment_len.store(len, Ordering::Release);
        Ok(())
    }

    /// From now on `reaches` is called before a length is published.
    pub(crate) fn before_publishing(&self, reaches: Reaches) {
        // There is one network, which is joined once.
        let _ = self.reaches.set(reaches);
    }

    /// Each rank's segment is as long as this one's, or will be when the collective operation ends
    /// that this call is part of.
    ///
    /// # Errors
    /// The network cannot make the segment reachable.
    pub fn all_have(&self, len: u64) -> Result<()> {
        self.publish_len(len)?;
        self.all.store(len, Ordering::Release);
        Ok(())
    }

    /// The ranks' segments have these lengths.
    pub(crate) fn remember(&self, lens: &[u64]) {
        for (known, len) in self.lens.iter().zip(lens) {
            known.store(*len, Ordering::Release);
        }
    }

    /// Bytes of a rank's segment, as far as they are known; 0 if it has none.
    pub(crate) fn len(&self, rank: JobRank) -> u64 {
        if self.near.contains(&rank.0) {
            let page = self.boot.rank_page(rank);
            return page.segment_len.load(Ordering::Acquire);
        }
        let known = self.lens.get(rank.index());
        let known = known.map_or(0, |len| len.load(Ordering::Acquire));
        known.max(self.all.load(Ordering::Acquire))
    }

    /// Where a rank's segment begins, or will begin, in its process; 0 before the job has started.
    pub(crate) fn base(&self, rank: JobRank) -> u64 {
        if self.near.contains(&rank.0) {
            let page = self.boot.rank_page(rank);
            return page.segment_base.load(Ordering::Relaxed);
        }
        let Some(known) = self.bases.get(rank.index()) else {
            return 0;
        };
        match known.load(Ordering::Relaxed) {
            0 => {
                let published = self.boot.lookup(rank, Key::Span).ok();
                let base = published.and_then(|bytes| bytes.try_into().ok());
                let base = base.map_or(0, u64::from_le_bytes);
                known.store(base, Ordering::Relaxed);
                base
            }
            base => base,
        }
    }
}
