//! The lock of one class: one byte, taken by threads of this process only.

use crate::threads::ThreadMode;
use argonet_base::sync::atomic::{AtomicU8, Ordering};
use crossbeam_utils::Backoff;

/// A lock that costs one atomic exchange to take and a plain store to release.
///
/// Its holder owns the class's private positions. In SEQ and PARSYNC it is not taken at all: the
/// caller has promised that one thread at a time calls.
#[derive(Default, Debug)]
pub(crate) struct ClassLock(AtomicU8);

/// Held until dropped.
pub(crate) struct ClassGuard<'a>(Option<&'a ClassLock>);

impl ClassLock {
    /// Takes the lock, waiting for its holder.
    #[inline(always)]
    pub(crate) fn lock(&self, mode: ThreadMode) -> ClassGuard<'_> {
        if mode != ThreadMode::Par {
            return ClassGuard(None);
        }
        #[cfg(test)]
        taken::note(self);
        if self.0.swap(1, Ordering::Acquire) != 0 {
            self.wait();
        }
        ClassGuard(Some(self))
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub(crate) fn try_lock(&self, mode: ThreadMode) -> Option<ClassGuard<'_>> {
        if mode != ThreadMode::Par {
            return Some(ClassGuard(None));
        }
        // A plain load first: polls of a class that another thread holds do not take its line away.
        if self.0.load(Ordering::Relaxed) != 0 || self.0.swap(1, Ordering::Acquire) != 0 {
            return None;
        }
        Some(ClassGuard(Some(self)))
    }

    #[cold]
    fn wait(&self) {
        let backoff = Backoff::new();
        while self.0.load(Ordering::Relaxed) != 0 || self.0.swap(1, Ordering::Acquire) != 0 {
            backoff.snooze();
        }
    }
}

impl Drop for ClassGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.0.store(0, Ordering::Release);
        }
    }
}

/// Which locks a thread has waited for or could have, in builds for tests.
#[cfg(test)]
pub(super) mod taken {
    use super::ClassLock;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static TAKEN: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(super) fn note(lock: &ClassLock) {
        TAKEN.with_borrow_mut(|taken| taken.insert(std::ptr::from_ref(lock).addr()));
    }

    /// The locks of the calling thread, which begins anew.
    pub(in super::super) fn take() -> BTreeSet<usize> {
        TAKEN.take()
    }
}
