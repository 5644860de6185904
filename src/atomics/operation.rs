//! Operations with their operands.

use super::{Atomic, AtomicInteger};
use argonet_engine::{self as engine, Operation};

/// An operation on a word: one of GASNet-EX ("Operation codes") with its operands.
///
/// Integers wrap around. Floats follow IEEE 754, but for these: [`min`](Self::min) and
/// [`max`](Self::max) keep the value before only if it is the smaller or larger one as C compares
/// them, so that where either is a NaN, or both are zeros, the operand is taken;
/// [`compare_exchange`](Self::compare_exchange) compares bits, so that a NaN equals itself and 0.0
/// does not equal -0.0.
///
/// ```
/// # use argonet::{AtomicOp, SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<f64>::alloc(&world, 1).unwrap();
/// let p = v.ptr(world.rank(), 0);
/// world.atomic(p, AtomicOp::add(1.5)).unwrap();
/// world.atomic(p, AtomicOp::mul(4.0)).unwrap();
/// world.atomic(p, AtomicOp::sub(0.5)).unwrap();
/// assert_eq!(world.fetch(p, AtomicOp::inc()).unwrap(), 5.5);
/// assert_eq!(world.fetch(p, AtomicOp::dec()).unwrap(), 6.5);
/// assert_eq!(world.fetch(p, AtomicOp::min(2.0)).unwrap(), 5.5);
/// assert_eq!(world.fetch(p, AtomicOp::max(3.0)).unwrap(), 2.0);
/// assert_eq!(world.fetch(p, AtomicOp::compare_exchange(3.0, 8.0)).unwrap(), 3.0);
/// assert_eq!(world.fetch(p, AtomicOp::set(f64::NAN)).unwrap(), 8.0);
/// assert!(world.fetch(p, AtomicOp::get()).unwrap().is_nan());
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AtomicOp<T: Atomic> {
    /// The form of the operation that does not fetch, if there is one.
    operation: Operation,
    operand1: T,
    operand2: T,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $operation:ident($($operand:ident),*);)*) => {$(
        $(#[$doc])*
        ///
        /// See the example of [`AtomicOp`].
        #[inline]
        #[must_use]
        pub fn $name($($operand: T),*) -> Self {
            Self::of(Operation::$operation, [$($operand),*])
        }
    )*};
}

impl<T: Atomic> AtomicOp<T> {
    #[inline(always)]
    fn of<const N: usize>(operation: Operation, operands: [T; N]) -> Self {
        let zero = T::of_bits(0);
        Self {
            operation,
            operand1: operands.first().copied().unwrap_or(zero),
            operand2: operands.get(1).copied().unwrap_or(zero),
        }
    }

    operations! {
        /// Adds.
        add = Add(value);
        /// Subtracts.
        sub = Sub(value);
        /// Multiplies.
        mul = Mult(value);
        /// Keeps the smaller value.
        min = Min(value);
        /// Keeps the larger value.
        max = Max(value);
        /// Adds one.
        inc = Inc();
        /// Subtracts one.
        dec = Dec();
        /// Replaces the value.
        set = Set(value);
        /// Replaces the value by `new` if it is `current`.
        ///
        /// Never fails without a reason.
        compare_exchange = Cas(current, new);
        /// Changes nothing.
        get = Get();
    }

    #[inline(always)]
    pub(crate) fn plain(self) -> engine::Atomic<T> {
        engine::Atomic {
            operation: self.operation,
            operand1: self.operand1,
            operand2: self.operand2,
        }
    }

    /// The same that gives the value before.
    #[inline(always)]
    pub(crate) fn fetching(self) -> engine::Atomic<T> {
        engine::Atomic {
            operation: self.operation.fetching(),
            ..self.plain()
        }
    }
}

/// Bits of integers.
///
/// ```
/// # use argonet::{AtomicOp, SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u32>::alloc(&world, 1).unwrap();
/// let p = v.ptr(world.rank(), 0);
/// world.atomic(p, AtomicOp::or(0b0110)).unwrap();
/// world.atomic(p, AtomicOp::and(0b1100)).unwrap();
/// assert_eq!(world.fetch(p, AtomicOp::xor(0b0101)).unwrap(), 0b0100);
/// assert_eq!(world.atomic_load(p).unwrap(), 0b0001);
/// ```
///
/// Floats have none:
///
/// ```compile_fail
/// # use argonet::AtomicOp;
/// let op = AtomicOp::<f64>::and(1.0);
/// ```
impl<T: AtomicInteger> AtomicOp<T> {
    operations! {
        /// Bitwise and.
        and = And(value);
        /// Bitwise or.
        or = Or(value);
        /// Bitwise exclusive or.
        xor = Xor(value);
    }
}
