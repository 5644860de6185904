//! A value that one thread at a time uses.

use crate::threads::ThreadMode;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU8, Ordering};
use crossbeam_utils::Backoff;
use std::time::Instant;

/// A value behind a lock that costs one atomic exchange to take and a plain store to release; in
/// SEQ, where the conduit's owner lets in one thread alone, a load and two stores.
///
/// Held for a few instructions only: a waiting thread spins.
pub(crate) struct Owned<T> {
    held: AtomicU8,
    mode: ThreadMode,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock uses the value, one thread at a time: `held` is exchanged,
// or, in SEQ, one thread alone comes here (the promise of the mode; an exit by another thread is
// turned away, `Portals::may_enter`), and `held` keeps it from using the value twice.
unsafe impl<T: Send> Sync for Owned<T> {}

/// The value, until dropped.
///
/// Shared and sent as `&mut T` is, so threads share one only if they may share a `T`.
pub(crate) struct Using<'a, T>(&'a Owned<T>, PhantomData<&'a mut T>);

impl<T> Owned<T> {
    pub(crate) const fn new(mode: ThreadMode, value: T) -> Self {
        Self {
            held: AtomicU8::new(0),
            mode,
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the value.
    ///
    /// # Panics
    /// If the only thread that calls uses it already.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Using<'_, T> {
        if !self.take() {
            self.wait();
        }
        Using(self, PhantomData)
    }

    /// The value, if no thread uses it.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Using<'_, T>> {
        // A plain load first: looking does not take the line from the thread that has it.
        (self.held.load(Ordering::Relaxed) == 0 && self.take()).then(|| Using(self, PhantomData))
    }

    /// The value, if the thread that uses it is done by that time.
    pub(crate) fn try_lock_until(&self, until: Instant) -> Option<Using<'_, T>> {
        let backoff = Backoff::new();
        loop {
            let using = self.try_lock();
            if using.is_some() || Instant::now() >= until {
                return using;
            }
            backoff.snooze();
        }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        if self.mode.locks() {
            return self.held.swap(1, Ordering::Acquire) == 0;
        }
        let is_free = self.held.load(Ordering::Relaxed) == 0;
        self.held.store(1, Ordering::Relaxed);
        is_free
    }

    #[cold]
    fn wait(&self) {
        assert!(self.mode.locks(), "the only thread locks a value twice");
        let backoff = Backoff::new();
        while self.held.load(Ordering::Relaxed) != 0 || !self.take() {
            backoff.snooze();
        }
    }
}

impl<T> Deref for Using<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Using` of the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Using<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Using<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.held.store(0, Ordering::Release);
    }
}

impl<T> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    // Derefs to `&T`: a thread that is handed a `&Using<T>` has a `&T`.
    assert_not_impl_any!(Using<'static, Cell<u8>>: Sync);
    assert_impl_all!(Using<'static, u8>: Sync);

    #[test]
    fn threads_use_it_one_at_a_time() {
        let count = Owned::new(ThreadMode::Par, 0_u64);
        std::thread::scope(|scope| {
            let add = || (0..10_000).for_each(|_| *count.lock() += 1);
            let threads = [(); 4].map(|()| scope.spawn(add));
            for thread in threads {
                thread.join().expect("a sum");
            }
        });
        assert_eq!(*count.lock(), 40_000);
    }

    #[test]
    fn a_value_in_use_is_not_given_out_again() {
        for mode in [ThreadMode::Seq, ThreadMode::Parsync, ThreadMode::Par] {
            let value = Owned::new(mode, 1);
            let mut using = value.try_lock().unwrap();
            assert!(value.try_lock().is_none());
            assert!(value.try_lock_until(Instant::now()).is_none());
            *using += 1;
            drop(using);
            assert_eq!(*value.lock(), 2);
        }
    }

    #[test]
    #[should_panic(expected = "locks a value twice")]
    fn the_only_thread_does_not_wait_for_itself() {
        let value = Owned::new(ThreadMode::Seq, ());
        let _using = value.lock();
        let _again = value.lock();
    }
}
