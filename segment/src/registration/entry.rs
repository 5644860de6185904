//! One registration, and the handle by which an operation holds it.

use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use super::uses::Uses;
use super::{PageRange, Registrar};

/// State of a cache that registrations need, and that may outlive the cache.
pub(super) struct Shared<R> {
    pub(super) registrar: R,
    /// Bytes that are registered.
    ///
    /// Raised under the cache's lock, lowered by the thread that gives back: a reader under the
    /// lock sees at least what there is. Relaxed: nothing else depends on it.
    pub(super) bytes: AtomicUsize,
    /// Registrations that there are.
    ///
    /// As `bytes`.
    pub(super) count: AtomicUsize,
    /// Counted up by each miss, under the lock: the clock by which uses are compared.
    ///
    /// Between two misses nothing is evicted, so that no finer one is wanted, and hits do not write
    /// it. Relaxed.
    pub(super) clock: AtomicU64,
}

/// A registration.
pub(super) struct Entry<R: Registrar> {
    pub(super) range: PageRange,
    pub(super) handle: R::Handle,
    pub(super) uses: Uses,
    /// When it was last used.
    ///
    /// Written by users, read under the lock. Relaxed: a guess is enough.
    last_used: AtomicU64,
    /// Where it stands in the queue of those that go first.
    ///
    /// Read and written under the lock.
    queued: AtomicU64,
    pub(super) shared: Arc<Shared<R>>,
}

impl<R: Registrar> Entry<R> {
    /// A registration with one user.
    pub(super) fn new(range: PageRange, handle: R::Handle, shared: &Arc<Shared<R>>) -> Self {
        shared.bytes.fetch_add(range.bytes(), Ordering::Relaxed);
        shared.count.fetch_add(1, Ordering::Relaxed);
        Self {
            range,
            handle,
            uses: Uses::one(),
            last_used: AtomicU64::new(shared.clock.load(Ordering::Relaxed)),
            queued: AtomicU64::new(0),
            shared: Arc::clone(shared),
        }
    }

    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub(super) fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    pub(super) fn set_queued(&self, used: u64) {
        self.queued.store(used, Ordering::Relaxed);
    }

    /// Notes that it is used now.
    ///
    /// Stores nothing that is there already, so that hits of several threads share the line.
    pub(super) fn touch(&self) {
        let now = self.shared.clock.load(Ordering::Relaxed);
        if self.last_used() != now {
            self.last_used.store(now, Ordering::Relaxed);
        }
    }

    /// Gives it back.
    ///
    /// [`Uses`] has assigned that to the caller.
    pub(super) fn give_back(&self) {
        let Self { range, shared, .. } = self;
        shared.registrar.deregister(*range, &self.handle);
        shared.bytes.fetch_sub(range.bytes(), Ordering::Relaxed);
        shared.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory that stays registered as long as this lives.
///
/// Belongs to an operation under way; any thread may drop it, also after the cache.
pub struct Pinned<R: Registrar>(Arc<Entry<R>>);

impl<R: Registrar> Pinned<R> {
    /// For a user that is counted.
    pub(super) fn counted(entry: Arc<Entry<R>>) -> Self {
        Self(entry)
    }

    /// All pages that are registered here: those asked for, and maybe more.
    #[must_use]
    pub fn range(&self) -> PageRange {
        self.0.range
    }

    /// The registrar's handle.
    #[must_use]
    pub fn handle(&self) -> &R::Handle {
        &self.0.handle
    }
}

impl<R: Registrar> Clone for Pinned<R> {
    fn clone(&self) -> Self {
        self.0.uses.again();
        Self(Arc::clone(&self.0))
    }
}

impl<R: Registrar> Drop for Pinned<R> {
    fn drop(&mut self) {
        self.0.touch();
        if self.0.uses.leave() {
            self.0.give_back();
        }
    }
}

impl<R: Registrar> fmt::Debug for Pinned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&self.0.range).finish()
    }
}
