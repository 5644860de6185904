//! Atomic operations on global memory.
#![allow(unsafe_code)]

use crate::engine::AtomicWord;
use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::process;
use crate::world::{Threading, World};

/// Integers with remote atomic operations: `u32`, `i32`, `u64`, `i64`.
pub trait Atomic: Global + AtomicWord {}

impl<T: Global + AtomicWord> Atomic for T {}

macro_rules! fetching {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Blocking; returns the value before. Atomic with respect to all atomic operations of
        /// this module by any rank, sequentially consistent.
        ///
        /// # Errors
        /// A pointer outside the segment or not aligned, a rank that does not exist, or a call
        /// from inside a handler.
        #[inline]
        pub fn $name<T: Atomic>(&self, at: GlobalPtr<T>, value: T) -> Result<T> {
            // SAFETY: the engine hands out an aligned, mapped word; other accesses to it are
            // atomic or go through the bulk routine.
            self.atomic(at, |word| unsafe { T::$name(word, value) })
        }
    )*};
}

impl<M: Threading> World<M> {
    #[inline(always)]
    fn atomic<T: Atomic, R>(&self, at: GlobalPtr<T>, f: impl FnOnce(*mut T) -> R) -> Result<R> {
        let rank = Self::job_rank(at.rank());
        Ok(process::with(|ctx| {
            self.engine().atomic(ctx, rank, at.offset(), f)
        })?)
    }

    fetching! {
        /// Adds, wrapping around.
        fetch_add;
        /// Bitwise and.
        fetch_and;
        /// Bitwise or.
        fetch_or;
        /// Bitwise exclusive or.
        fetch_xor;
        /// Keeps the smaller value.
        fetch_min;
        /// Keeps the larger value.
        fetch_max;
        /// Replaces the value.
        swap;
    }

    /// Replaces `current` by `new` and returns the value before: `current` on success.
    ///
    /// ```
    /// # use argonet::{SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u64>::alloc(&world, 1).unwrap();
    /// let p = v.gptr(world.rank(), 0);
    /// assert_eq!(world.compare_exchange(p, 0, 5).unwrap(), 0);
    /// assert_eq!(world.compare_exchange(p, 0, 6).unwrap(), 5);
    /// assert_eq!(world.fetch_add(p, 1).unwrap(), 5);
    /// assert_eq!(world.atomic_load(p).unwrap(), 6);
    /// ```
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn compare_exchange<T: Atomic>(&self, at: GlobalPtr<T>, current: T, new: T) -> Result<T> {
        // SAFETY: as for the fetching operations.
        self.atomic(at, |word| unsafe {
            T::compare_exchange(word, current, new)
        })
    }

    /// Reads atomically.
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_load<T: Atomic>(&self, at: GlobalPtr<T>) -> Result<T> {
        // SAFETY: as for the fetching operations.
        self.atomic(at, |word| unsafe { T::load(word) })
    }

    /// Writes atomically.
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_store<T: Atomic>(&self, at: GlobalPtr<T>, value: T) -> Result<()> {
        // SAFETY: as for the fetching operations.
        self.atomic(at, |word| unsafe { T::store(word, value) })
    }
}
