//! Atomic operations of the processor on one word, as the process that maps it does them.

use super::super::datatype::{DataType, Operation};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
}

/// Types with remote atomic operations.
///
/// All ranks come to the same instructions of the processor, so that an operation of
/// one is atomic for all others.
pub trait AtomicWord: sealed::Sealed + Copy + PartialEq + Send + 'static {
    /// The type.
    const TYPE: DataType;

    /// Its bits, the upper half zero where it has 32.
    fn bits(self) -> u64;

    /// The value of such bits.
    fn of_bits(bits: u64) -> Self;

    /// Does an operation on a word; returns the value before if it is a fetching one, else a zero.
    ///
    /// Sequentially consistent.
    ///
    /// Integers wrap around. Floats are compared by their bits in a compare-and-swap; in a minimum
    /// or a maximum as C compares them, so that of a NaN, or of two zeros, the operand is taken.
    ///
    /// # Safety
    /// `at` is aligned, mapped, writable unless the operation is [`Operation::Get`], and only
    /// accessed atomically or through the bulk routine.
    ///
    /// # Panics
    /// If there is no such operation on the type ([`Operation::is_atomic_on`]).
    unsafe fn apply(at: *mut Self, what: Atomic<Self>) -> Self;
}

/// An operation and its operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Atomic<T> {
    /// The operation.
    pub operation: Operation,
    /// The first operand; counts for nothing if there is none ([`Operation::operands`]).
    pub operand1: T,
    /// The second operand; counts for nothing if there is none.
    pub operand2: T,
}

impl<T: AtomicWord> Atomic<T> {
    /// Stores the value before at `result`, if the operation fetches and the caller wants it.
    ///
    /// # Safety
    /// `result` is null or writable.
    #[inline(always)]
    pub(super) unsafe fn store_fetched(&self, before: T, result: *mut T) {
        if self.operation.is_fetching() && !result.is_null() {
            // SAFETY: this function's contract; C may give any address.
            unsafe { result.write_unaligned(before) };
        }
    }
}

const ORDER: Ordering = Ordering::SeqCst;

#[cold]
#[inline(never)]
fn no_such(operation: Operation, dt: DataType) -> ! {
    panic!(
        "{} is no atomic operation on {}",
        operation.name(),
        dt.name()
    );
}

/// The value before a change of the value that a closure gives.
macro_rules! update {
    ($word:ident, $change:expr) => {{
        let change = $change;
        let mut before = $word.load(Ordering::Relaxed);
        loop {
            match $word.compare_exchange_weak(before, change(before), ORDER, Ordering::Relaxed) {
                Ok(_) => break before,
                Err(now) => before = now,
            }
        }
    }};
}

macro_rules! cas {
    ($word:ident, $current:expr, $new:expr) => {
        match $word.compare_exchange($current, $new, ORDER, ORDER) {
            Ok(before) | Err(before) => before,
        }
    };
}

macro_rules! integers {
    ($($int:ty, $atomic:ty, $unsigned:ty, $dt:expr;)*) => {$(
        impl sealed::Sealed for $int {}

        impl AtomicWord for $int {
            const TYPE: DataType = $dt;

            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $unsigned)
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                bits as Self
            }

            #[inline(always)]
            unsafe fn apply(at: *mut Self, what: Atomic<Self>) -> Self {
                // SAFETY: this function's contract.
                let word = unsafe { <$atomic>::from_ptr(at) };
                let (op1, op2) = (what.operand1, what.operand2);
                // Operations that do not fetch are apart: processors have shorter instructions for
                // them.
                match what.operation {
                    Operation::FetchAdd => return word.fetch_add(op1, ORDER),
                    Operation::FetchSub => return word.fetch_sub(op1, ORDER),
                    Operation::FetchInc => return word.fetch_add(1, ORDER),
                    Operation::FetchDec => return word.fetch_sub(1, ORDER),
                    Operation::FetchAnd => return word.fetch_and(op1, ORDER),
                    Operation::FetchOr => return word.fetch_or(op1, ORDER),
                    Operation::FetchXor => return word.fetch_xor(op1, ORDER),
                    Operation::FetchMin => return word.fetch_min(op1, ORDER),
                    Operation::FetchMax => return word.fetch_max(op1, ORDER),
                    Operation::FetchMult => return update!(word, |before: Self| before.wrapping_mul(op1)),
                    Operation::Swap => return word.swap(op1, ORDER),
                    Operation::FetchCas => return cas!(word, op1, op2),
                    Operation::Get => return word.load(ORDER),
                    Operation::Add => _ = word.fetch_add(op1, ORDER),
                    Operation::Sub => _ = word.fetch_sub(op1, ORDER),
                    Operation::Inc => _ = word.fetch_add(1, ORDER),
                    Operation::Dec => _ = word.fetch_sub(1, ORDER),
                    Operation::And => _ = word.fetch_and(op1, ORDER),
                    Operation::Or => _ = word.fetch_or(op1, ORDER),
                    Operation::Xor => _ = word.fetch_xor(op1, ORDER),
                    Operation::Min => _ = word.fetch_min(op1, ORDER),
                    Operation::Max => _ = word.fetch_max(op1, ORDER),
                    Operation::Mult => _ = update!(word, |before: Self| before.wrapping_mul(op1)),
                    Operation::Set => word.store(op1, ORDER),
                    Operation::Cas => _ = cas!(word, op1, op2),
                    other @ (Operation::User | Operation::UserNonCommutative) => no_such(other, $dt),
                }
                0
            }
        }
    )*};
}

macro_rules! floats {
    ($($float:ty, $atomic:ty, $dt:expr;)*) => {$(
        impl sealed::Sealed for $float {}

        impl AtomicWord for $float {
            const TYPE: DataType = $dt;

            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as _)
            }

            #[inline(always)]
            unsafe fn apply(at: *mut Self, what: Atomic<Self>) -> Self {
                // SAFETY: this function's contract; a float and its bits have one size and
                // alignment.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                let (op1, op2) = (what.operand1, what.operand2);
                let update = |change: fn(Self, Self) -> Self, op1: Self| {
                    update!(word, |before| change(Self::from_bits(before), op1).to_bits())
                };
                let before = match what.operation {
                    Operation::FetchAdd | Operation::Add => update(|a, b| a + b, op1),
                    Operation::FetchSub | Operation::Sub => update(|a, b| a - b, op1),
                    Operation::FetchInc | Operation::Inc => update(|a, b| a + b, 1.0),
                    Operation::FetchDec | Operation::Dec => update(|a, b| a - b, 1.0),
                    Operation::FetchMult | Operation::Mult => update(|a, b| a * b, op1),
                    Operation::FetchMin | Operation::Min => update(|a, b| if a < b { a } else { b }, op1),
                    Operation::FetchMax | Operation::Max => update(|a, b| if a > b { a } else { b }, op1),
                    Operation::Swap => word.swap(op1.to_bits(), ORDER),
                    Operation::FetchCas | Operation::Cas => cas!(word, op1.to_bits(), op2.to_bits()),
                    Operation::Get => word.load(ORDER),
                    Operation::Set => {
                        word.store(op1.to_bits(), ORDER);
                        0
                    }
                    other => no_such(other, $dt),
                };
                match what.operation.is_fetching() {
                    true => Self::from_bits(before),
                    false => 0.0,
                }
            }
        }
    )*};
}

integers! {
    i32, AtomicI32, u32, DataType::I32;
    u32, AtomicU32, u32, DataType::U32;
    i64, AtomicI64, u64, DataType::I64;
    u64, AtomicU64, u64, DataType::U64;
}

floats! {
    f32, AtomicU32, DataType::F32;
    f64, AtomicU64, DataType::F64;
}
