//! Atomic operations on global memory.
#![allow(unsafe_code)]

use crate::engine::AtomicWord;
use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::process;
use crate::world::{Threading, World};

/// Integers with remote atomic operations: `u32`, `i32`, `u64`, `i64`.
///
/// ```
/// # use argonet::{SharedVec, World};
/// # let world = World::init().unwrap();
/// fn increment<T: argonet::Atomic + From<u8>>(world: &World, counters: &SharedVec<T>) -> T {
///     world.fetch_add(counters.gptr(world.rank(), 0), T::from(1)).unwrap()
/// }
/// let counters = SharedVec::<i64>::alloc(&world, 1).unwrap();
/// assert_eq!([increment(&world, &counters), increment(&world, &counters)], [0, 1]);
/// ```
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
        ///
        /// ```
        /// # use argonet::{SharedVec, World};
        /// # let world = World::init().unwrap();
        /// let v = SharedVec::<u32>::alloc(&world, 1).unwrap();
        /// let p = v.gptr(world.rank(), 0);
        /// assert_eq!(world.fetch_add(p, 0b0110).unwrap(), 0);
        /// assert_eq!(world.fetch_and(p, 0b1100).unwrap(), 0b0110);
        /// assert_eq!(world.fetch_or(p, 0b0011).unwrap(), 0b0100);
        /// assert_eq!(world.fetch_xor(p, 0b0101).unwrap(), 0b0111);
        /// assert_eq!(world.fetch_min(p, 1).unwrap(), 0b0010);
        /// assert_eq!(world.fetch_max(p, 9).unwrap(), 1);
        /// assert_eq!(world.swap(p, 3).unwrap(), 9);
        /// assert_eq!(world.atomic_load(p).unwrap(), 3);
        /// world.atomic_store(p, 8).unwrap();
        /// assert_eq!(world.atomic_load(p).unwrap(), 8);
        /// ```
        fetch_add;
        /// Bitwise and. See the example of [`fetch_add`](Self::fetch_add).
        fetch_and;
        /// Bitwise or. See the example of [`fetch_add`](Self::fetch_add).
        fetch_or;
        /// Bitwise exclusive or. See the example of [`fetch_add`](Self::fetch_add).
        fetch_xor;
        /// Keeps the smaller value. See the example of [`fetch_add`](Self::fetch_add).
        fetch_min;
        /// Keeps the larger value. See the example of [`fetch_add`](Self::fetch_add).
        fetch_max;
        /// Replaces the value. See the example of [`fetch_add`](Self::fetch_add).
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

    /// Reads atomically. See the example of [`fetch_add`](Self::fetch_add).
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_load<T: Atomic>(&self, at: GlobalPtr<T>) -> Result<T> {
        // SAFETY: as for the fetching operations.
        self.atomic(at, |word| unsafe { T::load(word) })
    }

    /// Writes atomically. See the example of [`fetch_add`](Self::fetch_add).
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_store<T: Atomic>(&self, at: GlobalPtr<T>, value: T) -> Result<()> {
        // SAFETY: as for the fetching operations.
        self.atomic(at, |word| unsafe { T::store(word, value) })
    }
}
