//! Stripes, in which requests find their registrations.
//!
//! A lock that all threads take for reading is a cache line that all of them write. So each of some
//! stripes has a lock and a map of its own; threads spread over them, and the few that change
//! something do so in all.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::RwLock;

use super::entry::Entry;
use super::{PageRange, Registrar};

const STRIPES: usize = 8;

struct Stripe<R: Registrar> {
    /// By their first address.
    ///
    /// They are disjoint.
    entries: RwLock<BTreeMap<usize, Arc<Entry<R>>>>,
    /// Requests that were answered here.
    ///
    /// Relaxed: a statistic.
    hits: AtomicU64,
}

pub(super) struct Stripes<R: Registrar>([CachePadded<Stripe<R>>; STRIPES]);

impl<R: Registrar> Stripes<R> {
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| {
            CachePadded::new(Stripe {
                entries: RwLock::new(BTreeMap::new()),
                hits: AtomicU64::new(0),
            })
        }))
    }

    /// A registration that covers a range, counted as in use.
    pub(super) fn enter(&self, range: PageRange) -> Option<Arc<Entry<R>>> {
        let stripe = &self.0[own()];
        let entries = stripe.entries.read();
        let (_, entry) = entries.range(..=range.start()).next_back()?;
        if !entry.range.contains(range) || !entry.uses.enter() {
            return None;
        }
        stripe.hits.fetch_add(1, Ordering::Relaxed);
        entry.touch();
        Some(Arc::clone(entry))
    }

    /// The registrations that overlap a range.
    ///
    /// For a holder of the cache's lock.
    pub(super) fn overlapping(&self, range: PageRange) -> Vec<Arc<Entry<R>>> {
        let entries = self.0[0].entries.read();
        let before = entries.range(..range.end()).rev();
        let mut found: Vec<_> = before
            .take_while(|(_, entry)| entry.range.overlaps(range))
            .map(|(_, entry)| Arc::clone(entry))
            .collect();
        found.reverse();
        found
    }

    /// The registration that begins at an address.
    ///
    /// For a holder of the cache's lock.
    pub(super) fn at(&self, start: usize) -> Option<Arc<Entry<R>>> {
        self.0[0].entries.read().get(&start).map(Arc::clone)
    }

    /// For a holder of the cache's lock.
    pub(super) fn insert(&self, entry: &Arc<Entry<R>>) {
        for stripe in &self.0 {
            let mut entries = stripe.entries.write();
            entries.insert(entry.range.start(), Arc::clone(entry));
        }
    }

    /// For a holder of the cache's lock.
    pub(super) fn remove(&self, entry: &Entry<R>) {
        for stripe in &self.0 {
            stripe.entries.write().remove(&entry.range.start());
        }
    }

    /// Takes all out.
    ///
    /// For the owner of the cache.
    pub(super) fn take(&mut self) -> Vec<Arc<Entry<R>>> {
        let mut all = Vec::new();
        for stripe in &mut self.0 {
            let entries = core::mem::take(stripe.entries.get_mut());
            all = entries.into_values().collect();
        }
        all
    }

    pub(super) fn hits(&self) -> u64 {
        self.0.iter().map(|s| s.hits.load(Ordering::Relaxed)).sum()
    }
}

/// The stripe of the calling thread, which its stack distinguishes from others: stacks are further
/// apart than this divides by.
fn own() -> usize {
    const STACK: usize = 1 << 16;
    let here = 0u8;
    let place = (&raw const here).addr() / STACK;
    // The high bits of the product depend on all bits of the place.
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - 3)) % STRIPES
}
