//! Atomic operations on global memory.
#![allow(unsafe_code)]

mod operation;
mod raw;
mod started;

pub use operation::AtomicOp;

use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
use argonet_engine::{self as engine, AtomicWord, Operation};

/// Types with remote atomic operations: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// fn increment<T: argonet::Atomic + From<u8>>(world: &World, counters: &SharedArray<T>) -> T {
///     world.fetch_add(counters.ptr(world.rank(), 0), T::from(1)).unwrap()
/// }
/// let counters = SharedArray::<i64>::alloc(&world, 1).unwrap();
/// assert_eq!([increment(&world, &counters), increment(&world, &counters)], [0, 1]);
/// let sums = SharedArray::<f32>::alloc(&world, 1).unwrap();
/// assert_eq!([increment(&world, &sums), increment(&world, &sums)], [0.0, 1.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    label = "this type is not `Atomic`",
    note = "`u32`, `i32`, `u64`, `i64`, `f32` and `f64` are"
)]
pub trait Atomic: Global + AtomicWord {}

#[diagnostic::do_not_recommend]
impl<T: Global + AtomicWord> Atomic for T {}

/// The integers among them, whose bits have operations too.
///
/// See the example of [`World::fetch_add`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations on its bits",
    label = "this type is not an `AtomicInteger`",
    note = "`u32`, `i32`, `u64` and `i64` are"
)]
pub trait AtomicInteger: Atomic {}

impl AtomicInteger for u32 {}
impl AtomicInteger for i32 {}
impl AtomicInteger for u64 {}
impl AtomicInteger for i64 {}

macro_rules! fetching {
    ($bound:ident: $($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Blocking; returns the value before. Atomic with respect to all atomic operations of
        /// this module by any rank, sequentially consistent.
        ///
        /// # Errors
        /// A pointer outside the segment or not aligned, a rank that does not exist or is lost
        /// ([`AmError::PeerLost`](crate::AmError::PeerLost)), or a call from inside a handler.
        #[inline]
        pub fn $name<T: $bound>(&self, at: GlobalPtr<T>, value: T) -> Result<T> {
            self.apply(at, Operation::$operation, value, T::of_bits(0))
        }
    )*};
}

impl<M: Threading> World<M> {
    #[inline(always)]
    fn apply<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        operation: Operation,
        operand1: T,
        operand2: T,
    ) -> Result<T> {
        let what = engine::Atomic {
            operation,
            operand1,
            operand2,
        };
        self.apply_all(at, what)
    }

    // Outside of `process::with`: its closure is compiled as a function of its own, which would get
    // the operands through memory.
    #[inline(always)]
    pub(crate) fn apply_all<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        what: engine::Atomic<T>,
    ) -> Result<T> {
        match self.mapped(at) {
            Some(place) if place.cast::<T>().is_aligned() => {
                // SAFETY: the place has the size of a `T` in a segment that is mapped here, it is
                // aligned, and segments are only accessed through the bulk routine and atomics.
                Ok(unsafe { T::apply(place.as_ptr().cast(), what) })
            }
            _ => self.apply_otherwise(at, what),
        }
    }

    #[cold]
    #[inline(never)]
    fn apply_otherwise<T: Atomic>(&self, at: GlobalPtr<T>, what: engine::Atomic<T>) -> Result<T> {
        let target = Self::target_of(at);
        Ok(process::with(|ctx| {
            self.engine().atomic(ctx, target, what)
        })?)
    }

    fetching! { Atomic:
        /// Adds; integers wrap around.
        ///
        /// ```
        /// # use argonet::{SharedArray, World};
        /// # let world = World::init().unwrap();
        /// let v = SharedArray::<u32>::alloc(&world, 1).unwrap();
        /// let p = v.ptr(world.rank(), 0);
        /// assert_eq!(world.fetch_add(p, 0b0110).unwrap(), 0);
        /// assert_eq!(world.fetch_and(p, 0b1100).unwrap(), 0b0110);
        /// assert_eq!(world.fetch_or(p, 0b0011).unwrap(), 0b0100);
        /// assert_eq!(world.fetch_xor(p, 0b0101).unwrap(), 0b0111);
        /// assert_eq!(world.fetch_min(p, 1).unwrap(), 0b0010);
        /// assert_eq!(world.fetch_max(p, 9).unwrap(), 1);
        /// assert_eq!(world.fetch_sub(p, 2).unwrap(), 9);
        /// assert_eq!(world.fetch_mul(p, 5).unwrap(), 7);
        /// assert_eq!(world.swap(p, 3).unwrap(), 35);
        /// assert_eq!(world.atomic_load(p).unwrap(), 3);
        /// world.atomic_store(p, 8).unwrap();
        /// assert_eq!(world.atomic_load(p).unwrap(), 8);
        /// ```
        fetch_add = FetchAdd;
        /// Subtracts; integers wrap around.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        fetch_sub = FetchSub;
        /// Multiplies; integers wrap around.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        fetch_mul = FetchMult;
        /// Keeps the smaller value.
        ///
        /// Where either is a NaN, `value` is taken. See the example of
        /// [`fetch_add`](Self::fetch_add).
        fetch_min = FetchMin;
        /// Keeps the larger value.
        ///
        /// Where either is a NaN, `value` is taken. See the example of
        /// [`fetch_add`](Self::fetch_add).
        fetch_max = FetchMax;
        /// Replaces the value.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        swap = Swap;
    }

    fetching! { AtomicInteger:
        /// Bitwise and.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        fetch_and = FetchAnd;
        /// Bitwise or.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        fetch_or = FetchOr;
        /// Bitwise exclusive or.
        ///
        /// See the example of [`fetch_add`](Self::fetch_add).
        fetch_xor = FetchXor;
    }

    /// Replaces `current` by `new` and returns the value before: `current` on success.
    ///
    /// Blocking. Floats are compared by their bits.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let p = v.ptr(world.rank(), 0);
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
        self.apply(at, Operation::FetchCas, current, new)
    }

    /// Reads atomically.
    ///
    /// Blocking.
    ///
    /// See the example of [`fetch_add`](Self::fetch_add).
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_load<T: Atomic>(&self, at: GlobalPtr<T>) -> Result<T> {
        let zero = T::of_bits(0);
        self.apply(at, Operation::Get, zero, zero)
    }

    /// Writes atomically.
    ///
    /// Blocking: the value is there when this returns.
    ///
    /// See the example of [`fetch_add`](Self::fetch_add).
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic_store<T: Atomic>(&self, at: GlobalPtr<T>, value: T) -> Result<()> {
        self.apply(at, Operation::Set, value, T::of_bits(0))?;
        Ok(())
    }

    /// Does an operation without the value before, which may be cheaper than with it.
    ///
    /// Blocking.
    ///
    /// See the example of [`AtomicOp`].
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn atomic<T: Atomic>(&self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<()> {
        self.apply_all(at, op.plain())?;
        Ok(())
    }

    /// Does an operation and returns the value before.
    ///
    /// Blocking.
    ///
    /// See the example of [`AtomicOp`].
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    #[inline]
    pub fn fetch<T: Atomic>(&self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<T> {
        self.apply_all(at, op.fetching())
    }

    /// Starts an operation without the value before.
    ///
    /// It is complete when it has changed the word. This call waits, polling, only while there is
    /// no room to start it.
    ///
    /// ```
    /// # use argonet::{AtomicOp, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<i64>::alloc(&world, 2).unwrap();
    /// let [a, b] = [0, 1].map(|i| v.ptr(world.rank(), i));
    /// let adds = [a, b].map(|p| world.start_atomic(p, AtomicOp::add(7)).unwrap());
    /// for add in adds {
    ///     add.wait().unwrap();
    /// }
    /// let sum: argonet::Result<i64> = world.block_on(async {
    ///     let first = world.start_fetch(a, AtomicOp::get())?;
    ///     let second = world.start_fetch(b, AtomicOp::dec())?;
    ///     Ok(first.await? + second.await?)
    /// });
    /// assert_eq!(sum.unwrap(), 14);
    /// assert_eq!(world.atomic_load(b).unwrap(), 6);
    /// ```
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    pub fn start_atomic<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        op: AtomicOp<T>,
    ) -> Result<Op<'_, (), M>> {
        started::start(self, at, op.plain(), |_| ())
    }

    /// Starts an operation whose result is the value before.
    ///
    /// Waits as [`start_atomic`](Self::start_atomic).
    ///
    /// See the example of [`start_atomic`](Self::start_atomic).
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    pub fn start_fetch<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        op: AtomicOp<T>,
    ) -> Result<Op<'_, T, M>> {
        started::start(self, at, op.fetching(), |before| before)
    }
}
